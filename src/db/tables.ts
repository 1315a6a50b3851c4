import type { ColumnType, Generated, Selectable } from 'kysely';
import type { InboxKind } from '../variant.ts';
import type { BlockKind } from '../rules/source-blocks.ts';
import type { PictureType } from '../rules/media/media-names.ts';
import type { PostColumns } from '../rules/post-fields.ts';

/** ISO 8601 UTC with milliseconds, e.g. `2026-01-31T09:30:00.000Z`: sorts as text in both engines. */
type Timestamp = string;

/** What made a revision of a post. */
export type Cause = 'created' | 'changed' | 'published' | 'unpublished' | 'renamed' | 'restored';

/** Row types of every table. Both SQL engines hold exactly these columns. */
export type Tables = {
  /**
   * Single facts about the instance: `instance_id`, `secret_fingerprint`, and `copy_of` while it is being copied. With
   * SQLite also `mark` (`sqlite/instance-marker.ts`), `search_erasure` (`services/upkeep/maintenance.ts`) and `rewrite` (`sqlite/sqlite.ts`).
   */
  meta: { key: string; value: string };
  /** Totals that lists and metrics show. Split over shards so that concurrent writers do not queue for one row. */
  counters: { name: 'posts' | 'blogs' | 'pictures' | 'picture_bytes'; shard: number; value: number };
  agents: {
    id: string;
    name: string;
    /** Null once an unverified registration has lost its slug to another agent. */
    slug: string | null;
    /** The address as typed, where mail goes. */
    email: string;
    /** The address in lower case: one agent each. */
    email_key: string;
    bio: string | null;
    avatar_url: string | null;
    /** SHA-256 of the API key, hex. */
    key_hash: string | null;
    /** When the present key authenticated its first call. Until then the token that gave it can be used again. */
    key_used_at: Timestamp | null;
    created_at: Timestamp;
    /** Latest registration: an unverified one holds its slug for an hour from here. */
    registered_at: Timestamp;
    /** Keyed hash of the client address of that registration; null: by a release that did not note it. */
    registered_from: Generated<string | null>;
    verified_at: Timestamp | null;
    suspended_at: Timestamp | null;
    suspended_reason: string | null;
    /** When the suspension ends by itself; null: the operator has to end it. */
    suspended_until: Timestamp | null;
    /** When it is erased, since it deletes itself; it counts as suspended until then. */
    erase_at: Timestamp | null;
    /** SHA-256 of the mailed token that undoes that, hex. */
    undo_hash: string | null;
    /** When it was to be erased before the operator suspended it, which halts that. */
    erase_promised: Timestamp | null;
    /** When the agent entered the public list of blogs; null while unverified or suspended. */
    listed_at: Timestamp | null;
    /** Since when its posts are being taken out of the public, or brought back, in parts; null: all are as it is. */
    listing_due: Timestamp | null;
    /**
     * Meanwhile the last of its comments, by time and id, that is not in the count of its post; null: all are in it, or
     * none, as it is suspended or not.
     */
    comments_after: string | null;
    /** When a proxy was first allowed to get a certificate for its blog's host. */
    certified_at: Timestamp | null;
    /** Counts changes of what the agent's pages and posts show of it. */
    revision: Generated<number>;
    /** Published posts: those that nothing but a suspension keeps from the public, and those that are moderated. */
    published_count: Generated<number>;
    moderated_count: Generated<number>;
    draft_count: Generated<number>;
    /** UTF-8 bytes of content of all posts, for the quota. */
    content_bytes: Generated<number>;
    /** UTF-8 bytes of all former texts of posts, for their quota. */
    revision_bytes: Generated<number>;
    last_published_at: Timestamp | null;
    /** UTF-8 bytes of content of all comments, for the quota; null until they have been counted. */
    comment_bytes: number | null;
    /**
     * Keyed hash of the folded address: the agents of one mailbox have one vote in ranks. Null until it is filled in, once the
     * agent is verified.
     */
    mailbox_key: string | null;
    /** What the name is sorted by, once the agent is verified: see `nameKey`. */
    name_key: Generated<string | null>;
    /** When the effect of all the agent's votes on counts and ranks is to be settled again; null: never. */
    votes_due: Timestamp | null;
    /** The post up to which that has been done, in the order of ids; null: not begun. */
    votes_after: string | null;
    /** Since when no mail is sent to its address, and what the mail server answered; null: it is. */
    mail_refused_at: Timestamp | null;
    mail_refused: string | null;
    /** Why it is not trusted yet: as a newcomer, or since the operator says so. Null: it is trusted. */
    probation: 'new' | 'operator' | null;
  };
  /** What operators did, by ids and their reasons alone: it outlives what it was done to. */
  audit: {
    id: string;
    at: Timestamp;
    /** `cli:` and the user of the operating system, or `system`. */
    actor: string;
    action: string;
    target_kind: 'agent' | 'post' | 'comment' | 'report' | 'block' | 'appeal';
    target_id: string;
    reason: string | null;
    /** What the actions of one command have in common. */
    batch: string | null;
    /** JSON: what undoing it needs. */
    data: string | null;
  };
  /** Whose registrations, and which texts, the operator does not want. */
  source_blocks: {
    id: string;
    kind: BlockKind;
    /** In the form that `parseBlock` gives it. */
    value: string;
    reason: string | null;
    created_at: Timestamp;
    /** As `actor` of the log. */
    by: string;
    /** When it was lifted; kept as long as the log, so that lifting it can be undone. */
    ended_at: Timestamp | null;
  };
  /** What people and agents report to the operator. */
  reports: {
    id: string;
    /** `agent:` and an id, or a keyed hash of the client address and the e-mail address. */
    reporter: string;
    agent_id: string | null;
    name: string | null;
    email: string | null;
    target_kind: 'agent' | 'post' | 'comment';
    target_id: string;
    /** The agent that wrote it. */
    owner_id: string;
    url: string;
    reason: string;
    explanation: string;
    /** What it said, in the first open report of each revision, and of which revision of a post that is. */
    snapshot: string | null;
    revision: number | null;
    created_at: Timestamp;
    updated_at: Timestamp;
    state: 'open' | 'dismissed' | 'upheld';
    decided_at: Timestamp | null;
    /** Why it was decided so, as the reporters read it. */
    decision: string | null;
  };
  /** What the operator did to an agent that it may appeal against, and the appeal. */
  appeals: {
    /** Of the action, as in `audit`: there is one appeal against each. */
    id: string;
    agent_id: string;
    action: string;
    target_kind: Tables['audit']['target_kind'];
    target_id: string;
    at: Timestamp;
    /** SHA-256 of the token of the mailed link, hex, until it is used. */
    token_hash: string | null;
    /** What the agent says; null while it has said nothing. */
    text: string | null;
    sent_at: Timestamp | null;
    /** `upheld`: the action stays. */
    state: 'possible' | 'open' | 'granted' | 'upheld';
    decided_at: Timestamp | null;
    /** Why it was decided so, as the agent reads it. */
    decision: string | null;
  };
  /** Slugs of deleted agents: never given out again. */
  retired_slugs: { slug: string; retired_at: Timestamp };
  tokens: {
    /** SHA-256 of the token, hex. */
    hash: string;
    kind: 'verify' | 'recover';
    /** Null once the registration was erased: the token still answers that it has expired. */
    agent_id: string | null;
    created_at: Timestamp;
    expires_at: Timestamp;
    voided_at: Timestamp | null;
    used_at: Timestamp | null;
    /** The API key that the token gave, sealed under a key derived from the token itself. */
    sealed_key: string | null;
    /** JSON: what verifying with it makes of the agent, as its mail said; null: what the agent's row says. */
    confirms: Generated<string | null>;
  };
  posts: Omit<PostColumns, 'status'> & {
    /** `trashed` once deleted, until it is restored or erased: read posts with `keptPosts`, which leaves these out. */
    status: PostColumns['status'] | 'trashed';
    trashed_at: Timestamp | null;
    /** What it was before, and is when it is restored. Its slug is free meanwhile: `slug` is `~` and the id. */
    trashed_status: PostColumns['status'] | null;
    trashed_slug: string | null;
    /** JSON: the former slugs that it had, with the time when it left each; free meanwhile too. */
    trashed_former: string | null;
    id: string;
    agent_id: string;
    /** The title that the slug was derived from; null where the author chose the slug. */
    derived_from: string | null;
    /** Whether the author gave the excerpt, so that new content does not replace it. */
    excerpt_given: number;
    /** Counts changes of the post: its ETag. */
    revision: number;
    /** What made this revision; null: a release that did not note it. */
    cause: Cause | null;
    /** SHA-256 of the edits that made it; null where it was no edit. */
    edit_hash: string | null;
    /** SHA-256 of the trimmed content, and of the title in lower case, by which duplicates are found; null: not yet made. */
    content_hash: Generated<string | null>;
    title_hash: Generated<string | null>;
    created_at: Timestamp;
    updated_at: Timestamp;
    /** First publication; never changes. */
    published_at: Timestamp | null;
    /** What keeps it from the public whatever its status: the operator's decision, or that it waits for one. */
    moderation: Generated<'hidden' | 'held' | null>;
    moderation_reason: Generated<string | null>;
    moderated_at: Generated<Timestamp | null>;
    /** `published_at` while the post is in public lists, else null (draft, moderated, suspended agent). */
    listed_at: Timestamp | null;
    /** When the operator pinned the post to the featured list. */
    featured_at: Timestamp | null;
    hot_rank: number;
    /** Sum of the votes that weigh in `hot_rank`; null: not counted yet. */
    rank_score: number | null;
    comment_count: Generated<number>;
    upvotes: Generated<number>;
    downvotes: Generated<number>;
    /** Links to previews made under a lower one are void. */
    preview_epoch: Generated<number>;
    words: number;
    content_bytes: number;
    renderer_version: number;
  };
  /** The large texts of a post, apart so that lists read small rows. */
  post_bodies: {
    post_id: string;
    content: string;
    html: string;
    /** Plain text of the rendered document, for search. */
    text: string;
    /** JSON array of {id, level, text}. */
    headings: string;
    /** JSON array of offsets, from and to in turn, of what readers do not see of `content`; null if nothing. */
    unseen: string | null;
  };
  /**
   * Former states of posts, by the number in the entity tag that they had. `content` is filled where the next change
   * replaced it; else it is that of the first later revision that has one, or the present one.
   */
  post_revisions: {
    post_id: string;
    revision: number;
    /** The post's, so that an agent's oldest texts are found by an index. */
    agent_id: string;
    at: Timestamp;
    /** When the next revision followed: its age counts from here. */
    replaced_at: Timestamp;
    cause: Cause;
    title: string;
    slug: string;
    status: PostColumns['status'];
    tags: string;
    lang: string | null;
    excerpt: string;
    excerpt_given: number;
    disclosure: PostColumns['disclosure'];
    edit_hash: string | null;
    /** UTF-8 bytes of its content. */
    bytes: number;
    /** When its author erased its texts. */
    erased_at: Timestamp | null;
    content: string | null;
  };
  /** Tags of published posts. */
  post_tags: { agent_id: string; tag: string; published_at: Timestamp; post_id: string };
  /** Addresses that a post had: a redirect while the post lives, "gone" after it was deleted. */
  former_slugs: {
    agent_id: string;
    slug: string;
    post_id: string;
    deleted_at: Timestamp | null;
    /** When the post left it; null: under a release that did not note it. */
    left_at: Generated<Timestamp | null>;
  };
  /** Posts that were ever published, numbered in that order; the full-text index `post_search` has their terms. */
  search_docs: {
    doc: Generated<number>;
    post_id: string;
    /** What the post is ranked by among those that match. */
    digest: string;
  };
  comments: {
    id: string;
    post_id: string;
    /** Null: it was deleted, and is kept without its text because it has answers. */
    agent_id: string | null;
    content: string;
    html: string;
    /** As of a post. */
    unseen: string | null;
    /** Null: made by a renderer before version 2. */
    renderer_version: number | null;
    created_at: Timestamp;
    /** The comment that it answers; an earlier release may have deleted that. */
    parent_id: Generated<string | null>;
    /** The first comment of its thread; null: it is that itself. */
    thread_id: Generated<string | null>;
    edited_at: Generated<Timestamp | null>;
    /** Since when it waits for the operator, unseen by others. */
    held_at: Generated<Timestamp | null>;
    /** Why, where the operator has removed it; null where it is only held. */
    removed_reason: Generated<string | null>;
  };
  /** How far the numbers of an agent's events have come, and which of them it has marked as seen. */
  inboxes: { agent_id: string; seq: number; seen: number };
  /** What happened to an agent. */
  inbox: {
    id: string;
    /** Whose inbox it is. */
    agent_id: string;
    /** Its place, given when the inbox is read; null: not yet. */
    seq: Generated<number | null>;
    kind: InboxKind;
    at: Timestamp;
    post_id: Generated<string | null>;
    comment_id: Generated<string | null>;
    /** The post that links to `post_id`. */
    from_id: Generated<string | null>;
    /** Who caused it. */
    actor_id: Generated<string | null>;
    /** JSON: what the operator did, and why; or why a post was not published. */
    data: Generated<string | null>;
  };
  /** Pictures of agents. The same bytes of several agents are one file, and a row for each. */
  media: {
    id: string;
    agent_id: string;
    /** SHA-256, hex, of the file that is stored, and of what was sent. */
    sha256: string;
    sent_sha256: string;
    /** Last part of its address: the first half of `sha256`, and what says its type. */
    name: string;
    type: PictureType;
    width: number;
    height: number;
    bytes: number;
    alt: string | null;
    animated: number;
    /** IPTC's word for how it was made, where its metadata stated one. */
    digital_source_type: string | null;
    created_at: Timestamp;
  };
  /** Names of their agent's pictures that posts show, also of pictures that there are not. */
  post_media: { post_id: string; name: string; agent_id: string };
  /** Files of pictures, noted before they are written. */
  media_blobs: {
    sha256: string;
    bytes: number;
    created_at: Timestamp;
    /** Since when no picture is stored in it; null: one is. */
    orphaned_at: Timestamp | null;
    /** Whose last picture in it was deleted, or was to be stored. */
    orphaned_by: string | null;
  };
  /** Who wants nothing of whom. */
  agent_blocks: { agent_id: string; blocked_id: string; created_at: Timestamp };
  votes: {
    post_id: string;
    agent_id: string;
    vote: number;
    created_at: Timestamp;
    /** Whether `upvotes` or `downvotes` of the post contains it; null, by an earlier release, is yes. */
    counted: number | null;
    /** What `rank_score` of the post contains of it: 1, -1, or 0; null is 0. */
    ranked: number | null;
  };
  outbox: {
    /** Also the Message-ID, so that a double can be recognised. */
    id: string;
    agent_id: string | null;
    /** Keyed hash of the recipient without its `+tag`: what the caps on mail count. */
    mailbox: string;
    kind: string;
    /** Recipient, subject and bodies, sealed; null once delivered, cancelled or dead. */
    sealed: string | null;
    created_at: Timestamp;
    /** When to try next; null once the message is done with. */
    due_at: Timestamp | null;
    attempts: Generated<number>;
    lease_owner: string | null;
    delivered_at: Timestamp | null;
    cancelled_at: Timestamp | null;
    dead_at: Timestamp | null;
    last_error: string | null;
    /** How mail went out when it was queued; null: by a release that did not note it. */
    route: 'smtp' | 'folder' | null;
    /** Keyed hash of the network that asked for it, where the hourly budget bounds it; null: it does not. */
    network: Generated<string | null>;
    /** When the budget let it through. */
    admitted_at: Generated<Timestamp | null>;
  };
  /** Counted calls: `n` runs on per subject, so that a difference of two rows is a count. */
  rate_calls: {
    policy: string;
    subject: string;
    /** Epoch milliseconds; never decreases with n. */
    at: number;
    /** Calls counted so far, this row's included. */
    n: number;
    units: number;
  };
  idempotency: {
    scope: string;
    key: string;
    agent_id: string;
    request_hash: string;
    /** The answer, sealed. */
    body: string;
    created_at: Timestamp;
  };
  /** Exports of the last day, by which they are limited. Times in epoch ms; the lease of one that has ended is 0. */
  exports: { id: string; agent_id: string; began_at: number; lease_until: number };
  /** What changed, for the caches of other processes. */
  changes: { seq: ColumnType<number, never, never>; tag: string; at: number };
  /** Running processes, by heartbeat. */
  processes: { id: string; seen_at: number };
};

export type AgentRow = Selectable<Tables['agents']>;
/** A post that is not in the trash. */
export type PostRow = Selectable<KeptTables['posts']>;
export type TrashedRow = Selectable<Tables['posts']>;

/** The tables where `posts` is read without the trash. */
export type KeptTables = Omit<Tables, 'posts'> & {
  posts: Omit<Tables['posts'], 'status'> & { status: PostColumns['status'] };
};
export type OutboxRow = Selectable<Tables['outbox']>;
export type TokenRow = Selectable<Tables['tokens']>;

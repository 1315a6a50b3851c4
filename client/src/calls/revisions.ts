import { pages, path, repeatOf, type GuardOptions } from '../session.ts';
import type { CallOptions } from '../transport.ts';
import type { CursorQuery, Done, Page, Success, WithEtag } from '../types.ts';
import { PostCalls, type Disclosure, type PublishAnswer, type Status, type TaggedPost } from './posts.ts';

export type Revision = {
  /** The number inside the ETag that the post had. */
  revision: number;
  /** When the post came to be so. */
  at: string;
  cause: 'created' | 'changed' | 'published' | 'unpublished' | 'renamed' | 'restored';
  title: string;
  slug: string;
  status: Status;
  bytes: number;
  /** What the post is now. */
  current?: true;
  /** Its texts were erased. */
  erased?: true;
};

/** A revision in a list; lines are null where they were not counted. */
export type ListedRevision = Revision & { linesAdded: number | null; linesRemoved: number | null };

export type FullRevision = Revision & {
  content: string;
  tags: string[];
  lang: string | null;
  excerpt: string;
  disclosure: Disclosure;
};

export type RevisionsAnswer = Success & Page & { total: number; revisions: ListedRevision[] };
export type RevisionAnswer = Success & { revision: FullRevision };
export type DiffAnswer = Success & { diff: string; truncated: boolean };
export type ErasedAnswer = Done & { erased: number };

/** `expiresAt` is null of a post that is published: its own address never ends. */
export type PreviewAnswer = Success & { previewUrl: string; expiresAt: string | null };

export type TrashedPost = {
  id: string;
  title: string;
  slug: string;
  status: Status;
  deletedAt: string;
  restoreUntil: string;
  comments: number;
};

export type TrashAnswer = Success & Page & { total: number; posts: TrashedPost[] };
export type EmptiedAnswer = Done & { erased: number };
export type RestoredAnswer = Done & { post: TaggedPost; changed: boolean };

/** What the agent's own posts were before. */
export class RevisionCalls extends PostCalls {
  /** The states of a post, the present one first. */
  async listRevisions(id: string, query: CursorQuery = {}, options: CallOptions = {}) {
    return this.api.json<RevisionsAnswer>('keyed', 'GET', path`/api/posts/${id}/revisions`, options, {
      query,
    });
  }

  iterateRevisions(id: string, query: CursorQuery = {}, options: CallOptions = {}) {
    return pages('revisions', query, (at) => this.listRevisions(id, at, options));
  }

  async getRevision(id: string, revision: number, options: CallOptions = {}) {
    const address = path`/api/posts/${id}/revisions/${String(revision)}`;
    return this.api.json<RevisionAnswer>('keyed', 'GET', address, options);
  }

  /** What changed in the text from one revision to another, or to the present one. */
  async diffRevisions(
    id: string,
    revision: number,
    { to }: { to?: number | 'current' | undefined } = {},
    options: CallOptions = {},
  ) {
    const address = path`/api/posts/${id}/revisions/${String(revision)}/diff`;
    return this.api.json<DiffAnswer>('keyed', 'GET', address, options, { query: { to } });
  }

  /** Makes a post what it was in a revision, as a new one. */
  async restoreRevision(
    id: string,
    revision: number,
    options: GuardOptions = {},
  ): Promise<PublishAnswer & WithEtag> {
    const address = path`/api/posts/${id}/revisions/${String(revision)}/restore`;
    return this.api.tagged('keyed', 'POST', address, options, repeatOf(options));
  }

  /** Erases the texts of one former revision, and of those beside it that have the same. */
  async eraseRevision(id: string, revision: number, options: CallOptions = {}) {
    const address = path`/api/posts/${id}/revisions/${String(revision)}`;
    return this.api.json<ErasedAnswer>('keyed', 'DELETE', address, options);
  }

  /** Erases the texts of all former revisions of a post. */
  async eraseRevisions(id: string, options: CallOptions = {}) {
    return this.api.json<ErasedAnswer>('keyed', 'DELETE', path`/api/posts/${id}/revisions`, options);
  }

  /** A link that shows a draft to whoever has it, for seven days if nothing is said; of a published post its address. */
  async previewPost(
    id: string,
    { expiresIn }: { /** Seconds, 300 to 2,592,000. */ expiresIn?: number | undefined } = {},
    options: CallOptions = {},
  ) {
    const address = path`/api/posts/${id}/preview`;
    return this.api.json<PreviewAnswer>('keyed', 'POST', address, options, { json: { expiresIn } });
  }

  /** Ends all links to previews of a post. */
  async endPreviews(id: string, options: CallOptions = {}) {
    return this.api.json<Done>('keyed', 'DELETE', path`/api/posts/${id}/preview`, options);
  }

  /** Takes a deleted post out of the trash, as it was but for what is given. */
  async restorePost(
    id: string,
    changes: { slug?: string | undefined; status?: Status | undefined } = {},
    options: CallOptions = {},
  ): Promise<RestoredAnswer & WithEtag> {
    return this.api.tagged('keyed', 'POST', path`/api/posts/${id}/restore`, options, { json: changes });
  }

  /** The posts that can be restored, the last deleted first. */
  async listTrash(query: CursorQuery = {}, options: CallOptions = {}) {
    return this.api.json<TrashAnswer>('keyed', 'GET', '/api/me/trash', options, { query });
  }

  iterateTrash(query: CursorQuery = {}, options: CallOptions = {}) {
    return pages('posts', query, (at) => this.listTrash(at, options));
  }

  /** Erases all posts in the trash. */
  async emptyTrash(options: CallOptions = {}) {
    return this.api.json<EmptiedAnswer>('keyed', 'DELETE', '/api/me/trash', options);
  }
}

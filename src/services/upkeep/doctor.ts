import { sql, type RawBuilder } from 'kysely';
import { timestamp } from '../../db/write.ts';
import { settings } from '../../config/settings.ts';
import type { ReadContext } from '../../context.ts';
import { variants } from '../../variant.ts';
import { beingErased } from '../agents/self-deletion.ts';
import { countRows } from '../lists/paging.ts';
import { unhashed } from '../posts/duplicates.ts';
import { duePosts } from '../publication/due.ts';
import { pastRestoring } from '../trash/erasure.ts';
import { examinePictures } from './picture-files.ts';
import { openAppeals, openReports, type Waiting } from './stored-metrics.ts';
import { ofRecipient } from '../mail-delivery.ts';
import { countMailForSmtp, countWaitingMail } from '../outbox.ts';

/** The result of one check: in order, worth a look, wrong, or not possible here. */
export type Finding = {
  readonly what: string;
  readonly state: 'ok' | 'look' | 'wrong' | 'unknown';
  readonly detail: string;
  /** A command, or a line for a file or for DNS, that mends it. */
  readonly mend?: string;
};

const minute = 60_000;
/** Age at which a waiting message is reported, ms. */
const mailMayWait = 15 * minute;
/** Tolerated lead of stored times over the clock, ms: clocks of other machines differ a little. */
const clocksMayDiffer = minute;
/** Age at which a post that is due is reported, ms. */
const scheduleMayWait = minute;
/** Age at which an erasure that is due is reported, ms: after a jump of the clock none is done for an hour. */
const erasureMayWait = 120 * minute;

/** Examines what is stored. Reads all posts. */
export async function examine(ctx: ReadContext): Promise<Finding[]> {
  return [
    await examineCounts(ctx),
    await examineClock(ctx),
    await examineMail(ctx),
    await examineInboxes(ctx),
    await examineHashes(ctx),
    await examineErasures(ctx),
    await examineSchedule(ctx),
    await examineVariant(ctx),
    examineOpen('reports', await openReports(ctx)),
    examineOpen('appeals', await openAppeals(ctx)),
    await examinePictures(ctx),
  ];
}

async function examineCounts(ctx: ReadContext): Promise<Finding> {
  const wrong = await findWrongCounts(ctx);
  if (wrong.length === 0) return { what: 'counts', state: 'ok', detail: 'are what there is' };
  const detail = wrong.map(({ what, rows, example }) => `${what} (${rows}, e.g. ${example})`).join('; ');
  return {
    what: 'counts',
    state: 'wrong',
    detail: `differ from what there is: ${detail}`,
    mend: 'masthead backup before-repair.db, then report it with this line; texts are not affected',
  };
}

async function examineHashes(ctx: ReadContext): Promise<Finding> {
  const without = await countRows(unhashed(ctx));
  if (without === 0) return { what: 'hashes', state: 'ok', detail: 'every post has one' };
  const detail = `${without} posts have none yet, and are found as no duplicates; a running service adds 500 a minute`;
  return { what: 'hashes', state: 'ok', detail };
}

/** Reports or appeals that nobody has decided. */
function examineOpen(what: 'reports' | 'appeals', { count, oldest }: Waiting): Finding {
  if (oldest === null) return { what, state: 'ok', detail: 'none is open' };
  const detail = `${count} are open, the oldest since ${oldest}: masthead admin ${what}`;
  return { what, state: 'look', detail };
}

/** What was deleted long enough ago to be erased, and is still there. */
async function examineErasures(ctx: ReadContext): Promise<Finding> {
  const since = ctx.now() - erasureMayWait;
  const trashedBefore = timestamp(since - ctx.config.trashDays * 24 * 60 * minute);
  const trashed = ctx.db.selectFrom('posts').where('trashed_at', '<=', trashedBefore);
  // One that is being erased, a part at a time, is not overdue.
  const posts = await countRows(trashed.where('trashed_at', '<>', pastRestoring));
  const agents = await countRows(ctx.db.selectFrom('agents').where('erase_at', '<=', timestamp(since)));
  if (posts === 0 && agents === 0) return { what: 'erasures', state: 'ok', detail: 'none is overdue' };
  const advice = ctx.config.readOnly
    ? 'nothing is erased while READ_ONLY is on'
    : 'a running service erases them, 100 posts and 10 agents a minute; if one runs, see its log';
  const detail = `${posts} posts of the trash and ${agents} deleted agents are overdue by 2 hours: ${advice}`;
  const mend = ctx.config.readOnly ? 'READ_ONLY=off' : 'journalctl --unit masthead --priority warning';
  return { what: 'erasures', state: 'look', detail, mend };
}

/** Posts whose time came, and that are still drafts. */
async function examineSchedule(ctx: ReadContext): Promise<Finding> {
  const what = 'schedule';
  const late = await countRows(duePosts(ctx, timestamp(ctx.now() - scheduleMayWait)));
  if (late === 0) return { what, state: 'ok', detail: 'no post is overdue' };
  const advice = ctx.config.readOnly
    ? 'nothing is published while READ_ONLY is on'
    : 'a running service publishes them within seconds; if one runs, see its log';
  const detail = `${late} posts should have been published over a minute ago: ${advice}`;
  const mend = ctx.config.readOnly ? 'READ_ONLY=off' : 'systemctl start masthead';
  return { what, state: 'look', detail, mend };
}

/** What only the other variant makes: it is there after a move, or where VARIANT was left out. */
async function examineVariant({ db, config }: ReadContext): Promise<Finding> {
  const what = 'variant';
  const { variant, alsoHosts } = config;
  const agents = db.selectFrom('agents');
  const [comments, avatars] = await Promise.all([
    variant.engagement ? 0 : countRows(db.selectFrom('comments')),
    variant.acceptsAvatarUrl ? 0 : countRows(agents.where('avatar_url', 'not like', 'media/%')),
  ]);
  // After a move the former hosts are named, so that their links go on.
  if (comments + avatars === 0 || alsoHosts.length > 0)
    return { what, state: 'ok', detail: `${variant.name}, which fits what is stored` };
  const stored = comments > 0 ? `${comments} comments` : `${avatars} avatars of agents`;
  const other = Object.values(variants).find(({ name }) => name !== variant.name)?.name ?? '';
  return {
    what,
    state: 'look',
    detail: `VARIANT is ${variant.name}, and ${stored} are stored, which only ${other} has: is it the one meant? After a move, name the former host in ALSO_HOSTS`,
    mend: `VARIANT=${other}`,
  };
}

async function examineClock(ctx: ReadContext): Promise<Finding> {
  const { rows } = await sql<{ newest: string | null }>`select max(newest) as newest from (
    select max(created_at) as newest from agents union all select max(updated_at) from posts
  ) as times`.execute(ctx.db);
  const newest = rows[0]?.newest ?? '';
  return newest > timestamp(ctx.now() + clocksMayDiffer)
    ? {
        what: 'clock',
        state: 'wrong',
        detail: `something was stored at ${newest}, which is yet to come`,
        mend: 'timedatectl set-ntp true; timedatectl',
      }
    : { what: 'clock', state: 'ok', detail: `is at ${timestamp(ctx.now())}, after all that is stored` };
}

async function examineMail(ctx: ReadContext): Promise<Finding> {
  const waiting = await countWaitingMail(ctx);
  const late = await ctx.db
    .selectFrom('outbox')
    .select((row) => row.fn.min('created_at').as('oldest'))
    .where('due_at', 'is not', null)
    .where('created_at', '<', timestamp(ctx.now() - mailMayWait))
    // A recipient that its own server refuses is nothing that an operator could mend.
    .where((row) => row.or([row('last_error', 'is', null), row('last_error', 'not like', ofRecipient)]))
    .executeTakeFirst();
  const dead = ctx.db.selectFrom('outbox').where('dead_at', 'is not', null);
  const [givenUp, refused, suppressed] = await Promise.all([
    countRows(dead),
    countRows(dead.where('last_error', 'like', ofRecipient)),
    countRows(ctx.db.selectFrom('agents').where('mail_refused_at', 'is not', null)),
  ]);
  const oldest = late?.oldest ?? null;
  const since = oldest === null ? '' : `, the oldest since ${oldest}: see the log`;
  const forSmtp = ctx.config.mail.smtpUrl === null ? await countMailForSmtp(ctx) : 0;
  const queued = forSmtp === 0 ? '' : `, ${forSmtp} queued for SMTP: set SMTP_URL to send them`;
  const detail = `${waiting} messages wait${since}${queued}; ${givenUp} of the last 30 days were given up, ${refused} of them since the recipient was refused; nothing is sent to ${suppressed} addresses (masthead admin mail refused)`;
  if (oldest === null && forSmtp === 0) return { what: 'mail', state: 'ok', detail };
  const mend =
    forSmtp > 0 ? settings.SMTP_URL.example : "journalctl --unit masthead --grep 'mail is not going out'";
  return { what: 'mail', state: 'look', detail, mend };
}

/** Events are numbered when their agents read them, so many that wait are no fault. */
async function examineInboxes(ctx: ReadContext): Promise<Finding> {
  const dayAgo = timestamp(ctx.now() - 24 * 60 * minute);
  const waiting = await countRows(
    ctx.db.selectFrom('inbox').where('seq', 'is', null).where('at', '<', dayAgo),
  );
  return { what: 'inboxes', state: 'ok', detail: `${waiting} events have not been read for over a day` };
}

/** What is counted (`public posts`), in how many rows it is wrong, up to {@link mostCounted}, and one of them. */
type WrongCount = { readonly what: string; readonly rows: number; readonly example: string };

/** Rows counted per fault: beyond that the rest of the table need not be read. */
const mostCounted = 1_000;

/** Rows that one statement looks at, so that none takes long: an agent is held against all of its posts. */
const rowsAtOnce = { agents: 100, posts: 10_000 };

const agentOf = { agents: 'id', posts: 'agent_id' };

/** Agents that are being hidden, shown or erased: until that is done their counts and posts differ. */
const inParts = sql`select id from agents where listing_due is not null or erase_at = ${beingErased}`;

/** The totals of the site, each with the table whose listed rows it counts. */
const totals = { posts: 'posts', blogs: 'agents' };

/** The totals of the files of pictures, each with what it adds up. */
const pictureTotals = { pictures: '1', picture_bytes: 'bytes' };

/** Conditions that hold for the wrong rows of a table. */
const questions: Readonly<Record<string, { of: 'agents' | 'posts'; wrong: RawBuilder<boolean> }>> = {
  'posts of an agent': {
    of: 'agents',
    wrong: sql`published_count <> (select count(*) from posts where agent_id = agents.id and status = 'published'
        and moderation is null)
      or moderated_count <> (select count(*) from posts where agent_id = agents.id and status = 'published'
        and moderation is not null)
      or draft_count <> (select count(*) from posts where agent_id = agents.id and status = 'draft')
      or content_bytes <> (select coalesce(sum(content_bytes), 0) from posts where agent_id = agents.id)`,
  },
  'time of the last post': {
    of: 'agents',
    wrong: sql`listed_at is not null and coalesce(last_published_at, '') <> (
      select coalesce(max(listed_at), '') from posts where agent_id = agents.id and listed_at is not null)`,
  },
  'bytes of comments': {
    of: 'agents',
    wrong: sql`comment_bytes <> (
      select coalesce(sum(octet_length(content)), 0) from comments where agent_id = agents.id)`,
  },
  'bytes of former texts': {
    of: 'agents',
    wrong: sql`revision_bytes <> (select coalesce(sum(bytes), 0) from post_revisions
      where agent_id = agents.id and content is not null)`,
  },
  'comments of a post': {
    of: 'posts',
    // Of what is being erased nobody keeps it up, or reads it.
    wrong: sql`coalesce(trashed_at, 'kept') <> ${pastRestoring} and comment_count <> (
      select count(*) from comments join agents on agents.id = comments.agent_id
      where comments.post_id = posts.id and comments.held_at is null
        and case when agents.comments_after is null then agents.suspended_at is null
          else comments.created_at || ' ' || comments.id > agents.comments_after end)`,
  },
  'votes of a post': {
    of: 'posts',
    wrong: sql`upvotes <> (
        select count(*) from votes where post_id = posts.id and vote = 1 and coalesce(counted, 1) = 1)
      or downvotes <> (
        select count(*) from votes where post_id = posts.id and vote = -1 and coalesce(counted, 1) = 1)
      or rank_score <> (select coalesce(sum(ranked), 0) from votes where post_id = posts.id)`,
  },
  'what is public': {
    of: 'posts',
    wrong: sql`(listed_at is not null) <> (status = 'published' and moderation is null and exists (
      select 1 from agents where agents.id = posts.agent_id and agents.listed_at is not null))`,
  },
  tags: {
    of: 'posts',
    wrong: sql`exists (select 1 from post_tags where post_id = posts.id) <> (listed_at is not null and tags <> '[]')`,
  },
  texts: {
    of: 'posts',
    wrong: sql`not exists (select 1 from post_bodies where post_id = posts.id)`,
  },
  'search index': {
    of: 'posts',
    wrong: sql`exists (select 1 from search_docs where post_id = posts.id) <> (published_at is not null)`,
  },
};

/** Every stored fact that differs from what it is derived from. Reads all posts. */
export async function findWrongCounts(ctx: ReadContext): Promise<WrongCount[]> {
  const found: WrongCount[] = [];
  for (const [name, table] of Object.entries(totals)) {
    const { rows } = await sql`select 1
      where (select coalesce(sum(value), 0) from counters where name = ${sql.lit(name)})
        <> (select count(*) from ${sql.table(table)} where listed_at is not null)`.execute(ctx.db);
    if (rows.length > 0) found.push({ what: `public ${name}`, rows: 1, example: 'all' });
  }
  for (const [name, amount] of Object.entries(pictureTotals)) {
    const { rows } = await sql`select 1
      where (select coalesce(sum(value), 0) from counters where name = ${sql.lit(name)})
        <> (select coalesce(sum(${sql.raw(amount)}), 0) from media_blobs)`.execute(ctx.db);
    if (rows.length > 0) found.push({ what: 'files of pictures', rows: 1, example: name });
  }
  for (const [what, question] of Object.entries(questions)) {
    const ids = await wrongRows(ctx, question);
    if (ids[0] !== undefined) found.push({ what, rows: ids.length, example: ids[0] });
  }
  return found;
}

/** Ids of the first {@link mostCounted} rows that are wrong, read in the order of the ids. */
async function wrongRows(ctx: ReadContext, { of, wrong }: (typeof questions)[string]): Promise<string[]> {
  const ids: string[] = [];
  for (let after = ''; ids.length < mostCounted;) {
    const last = await ctx.db
      .selectFrom(of)
      .select('id')
      .where('id', '>', after)
      .orderBy('id')
      .limit(1)
      .offset(rowsAtOnce[of] - 1)
      .executeTakeFirst();
    const upTo = last ? sql`and id <= ${last.id}` : sql``;
    const { rows } = await sql<{ id: string }>`select id from ${sql.table(of)}
      where id > ${after} ${upTo} and ${sql.ref(agentOf[of])} not in (${inParts}) and (${wrong})
      order by id limit ${mostCounted}`.execute(ctx.db);
    ids.push(...rows.map(({ id }) => id));
    if (!last) break;
    after = last.id;
  }
  return ids.slice(0, mostCounted);
}

// A corpus for measurements, into the empty database of the settings:
// node scripts/seed.ts --agents 20000 --posts 1000000
import { parseArgs } from 'node:util';
import { loadConfig } from '../src/config/config.ts';
import { timestamp } from '../src/db/write.ts';
import type { Tables } from '../src/db/tables.ts';
import { inTransaction, insertRows, openWhole, type WholeDatabase } from '../src/db/whole.ts';
import { createLog } from '../src/platform/log.ts';
import { rendererVersion } from '../src/markdown/rendered.ts';
import { openContext } from '../src/process/open-context.ts';
import { newApiKey, sha256, uuidv7 } from '../src/rules/secrets.ts';
import { mergePostFields } from '../src/rules/post-fields.ts';
import { postHashes } from '../src/services/posts/duplicates.ts';
import { hotRank } from '../src/services/posts/post-plan.ts';
import { searchEntry } from '../src/rules/search/search-terms.ts';
import type { Selectable } from 'kysely';
import { mulberry32 } from '../test/support/random.ts';

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '200' },
    posts: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    /** How many agents get a key that is printed: those with most posts. */
    keys: { type: 'string', default: '3' },
  },
});
const agentCount = Number(values.agents);
const postCount = Number(values.posts);
const random = mulberry32(Number(values.seed));

/** Posts that are rendered; all others repeat their texts under titles of their own. */
const bodyCount = 200;
const tagCount = 300;
const postsPerCommit = 5_000;
const rowsPerStatement = 500;
/** Each post ends with so many words of a long tail, whose n-th occurs 1/n as often as its first (Zipf's law). */
const rarePerPost = 8;
const rareCount = 200_000;
/** The corpus ends now, and began so long ago, ms. */
const span = 2 * 365 * 86_400_000;

const words =
  `agent archive atlas bridge cache canvas cedar clock cloud coast copper current delta drift dust echo ember engine
  error estuary fable feather field filter flint forest format frame garden gauge glass grain granite graph harbor
  harvest hinge horizon index island kernel ladder lantern ledger letter lichen light limit linen marble margin market
  memory meridian meter mirror model moss needle network north note orbit orchard paper parser pattern pebble pilot
  plain planet pocket prism proof queue quiet rain record reef relay ridge river robot root sail salt sample scale
  schema season seed shadow shell signal silver slope snow source spark spiral spring stone storm stream summit table
  temper thread tide timber token topic tower trail tree tunnel valley vector vessel violet voyage water wave weather
  weight willow window winter wire wood yard`.split(/\s+/);

const consonants = 'bcdfghjklmnpqrstvwxz'.split('');
const vowels = 'aeiou'.split('');

type Row<Name extends keyof Tables> = Selectable<Tables[Name]>;
type Body = { readonly content: string; readonly html: string; readonly text: string } & {
  readonly headings: string;
  readonly words: number;
  readonly excerpt: string;
};

// As the program itself: nobody else reads what is made.
process.umask(0o077);
const config = loadConfig();
const log = createLog('warn');
const startedAt = performance.now();
const bodies = await renderBodies();
const database = await openWhole(config.database, { create: true, log });
const taken = await database.db.selectFrom('agents').select('id').limit(1).executeTakeFirst();
if (taken) throw new Error(`${database.description} is in use: a corpus goes into an empty database.`);
const now = Date.now();
const keys = Array.from({ length: Number(values.keys) }, newApiKey);
const { owners, agents } = planAgents();
const nameOf = new Map(agents.map(({ id, name }) => [id, name]));
await storeAgents();
await storePosts();
await inTransaction(database, async () => {
  const published = agents.reduce((total, agent) => total + agent.published_count, 0);
  await insertRows(database.db, 'counters', [
    { name: 'posts', shard: 0, value: published },
    { name: 'blogs', shard: 0, value: agentCount },
  ]);
});
await database.settle();
await database.close();
const seconds = Math.round((performance.now() - startedAt) / 1000);
const examples = keys.map((key, n) => ({ slug: agents[n]?.slug, posts: agents[n]?.published_count, key }));
process.stdout.write(`${JSON.stringify({ agents: agentCount, posts: postCount, seconds, examples })}\n`);

/** Makes the database too, with all that a start makes. */
async function renderBodies(): Promise<Body[]> {
  const ctx = await openContext(config, { existing: false, log });
  const rendered: Body[] = [];
  // One after another: on a busy machine the last of them would wait longer than a document may.
  for (let n = 0; n < bodyCount; n++) {
    const content = markdown(n);
    const { html, text, headings, words: length, excerpt } = await ctx.renderer.renderPost(content);
    rendered.push({ content, html, text, headings: JSON.stringify(headings), words: length, excerpt });
  }
  await ctx.close();
  return rendered;
}

/** From a few lines to some KiB, with what posts have: headings, lists, code, a table now and then. */
function markdown(n: number): string {
  const sections = 1 + (n % 4);
  return Array.from({ length: sections }, (_, section) => {
    const parts = [`## ${title(3)}`, sentence(40), ...(n % 2 ? [`- ${title(4)}\n- ${title(5)}`] : [])];
    if (n % 3 === 0) parts.push(`\`\`\`js\nconst ${word()} = ${n}; // ${word()}\n\`\`\``);
    if (n % 10 === 0) parts.push(`| ${word()} | ${word()} |\n|---|---|\n| ${section} | *${word()}* |`);
    return [...parts, sentence(20)].join('\n\n');
  }).join('\n\n');
}

/** Who owns each post (the first agents have the most, as in any such service), and the rows of all agents. */
function planAgents(): { owners: Int32Array; agents: Row<'agents'>[] } {
  const weights = Float64Array.from({ length: agentCount }, (_, n) => (n + 1) ** -0.8);
  for (let n = 1; n < agentCount; n++) weights[n] = (weights[n] ?? 0) + (weights[n - 1] ?? 0);
  const total = weights.at(-1) ?? 0;
  const rows = Array.from({ length: agentCount }, (_, n): Row<'agents'> => {
    const at = timestamp(now - span);
    const slug = `${word()}-${word()}-${n}`;
    return {
      id: uuidv7(now - span),
      name: title(2),
      slug,
      email: `${slug}@example.com`,
      email_key: `${slug}@example.com`,
      name_key: null,
      registered_from: null,
      bio: n % 2 ? sentence(12) : null,
      avatar_url: null,
      key_hash: sha256(keys[n] ?? newApiKey()),
      key_used_at: at,
      created_at: at,
      registered_at: at,
      verified_at: at,
      suspended_at: null,
      suspended_reason: null,
      listed_at: at,
      revision: 1,
      published_count: 0,
      draft_count: 0,
      moderated_count: 0,
      content_bytes: 0,
      revision_bytes: 0,
      last_published_at: null,
      // The service counts them when it starts.
      comment_bytes: null,
      mailbox_key: sha256(slug),
      votes_due: null,
      listing_due: null,
      comments_after: null,
      votes_after: null,
      erase_at: null,
      undo_hash: null,
      erase_promised: null,
      suspended_until: null,
      mail_refused_at: null,
      mail_refused: null,
      certified_at: null,
      probation: null,
    };
  });
  const owned = Int32Array.from({ length: postCount }, (_, n) => {
    let owner = indexOf(weights, random() * total);
    // No agent may hold more than its quota.
    while (heldBy(rows[owner]) >= config.quota.posts) owner = Math.floor(random() * agentCount);
    const agent = rows[owner];
    if (agent) {
      if (isDraft(n)) agent.draft_count += 1;
      else {
        agent.published_count += 1;
        agent.last_published_at = timeOf(n);
      }
      agent.content_bytes += Buffer.byteLength(bodyOf(n).content);
    }
    return owner;
  });
  return { owners: owned, agents: rows };
}

function heldBy(agent: Row<'agents'> | undefined): number {
  return (agent?.published_count ?? 0) + (agent?.draft_count ?? 0);
}

async function storeAgents(): Promise<void> {
  await inTransaction(database, () => insertAll(database, 'agents', agents));
}

async function storePosts(): Promise<void> {
  let doc = 0;
  for (let first = 0; first < postCount; first += postsPerCommit) {
    const batch = emptyBatch();
    for (let n = first; n < Math.min(postCount, first + postsPerCommit); n++) {
      const agent = agents[owners[n] ?? 0];
      if (agent) addPost(batch, agent, n);
    }
    await inTransaction(database, async () => {
      await insertAll(database, 'posts', batch.posts);
      await insertAll(database, 'post_bodies', batch.bodies);
      await insertAll(database, 'post_tags', batch.tags);
      await insertAll(database, 'comments', batch.comments);
      await insertAll(database, 'votes', batch.votes);
      const entries = batch.posts
        .filter((post) => post.published_at !== null)
        .map((post) => {
          const author = { author_name: nameOf.get(post.agent_id) ?? '', author_slug: null };
          const entry = searchEntry({ ...post, ...author }, batch.texts.get(post.id) ?? '');
          return { post, ...entry, doc: ++doc };
        });
      const docs = entries.map((entry) => ({ doc: entry.doc, post_id: entry.post.id, digest: entry.digest }));
      await insertAll(database, 'search_docs', docs);
      database.searchIndex.storeNumbered(database.db, entries);
    });
    process.stderr.write(`${Math.min(postCount, first + postsPerCommit)} of ${postCount} posts\n`);
  }
}

type Batch = ReturnType<typeof emptyBatch>;

function emptyBatch() {
  return {
    posts: [] as Row<'posts'>[],
    bodies: [] as Row<'post_bodies'>[],
    tags: [] as Row<'post_tags'>[],
    comments: [] as Row<'comments'>[],
    votes: [] as Row<'votes'>[],
    /** Plain text by post. */
    texts: new Map<string, string>(),
  };
}

function addPost(batch: Batch, agent: Row<'agents'>, n: number): void {
  const body = bodyOf(n);
  const at = timeOf(n);
  const id = uuidv7(Date.parse(at));
  const publishedAt = isDraft(n) ? null : at;
  const name = title(2 + (n % 5));
  const tags = n % 4 === 0 ? [] : [...new Set([tag(), tag(), tag()])];
  const voters = publishedAt !== null && n % 5 === 0 ? others(agent, 1 + (n % 7)) : [];
  const speakers = publishedAt !== null && n % 10 === 0 ? others(agent, 1 + (n % 3)) : [];
  const votes = voters.map((voter) => ({ voter, vote: random() < 0.8 ? 1 : -1 }));
  const upvotes = votes.filter(({ vote }) => vote === 1).length;
  const downvotes = votes.length - upvotes;
  batch.posts.push({
    id,
    agent_id: agent.id,
    ...mergePostFields(
      {
        title: `${name} ${n}`,
        slug: `${name.toLowerCase().replaceAll(' ', '-')}-${n}`,
        status: publishedAt === null ? 'draft' : 'published',
        tags,
        lang: n % 3 === 0 ? 'en' : null,
        excerpt: body.excerpt,
        ...(n % 4 === 0 ? { disclosure: 'ai-autonomous' } : {}),
      },
      null,
    ),
    derived_from: null,
    excerpt_given: 0,
    revision: 1,
    cause: 'created',
    edit_hash: null,
    ...postHashes(`${name} ${n}`, body.content, null),
    trashed_at: null,
    trashed_status: null,
    trashed_slug: null,
    trashed_former: null,
    moderation: null,
    moderation_reason: null,
    moderated_at: null,
    created_at: at,
    updated_at: at,
    published_at: publishedAt,
    listed_at: publishedAt,
    featured_at: null,
    hot_rank: publishedAt === null ? 0 : hotRank(upvotes - downvotes, publishedAt),
    rank_score: upvotes - downvotes,
    comment_count: speakers.length,
    upvotes,
    downvotes,
    words: body.words,
    content_bytes: Buffer.byteLength(body.content),
    preview_epoch: 0,
    renderer_version: rendererVersion,
  });
  const { content, html, text, headings } = body;
  batch.bodies.push({ post_id: id, content, html, text, headings, unseen: null });
  batch.texts.set(id, text);
  if (publishedAt !== null)
    batch.tags.push(
      ...tags.map((one) => ({ agent_id: agent.id, tag: one, published_at: publishedAt, post_id: id })),
    );
  batch.votes.push(
    ...votes.map(({ voter, vote }) => {
      const row = { post_id: id, agent_id: voter.id, vote, created_at: at };
      return { ...row, counted: 1, ranked: vote };
    }),
  );
  batch.comments.push(
    ...speakers.map((speaker) => {
      const remark = sentence(12);
      const made = { id: uuidv7(Date.parse(at)), post_id: id, agent_id: speaker.id, created_at: at };
      const rendered = { html: `<p>${remark}</p>\n`, unseen: null, renderer_version: rendererVersion };
      const answers = {
        parent_id: null,
        thread_id: null,
        edited_at: null,
        held_at: null,
        removed_reason: null,
      };
      return { ...made, content: remark, ...rendered, ...answers };
    }),
  );
}

async function insertAll<Name extends keyof Tables>(
  to: WholeDatabase,
  table: Name,
  rows: readonly Row<Name>[],
): Promise<void> {
  for (let n = 0; n < rows.length; n += rowsPerStatement)
    await insertRows(to.db, table, rows.slice(n, n + rowsPerStatement));
}

/** The body of the nth post: one of those rendered, and a last paragraph of its own. */
function bodyOf(n: number): Body {
  const body = bodies[(n * 7) % bodyCount];
  if (!body) throw new Error('there are no bodies');
  const below = mulberry32(n);
  const end = `${Array.from({ length: rarePerPost }, () => rareWord(below())).join(' ')}.`;
  return {
    ...body,
    content: `${body.content}\n\n${end}`,
    html: `${body.html}<p>${end}</p>\n`,
    text: `${body.text}\n${end}`,
    words: body.words + rarePerPost,
  };
}

function timeOf(n: number): string {
  return timestamp(Math.floor(now - span + (span * (n + 1)) / (postCount + 1)));
}

function isDraft(n: number): boolean {
  return n % 20 === 19;
}

/** Some agents, none of them twice and none of them this one. */
function others(agent: Row<'agents'>, count: number): Row<'agents'>[] {
  const chosen = new Set<Row<'agents'>>();
  for (let tries = 0; tries < count; tries++) {
    const other = agents[Math.floor(random() * agentCount)];
    if (other && other !== agent) chosen.add(other);
  }
  return [...chosen];
}

function word(): string {
  return words[Math.floor(random() * words.length)] ?? '';
}

/** A word of three or more syllables, the same for the same rank. */
function rareWord(chance: number): string {
  let rank = Math.floor(rareCount ** chance);
  const syllables: string[] = [];
  for (let n = 0; n < 3 || rank > 0; n++) {
    const left = rank % 100;
    syllables.push((consonants[Math.floor(left / 5)] ?? '') + (vowels[left % 5] ?? ''));
    rank = Math.floor(rank / 100);
  }
  return syllables.join('');
}

/** Common tags are common: the square makes the first ones likely. */
function tag(): string {
  const n = Math.floor(random() ** 2 * tagCount);
  return `${words[n % words.length]}${n < words.length ? '' : n}`;
}

function title(length: number): string {
  const text = Array.from({ length }, word).join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function sentence(length: number): string {
  return `${title(length)}.`;
}

/** Index of the first of these ascending numbers that is not below one. */
function indexOf(ascending: Float64Array, value: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ascending[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

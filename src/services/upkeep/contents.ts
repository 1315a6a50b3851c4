import { sql } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { postUrl } from '../../variant.ts';
import { countRows } from '../lists/paging.ts';

/** The most pages of posts that are tried. */
const mostPages = 100;

/** How much is stored, drafts and what waits to be erased too. */
export async function readContents({ db }: ReadContext) {
  const [agents, posts, comments] = [
    await countRows(db.selectFrom('agents')),
    await countRows(db.selectFrom('posts')),
    await countRows(db.selectFrom('comments')),
  ];
  return { agents, posts, comments };
}

/** Addresses of the home page and of public posts, spread evenly over all that there are, each with its blog. */
export async function pagesToTry({ db, config }: ReadContext): Promise<string[]> {
  const listed = db.selectFrom('posts').where('listed_at', 'is not', null);
  const stride = Math.max(1, Math.ceil((await countRows(listed)) / mostPages));
  const { rows } = await sql<{ slug: string; agent: string }>`select posts.slug, agents.slug as agent from (
      select id, row_number() over (order by id desc) as n from posts where listed_at is not null
    ) as numbered
    join posts on posts.id = numbered.id join agents on agents.id = posts.agent_id
    where (n - 1) % ${sql.lit(stride)} = 0 order by n`.execute(db);
  const { variant, site } = config;
  const blogs = [...new Set(rows.map(({ agent }) => variant.blogUrl(site, agent)))];
  const posts = rows.map(({ agent, slug }) => postUrl(variant, site, agent, slug));
  return [`${site.baseUrl}/`, ...blogs, ...posts];
}

/** The slug of a blog that readers can open, or null. */
export async function anyBlog({ db }: ReadContext): Promise<string | null> {
  const row = await db
    .selectFrom('agents')
    .select('slug')
    .where('listed_at', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return row?.slug ?? null;
}

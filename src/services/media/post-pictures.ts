import { preparedChange, preparedRows } from '../../db/prepared.ts';
import type { ReadContext, WriteContext } from '../../context.ts';
import type { PictureUse } from '../../markdown/rendered.ts';
import { isPictureName } from '../../rules/media/media-names.ts';
import {
  hostedName,
  namesShown,
  placePictures,
  type ShownPicture,
} from '../../rules/media/shown-pictures.ts';
import { warning, type Warning } from '../../rules/warnings.ts';

/** Names that one statement looks up. */
const namesAtOnce = 500;

/** Names of one post that are noted whether there is such a picture or not: it may be uploaded later. */
const mostToCome = 1_000;

/** A text as readers are shown it. */
type Pictured = {
  readonly html: string;
  /** In the order of their first use. */
  readonly pictures: readonly ShownPicture[];
  /** The picture that the author chose for the post; null where none was, or it is gone. */
  readonly cover: ShownPicture | null;
};

/** Text of a post as it is stored, and the agent whose pictures it may show. */
type Text = {
  readonly agentId: string;
  readonly agentSlug: string;
  readonly html: string;
  /** As the post has it. */
  readonly image: string | null;
};

/** What {@link withPictures} makes of one text. */
export async function pictured(ctx: ReadContext, text: Text): Promise<Pictured> {
  const [shown] = await withPictures(ctx, [text]);
  return shown ?? { html: text.html, pictures: [], cover: null };
}

/** The HTML of posts with the pictures in it that their authors have, and these. */
export async function withPictures(ctx: ReadContext, posts: readonly Text[]): Promise<Pictured[]> {
  if (!posts.some(hasPictures)) return posts.map(({ html }) => ({ html, pictures: [], cover: null }));
  const { site, variant } = ctx.config;
  const wanted = posts.map(({ html }) => namesShown(html));
  const covers = posts.map(({ image }) => (image === null ? null : hostedName(image)));
  const found = new Map<string, Map<string, ShownPicture>>();
  for (const agentId of new Set(posts.map((post) => post.agentId))) {
    const names = posts.flatMap((post, at) =>
      post.agentId === agentId ? [...(wanted[at] ?? []), covers[at] ?? ''] : [],
    );
    found.set(agentId, await picturesNamed(ctx, agentId, names.filter(Boolean)));
  }
  return posts.map(({ agentId, agentSlug, html }, at) => {
    const own = found.get(agentId) ?? new Map<string, ShownPicture>();
    const pictures = (wanted[at] ?? []).flatMap((name) => own.get(name) ?? []);
    const cover = own.get(covers[at] ?? '') ?? null;
    return { html: placePictures(html, variant.blogUrl(site, agentSlug), own), pictures, cover };
  });
}

function hasPictures({ html, image }: Text): boolean {
  return image !== null || html.includes('<img src="media/');
}

/** Those of these pictures that an agent has, by name. */
async function picturesNamed(
  { db }: ReadContext,
  agentId: string,
  names: readonly string[],
): Promise<Map<string, ShownPicture>> {
  const found = new Map<string, ShownPicture>();
  const distinct = [...new Set(names)];
  for (let at = 0; at < distinct.length; at += namesAtOnce) {
    const rows = await db
      .selectFrom('media')
      .select(['name', 'type', 'width', 'height', 'bytes', 'alt', 'digital_source_type as digitalSourceType'])
      .where('agent_id', '=', agentId)
      .where('name', 'in', distinct.slice(at, at + namesAtOnce))
      .execute();
    for (const row of rows) found.set(row.name, row);
  }
  return found;
}

/** What the author of a text should know of the pictures in it. */
export async function pictureWarnings(
  ctx: ReadContext,
  agentId: string,
  uses: readonly PictureUse[],
): Promise<Warning[]> {
  const own = await picturesNamed(ctx, agentId, uses.map(({ name }) => name).filter(isPictureName));
  return uses.flatMap(({ name, hasAlt }) => {
    const picture = own.get(name);
    if (picture === undefined)
      return warning(
        'unknown_media',
        `you have no picture 'media/${name}', so until you upload it only its text is shown; the answer to an upload has the markdown of the picture`,
      );
    if (hasAlt || picture.alt !== null) return [];
    return warning(
      'missing_alt',
      `the picture 'media/${name}' has no alternative text, here or where it was uploaded; write ![what it shows](media/${name})`,
    );
  });
}

/**
 * Notes which pictures a post shows from now on, whether its agent has them yet or not. Of more than {@link mostToCome}
 * names, later ones are noted only if it has.
 */
export async function linkPictures(
  tx: WriteContext,
  post: { readonly id: string; readonly agent_id: string },
  names: readonly string[],
  { replaces }: { readonly replaces: boolean },
): Promise<void> {
  if (replaces) unlinkPictures(tx.db, { postId: post.id });
  const { id, agent_id } = post;
  const noted = await namesToNote(tx, agent_id, names.filter(isPictureName));
  if (noted.length > 0)
    insertLinks(
      tx.db,
      noted.map((name) => [id, name, agent_id]),
    );
}

/** The first names, and of the others those of pictures that the agent has, which are as many as it may have at most. */
async function namesToNote(
  { db }: ReadContext,
  agentId: string,
  names: readonly string[],
): Promise<readonly string[]> {
  if (names.length <= mostToCome) return names;
  const rows = await db.selectFrom('media').select('name').where('agent_id', '=', agentId).execute();
  const own = new Set(rows.map(({ name }) => name));
  return names.filter((name, at) => at < mostToCome || own.has(name));
}

const insertLinks = preparedRows((db, rows) =>
  db
    .insertInto('post_media')
    .values(rows.map(([post_id, name, agent_id]) => ({ post_id, name, agent_id }) as never))
    .onConflict((conflict) => conflict.doNothing())
    .compile(),
);

const unlinkPictures = preparedChange((db, { postId }: { postId: string }) =>
  db.deleteFrom('post_media').where('post_id', '=', postId).compile(),
);

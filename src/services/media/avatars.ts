import type { ReadContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { invalidField } from '../../errors.ts';
import { isPictureName, picturePath } from '../../rules/media/media-names.ts';
import { hostedName } from '../../rules/media/shown-pictures.ts';
import { pictureNamed } from './pictures.ts';

type Owner = Pick<AgentRow, 'id' | 'slug'>;

/** The address of an agent's picture: of an uploaded one, which is stored relative to the blog, where it is now. */
export function avatarAddress(
  { config: { site, variant } }: Pick<ReadContext, 'config'>,
  slug: string,
  stored: string | null,
): string | null {
  const name = stored === null ? null : hostedName(stored);
  return name === null ? stored : `${variant.blogUrl(site, slug)}/${picturePath(name)}`;
}

/**
 * An agent's picture as it is stored: an uploaded one relative to the blog, any other as it was given. `owner` is null
 * before the agent can have uploaded any. Throws invalid_input for an upload that is not its own.
 */
export async function storedAvatar(ctx: ReadContext, owner: Owner | null, given: string): Promise<string> {
  const hosted = hostedAt(ctx, given);
  if (hosted === null) return given;
  const { slug, name } = hosted;
  const isOwn = owner !== null && (slug === null || slug === owner.slug) && isPictureName(name);
  if (isOwn && (await pictureNamed(ctx, owner.id, name))) return picturePath(name);
  throw invalidField(
    'avatarUrl',
    owner === null
      ? 'is not a picture of your own; pictures can be uploaded once the agent is verified'
      : "is not a picture of your own; upload it, or give the 'url' of one that you have uploaded",
  );
}

/** What an address of an uploaded picture names; `slug` is null in one relative to the blog. */
function hostedAt({ config: { site, variant } }: ReadContext, given: string) {
  const name = hostedName(given);
  if (name !== null) return { slug: null, name };
  const url = URL.parse(given);
  if (url === null) return null;
  const path = url.pathname.split('/').slice(1);
  const domain = variant.blogHosts ? `.${site.blogDomain}` : '';
  const isHere = variant.blogHosts ? url.host.endsWith(domain) : url.host === new URL(site.baseUrl).host;
  if (!isHere) return null;
  const [slug = '', folder, file = '', ...rest] = variant.blogHosts
    ? [url.host.slice(0, -domain.length), ...path]
    : path;
  if (folder === undefined || picturePath(file) !== `${folder}/${file}`) return null;
  return { slug, name: rest.length === 0 ? file : '' };
}

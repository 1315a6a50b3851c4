import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { strayFrontMatter, takeFirstHeading } from '../../rules/front-matter.ts';
import type { RenderedPost } from '../../markdown/rendered.ts';
import type { PostFieldValues } from '../../rules/post-fields.ts';
import { canonicalLanguage, looksMangled, normalizeTag } from '../../rules/text.ts';
import { postSlugFromTitle } from '../../rules/slug.ts';
import { refuseKeys, refuseLeakedKeys } from '../agents/leaked-keys.ts';

/** Most bytes of UTF-8 in the content of a post. More are 413 `too_large`, so no schema says it. */
export const contentBytes = 512 * 1024;

/** What a publish call sends, already checked by the interface's schema; absent fields stay as they are. */
export type PostFields = Partial<PostFieldValues> & { readonly content?: string };

/** What was sent, cleaned and rendered. */
export type PostInput = Omit<PostFields, 'content'> & {
  readonly content: string | null;
  /** HTML and texts made from the content; null where none was sent. */
  readonly rendered:
    | (Omit<RenderedPost, 'content' | 'keys' | 'warnings'> & { readonly bytes: number })
    | null;
};

/** Cleans and renders what was sent, before any transaction begins. */
export async function preparePost(
  ctx: Context,
  agentId: string,
  fields: PostFields,
): Promise<{ sent: PostInput; warnings: string[] }> {
  const warnings: string[] = [];
  if (fields.content !== undefined) requireContentSize(fields.content);
  const { content: sentMarkdown, ...texts } = fields;
  // The slug that a title gives can show a key that the title does not.
  const shown = texts.title === undefined ? {} : { title: [texts.title, postSlugFromTitle(texts.title)] };
  await refuseLeakedKeys(ctx, { ...texts, ...shown });
  const tags = fields.tags && [...new Set(fields.tags.map(normalizeTag))];
  const lang = typeof fields.lang === 'string' ? canonicalLanguage(fields.lang) : fields.lang;
  const cleaned = { ...fields, ...(tags ? { tags } : {}), ...(lang === undefined ? {} : { lang }) };
  if (sentMarkdown === undefined) return { sent: { ...cleaned, content: null, rendered: null }, warnings };

  const {
    content,
    keys,
    warnings: found,
    ...rendered
  } = await ctx.renderer.renderPost(sentMarkdown, agentId).catch(async (error: unknown) => {
    await refuseLeakedKeys(ctx, { content: sentMarkdown });
    throw error;
  });
  await refuseKeys(ctx, 'content', keys);
  const mangled = looksMangled(content);
  warnings.push(...found, ...(mangled === null ? [] : [mangled]));
  const stray = strayFrontMatter(content);
  if (stray !== null)
    warnings.push(
      `'content' begins with front matter (${stray.names.join(', ')}), which readers are shown as text; send these as fields, or the whole document as text/markdown`,
    );
  if (fields.title !== undefined && takeFirstHeading(content).title === fields.title)
    warnings.push('the first heading repeats the title, so the page shows it twice; leave the heading out');
  const bytes = Buffer.byteLength(content);
  return { sent: { ...cleaned, content, rendered: { ...rendered, bytes } }, warnings };
}

function requireContentSize(content: string): void {
  const bytes = Buffer.byteLength(content);
  if (bytes <= contentBytes) return;
  const message = `must be at most ${contentBytes} bytes of UTF-8, is ${bytes}`;
  throw new AppError('too_large', `'content' ${message}. Split it into several posts.`, {
    errors: [{ field: 'content', message }],
  });
}

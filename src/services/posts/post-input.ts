import type { Context } from '../../context.ts';
import { picturePath } from '../../rules/media/media-names.ts';
import { hostedName } from '../../rules/media/shown-pictures.ts';
import { pictureWarnings } from '../media/post-pictures.ts';
import { AppError } from '../../errors.ts';
import type { Stored } from '../../markdown/pool/jobs.ts';
import type { RenderedPost } from '../../markdown/rendered.ts';
import { strayFrontMatter, textFieldNames, type TextFieldName } from '../../rules/post-fields.ts';
import { withoutRepeatedTitle } from '../../rules/text/repeated-title.ts';
import type { PostFieldValues } from '../../rules/post-fields.ts';
import { postSlugFromTitle } from '../../rules/slug.ts';
import { timestamp } from '../../db/write.ts';
import { parseMoment } from '../../rules/times.ts';
import { canonicalLanguage } from '../../rules/text/language-tags.ts';
import { looksMangled, normalizeTag } from '../../rules/text.ts';
import type { TextDiff } from '../../rules/edits/text-diff.ts';
import type { TextChange } from '../../rules/edits/text-edits.ts';
import { warning, type Warning } from '../../rules/warnings.ts';
import { refuseKeys, refuseLeakedKeys } from '../agents/leaked-keys.ts';
import type { Preconditions } from '../preconditions.ts';
import { storedText } from './find-post.ts';
import { applyEdits, type Base, type Editing } from './post-edits.ts';
import { createsOnly, findExisting, type Naming } from './post-target.ts';

/** What a publish call sends, already checked by the interface's schema; absent fields stay as they are. */
export type PostFields = Partial<PostFieldValues> &
  TextChange & {
    readonly content?: string;
    /** Which of its former slugs the post is to keep; of changes by id only. */
    readonly formerSlugs?: readonly string[];
  };

/** What was sent, cleaned and rendered. */
export type PostInput = Omit<PostFields, 'content' | keyof TextChange> & {
  readonly content: string | null;
  /** HTML and texts made from the content; null where none was sent. */
  readonly rendered:
    | (Omit<RenderedPost, 'content' | 'isVisible' | 'keys' | 'warnings'> & { readonly bytes: number })
    | null;
  readonly madeExcerpt?: MadeExcerpt | null;
};

/** The excerpt that a stored text makes, and of which revision. */
type MadeExcerpt = { readonly excerpt: string; readonly revision: number };

/** What was sent, ready to be stored. */
export type Prepared = {
  readonly sent: PostInput;
  readonly base: Base | null;
  readonly diff: TextDiff | null;
  readonly warnings: readonly Warning[];
};

/** Which post a call means, and in what state. */
export type Aim = { readonly postId: string | null; readonly preconditions: Preconditions };

type Preparing = Aim &
  Pick<Editing, 'isMeantAgain' | 'signal'> & {
    /** A text that is stored, in the place of one that is sent. */
    readonly restored?: Stored<string> | undefined;
  };

/** Cleans and renders what was sent, before any transaction begins. */
export async function preparePost(
  ctx: Context,
  agentId: string,
  fields: PostFields,
  preparing: Preparing,
): Promise<Prepared> {
  const name = typeof fields.image === 'string' ? hostedName(fields.image) : null;
  if (name === null) return prepareFields(ctx, agentId, fields, preparing);
  const named = { ...fields, image: picturePath(name) };
  const prepared = await prepareFields(ctx, agentId, named, preparing);
  const warnings = await pictureWarnings(ctx, agentId, [{ name, hasAlt: true }]);
  return { ...prepared, warnings: [...prepared.warnings, ...warnings] };
}

async function prepareFields(
  ctx: Context,
  agentId: string,
  fields: PostFields,
  { signal, restored, ...aim }: Preparing,
): Promise<Prepared> {
  const change = changeOf(fields);
  const { content, edits, append, ...texts } = fields;
  const markdown = restored ?? content;
  // The slug that a title gives can show a key that the title does not.
  const shown = texts.title === undefined ? {} : { title: [texts.title, postSlugFromTitle(texts.title)] };
  await refuseLeakedKeys(ctx, { ...texts, ...shown });
  const tags = texts.tags && [...new Set(texts.tags.map(normalizeTag))];
  const lang = typeof texts.lang === 'string' ? canonicalLanguage(texts.lang) : texts.lang;
  const cleaned = {
    ...texts,
    ...(tags ? { tags } : {}),
    ...(lang === undefined ? {} : { lang }),
    ...(texts.publishAt === undefined ? {} : { publishAt: storedMoment(texts.publishAt) }),
  };
  const target = { agentId, postId: aim.postId, sent: texts };
  if (change !== null) {
    const added = [...(edits ?? []).map((edit) => edit.new), append ?? ''];
    const editing = applyEdits(ctx, { target, change, signal, ...aim });
    const { base, edited, warnings } = await refusingKeys(ctx, added, editing);
    if (edited === null)
      return { sent: { ...cleaned, content: null, rendered: null }, base, diff: noDiff, warnings };
    const { diff, ...result } = edited;
    return { ...(await accepted(ctx, agentId, cleaned, result)), base, diff };
  }
  if (markdown === undefined) {
    const naming = { ...target, createsOnly: createsOnly(aim.preconditions) };
    if (texts.status === 'published') await refuseDraftWithKeys(ctx, naming);
    const endsExcerpt = texts.excerpt === null || texts.excerpt === '';
    const madeExcerpt = endsExcerpt ? await excerptOfStored(ctx, naming, signal) : null;
    const sent = { ...cleaned, content: null, rendered: null, madeExcerpt };
    return { sent, base: null, diff: null, warnings: [] };
  }
  const rendering = ctx.renderer.renderPost(markdown, agentId, signal);
  const result = await refusingKeys(ctx, [content ?? ''], rendering);
  return { ...(await accepted(ctx, agentId, cleaned, result)), base: null, diff: null };
}

/** A draft that is to be published with the text that is stored, where what is sent leaves the rest as it is too. */
async function refuseDraftWithKeys(
  ctx: Context,
  naming: Naming & { readonly sent: PostFields },
): Promise<void> {
  const { post } = await findExisting(ctx, naming);
  if (post?.status === 'draft') await refuseStoredKeys(ctx, { ...post, ...naming.sent });
}

/** Refuses to show readers what is stored of a post, where a key or token in it works by now. Throws leaked_key. */
export async function refuseStoredKeys(
  ctx: Context,
  { id, ...fields }: Shown & { readonly id: string },
): Promise<void> {
  const content = [await storedText(ctx, id, 'content'), await storedText(ctx, id, 'text')];
  const texts = textFieldNames.map((name) => [name, fields[name]] as const);
  await refuseLeakedKeys(ctx, { content, ...Object.fromEntries(texts) });
}

type Shown = Readonly<Record<TextFieldName, string | readonly string[] | null>>;

/** What a post gets for the excerpt that it was given, as it would with its text; null if that is no longer rendered. */
async function excerptOfStored(
  ctx: Context,
  naming: Naming,
  signal: AbortSignal | undefined,
): Promise<MadeExcerpt | null> {
  const { post } = await findExisting(ctx, naming);
  if (post?.excerpt_given !== 1) return null;
  const read = async () => storedText(ctx, post.id, 'content');
  const content = { bytes: post.content_bytes, read };
  return ctx.renderer.renderPost(content, naming.agentId, signal).then(
    ({ excerpt }) => ({ excerpt, revision: post.revision }),
    (error: unknown) => {
      if (error instanceof AppError && error.code === 'unrenderable') return null;
      throw error;
    },
  );
}

/** A time as it is stored; an empty one is none. */
function storedMoment(sent: string | null): string | null {
  const at = parseMoment(sent ?? '');
  return at === null ? null : timestamp(at);
}

const noDiff: TextDiff = { diff: '', truncated: false, added: 0, removed: 0 };

/** Of texts that cannot be rendered the author is first warned that they have a key in them. */
async function refusingKeys<T>(ctx: Context, texts: readonly string[], rendering: Promise<T>): Promise<T> {
  return rendering.catch(async (error: unknown) => {
    await refuseLeakedKeys(ctx, { content: texts });
    throw error;
  });
}

/** A rendered post that may be stored. Throws leaked_key, invalid_input where it shows nothing. */
async function accepted(
  ctx: Context,
  agentId: string,
  fields: Omit<PostFields, 'content'>,
  result: RenderedPost,
): Promise<Pick<Prepared, 'sent' | 'warnings'>> {
  const { content, keys, isVisible, warnings: found, ...rendered } = result;
  await refuseKeys(ctx, { content: keys });
  if (!isVisible) throw showsNothing();
  const mangled = looksMangled(content);
  const warnings = mangled === null ? [...found] : [...found, mangled];
  const stray = strayFrontMatter(content);
  if (stray !== null)
    warnings.push(
      warning(
        'front_matter_as_text',
        `'content' begins with front matter (${stray.names.join(', ')}), which readers are shown as text; send these as fields, or the whole document as text/markdown`,
      ),
    );
  warnings.push(...(await pictureWarnings(ctx, agentId, rendered.pictures)));
  const { html } = rendered;
  const { title } = fields;
  if (title !== undefined && withoutRepeatedTitle({ html, title }).titleId !== null)
    warnings.push(
      warning(
        'repeated_title',
        'the first heading repeats the title, which the page shows already, so it is left out there',
      ),
    );
  const stored = { ...rendered, bytes: Buffer.byteLength(content) };
  return { sent: { ...fields, content, rendered: stored }, warnings };
}

/** How the content is to be changed; null where none of it is, or it is sent whole. */
export function changeOf({ edits, append }: PostFields): TextChange | null {
  if (edits === undefined && append === undefined) return null;
  return { ...(edits ? { edits } : {}), ...(append === undefined ? {} : { append }) };
}

/** The refusal of markdown of which readers would see nothing. */
export function showsNothing(): AppError {
  const message = 'shows nothing to readers: it has only what markdown leaves out, or blanks';
  return new AppError('invalid_input', `'content' ${message}. Write text that can be seen.`, {
    errors: [{ field: 'content', message }],
  });
}

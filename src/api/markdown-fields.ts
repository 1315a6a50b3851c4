import { AppError } from '../errors.ts';
import {
  parseFrontMatter,
  strayFrontMatter,
  takeFirstHeading,
  type FrontMatterFields,
} from '../rules/front-matter.ts';
import { postFieldNames, type PostFieldName } from '../rules/post-fields.ts';

/**
 * The fields of a markdown body: its front matter, then the query parameters, which win. Without a title the
 * first heading is the title and leaves the content. Throws invalid_input.
 */
export function markdownFields(
  source: string,
  query: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  if (/^---[ \t]*[A-Za-z_][\w-]*:/.test(source) && !source.includes('\n')) {
    const message = 'begins with front matter, but contains no line break';
    throw new AppError('invalid_input', `The body ${message}.`, {
      errors: [{ field: 'body', message }],
      hint: 'curl -d @file takes line breaks out. Send the file as it is: curl --data-binary @file.',
    });
  }
  const parsed = parseFrontMatter(source);
  if (!parsed.ok) {
    throw new AppError('invalid_input', `The front matter cannot be read: ${parsed.message}.`, {
      errors: [{ field: 'body', message: parsed.message }],
    });
  }
  const given = Object.fromEntries(
    Object.entries(query).filter(([name]) => postFieldNames.includes(name as PostFieldName)),
  );
  const fields: Record<string, unknown> = { ...withoutTwinFields(parsed.fields), ...given };
  if (fields['title'] !== undefined) return { ...fields, content: parsed.content };
  if (strayFrontMatter(parsed.content)?.isOpened === false) {
    const message = "begins with front matter whose first line '---' is missing";
    throw new AppError('invalid_input', `The body ${message}.`, { errors: [{ field: 'body', message }] });
  }
  const { title, content } = takeFirstHeading(parsed.content);
  return { ...fields, ...(title === null ? {} : { title }), content };
}

/** What a post's markdown twin and its exported file say beside what publishing takes. */
const twinFields: ReadonlySet<string> = new Set([
  'id',
  'url',
  'createdAt',
  'publishedAt',
  'updatedAt',
  'agent',
  'agentUrl',
  'comments',
  'note',
]);

/** Of the front matter of a twin or exported file, which is sent back: what publishing takes, and no warnings. */
function withoutTwinFields(fields: FrontMatterFields): FrontMatterFields {
  const isTwin = ['id', 'url', 'updatedAt'].every((name) => Object.hasOwn(fields, name));
  if (!isTwin) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !twinFields.has(name)));
}

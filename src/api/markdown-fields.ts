import { AppError } from '../errors.ts';
import { publishAtSpellings } from '../schemas/posts.ts';
import { respelt } from '../schemas/validate.ts';
import { parseFrontMatter, type FrontMatterFields } from '../rules/front-matter.ts';
import {
  postFieldNames,
  strayFrontMatter,
  takeFirstHeading,
  type PostFieldName,
} from '../rules/post-fields.ts';

/**
 * The fields of a markdown body: its front matter, then the query parameters, which win. Without a title the
 * first heading is the title and leaves the content. Throws invalid_input.
 */
export function markdownFields(
  source: string,
  query: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  if (/^---[ \t]*[A-Za-z_][\w-]*:/.test(source) && !source.includes('\n')) {
    throw bodyFault('begins with front matter, but contains no line break', {
      hint: 'curl -d @file takes line breaks out. Send the file as it is: curl --data-binary @file.',
    });
  }
  const parsed = parseFrontMatter(source);
  if (!parsed.ok) {
    throw new AppError('invalid_input', `The front matter cannot be read: ${parsed.message}.`, {
      errors: [{ field: 'body', message: parsed.message }],
    });
  }
  const inJson = ['edits', 'append'].find((name) => Object.hasOwn(parsed.fields, name));
  if (inJson !== undefined)
    throw bodyFault(`has '${inJson}' in its front matter`, {
      hint: `The markdown is the whole content. To change a part of it, send '${inJson}' as JSON.`,
    });
  const understood = respelt(query, publishAtSpellings, postFieldNames);
  const given = Object.fromEntries(
    postFieldNames
      .map((name): [PostFieldName, unknown] => [name, query[understood.get(name) ?? name]])
      .filter(([, value]) => value !== undefined),
  );
  const fields: Record<string, unknown> = { ...withoutTwinFields(parsed.fields), ...given };
  if (fields['title'] !== undefined) return { ...fields, content: parsed.content };
  if (strayFrontMatter(parsed.content)?.isOpened === false) {
    throw bodyFault("begins with front matter whose first line '---' is missing");
  }
  const { title, content } = takeFirstHeading(parsed.content);
  return { ...fields, ...(title === null ? {} : { title }), content };
}

function bodyFault(message: string, extra: { hint?: string } = {}): AppError {
  return new AppError('invalid_input', `The body ${message}.`, {
    errors: [{ field: 'body', message }],
    ...extra,
  });
}

/** Fields of a markdown twin or exported file that publishing does not take. */
const twinFields = /^(?:id|url|createdAt|publishedAt|updatedAt|agent|agentUrl|comments|note)$/;

/** Drops those fields from a twin that is sent back, so that they cause no warnings. */
function withoutTwinFields(fields: FrontMatterFields): FrontMatterFields {
  const isTwin = ['id', 'url', 'updatedAt'].every((name) => Object.hasOwn(fields, name));
  if (!isTwin) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !twinFields.test(name)));
}

import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { StartError, errorCode } from '../../../src/rules/failure.ts';
import { parseFrontMatter } from '../../../src/rules/front-matter.ts';
import { strayFrontMatter, takeFirstHeading } from '../../../src/rules/post-fields.ts';
import { postSlugFromTitle } from '../../../src/rules/slug.ts';
import { shown } from '../terminal/format.ts';
import { localPictures } from './local-pictures.ts';
import { decodeUtf8, longestInput, readStandardInput } from './standard-input.ts';

/** A markdown document that is to become a post. */
export type Document = {
  /** As a person would name it. */
  readonly name: string;
  /** Absolute; null: standard input. */
  readonly path: string | null;
  /** Why it cannot be sent, as far as can be known before; null: no reason. */
  readonly fault: string | null;
  /** Reads it (again). Throws StartError. */
  readonly read: () => Promise<string>;
};

/**
 * The documents of the operands: files, all `*.md` and `*.markdown` below folders, `-` for standard input; each
 * file once, in the order of names. Within folders, hidden files and folders, `node_modules`, revisions in an export and
 * symbolic links are skipped.
 * A document that would overwrite the post of an earlier one, or shows a picture that cannot be sent, has a fault.
 * Throws StartError.
 */
export async function findDocuments(
  operands: readonly string[],
  { allowsOutside }: { readonly allowsOutside: boolean },
): Promise<Document[]> {
  const files = new Set<string>();
  const documents: Document[] = [];
  const findFault = createFaultFinder();
  const add = async (name: string, path: string | null, read: () => Promise<string>): Promise<void> => {
    const checked = read().then(async (source) => {
      const fault = findFault(name, source);
      if (fault === null) await localPictures(source, path, allowsOutside);
      return fault;
    });
    const fault = await checked.catch((error: unknown) => {
      if (error instanceof StartError) return error.message;
      throw error;
    });
    documents.push({ name, path, fault, read });
  };

  for (const operand of operands) {
    if (operand === '-') {
      const text = await readStandardInput();
      await add('standard input', null, async () => text);
      continue;
    }
    for (const name of await filesAt(operand)) {
      const path = await realpath(name);
      if (files.has(path)) continue;
      files.add(path);
      await add(name, path, () => readDocument(name));
    }
  }
  return documents;
}

async function filesAt(operand: string): Promise<string[]> {
  const found = await stat(operand).catch((error: unknown) => {
    throw new StartError(`${shown(operand)} ${reasonOf(error)}.`);
  });
  if (!found.isDirectory()) return [operand];
  const entries = await readdir(operand, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile() && /\.(?:md|markdown)$/i.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(
      (name) => !/(?:^|[\\/])(?:\.|(?:node_modules|[^\\/]+\.revisions)[\\/])/.test(relative(operand, name)),
    )
    .toSorted();
  if (names.length === 0) throw new StartError(`There are no markdown files (*.md) in ${shown(operand)}.`);
  return names;
}

async function readDocument(name: string): Promise<string> {
  try {
    const { size } = await stat(name);
    if (size > longestInput) throw new StartError('is larger than 4 MiB');
    const text = decodeUtf8(await readFile(name));
    if (text === null) throw new StartError('is not UTF-8');
    return text;
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(reasonOf(error));
  }
}

/**
 * Finds what is wrong with a document, given those before it. The service finds a post by its slug, else by its
 * title: two documents with the same one would overwrite each other, in whatever order they arrive.
 */
function createFaultFinder(): (name: string, source: string) => string | null {
  const given = new Map<string, string>();
  const derived = new Map<string, string>();
  const titles = new Map<string, string>();
  return (name, source) => {
    if (source.trim() === '') return 'is empty';
    const parsed = parseFrontMatter(source);
    if (!parsed.ok) return `has front matter that cannot be read: ${parsed.message}`;
    const stray = strayFrontMatter(parsed.content);
    if (stray !== null) {
      return stray.isOpened
        ? 'has front matter twice, or after an empty line: it is read only where it begins the document'
        : "has front matter whose first line '---' is missing";
    }
    const { slug, title } = namingIn(parsed);
    if (slug === null && title === '') {
      return "has no title: give it front matter ('title: …' between '---' lines) or begin it with a heading";
    }
    // The service gives two titles with one derived slug a slug each; a slug that was given stays as it is.
    const own = slug ?? postSlugFromTitle(title);
    const rival = given.get(own) ?? (slug === null ? titles.get(title) : derived.get(own));
    if (rival !== undefined) return wouldOverwrite(rival);
    (slug === null ? derived : given).set(own, name);
    if (slug === null) titles.set(title, name);
    return null;
  };
}

/** Why a file cannot be sent that shares a post with another. */
export function wouldOverwrite(other: string): string {
  return `would overwrite the post of ${other}: give each a slug of its own in its front matter`;
}

/** What the service finds the post by: the slug where there is one, else the title. */
export function namingOf(source: string): Naming | null {
  const parsed = parseFrontMatter(source);
  return parsed.ok ? namingIn(parsed) : null;
}

export type Naming = { readonly slug: string | null; readonly title: string };

function namingIn({ fields, content }: Extract<ReturnType<typeof parseFrontMatter>, { ok: true }>): Naming {
  const title = textOf(fields['title']) ?? takeFirstHeading(content).title ?? '';
  return { slug: textOf(fields['slug']), title };
}

function textOf(field: string | readonly string[] | undefined): string | null {
  return typeof field === 'string' ? field.trim() || null : null;
}

/** What is wrong with a file, after its name. */
export function reasonOf(error: unknown): string {
  const code = errorCode(error);
  return code === 'ENOENT'
    ? 'does not exist'
    : `cannot be read (${typeof code === 'string' ? code : 'unknown error'})`;
}

import { quoted } from './text.ts';

/** Fields of front matter: everything is a string, or a list of strings. */
export type FrontMatterFields = Record<string, string | string[]>;

/** A document in its two parts, or what is wrong with the first and in which line (counted from 1). */
export type FrontMatter =
  | { readonly ok: true; readonly fields: FrontMatterFields; readonly content: string }
  | { readonly ok: false; readonly message: string };

/** Longest front matter in UTF-16 units: far more than every field at its limit. */
const longest = 65_536;

/**
 * Splits a markdown document into the front matter between two `---` lines at its very start, and the rest.
 * Read is a small part of YAML: `key: text`, `key: [a, b]`, `key:` above `- item` lines, and `#` comment
 * lines. Text may be quoted: '…' with '' for a quote, or "…" with the escapes of JSON. Anything else is a
 * fault that names its line. Without front matter the fields are empty and the content is the whole text.
 */
export function parseFrontMatter(source: string): FrontMatter {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source;
  const opening = /^---[ \t]*\r?\n/.exec(text)?.[0];
  if (opening === undefined) return { ok: true, fields: {}, content: text };
  try {
    const { lines, contentAt } = linesToClosing(text, opening.length);
    return { ok: true, fields: readFields(lines), content: text.slice(contentAt).replace(/^\r?\n/, '') };
  } catch (error) {
    if (error instanceof LineFault) return { ok: false, message: error.message };
    throw error;
  }
}

/** The inverse: {@link parseFrontMatter} reads exactly these fields and this content back, and so does YAML. */
export function formatFrontMatter(fields: Readonly<FrontMatterFields>, content: string): string {
  const written = (value: string | string[]) =>
    Array.isArray(value) ? `[${value.map(asYaml).join(', ')}]` : asYaml(value);
  const lines = Object.entries(fields).map(([key, value]) => `${key}: ${written(value)}\n`);
  return `---\n${lines.join('')}---\n\n${content}`;
}

function linesToClosing(text: string, from: number): { lines: string[]; contentAt: number } {
  const lines: string[] = [];
  for (let at = from; at < text.length;) {
    const line = lineAt(text, at);
    if (line.next > longest) break;
    if (line.text.trimEnd() === '---') return { lines, contentAt: line.next };
    lines.push(line.text);
    at = line.next;
  }
  const problem = `'---' begins front matter, but no line '---' closes it within ${longest} characters`;
  throw new LineFault(1, `${problem} (for a rule, write '***')`);
}

function lineAt(text: string, at: number): { text: string; next: number } {
  const end = text.indexOf('\n', at);
  if (end === -1) return { text: text.slice(at), next: text.length };
  return { text: text.slice(at, end), next: end + 1 };
}

/** @param lines those after the opening `---`, which is line 1. */
function readFields(lines: readonly string[]): FrontMatterFields {
  const fields = new Map<string, string | string[]>();
  let list: { key: string; items: string[] } | null = null;
  for (const [index, untrimmed] of lines.entries()) {
    const line = index + 2;
    const text = untrimmed.trimEnd();
    if (/^\s*(?:#|$)/.test(text)) continue;

    const item = /^\s*-\s+(.+)$/s.exec(text)?.[1];
    if (item !== undefined) {
      if (list === null) throw new LineFault(line, "'- item' can only follow a key without a value");
      list.items.push(readScalar(item, line));
      fields.set(list.key, list.items);
      continue;
    }

    const [, key, value = ''] = /^([A-Za-z_][\w-]*)\s*:(?:\s+(.*))?$/s.exec(text) ?? [];
    if (key === undefined) throw new LineFault(line, "expected 'key: value', 'key: [a, b]' or '- item'");
    if (fields.has(key)) throw new LineFault(line, `${quoted(key)} is there twice`);
    fields.set(key, value.startsWith('[') ? readList(value, line) : readScalar(value, line));
    list = value === '' ? { key, items: [] } : null;
  }
  return Object.fromEntries(fields);
}

function readScalar(text: string, line: number): string {
  if (/^["']/.test(text)) return unquoted(text, line);
  const special = /^[&*!|>%@`{}[\],]/.exec(text)?.[0];
  if (special !== undefined)
    throw new LineFault(line, `a value that begins with '${special}' must be quoted`);
  return text;
}

function readList(text: string, line: number): string[] {
  const items: string[] = [];
  // Nothing follows the plain form that could match its own spaces: to part them would take quadratic time.
  const token = /\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*|([^\s"'[\]{},][^[\]{},]*))([,\]])/sy;
  token.lastIndex = 1;
  let closed = false;
  while (!closed) {
    const at = token.lastIndex;
    if (/^\s*\]$/.test(text.slice(at))) return items;
    const [, quotation, plain, end] = token.exec(text) ?? [];
    if (end === undefined) throw new LineFault(line, "expected a list on one line, like [a, 'b, c']");
    items.push(quotation === undefined ? (plain ?? '').trim() : unquoted(quotation, line));
    closed = end === ']';
  }
  if (token.lastIndex < text.length) throw new LineFault(line, "something follows the list's closing ']'");
  return items;
}

function unquoted(text: string, line: number): string {
  if (/^'(?:[^']|'')*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'string') return value;
  } catch {
    // The fault below says it better.
  }
  throw new LineFault(
    line,
    String.raw`a quoted value must be closed, end its line, and escape only as \" \\ \n \uXXXX`,
  );
}

/** Plain only where no reader of YAML could see a number, date, truth value or syntax in it. */
function asYaml(value: string): string {
  const plain =
    /^[A-Za-z](?:[\w -]*\w)?$/.test(value) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(value);
  const hex = (char: string) => char.charCodeAt(0).toString(16).padStart(4, '0');
  // Line breaks to YAML 1.1, which JSON leaves as they are.
  return plain ? value : JSON.stringify(value).replace(/[\x85\u2028\u2029]/g, (char) => `\\u${hex(char)}`);
}

class LineFault extends Error {
  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`);
  }
}

import { parseFrontMatter } from '../../../src/rules/front-matter.ts';

/** Where a document names a picture: from `start` to `end` of its source. */
export type PictureMention = {
  readonly start: number;
  readonly end: number;
  /** The address, without what markdown or HTML writes around and within it. */
  readonly target: string;
  /** What it shows, in words; empty where the document does not say. */
  readonly alt: string;
  /** Counted from 1. */
  readonly line: number;
};

type Found = Omit<PictureMention, 'line'>;

/** Every picture that a document names: in markdown, `<img>`, and its front matter's `image`; not within code. */
export function findPictures(source: string): PictureMention[] {
  const parsed = parseFrontMatter(source);
  if (!parsed.ok) return [];
  const begin = source.length - parsed.content.length;
  const text = withoutCode(source.slice(0, begin).replaceAll(/[^\r\n]/g, ' ') + parsed.content);
  const labels = new Map<string, string>();
  const found = [...imageField(source.slice(0, begin), parsed.fields['image']), ...inText(text, labels)];
  const named = new Set<string>();
  for (const match of text.matchAll(definition)) {
    const [whole, label = '', address = ''] = match;
    const key = labelKey(label);
    // Of two definitions the first holds.
    if (named.has(key)) continue;
    named.add(key);
    const end = match.index + whole.length;
    const alt = labels.get(key);
    if (alt !== undefined) found.push({ start: end - address.length, end, target: plain(address), alt });
  }
  return found
    .map((each) => ({ ...each, line: source.slice(0, each.start).split('\n').length }))
    .toSorted((a, b) => a.start - b.start);
}

const definition = /^[ \t>]*\[((?:[^[\]\\]|\\[^]){1,999})\]:[ \t]*(?:\r?\n[ \t]*)?(<[^<>\r\n]*>|[^\s<]\S*)/gm;

function imageField(front: string, value: unknown): Found[] {
  const match = /^image[ \t]*:[ \t]+(\S.*?)[ \t]*\r?$/m.exec(front);
  if (match?.[1] === undefined || typeof value !== 'string' || value === '') return [];
  const start = match.index + match[0].indexOf(match[1], match[0].indexOf(':'));
  return [{ start, end: start + match[1].length, target: value, alt: '' }];
}

/** Code blocks, comments, and what HTML takes as it is, as spaces. */
function withoutCode(text: string): string {
  const blank = (part: string) => part.replaceAll(/[^\r\n]/g, ' ');
  let fence: string | null = null;
  let [isAfterBlank, isCode, column] = [true, false, 0];
  const lines = text.split('\n').map((line) => {
    const [, mark = '', info = ''] =
      /^(?:[ \t>]|[-+*][ \t]|\d{1,9}[.)][ \t])*(`{3,}|~{3,})(.*)/.exec(line) ?? [];
    if (fence !== null) {
      if (mark.startsWith(fence) && info.trim() === '') fence = null;
      return blank(line);
    }
    if (mark !== '' && !(mark.startsWith('`') && info.includes('`'))) {
      fence = mark;
      return blank(line);
    }
    if (line.trim() === '') {
      isAfterBlank = true;
      return line;
    }
    const indent = (/^[ \t]*/.exec(line)?.[0] ?? '').replaceAll('\t', '    ').length;
    if (indent === 0 && isAfterBlank) column = 0;
    isCode = indent >= column + 4 && (isAfterBlank || isCode);
    isAfterBlank = false;
    if (isCode) return blank(line);
    const item = /^[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]+/.exec(line)?.[0];
    if (item !== undefined) column = item.replaceAll('\t', '    ').length;
    return line;
  });
  const raw = /<!--[^]*?(?:-->|$(?![^]))|^ {0,3}<(pre|script|style|textarea)\b[^]*?(?:<\/\1>|$(?![^]))/gim;
  return withoutSpans(lines.join('\n')).replaceAll(raw, blank);
}

/** Code within lines as spaces: it ends in its paragraph, with as many backticks as it began with. */
function withoutSpans(text: string): string {
  const marks = /\\[^]|`+|\n[ \t>]*\r?(?=\n)/g;
  const tokens = [...text.matchAll(marks)];
  let result = '';
  let at = 0;
  for (let n = 0; n < tokens.length; n++) {
    const open = tokens[n];
    if (!open?.[0].startsWith('`')) continue;
    for (let m = n + 1; m < tokens.length; m++) {
      const close = tokens[m];
      if (close === undefined || close[0].startsWith('\n')) break;
      // A backslash is nothing special within code: what it seems to escape may end it.
      const word = close[0] === '\\`' ? (/^`+/.exec(text.slice(close.index + 1))?.[0] ?? '') : close[0];
      if (word !== open[0]) continue;
      const end = close.index + close[0].length + (close[0] === '\\`' ? word.length - 1 : 0);
      result += text.slice(at, open.index) + text.slice(open.index, end).replaceAll(/[^\r\n]/g, ' ');
      at = end;
      n = m;
      break;
    }
  }
  return result + text.slice(at);
}

/** @param labels is given those of the definitions that pictures use, with what the first of these shows. */
function inText(text: string, labels: Map<string, string>): Found[] {
  const found: Found[] = [];
  const begins = /\\[^]|!\[|<img(?=[\s/])/gi;
  for (let match = begins.exec(text); match !== null; match = begins.exec(text)) {
    if (match[0].startsWith('\\')) continue;
    if (match[0] !== '![') {
      found.push(...sourceOf(text, begins.lastIndex));
      continue;
    }
    const close = closing(text, begins.lastIndex);
    if (close === null) continue;
    const written = text.slice(begins.lastIndex, close);
    const alt = asWords(written);
    const inline = text[close + 1] === '(' ? addressAt(text, close + 2) : null;
    const label = /^\[((?:[^[\]\\]|\\[^]){1,999})\]/.exec(text.slice(close + 1, close + 1003))?.[1];
    if (inline !== null) {
      found.push({ ...inline, alt });
      continue;
    }
    const key = labelKey(label ?? written);
    if (!labels.has(key)) labels.set(key, alt);
  }
  return found;
}

/** Where the bracket closes that was opened before `from`; null where its paragraph ends first. */
function closing(text: string, from: number): number | null {
  const marks = /\\[^]|[[\]]|\n[ \t>]*\r?\n/g;
  marks.lastIndex = from;
  let depth = 1;
  for (let match = marks.exec(text); match !== null; match = marks.exec(text)) {
    if (match[0].startsWith('\n')) return null;
    if (match[0] === '[') depth++;
    if (match[0] === ']' && --depth === 0) return match.index;
  }
  return null;
}

const title = String.raw`(?:\s+(?:"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|\((?:[^()\\]|\\[^])*\)))?\s*\)`;
const bare = String.raw`(?!<)(?:[^\s()\\]|\\[^]|\((?:[^\s()\\]|\\[^])*\))+`;
const inBrackets = String.raw`<(?:[^<>\r\n\\]|\\[^])*>`;
const inlineForm = new RegExp(String.raw`\s*(${inBrackets}|${bare})${title}`, 'y');
/** No markdown, but what is meant is clear. */
const withSpaces = new RegExp(
  String.raw`[ \t]*([^\s()<>"'](?:[^()<>"'\r\n])*\.(?:jpe?g|png|gif|webp))${title}`,
  'iy',
);

function addressAt(text: string, from: number): Omit<Found, 'alt'> | null {
  for (const form of [inlineForm, withSpaces]) {
    form.lastIndex = from;
    const match = form.exec(text);
    if (match?.[1] === undefined) continue;
    const start = from + match[0].indexOf(match[1]);
    return { start, end: start + match[1].length, target: plain(match[1]) };
  }
  return null;
}

/** The `src` of the tag whose attributes begin at `from`. */
function sourceOf(text: string, from: number): Found[] {
  const attribute = /[\s/]*([^\s=>"'/]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?/y;
  attribute.lastIndex = from;
  let [alt, source]: [string, Omit<Found, 'alt'> | null] = ['', null];
  for (let match = attribute.exec(text); match !== null; match = attribute.exec(text)) {
    const [whole, name = '', value = ''] = match;
    const [, quote = '', inner = ''] = /^(["']?)([^]*?)\1$/.exec(value) ?? [];
    const end = match.index + whole.length - quote.length;
    if (name.toLowerCase() === 'alt') alt = asWords(inner);
    else if (name.toLowerCase() === 'src' && inner !== '')
      source ??= { start: end - inner.length, end, target: withoutEntities(inner.trim()) };
  }
  return source === null ? [] : [{ ...source, alt }];
}

/** Alternative text without the marks of markdown. */
function asWords(written: string): string {
  return plain(written.replaceAll(/(?<!\w)([*_`]{1,3})(?=\S)([^*_`]+)\1(?!\w)/g, '$2'))
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function plain(address: string): string {
  const inner = /^<([^]*)>$/.exec(address)?.[1] ?? address;
  return withoutEntities(inner.replaceAll(/\\([!-/:-@[-`{-~])/g, '$1'));
}

function withoutEntities(text: string): string {
  return text.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

function labelKey(label: string): string {
  return label.trim().replaceAll(/\s+/g, ' ').toLowerCase().toUpperCase();
}

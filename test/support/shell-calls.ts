import type { Answer } from './http.ts';

/** A call that a shell would make with curl. */
export type ShellCall = {
  readonly method: string;
  readonly url: URL;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** The command as it stands in the text. */
  readonly source: string;
};

/** Everything that stands in the `sh` blocks of a markdown document, block by block. */
export function shellBlocks(markdown: string): string[] {
  return Array.from(markdown.matchAll(/^```sh\n(.*?)^```$/gms), ([, block = '']) => block);
}

/**
 * The curl calls of a shell text. `variables` stand in for `$NAME`, `files` for `@NAME`; one that is missing
 * is an error, as is any option but -X, -H, -d, --data-binary, --fail-with-body and -OJ.
 */
export function shellCalls(
  text: string,
  variables: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): ShellCall[] {
  const lines = text.replace(/\\\n/g, ' ').split('\n');
  return lines.filter((line) => line.startsWith('curl ')).map((line) => readCall(line, variables, files));
}

function readCall(
  source: string,
  variables: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
): ShellCall {
  const [, ...words] = shellWords(source, variables);
  const headers: Record<string, string> = {};
  let method: string | null = null;
  let body: string | null = null;
  let url: string | null = null;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (!word.startsWith('-')) {
      url = word;
      continue;
    }
    if (word === '-OJ' || word === '--fail-with-body') continue;
    const value = words[++i] ?? '';
    if (word === '-X') method = value;
    else if (word === '-H') {
      const line = value.startsWith('@') ? named(files, value.slice(1), source) : value;
      const [name = '', ...rest] = line.split(':');
      headers[name.toLowerCase()] = rest.join(':').trim();
    } else if (word === '-d') body = value;
    else if (word === '--data-binary') body = named(files, value.slice(1), source);
    else throw new Error(`an option that is not known here: ${word} in ${source}`);
  }
  if (url === null) throw new Error(`no address: ${source}`);
  return { method: method ?? (body === null ? 'GET' : 'POST'), url: new URL(url), headers, body, source };
}

/**
 * The calls of the form `PATCH /api/me` `{"bio":"…"}` in a text, with the key unless it says "without the key" after
 * one. `{id}` is `POST_ID` and `{slug}` `AGENT_SLUG` of the variables; a "…" in a body is the variable of its field.
 */
export function listedCalls(
  text: string,
  baseUrl: string,
  variables: Readonly<Record<string, string>>,
): ShellCall[] {
  const listed = text.matchAll(/`([A-Z]+) (\/api\/[^`]*)`(?: `(\{[^`]*\})`)?( without the key)?/g);
  return Array.from(listed, ([source, method = '', path = '', json, open]) => {
    const value = (name: string) => named(variables, name, source);
    const address = path.replace('{id}', () => value('POST_ID')).replace('{slug}', () => value('AGENT_SLUG'));
    const body = json?.replace(/"(\w+)":"…"/g, (_, field: string) =>
      JSON.stringify({ [field]: value(field.toUpperCase()) }).slice(1, -1),
    );
    const headers = {
      ...(open === undefined ? { authorization: `Bearer ${value('MASTHEAD_API_KEY')}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    return { method, url: new URL(baseUrl + address), headers, body: body ?? null, source };
  });
}

/** Notes in `known` what an answer in JSON has that later calls name: a key, a cursor, and the ids of a post, a comment and a picture. */
export function noteNamed(answer: Answer, known: Record<string, string>): void {
  for (const [name, path] of [
    ['MASTHEAD_API_KEY', 'apiKey'],
    ['CURSOR', 'cursor'],
    ['POST_ID', 'post.id'],
    ['COMMENT_ID', 'comment.id'],
    ['MEDIA_ID', 'media.id'],
  ] as const) {
    const value = answer.at(path);
    if (typeof value === 'string') known[name] = value;
  }
}

/** Words of one line, with what POSIX says of both quotes and of variables. */
function shellWords(line: string, variables: Readonly<Record<string, string>>): string[] {
  const words: string[] = [];
  const piece = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)|(\s+)/gy;
  let word: string | null = null;
  for (const [, single, double, escaped, plain, space] of line.trim().matchAll(piece)) {
    if (space !== undefined) {
      if (word !== null) words.push(word);
      word = null;
      continue;
    }
    const expanded = (text: string) =>
      text.replace(/\$(\w+)/g, (_, name: string) => named(variables, name, line));
    const literal = single ?? escaped;
    word = (word ?? '') + (literal ?? expanded((double ?? plain ?? '').replace(/\\(["\\`$])/g, '$1')));
  }
  if (word !== null) words.push(word);
  return words;
}

function named(values: Readonly<Record<string, string>>, name: string, source: string): string {
  const value = values[name];
  if (value === undefined) throw new Error(`nothing is known as ${name} in ${source}`);
  return value;
}

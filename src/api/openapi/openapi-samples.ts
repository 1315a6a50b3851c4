import { keywordsOf, type JsonSchema, type OperationObject } from '../../schemas/openapi.ts';
import type { Operation } from '../endpoint.ts';

/** The call for a shell: with and without a key where both make sense, as JSON and as markdown. */
export function samplesOf(
  { method, auth, body, query, markdown, answers }: Operation,
  address: string,
): OperationObject['x-codeSamples'] {
  const { properties = {}, required = [] } = keywordsOf(query);
  const { contentMediaType } = keywordsOf(answers[200]);
  const valueOf = (name: string) =>
    shellVariables[name] ?? encodeURIComponent(String(exampleOf(properties[name] ?? {})));
  const search = required.map((name) => `${name}=${valueOf(name)}`).join('&');
  const filled = address.replace(/\{(\w+)\}/g, (_, name: string) => valueOf(name));
  const url = filled + (search === '' ? '' : `?${search}`);
  const json = body === undefined ? {} : { json: exampleBody(keywordsOf(body)) };
  const call: ShellCall = { method, url, download: contentMediaType !== undefined, ...json };
  const withKey = { ...call, headers: [keyHeader] };
  if (markdown)
    return [
      sample('JSON', withKey),
      sample('Markdown file', { ...withKey, json: undefined, file: 'post.md' }),
    ];
  if (auth === 'optional') return [sample('Without a key', call), sample('With the key', withKey)];
  return [sample('curl', auth === 'required' ? withKey : call)];
}

const shellVariables: Readonly<Record<string, string>> = {
  token: '$TOKEN',
  id: '$POST_ID',
  commentId: '$COMMENT_ID',
};

function exampleBody(body: JsonSchema): unknown {
  const example = asRecord(exampleOf(body));
  return 'token' in example ? { ...example, token: '$TOKEN' } : example;
}

function sample(label: string, call: ShellCall): OperationObject['x-codeSamples'][number] {
  return { lang: 'Shell', label, source: curl(call) };
}

/** An example as an object; empty where it is of another type. */
export function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** A value that a schema allows, taken from its examples and those of its parts; optional properties are left out. */
export function exampleOf(schema: JsonSchema): unknown {
  const [first] = schema.examples ?? [];
  if (first !== undefined) return first;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [type] = [schema.type ?? []].flat();
  if (type === 'object') {
    const { properties = {}, required = [] } = schema;
    return Object.fromEntries(
      required.map((name) => [name, properties[name] === undefined ? null : exampleOf(properties[name])]),
    );
  }
  if (type === 'array') return schema.items === undefined ? [] : [exampleOf(schema.items)];
  return type === 'boolean' ? true : null;
}

/** A call, to be written as one for a shell. */
type ShellCall = {
  readonly method: string;
  /** May name shell variables (`$POST_ID`). */
  readonly url: string;
  readonly headers?: readonly string[];
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Name of a file that is sent as it is. */
  readonly file?: string;
  /** Whether the answer is a file, to be saved under the name it is sent with. */
  readonly download?: boolean;
};

/** The header that carries the key. */
const keyHeader = 'Authorization: Bearer $MASTHEAD_API_KEY';

/** The curl command for a call, one argument per line, ready to paste. */
function curl({ method, url, headers = [], json, file, download }: ShellCall): string {
  const hasBody = json !== undefined || file !== undefined;
  const implied = hasBody ? 'POST' : 'GET';
  const verb = (method === implied ? '' : `-X ${method} `) + (download ? '-OJ ' : '');
  return [
    `curl ${verb}${/[$?&]/.test(url) ? `"${url}"` : url}`,
    ...headers.map((header) => `-H "${header}"`),
    ...(json === undefined
      ? []
      : ['-H "Content-Type: application/json"', `-d ${quoted(JSON.stringify(json))}`]),
    ...(file === undefined ? [] : [`-H "Content-Type: text/markdown"`, `--data-binary @${file}`]),
  ].join(' \\\n  ');
}

/** Within single quotes a shell interprets nothing but the closing quote; within double quotes, variables. */
function quoted(text: string): string {
  return text.includes('$') ? `"${text.replace(/["\\`]/g, '\\$&')}"` : `'${text.replaceAll("'", `'\\''`)}'`;
}

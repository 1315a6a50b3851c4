import type { JsonSchema } from '../../schemas/openapi.ts';

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
export type ShellCall = {
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
export const keyHeader = 'Authorization: Bearer $MASTHEAD_API_KEY';

/** The curl command for a call, one argument per line, ready to paste. */
export function curl({ method, url, headers = [], json, file, download }: ShellCall): string {
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

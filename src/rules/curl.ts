/** A call, to be written as one for a shell. */
export type ShellCall = {
  /** GET if absent, or POST where something is sent. */
  readonly method?: string;
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

/** The curl command for a call, ready to paste: one argument per line, or few lines where it is one of many. */
export function curl(call: ShellCall, layout: 'tall' | 'short' = 'tall'): string {
  const { method, url, headers = [], json, file, download } = call;
  const hasBody = json !== undefined || file !== undefined;
  const implied = hasBody ? 'POST' : 'GET';
  const verb = method === undefined || method === implied ? '' : `-X ${method} `;
  const first = `curl ${verb}${download ? '-OJ ' : ''}${/[$?&]/.test(url) ? `"${url}"` : url}`;
  const named = headers.map((header) => `-H "${header}"`);
  const body =
    json === undefined ? [] : ['-H "Content-Type: application/json"', `-d ${quoted(JSON.stringify(json))}`];
  if (file !== undefined) body.push('-H "Content-Type: text/markdown"', `--data-binary @${file}`);
  const lines =
    layout === 'tall'
      ? [first, ...named, ...body]
      : [...(named.length === 1 ? [`${first} ${named[0]}`] : [first, named.join(' ')]), body.join(' ')];
  return lines.filter((line) => line !== '').join(' \\\n  ');
}

/** Within single quotes a shell interprets nothing but the closing quote; within double quotes, variables. */
function quoted(text: string): string {
  return text.includes('$') ? `"${text.replace(/["\\`]/g, '\\$&')}"` : `'${text.replaceAll("'", `'\\''`)}'`;
}

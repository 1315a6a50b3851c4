/** The name of the file that holds an agent's key for the service at this origin: nothing but the key. */
export function keyFileName(origin: string): string {
  // No two origins have one name: a key must never be sent to another.
  const name = origin.replace('://', '-').replaceAll(':', '+');
  return `${name.replaceAll(/[^\w.+-]/g, encodeURIComponent)}.key`;
}

/** The entry for this service in the configuration of most MCP clients: JSON, on one line unless indented. */
export function mcpConfiguration(baseUrl: string, indent = 0): string {
  const headers = { Authorization: 'Bearer API_KEY' };
  const mcpServers = { masthead: { type: 'http', url: `${baseUrl}/mcp`, headers } };
  return JSON.stringify({ mcpServers }, null, indent);
}

/** The command that adds this service to Claude Code. */
export function mcpCommand(baseUrl: string): string {
  return `claude mcp add --transport http masthead ${baseUrl}/mcp --header "Authorization: Bearer API_KEY"`;
}

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

/** The curl command for a call, ready to paste: one argument per line. */
export function curl({ method, url, headers = [], json, file, download }: ShellCall): string {
  const hasBody = json !== undefined || file !== undefined;
  const implied = hasBody ? 'POST' : 'GET';
  const verb = method === undefined || method === implied ? '' : `-X ${method} `;
  const lines = [
    `curl ${verb}${download ? '--fail-with-body -OJ ' : ''}${/[$?&]/.test(url) ? `"${url}"` : url}`,
  ];
  for (const header of headers) lines.push(`-H "${header}"`);
  if (json !== undefined)
    lines.push('-H "Content-Type: application/json"', `-d ${asShellWord(JSON.stringify(json))}`);
  if (file !== undefined) lines.push('-H "Content-Type: text/markdown"', `--data-binary @${file}`);
  return lines.join(' \\\n  ');
}

/** Within single quotes a shell interprets nothing but the closing quote; within double quotes, variables. */
function asShellWord(text: string): string {
  return text.includes('$') ? `"${text.replace(/["\\`]/g, '\\$&')}"` : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The name of the file that holds an agent's key for the service at this origin, as {@link keyFileLine} writes it. */
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

/** A first post, as it is sent to be public at once. */
export const firstPost = {
  title: 'Hello',
  content: 'First *words*.',
  status: 'published',
  disclosure: 'ai-autonomous',
};

const keyFolder = '~/.config/masthead';

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
  /** Of the file, where it is not markdown. */
  readonly type?: string;
  /** Whether the answer is a file, to be saved under the name it is sent with. */
  readonly download?: boolean;
};

/** What a key file holds: the header line that carries the key, so that curl can take it from there. */
export function keyFileLine(apiKey: string): string {
  return `Authorization: Bearer ${apiKey}`;
}

/** The key in what a key file holds: the header line, or nothing but the key. */
export function keyInFile(text: string): string {
  return text.replace(/^\s*authorization:\s*bearer\s+/i, '').trim();
}

/** Where the command line and our examples look for an agent's key, as a shell reads it. */
export function keyFile(baseUrl: string): string {
  return `${keyFolder}/${keyFileName(baseUrl)}`;
}

/** The key as an argument of curl's -H: its file, since other programs of the machine see command lines. */
export function keyHeader(baseUrl: string): string {
  return keyFile(baseUrl).replace('~', '@$HOME');
}

/** The commands that store the key where {@link keyHeader} expects it; the shell itself runs `echo`. */
export function storeKeyCommands(baseUrl: string, apiKey: string): string {
  return `mkdir -p ${keyFolder}\n(umask 077; echo '${keyFileLine(apiKey)}' > ${keyFile(baseUrl)})`;
}

/** The curl command for a call, ready to paste: one argument per line. */
export function curl({
  method,
  url,
  headers = [],
  json,
  file,
  type = 'text/markdown',
  download,
}: ShellCall): string {
  const hasBody = json !== undefined || file !== undefined;
  const implied = hasBody ? 'POST' : 'GET';
  const verb = method === undefined || method === implied ? '' : `-X ${method} `;
  const lines = [
    `curl ${verb}${download ? '--fail-with-body -OJ ' : ''}${/[$?&]/.test(url) ? `"${url}"` : url}`,
  ];
  for (const header of headers) lines.push(`-H "${header}"`);
  if (json !== undefined)
    lines.push('-H "Content-Type: application/json"', `-d ${asShellWord(JSON.stringify(json))}`);
  if (file !== undefined) lines.push(`-H "Content-Type: ${type}"`, `--data-binary @${file}`);
  return lines.join(' \\\n  ');
}

/** Within single quotes a shell interprets nothing but the closing quote; within double quotes, variables. */
function asShellWord(text: string): string {
  return text.includes('$') ? `"${text.replace(/["\\`]/g, '\\$&')}"` : `'${text.replaceAll("'", `'\\''`)}'`;
}

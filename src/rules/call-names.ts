type Names = { readonly tool?: string; readonly command?: string };

/** Calls that hints and warnings name: as a tool of MCP, and as a command of this program. */
const names: Readonly<Record<string, Names>> = {
  'POST /api/register': { tool: 'register', command: 'register' },
  'GET /api/verify': { tool: 'verify', command: 'verify <token>' },
  'POST /api/recover': { command: 'recover --email <address>' },
  'POST /api/recover/confirm': { command: 'recover --token <token>' },
  'POST /api/regenerate-key': { command: 'regenerate-key' },
  'POST /api/publish': { tool: 'publish', command: 'post publish' },
  'GET /api/posts': { tool: 'list_posts', command: 'post list' },
  'GET /api/posts/{id}': { tool: 'get_post', command: 'post get' },
  'PATCH /api/posts/{id}': { tool: 'update_post' },
  'DELETE /api/posts/{id}': { tool: 'delete_post', command: 'post delete' },
  'GET /api/posts/{id}/comments': { tool: 'list_comments', command: 'comments' },
  'GET /api/blogs': { tool: 'list_blogs' },
  'GET /api/limits': { tool: 'limits', command: 'whoami' },
  'GET /api/me': { tool: 'me', command: 'whoami' },
  'PATCH /api/me': { tool: 'update_me' },
};

/** A text for one who speaks MCP: calls of the API that are tools are named as such. */
export function callsAsTools(text: string): string {
  return renamed(text, ({ tool }, body) => (tool === undefined ? null : `'${tool}'${body}`));
}

/** A text for one who uses the command line. */
export function callsAsCommands(program: string, text: string): string {
  return renamed(text, ({ command }) => (command === undefined ? null : `'${program} ${command}'`));
}

/** @param rename of a call and what follows it, ` with {…}` or nothing; null leaves both as they are. */
function renamed(text: string, rename: (call: Names, body: string) => string | null): string {
  return text.replaceAll(
    /\b(GET|POST|PATCH|DELETE) (?:https?:\/\/[^\s/]+)?(\/api\/[\w/{}-]+)(?:\?[\w=&…]+)?( with \{[^}]*\})?/g,
    (whole, method: string, path: string, body: string = '') => {
      const call = names[`${method} ${path.replace(/(?<=^\/api\/posts\/)[0-9a-f-]{36}/, '{id}')}`];
      return (call && rename(call, body)) ?? whole;
    },
  );
}

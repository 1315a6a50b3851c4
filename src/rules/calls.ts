/**
 * Every call, by its operation id, and the MCP tool that does the same, or `within` which the same is had. A test
 * compares them with what is served.
 */
export const operations = {
  register: { method: 'POST', path: '/api/register', tool: 'register' },
  verify: { method: 'GET', path: '/api/verify', tool: 'verify' },
  verifyByPost: { method: 'POST', path: '/api/verify', within: 'verify' },
  recover: { method: 'POST', path: '/api/recover', tool: 'recover' },
  confirmRecovery: { method: 'POST', path: '/api/recover/confirm', within: 'verify' },
  regenerateKey: { method: 'POST', path: '/api/regenerate-key' },
  publish: { method: 'POST', path: '/api/publish', tool: 'publish' },
  publishPost: { method: 'POST', path: '/api/posts', within: 'publish' },
  listPosts: { method: 'GET', path: '/api/posts', tool: 'list_posts' },
  myPosts: { method: 'GET', path: '/api/me/posts', tool: 'my_posts' },
  lookupPost: { method: 'GET', path: '/api/posts/lookup', within: 'get_post' },
  getPost: { method: 'GET', path: '/api/posts/{id}', tool: 'get_post' },
  updatePost: { method: 'PATCH', path: '/api/posts/{id}', tool: 'update_post' },
  listRevisions: { method: 'GET', path: '/api/posts/{id}/revisions', tool: 'list_revisions' },
  getRevision: { method: 'GET', path: '/api/posts/{id}/revisions/{revision}' },
  diffRevisions: { method: 'GET', path: '/api/posts/{id}/revisions/{revision}/diff' },
  restoreRevision: { method: 'POST', path: '/api/posts/{id}/revisions/{revision}/restore' },
  eraseRevision: { method: 'DELETE', path: '/api/posts/{id}/revisions/{revision}' },
  eraseRevisions: { method: 'DELETE', path: '/api/posts/{id}/revisions' },
  deletePost: { method: 'DELETE', path: '/api/posts/{id}', tool: 'delete_post' },
  previewPost: { method: 'POST', path: '/api/posts/{id}/preview', tool: 'preview_post' },
  endPreviews: { method: 'DELETE', path: '/api/posts/{id}/preview' },
  restorePost: { method: 'POST', path: '/api/posts/{id}/restore', tool: 'restore_post' },
  listTrash: { method: 'GET', path: '/api/me/trash' },
  emptyTrash: { method: 'DELETE', path: '/api/me/trash' },
  uploadMedia: { method: 'POST', path: '/api/media', tool: 'upload_media' },
  uploadByLink: { method: 'PUT', path: '/api/media/upload/{token}', within: 'upload_media' },
  listMedia: { method: 'GET', path: '/api/media' },
  getMedia: { method: 'GET', path: '/api/media/{id}' },
  updateMedia: { method: 'PATCH', path: '/api/media/{id}' },
  deleteMedia: { method: 'DELETE', path: '/api/media/{id}' },
  listBlogs: { method: 'GET', path: '/api/blogs', tool: 'list_blogs' },
  featuredPosts: { method: 'GET', path: '/api/posts/featured', tool: 'featured_posts' },
  search: { method: 'GET', path: '/api/search', tool: 'search' },
  listComments: { method: 'GET', path: '/api/posts/{id}/comments', tool: 'list_comments' },
  addComment: { method: 'POST', path: '/api/posts/{id}/comments', tool: 'add_comment' },
  editComment: { method: 'PATCH', path: '/api/posts/{id}/comments/{commentId}' },
  deleteComment: { method: 'DELETE', path: '/api/posts/{id}/comments/{commentId}', tool: 'delete_comment' },
  vote: { method: 'POST', path: '/api/posts/{id}/vote', tool: 'vote' },
  unvote: { method: 'DELETE', path: '/api/posts/{id}/vote', tool: 'unvote' },
  getVote: { method: 'GET', path: '/api/posts/{id}/vote' },
  me: { method: 'GET', path: '/api/me', tool: 'me' },
  updateMe: { method: 'PATCH', path: '/api/me', tool: 'update_me' },
  deleteMe: { method: 'DELETE', path: '/api/me' },
  inbox: { method: 'GET', path: '/api/me/inbox', tool: 'inbox' },
  markInboxSeen: { method: 'POST', path: '/api/me/inbox/seen', within: 'inbox' },
  myComments: { method: 'GET', path: '/api/me/comments' },
  myVotes: { method: 'GET', path: '/api/me/votes' },
  listBlocks: { method: 'GET', path: '/api/me/blocks' },
  block: { method: 'PUT', path: '/api/me/blocks/{slug}' },
  unblock: { method: 'DELETE', path: '/api/me/blocks/{slug}' },
  restoreMe: { method: 'POST', path: '/api/me/restore' },
  exportMe: { method: 'GET', path: '/api/me/export' },
  limits: { method: 'GET', path: '/api/limits', within: 'me' },
  report: { method: 'POST', path: '/api/reports', tool: 'report' },
  appeal: { method: 'POST', path: '/api/appeals' },
  about: { method: 'GET', path: '/api' },
  openapi: { method: 'GET', path: '/api/openapi.json' },
  health: { method: 'GET', path: '/healthz' },
  ready: { method: 'GET', path: '/readyz' },
} as const;

export type OperationId = keyof typeof operations;

/** A call within a sentence. */
type Call = {
  readonly operation: OperationId;
  /** In place of `{id}`. */
  readonly id?: string;
  /** As it follows the path: `?token=…`. */
  readonly query?: string;
  /** As JSON. */
  readonly body?: string;
  /** Origin of the service, for readers who may not know it. */
  readonly baseUrl?: string;
};

/**
 * A text in which calls are not spelled yet: each interface has its own words for them. Plain data, so that it
 * crosses to threads; only {@link prose} makes calls, so no text of a user is taken for one.
 */
export type Prose = string | readonly (string | Call)[];

/** A text with calls in it, or with texts that have some. */
export function prose(
  texts: TemplateStringsArray,
  ...values: readonly (Prose | Call)[]
): readonly (string | Call)[] {
  return texts.flatMap((text, at) => [text, values[at] ?? []].flat());
}

/** A call for {@link prose}. */
export function call(operation: OperationId, more: Omit<Call, 'operation'> = {}): Call {
  return { operation, ...more };
}

/** The call that mails a token for a new key. */
export function recoverAt(baseUrl: string): Call {
  return call('recover', { baseUrl, body: '{"email": "…"}' });
}

/** For the API, pages and mails: `GET /api/posts`. */
export function asHttp(text: Prose): string {
  return spelled(text, http);
}

/** For models: `'list_posts'`. What no tool does is spelled as HTTP. */
export function asTools(text: Prose): string {
  return spelled(text, (named) => {
    const names = operations[named.operation];
    const tool = 'tool' in names ? names.tool : 'within' in names ? names.within : null;
    return tool === null ? http(named) : `'${tool}'${withBody(named)}`;
  });
}

function spelled(text: Prose, spell: (named: Call) => string): string {
  return [text]
    .flat()
    .map((part) => (typeof part === 'string' ? part : spell(part)))
    .join('');
}

function http(named: Call): string {
  const { operation, id = '{id}', query = '', baseUrl = '' } = named;
  const { method, path } = operations[operation];
  return `${method} ${baseUrl}${path.replace('{id}', id)}${query}${withBody(named)}`;
}

function withBody({ body }: Call): string {
  return body === undefined ? '' : ` with ${body}`;
}

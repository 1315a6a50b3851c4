import { Type } from 'typebox';
import { blogsQuery } from '../schemas/agents.ts';
import { revisionNumber } from '../schemas/revisions.ts';
import { uuidPattern } from '../rules/secrets.ts';
import type { PageQuery } from '../services/lists/paging.ts';
import { longestPostName } from '../services/posts/which-post.ts';

/** What a reading tool gives back was written by whoever publishes here: an open world. */
export const reading = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: true,
} as const;

/** What most other tools do: change what is the agent's own, once however often they are called. */
export const writing = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: true,
  openWorldHint: false,
} as const;

/** What adds something each time, and others see it. */
export const adding = {
  ...writing,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: true,
} as const;

const uuid = (description: string) =>
  Type.Refine(
    Type.String({ format: 'uuid', description, examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'] }),
    (value) => uuidPattern.test(value),
    () => "must be a UUID, as 'id' in the answers",
  );

/** The argument that names a post; a tool is given its id. Read with `whichPost`. */
export const onePost = {
  post: Type.String({
    description: 'Id, address or own slug.',
    minLength: 1,
    maxLength: longestPostName,
  }),
};

/** The argument that names a revision of it. */
export const oneRevision = Type.Optional(Type.Integer({ ...revisionNumber, description: 'Its number.' }));

/** Names under which it is sent too, unless they are arguments of the tool. */
export const postSpellings = { postid: 'post', id: 'post', slug: 'post', url: 'post' } as const;

export const commentId = uuid("Its 'id' from add_comment or list_comments.");

/** The arguments that ask for a page. Pages are smaller than the API's: a model reads them. */
export const paging = {
  limit: Type.Optional(Type.Integer({ examples: [20], minimum: 1, maximum: 100, default: 20 })),
  cursor: Type.Optional(
    Type.String({ ...blogsQuery.properties.cursor, description: 'The previous nextCursor.' }),
  ),
};

/** The argument that asks for more of each entry of a list. */
export function full(description: string) {
  return Type.Optional(Type.Boolean({ description, default: false }));
}

/** The page that they ask for. */
export function pageOf({ limit = 20, cursor }: { limit?: number; cursor?: string }): PageQuery {
  return { limit, offset: 0, cursor: cursor ?? null };
}

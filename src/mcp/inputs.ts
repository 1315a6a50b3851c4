import { Type } from 'typebox';
import { blogsQuery } from '../schemas/agents.ts';
import { uuidPattern } from '../rules/secrets.ts';
import type { PageQuery } from '../services/lists/paging.ts';

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

/** The arguments that name a post and a comment. */
export const postId = uuid("Id of the post: 'id' in the answers of publish and list_posts.");
export const commentId = uuid("Id of the comment: 'id' in the answers of add_comment and list_comments.");

/** The arguments that ask for a page. Pages are smaller than the API's: a model reads them. */
export const paging = {
  limit: Type.Optional(
    Type.Integer({ description: 'How many at most.', examples: [20], minimum: 1, maximum: 100, default: 20 }),
  ),
  cursor: blogsQuery.properties.cursor,
};

/** The page that they ask for. */
export function pageOf({ limit = 20, cursor }: { limit?: number; cursor?: string }): PageQuery {
  return { limit, offset: 0, cursor: cursor ?? null };
}

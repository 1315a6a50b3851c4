import type { ReadContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { parseEmail } from '../../rules/email.ts';
import { uuidPattern } from '../../rules/secrets.ts';
import { quoted } from '../../rules/text.ts';
import { findAgent, findAgentBySlug, findByEmail } from '../agents/callers.ts';
import { blogAt, commentAt, findPostId, postAt } from '../posts/which-post.ts';

// Complaints name things by their addresses, so whatever takes the id of something takes its address too.

/** The agent that an operator means by a slug, an id, an e-mail address or the address of its blog. Throws not_found. */
export async function agentNamed(ctx: ReadContext, named: string): Promise<AgentRow> {
  const agent = await findNamed(ctx, named);
  if (!agent) throw new AppError('not_found', `There is no agent with the slug, id or address '${named}'.`);
  return agent;
}

async function findNamed(ctx: ReadContext, named: string): Promise<AgentRow | undefined> {
  // The address of a post is not its agent's: what is done to an agent is done to all it has.
  if (URL.canParse(named) && postAt(ctx.config, named) !== null) return undefined;
  const blog = blogAt(ctx.config, named);
  if (blog !== null) return findAgentBySlug(ctx, blog);
  const email = named.includes('@') ? parseEmail(named) : null;
  if (email?.ok) return findByEmail(ctx, email.key);
  return uuidPattern.test(named) ? findAgent(ctx, named.toLowerCase()) : findAgentBySlug(ctx, named);
}

/** Id of the post at an address, drafts and former addresses too; anything else as it is. Throws not_found. */
export async function postIdNamed(ctx: ReadContext, named: string): Promise<string> {
  if (!URL.canParse(named)) return named.toLowerCase();
  const place = postAt(ctx.config, named);
  const id = place === null || place === 'elsewhere' ? null : await findPostId(ctx, place);
  if (id === null) throw new AppError('not_found', `There is no post at ${quoted(named)}.`);
  return id;
}

/** Id of the comment at an address; anything else as it is. */
export function commentIdNamed(named: string): string {
  return commentAt(named) ?? named.toLowerCase();
}

/** Id of what an operator means, whatever that is: by its id or address, an agent by slug or e-mail address. Throws not_found. */
export async function idNamed(ctx: ReadContext, named: string): Promise<string> {
  const commentId = commentAt(named);
  if (commentId !== null) return commentId;
  if (uuidPattern.test(named)) return named.toLowerCase();
  const place = postAt(ctx.config, named);
  if (place === null || place === 'elsewhere') return (await agentNamed(ctx, named)).id;
  return postIdNamed(ctx, named);
}

import { need, Skipped, type Checks } from './check.ts';
import type { Wire } from './wire.ts';

/** `a` has blogs on subdomains, lists of everyone's posts, comments and votes; `b` has blogs on paths, and limits. */
export type Variant = 'a' | 'b';

/** Where the token of the verification mail comes from. */
export type TokenSource =
  | { readonly kind: 'given'; readonly token: string }
  | {
      readonly kind: 'asked';
      readonly email: string;
      readonly ask: (email: string) => Promise<string | null>;
    };

/** The agent that the checks act as. */
export type Agent = { readonly key: string; readonly blogUrl: string };

/** A post that the checks made. */
export type Post = {
  readonly id: string;
  readonly slug: string;
  readonly url: string;
  readonly title: string;
};

/** A run: the service under check, and what the checks have made there so far. */
export type Subject = {
  readonly checks: Checks;
  /** Calls without a key. */
  readonly wire: Wire;
  /** Calls with the key of the agent; skips the check where there is none. */
  readonly keyed: Wire;
  /** Origin of the service. */
  readonly url: string;
  readonly variant: Variant;
  /** Null: no token can be had. */
  readonly tokens: TokenSource | null;
  /** Random, so that names of this run do not collide with those of another. */
  readonly mark: string;
  /** What the service says that it can do. */
  capabilities: readonly unknown[];
  agent: Agent | null;
  /** The public one. */
  post: Post | null;
  /** The one that never was public. */
  draft: Post | null;
};

export function createSubject(
  given: Omit<Subject, 'keyed' | 'capabilities' | 'agent' | 'post' | 'draft'>,
): Subject {
  const keyed: Wire = async (method, address, options) =>
    given.wire(method, address, { ...options, key: agentOf(subject).key });
  const subject: Subject = { ...given, keyed, capabilities: [], agent: null, post: null, draft: null };
  return subject;
}

/** Skips the check where there is none. */
export function agentOf({ agent }: Subject): Agent {
  return need(agent, noAgent);
}

/** Skips the check where there is none. */
export function postOf({ post }: Subject): Post {
  return need(post, noPost);
}

/** Skips the check where there is none. */
export function draftOf({ draft }: Subject): Post {
  return need(draft, 'no draft was made');
}

/** Skips the check where deleted posts are not kept. */
export function needTrash({ capabilities }: Subject): void {
  if (!capabilities.includes('trash')) throw new Skipped('the service has no trash');
}

/** Skips the check where the service does not have what it is about. */
export function needCapability({ capabilities }: Subject, word: string, without: string): void {
  if (!capabilities.includes(word)) throw new Skipped(without);
}

export const noAgent = 'there is no verified agent: give --token, --mail-dir or --interactive';
export const noPost = 'no post was published';

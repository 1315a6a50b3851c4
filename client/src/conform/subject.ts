import type { Checks } from './check.ts';
import type { Wire } from './wire.ts';

/** In which the two variants differ, as far as an agent can see. */
export type Rules = {
  /** Whether a slug is sent at registration. */
  readonly sendsSlug: boolean;
  /** Whether blogs are hosts. */
  readonly blogHosts: boolean;
  /** Whether there are lists of everyone's posts, comments and votes. */
  readonly discovery: boolean;
  /** Whether the specification sets rate limits. */
  readonly limits: boolean;
};

/** The two, as the specification has them. */
export const rules: Readonly<Record<'a' | 'b', Rules>> = {
  a: { sendsSlug: true, blogHosts: true, discovery: true, limits: false },
  b: { sendsSlug: false, blogHosts: false, discovery: false, limits: true },
};

/** How the token of the verification mail is come by; null: it never is. */
export type TokenSource =
  | { readonly kind: 'given'; readonly token: string }
  | {
      readonly kind: 'asked';
      readonly email: string;
      readonly ask: (email: string) => Promise<string | null>;
    };

/** What the checks are made of. */
export type Subject = {
  readonly checks: Checks;
  readonly wire: Wire;
  /** Origin of the service. */
  readonly url: string;
  readonly rules: Rules;
  readonly tokens: TokenSource | null;
  /** Random: names of what the run makes do not meet those of another run. */
  readonly mark: string;
};

/** The agent that the checks act as. */
export type Agent = { readonly key: string; readonly blogUrl: string; readonly slug: string | null };

export const noAgent = 'there is no verified agent: give --token, --mail-dir or --interactive';

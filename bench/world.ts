import type { Plan } from './compare.ts';
import type { Seed } from './service.ts';

/** What the sections work with. */
export type World = {
  /** A folder that is removed at the end. */
  readonly folder: string;
  /** Masthead as it is published. */
  readonly packageFolder: string;
  readonly seed: Seed;
  readonly plan: Plan;
  /** Servers that somebody else started, to be compared with: a name with version, and the address of a post. */
  readonly rivals: readonly { readonly name: string; readonly url: string }[];
};

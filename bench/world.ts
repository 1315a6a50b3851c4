import type { Plan } from './compare.ts';
import type { Seed } from './service.ts';

/** Masthead as it is published, and the folder of the source that it was made of. */
export type Release = { readonly root: string; readonly packageFolder: string };

/** What a service is started from. */
export type Place = {
  /** A folder that is removed at the end. */
  readonly folder: string;
  readonly release: Release;
  readonly seed: Seed;
};

/** What the sections work with. */
export type World = Place & {
  readonly plan: Plan;
  /** Servers that somebody else started, to be compared with: a name with version, and the address of a post. */
  readonly rivals: readonly { readonly name: string; readonly url: string }[];
};

/** The same, in a folder of its own. */
export function within<P extends Place>(place: P, name: string): P {
  return { ...place, folder: `${place.folder}/${name}` };
}

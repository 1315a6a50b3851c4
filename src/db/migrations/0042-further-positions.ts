import type { Migration } from './types.ts';

/** Texts in which a word comes more often than PostgreSQL keeps positions of one term are indexed again. */
export const furtherPositions: Migration = {
  name: '0042-further-positions',
  statements: ({ cutPositions }) => cutPositions,
};

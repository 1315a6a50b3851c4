import type { Migration } from './types.ts';

/** Large texts that are stored from now on are compressed in a fraction of the time. */
export const compression: Migration = {
  name: '0033-compression',
  statements: ({ fastCompression }) => fastCompression,
};

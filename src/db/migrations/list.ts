import { initial } from './0001-initial.ts';
import { search } from './0002-search.ts';
import { erasure } from './0004-erasure.ts';
import type { Migration } from './types.ts';

/** All steps of the schema, in the order in which they run. */
export const migrations: readonly Migration[] = [initial, search, erasure];

import type { Write } from '../db/write.ts';
import * as agents from './agents/agents.ts';
import * as apiKeys from './agents/api-keys.ts';
import * as certificates from './agents/certificates.ts';
import * as callers from './agents/callers.ts';
import * as hiding from './agents/hiding.ts';
import * as leakedKeys from './agents/leaked-keys.ts';
import * as registration from './agents/registration.ts';
import * as blocks from './community/blocks.ts';
import * as commentRemoval from './community/comment-removal.ts';
import * as engagement from './community/engagement.ts';
import * as inbox from './community/inbox.ts';
import * as moderation from './operators/moderation.ts';
import * as selfDeletion from './agents/self-deletion.ts';
import * as postModeration from './operators/post-moderation.ts';
import * as appeals from './operators/appeals.ts';
import * as reports from './operators/reports.ts';
import * as settle from './community/settle.ts';
import * as votes from './community/votes.ts';
import * as rateWindow from './limits/rate-window.ts';
import * as delivery from './mail-delivery.ts';
import * as duplicates from './posts/duplicates.ts';
import * as deletion from './trash/deletion.ts';
import * as erasure from './trash/erasure.ts';
import * as postStore from './posts/post-store.ts';
import * as renamed from './posts/renamed.ts';
import * as due from './publication/due.ts';
import * as previews from './publication/previews.ts';
import * as expiry from './upkeep/expiry.ts';
import * as revisions from './posts/revisions.ts';
import * as commentModeration from './operators/comment-moderation.ts';
import * as probation from './trust/probation.ts';
import * as sourceBlocks from './trust/source-blocks.ts';
import * as suppression from './trust/suppression.ts';
import * as trash from './trash/trash.ts';
import * as pictures from './media/pictures.ts';
import * as pictureSweep from './media/picture-sweep.ts';
import * as mailQueue from './upkeep/mail-queue.ts';
import * as maintenance from './upkeep/maintenance.ts';
import * as rerender from './upkeep/rerender.ts';
import * as exportLeases from './upkeep/export-leases.ts';
import * as facts from './upkeep/facts.ts';

type AnyWrite = Write<never, unknown>;

const modules: readonly Readonly<Record<string, unknown>>[] = [
  agents,
  apiKeys,
  appeals,
  blocks,
  callers,
  certificates,
  commentRemoval,
  due,
  duplicates,
  expiry,
  exportLeases,
  engagement,
  commentModeration,
  hiding,
  inbox,
  leakedKeys,
  mailQueue,
  maintenance,
  moderation,
  delivery,
  pictures,
  pictureSweep,
  postModeration,
  postStore,
  previews,
  probation,
  rateWindow,
  registration,
  renamed,
  reports,
  rerender,
  revisions,
  selfDeletion,
  settle,
  sourceBlocks,
  suppression,
  deletion,
  erasure,
  trash,
  votes,
  facts,
];

/** Every write that these modules export, by name: what a thread that is handed a name can run. */
export const writes: ReadonlyMap<string, AnyWrite> = new Map(
  modules.flatMap((module) => Object.values(module).filter(isWrite)).map((write) => [write.name, write]),
);

function isWrite(value: unknown): value is AnyWrite {
  return typeof value === 'object' && value !== null && 'run' in value && 'name' in value;
}

import type { Operation } from '../db/operation.ts';
import { deleteAgent, updateAgent } from './agents.ts';
import { confirmRecovery, recover, regenerateKey, verifyAgent } from './api-keys.ts';
import { markKeyUsed } from './callers.ts';
import { deleteComment, storeComment, vote } from './engagement.ts';
import { eraseTerms } from './erasure.ts';
import { reportLeak } from './leaked-keys.ts';
import { farewell, heartbeat, sweep } from './maintenance.ts';
import {
  deletePostByOperator,
  featurePost,
  restoreAgent,
  suspendAgent,
  verifyByOperator,
} from './moderation.ts';
import { claimMail, recordAttempt, releaseMail } from './outbox.ts';
import { deletePost, savePost } from './post-store.ts';
import { countOnly, settleCalls } from './rate-limits.ts';
import { registerAgent } from './registration.ts';
import { storeRendered } from './rerender.ts';
import { recordSecret } from './secret-check.ts';

/** Every write of the service, by name: what a thread that is handed a name can run. */
export const operations: ReadonlyMap<string, Operation<never, unknown>> = new Map(
  [
    claimMail,
    confirmRecovery,
    countOnly,
    deleteAgent,
    deleteComment,
    deletePost,
    deletePostByOperator,
    eraseTerms,
    farewell,
    featurePost,
    heartbeat,
    markKeyUsed,
    recordAttempt,
    recordSecret,
    recover,
    regenerateKey,
    registerAgent,
    releaseMail,
    reportLeak,
    restoreAgent,
    savePost,
    settleCalls,
    storeComment,
    storeRendered,
    suspendAgent,
    sweep,
    updateAgent,
    verifyAgent,
    verifyByOperator,
    vote,
  ].map((operation: Operation<never, unknown>) => [operation.name, operation]),
);

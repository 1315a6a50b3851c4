import type { Write } from '../db/write.ts';
import { deleteAgent, updateAgent } from './agents/agents.ts';
import { confirmRecovery, recover, regenerateKey, verifyAgent } from './agents/api-keys.ts';
import { markKeyUsed } from './agents/callers.ts';
import { deleteComment, storeComment, vote } from './community/engagement.ts';
import { reportLeak } from './agents/leaked-keys.ts';
import { eraseTerms, farewell, heartbeat, sweep } from './upkeep/maintenance.ts';
import {
  deletePostByOperator,
  featurePost,
  restoreAgent,
  suspendAgent,
  verifyByOperator,
} from './community/moderation.ts';
import { claimMail, recordAttempt, releaseMail } from './outbox.ts';
import { deletePost, savePost } from './posts/post-store.ts';
import { countOnly, settleCalls } from './limits/rate-limiter.ts';
import { registerAgent } from './agents/registration.ts';
import { storeRendered } from './upkeep/rerender.ts';
import { recordSecret } from './upkeep/secret-check.ts';

/** Every write of the service, by name: what a thread that is handed a name can run. */
export const writes: ReadonlyMap<string, Write<never, unknown>> = new Map(
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
  ].map((write: Write<never, unknown>) => [write.name, write]),
);

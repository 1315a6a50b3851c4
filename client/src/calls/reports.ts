import type { CallOptions } from '../transport.ts';
import type { Done } from '../types.ts';
import { InboxCalls } from './inbox.ts';

export type ReportReason =
  | 'spam'
  | 'illegal'
  | 'harassment'
  | 'copyright'
  | 'private-data'
  | 'malware'
  | 'impersonation'
  | 'other';

export type ReportInput = {
  /** Of a post, a comment (`#comment-{id}`) or a blog. */
  url: string;
  reason: ReportReason;
  /** 20 to 2,000 characters. */
  explanation: string;
  /** Required for `illegal` and `copyright`, unless a key is sent. */
  name?: string;
  /** Where receipt and decision go; required as `name` is. */
  email?: string;
  /** The report is made in good faith, and is right and complete as far as the reporter knows. */
  goodFaith: true;
};

export type ReportAnswer = Done & {
  /** `open` until the operator has decided. */
  report: { id: string; state: 'open' | (string & {}); createdAt: string };
};

export type AppealInput = {
  /** 20 to 2,000 characters. */
  text: string;
  /** `actionId` of an event, or the id of the post or comment; else the suspension, or what was done last. */
  about?: string;
};

export type AppealAnswer = Done & {
  /** `open` until the operator has decided. */
  appeal: {
    id: string;
    state: 'open' | (string & {});
    createdAt: string;
    /** What it is against: `suspend`, `hide` and so on. */
    action: string;
    /** Id of the agent, post or comment. */
    about: string;
  };
};

/** What is for the operator. */
export class ReportCalls extends InboxCalls {
  /** A second one about the same changes the first while it is open. */
  async report(input: ReportInput, options: CallOptions = {}) {
    return this.api.json<ReportAnswer>('either', 'POST', '/api/reports', options, { json: input });
  }

  /** Against what the operator did, also while suspended. A second against the same changes the first while it is open. */
  async appeal(input: AppealInput, options: CallOptions = {}) {
    return this.api.json<AppealAnswer>('keyed', 'POST', '/api/appeals', options, { json: input });
  }
}

// The package's face: what is not here is not for its users, nor are the classes that MastheadClient joins.
export { createClient, MastheadClient } from './client.ts';
export { errorCodes, MastheadConnectionError, MastheadError } from './errors.ts';
export type { ErrorCode, FieldFault } from './errors.ts';
export type {
  DeleteOptions,
  DryRunOptions,
  GuardOptions,
  OnceOptions,
  PublishOptions,
  UpdateOptions,
} from './session.ts';
export type { CallOptions, RetryOptions } from './transport.ts';
export type * from './calls/agents.ts';
export type * from './calls/discovery.ts';
export type * from './calls/engagement.ts';
export type * from './calls/inbox.ts';
export type * from './calls/media.ts';
export type * from './calls/reports.ts';
export type * from './calls/posts.ts';
export type * from './calls/revisions.ts';
export type * from './calls/service.ts';
export type * from './types.ts';

import type { ClientOptions } from './calls/agents.ts';
import { ServiceCalls } from './calls/service.ts';

/** A client for the Masthead service at `baseUrl`. */
export function createClient(options: ClientOptions): MastheadClient {
  return new MastheadClient(options);
}

// Each class in `calls/` adds the calls of its topic to the one before.

/**
 * Every operation of the service. A failure rejects with MastheadError, a missing answer with
 * MastheadConnectionError, an aborted call with the reason of its signal.
 * Calls that need no key are sent without it; those of variant A answer `not_found` in variant B.
 */
export class MastheadClient extends ServiceCalls {}

import type { CallOptions } from '../transport.ts';
import type { RateLimit, Success } from '../types.ts';
import { MediaCalls } from './media.ts';

export type Quota = { limit: number; used: number };

export type LimitsAnswer = Success & {
  /** `window` in seconds. */
  limits: (RateLimit & { window: number })[];
  /** How much one agent may hold, and holds; null without a key. */
  quota: { posts: Quota; bytes: Quota } | null;
};

/** Of the probes: a success without warnings. */
export type HealthAnswer = { success: true; status: 'ok' };

export type ReadyAnswer = {
  success: true;
  state: 'starting' | 'ready' | 'draining';
  /** Whether changes are accepted. */
  writable: boolean;
};

export type AboutAnswer = Success & {
  name: string;
  version: string;
  variant: 'subdomain' | 'path';
  baseUrl: string;
  /** Words for what this instance can do beyond the calls that every one has; more may come. */
  capabilities: string[];
  links: { docs: string; openapi: string; skill: string; changelog: string; mcp: string; limits: string };
};

/** The service itself. */
export class ServiceCalls extends MediaCalls {
  /** What the service is and can do. */
  async about(options: CallOptions = {}) {
    return this.api.json<AboutAnswer>('open', 'GET', '/api', options);
  }

  async limits(options: CallOptions = {}) {
    return this.api.json<LimitsAnswer>('either', 'GET', '/api/limits', options);
  }

  /** The OpenAPI document of the running service. */
  async openapi(options: CallOptions = {}) {
    return this.api.json<Record<string, unknown>>('open', 'GET', '/api/openapi.json', options);
  }

  /** Whether the process answers, at this moment: not repeated. */
  async health(options: CallOptions = {}) {
    return this.api.json<HealthAnswer>('open', 'GET', '/healthz', options, { repeat: 'never' });
  }

  /** Whether pages can be served and posts be written, at this moment: not repeated. */
  async ready(options: CallOptions = {}) {
    return this.api.json<ReadyAnswer>('open', 'GET', '/readyz', options, { repeat: 'never' });
  }
}

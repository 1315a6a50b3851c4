import type { FastifyRequest } from 'fastify';
import type { Usage } from '../admission/rate-limit.ts';
import { callerOf, type Credential } from '../admission/credential.ts';
import type { Ticket } from '../db/write.ts';
import { AppError } from '../errors.ts';
import { prose } from '../rules/calls.ts';
import { unauthorized, type Caller } from '../services/agents/callers.ts';

declare module 'fastify' {
  /** What is known about a call before it is handled. */
  interface FastifyRequest {
    credential: Credential;
    usage: Usage | null;
    /** The address that limits count the client by. */
    clientAddress: string;
  }
}

/** The caller where a key is needed. Throws unauthorized, suspended. */
export function requireCaller(request: FastifyRequest): Caller {
  const caller = callerOf(request.credential);
  if (caller === null) throw keyMissing(request);
  return caller;
}

function keyMissing({ headers, query }: FastifyRequest): AppError {
  const error = unauthorized('This call needs an API key.');
  const inAddress = Object.keys(query ?? {}).find((name) =>
    /^(?:api_?key|key|(?:access_)?token)$/i.test(name),
  );
  const unread =
    headers['x-api-key'] !== undefined
      ? 'The X-API-Key header is not read.'
      : inAddress !== undefined
        ? `A key in the address ('${inAddress}') is not read, and logs may hold it now: replace it if others can read them.`
        : null;
  if (unread === null) return error;
  return new AppError('unauthorized', prose`${error.detail} ${unread}`, {
    ...error.extra,
    hint: 'Send the key as the header Authorization: Bearer API_KEY.',
  });
}

/** The ticket that the call's own write must count. */
export function ticketOf(request: FastifyRequest): Ticket | undefined {
  return request.usage?.ticket ?? undefined;
}

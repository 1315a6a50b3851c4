import { errorFromAnswer, isPassing, MastheadConnectionError, MastheadError } from './errors.ts';
import type { RateLimit } from './types.ts';

export type RetryOptions = {
  /** Attempts in all, the first included (7); 1 never repeats. */
  attempts?: number | undefined;
  /** Milliseconds that the first pause is at most (500); each further one may be twice as long. */
  baseDelay?: number | undefined;
  /** Milliseconds that any pause without `Retry-After` is at most (20,000). */
  maxDelay?: number | undefined;
  /** Milliseconds of `Retry-After` that are waited for (60,000); a longer one is thrown at once. */
  maxWait?: number | undefined;
};

export type TransportOptions = {
  /** Origin of the service: `https://masthead.example`. Keys go nowhere else. */
  baseUrl: string;
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  retry?: RetryOptions | undefined;
  /** Milliseconds that one attempt may take (30,000). */
  timeout?: number | undefined;
  /** Sent as `User-Agent` where the platform allows it. */
  userAgent?: string | undefined;
  /** Waits between attempts and polls, and rejects with the signal's reason. Replaced in tests. */
  sleep?: ((milliseconds: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
};

/** What every call takes. */
export type CallOptions = {
  /** Ends the call, between attempts too; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds that one attempt of this call may take. */
  timeout?: number | undefined;
};

type QueryValue = string | number | boolean | Date | undefined;

export type Request = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Uint8Array<ArrayBuffer> | Blob | undefined;
  /**
   * `always`: a repeat changes nothing more. `refused`: only after an answer by which the service says that it
   * did nothing, since after a lost answer a repeat would take effect again. `never`: the first answer counts.
   */
  readonly repeat: 'always' | 'refused' | 'never';
  /** The signal stays good after the call, for the body that is still to be read. */
  readonly stream?: boolean;
};

/** Timers hold a signed 32-bit count of milliseconds, and fire at once beyond it. */
const longestTimer = 2 ** 31 - 1;

/** Sends calls to one origin, and repeats them where that is safe and of use. */
export class Transport {
  readonly #origin: string;
  readonly #fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly #retry: { attempts: number; baseDelay: number; maxDelay: number; maxWait: number };
  readonly #timeout: number;
  readonly #userAgent: string | undefined;
  readonly sleep: (milliseconds: number, signal: AbortSignal | undefined) => Promise<void>;
  /** By the last answer that told of a limit. */
  limit: RateLimit | null = null;

  constructor({ baseUrl, fetch: fetchOption, retry, timeout, userAgent, sleep }: TransportOptions) {
    this.#origin = originOf(baseUrl);
    this.#fetch = fetchOption ?? ((url, init) => fetch(url, init));
    this.#retry = {
      attempts: retry?.attempts ?? 7,
      baseDelay: retry?.baseDelay ?? 500,
      maxDelay: retry?.maxDelay ?? 20_000,
      maxWait: retry?.maxWait ?? 60_000,
    };
    this.#timeout = timeout ?? 30_000;
    this.#userAgent = userAgent;
    this.sleep = sleep ?? pause;
  }

  /** Sends a call, and again where that is safe and of use; `read` takes the successful answer. */
  async send<T>(
    request: Request,
    options: CallOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    let lost: unknown;
    for (let attempt = 1; ; attempt++) {
      options.signal?.throwIfAborted();
      try {
        return await this.#attempt(request, options, read);
      } catch (error) {
        options.signal?.throwIfAborted();
        const wait = this.#waitAfter(error, request, attempt);
        if (wait === null) {
          if (error instanceof MastheadError && lost !== undefined) error.cause = lost;
          throw error;
        }
        if (!isRefusal(error)) lost = error;
        await this.sleep(wait, options.signal);
      }
    }
  }

  async #attempt<T>(
    request: Request,
    { signal, timeout = this.#timeout }: CallOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { method, path, body } = request;
    const url = this.#origin + path + queryString(request.query ?? {});
    // Outside the try: a malformed header is the caller's fault and not a lost answer.
    const headers = this.#headers(request);
    // Not AbortSignal.any and .timeout: every runtime has this, and a finished call leaves nothing behind.
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal?.reason);
    const expire = (): void =>
      controller.abort(new DOMException(`not complete within ${timeout} ms`, 'TimeoutError'));
    signal?.addEventListener('abort', abort);
    const timer = setTimeout(expire, Math.min(timeout, longestTimer));
    try {
      const response = await this.#fetch(url, {
        method,
        headers,
        body: body ?? null,
        signal: controller.signal,
        // Not 'error', which Cloudflare's workers refuse; a redirect is a failure here as well.
        redirect: 'manual',
      });
      this.limit = rateLimitOf(response.headers) ?? this.limit;
      const isUnchanged = response.status === 304 && headers.has('if-none-match');
      if (response.ok || isUnchanged) return await read(response);
      throw isRedirect(response) ? redirectError(response) : errorFromAnswer(response, await response.text());
    } catch (error) {
      if (error instanceof MastheadError) throw error;
      // A link to upload stands for its agent, and errors are logged.
      const shown = path.replace(/(?<=\/upload\/)[^/?]+/, '…');
      throw new MastheadConnectionError(`${method} ${shown} got no answer: ${reasonOf(error)}`, error);
    } finally {
      clearTimeout(timer);
      if (!request.stream) signal?.removeEventListener('abort', abort);
    }
  }

  #headers({ headers = {}, body }: Request): Headers {
    const all = new Headers({ accept: 'application/json' });
    if (this.#userAgent !== undefined) all.set('user-agent', this.#userAgent);
    if (body !== undefined) all.set('content-type', 'application/json');
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) all.set(name, value);
    return all;
  }

  /** Milliseconds to wait before the call is repeated; null if it is not. */
  #waitAfter(error: unknown, { repeat }: Request, attempt: number): number | null {
    const { attempts, baseDelay, maxDelay, maxWait } = this.#retry;
    const passes =
      error instanceof MastheadConnectionError || (error instanceof MastheadError && isPassing(error));
    const safe = repeat === 'always' || (repeat === 'refused' && isRefusal(error));
    if (!passes || !safe || attempt >= attempts) return null;
    const told = error instanceof MastheadError ? error.retryAfter : null;
    if (told !== null) {
      // Those told the same second do not all come back in the same millisecond.
      return told * 1000 > maxWait ? null : told * 1000 + Math.random() * baseDelay;
    }
    // "Equal jitter" (Marc Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015): at least half of
    // each bound passes, so that the attempts outlast a restart of the service.
    return (0.5 + Math.random() / 2) * Math.min(maxDelay, baseDelay * 2 ** (attempt - 1));
  }
}

function originOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  if (!/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    throw new TypeError(
      'baseUrl must be an origin without path, query or credentials: https://masthead.example',
    );
  }
  return url.origin;
}

function queryString(query: Readonly<Record<string, QueryValue>>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) pairs.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  const text = pairs.toString();
  return text === '' ? '' : `?${text}`;
}

/** From the fields of the IETF draft "RateLimit header fields for HTTP": `"publish";q=100;w=3600`, `"publish";r=97;t=2874`. */
function rateLimitOf(headers: Headers): RateLimit | null {
  const policy = /^"([^"]*)".*;q=(\d+)/.exec(headers.get('ratelimit-policy') ?? '');
  const left = /;r=(\d+).*;t=(\d+)/.exec(headers.get('ratelimit') ?? '');
  if (policy?.[1] === undefined || left === null) return null;
  return { policy: policy[1], limit: Number(policy[2]), remaining: Number(left[1]), reset: Number(left[2]) };
}

/** Whether the service itself said that it did nothing; a proxy's page does not tell what happened behind it. */
function isRefusal(error: unknown): boolean {
  return error instanceof MastheadError && error.code !== 'unknown';
}

/** Browsers show a redirect that is not followed as an opaque answer of status 0. */
function isRedirect(response: Response): boolean {
  return response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400);
}

function redirectError(response: Response): MastheadError {
  return new MastheadError({
    code: 'unknown',
    status: response.status,
    detail:
      'The base address redirects. The API never does, so the key was not sent on: use the address it leads to.',
  });
}

/** Platforms hide the reason of a failed fetch one level down. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A host with several addresses fails once for each.
  const cause: unknown = error.cause instanceof AggregateError ? error.cause.errors[0] : error.cause;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}

/** Waits, and rejects with the signal's reason as soon as there is one. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', end);
        resolve();
      },
      Math.min(milliseconds, longestTimer),
    );
    signal?.addEventListener('abort', end, { once: true });
  });
}

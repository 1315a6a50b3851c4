import { errorFromForeign, isObject, MastheadError, parseJson } from './errors.ts';
import { Transport, type CallOptions, type Request } from './transport.ts';
import type { Page, WithEtag } from './types.ts';

/**
 * For calls that add something, and changes of posts: the same key again gives the first answer again, for 24 hours.
 * Each call that needs one has a key of its own, and its attempts share it.
 */
export type OnceOptions = CallOptions & {
  /** At most 255 characters. */
  idempotencyKey?: string | undefined;
};

export type GuardOptions = CallOptions & {
  /** Only if the post, or the agent, still has this ETag, else `precondition_failed`. */
  ifMatch?: string | undefined;
};

export type UpdateOptions = OnceOptions & GuardOptions;

export type PublishOptions = UpdateOptions & {
  /** Only if no post has the slug, else `precondition_failed`. */
  createOnly?: boolean | undefined;
  dryRun?: false | undefined;
};

/** Says what a publication would do, and stores nothing. */
export type DryRunOptions = Omit<PublishOptions, 'dryRun'> & {
  dryRun: true;
  /** With the HTML that would be stored. */
  html?: boolean | undefined;
};

export type DeleteOptions = GuardOptions & {
  /** For good, from the trash too. */
  permanent?: boolean | undefined;
  /** Says what would be deleted, and deletes nothing. */
  dryRun?: boolean | undefined;
};

/** `open`: without the key; `keyed`: with it; `either`: with it if there is one. */
type Access = 'open' | 'keyed' | 'either';

type Method = Request['method'];

/** What a call sends beside its address and options. */
type Sent = Partial<Omit<Request, 'method' | 'path'>> & {
  readonly json?: unknown;
  /** With the same idempotency key in every attempt, so that a repeat does not add a second time. */
  readonly once?: boolean;
};

type Options = OnceOptions &
  Omit<PublishOptions, 'dryRun'> & { dryRun?: boolean | undefined; html?: boolean | undefined };

type CallArguments = [access: Access, method: Method, address: string, options: Options, sent?: Sent];

/** Calls with and without a key, and their answers. What is in an answer is the contract's, and not checked. */
export class Session extends Transport {
  #apiKey: string | null = null;

  get apiKey(): string | null {
    return this.#apiKey;
  }

  set apiKey(key: string | null) {
    const trimmed = key?.trim() ?? null;
    // Checked here because platforms quote a header that they refuse in their error.
    if (trimmed !== null && !/^[\x21-\x7e]+$/.test(trimmed)) throw new TypeError('apiKey is not an API key');
    this.#apiKey = trimmed;
  }

  async json<T extends object>(...call: CallArguments): Promise<T> {
    return this.#send(call, readAnswer<T>);
  }

  /** For calls that answer a post and its ETag. */
  async tagged<T extends object>(...call: CallArguments): Promise<T & WithEtag> {
    return this.#send(call, async (response) => {
      return { ...(await readAnswer<T>(response)), etag: response.headers.get('etag') };
    });
  }

  /** For lists that are asked for again and again: null where nothing has changed since the answer with this ETag. */
  async polled<T extends object>(
    etag: string | null,
    ...[access, method, address, options, sent]: CallArguments
  ): Promise<(T & WithEtag) | null> {
    const headers = etag === null ? {} : { 'if-none-match': etag };
    return this.#send([access, method, address, options, { ...sent, headers }], async (response) =>
      response.status === 304
        ? null
        : { ...(await readAnswer<T>(response)), etag: response.headers.get('etag') },
    );
  }

  /** For calls that answer a new key. */
  async rekeyed<T extends { apiKey: string }>(...call: CallArguments): Promise<T> {
    const answer = await this.json<T>(...call);
    this.apiKey = answer.apiKey;
    return answer;
  }

  /** For calls whose answer is still to be read. */
  async stream(...[access, method, address, options]: CallArguments): Promise<Response> {
    const sent = { headers: { accept: '*/*' }, stream: true };
    return this.#send([access, method, address, options, sent], async (response) => response);
  }

  async #send<T>(
    [access, method, address, options, { json, once, ...sent } = {}]: CallArguments,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const key = access === 'open' ? null : this.#apiKey;
    // Not left to the service: there GET /api/posts without a key is another call, not a refused one.
    if (access === 'keyed' && key === null) throw noKey(method, address);
    const { idempotencyKey, ifMatch, createOnly, dryRun, html }: Options = options;
    const headers = {
      ...sent.headers,
      authorization: key === null ? undefined : `Bearer ${key}`,
      'idempotency-key': once ? (idempotencyKey ?? crypto.randomUUID()) : undefined,
      'if-match': ifMatch,
      ...(createOnly === true ? { 'if-none-match': '*' } : {}),
    };
    const body = json === undefined ? sent.body : JSON.stringify(json);
    const query = { ...sent.query, dryRun, html };
    return this.send(
      { repeat: 'always', ...sent, method, path: address, query, headers, body },
      options,
      read,
    );
  }
}

/** How a change without an idempotency key is repeated: with `ifMatch` it would be refused for what it has done. */
export function repeatOf({ ifMatch }: GuardOptions): Pick<Request, 'repeat'> {
  return { repeat: ifMatch === undefined ? 'always' : 'refused' };
}

/** A path with ids filled in, encoded. An id that could lead to another path than meant is refused. */
export function path(parts: TemplateStringsArray, ...ids: readonly string[]): string {
  return String.raw(
    { raw: parts },
    ...ids.map((id) => {
      if (/^\.{0,2}$/.test(id)) throw new TypeError(`'${id}' is not an id`);
      return encodeURIComponent(id);
    }),
  );
}

/** The entries of a list, page after page. `name` is what the answer calls them. */
export async function* pages<
  Q extends object,
  N extends string,
  A extends Pick<Page, 'nextCursor'> & Record<N, unknown[]>,
>(name: N, query: Q, fetchPage: (query: Q) => Promise<A>): AsyncGenerator<A[N][number], void> {
  let page = await fetchPage(query);
  for (;;) {
    // The compiler does not see that the entries of A[N] are those of the name.
    yield* page[name] as A[N][number][];
    if (page.nextCursor === null) return;
    page = await fetchPage({ ...query, cursor: page.nextCursor, offset: undefined });
  }
}

async function readAnswer<T extends object>(response: Response): Promise<T> {
  const body = parseJson(await response.text());
  if (isObject(body)) return body as T;
  throw errorFromForeign(response);
}

function noKey(method: Method, address: string): MastheadError {
  return new MastheadError({
    code: 'unauthorized',
    status: 401,
    detail: `${method} ${address} needs an API key, and this client has none.`,
    hint: 'Give createClient an apiKey, or call register and then verify.',
  });
}

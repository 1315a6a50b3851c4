import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Engine } from '../db/database.ts';
import { compress, encoded, leastCompressed } from '../http/compress.ts';
import { chooseEncoding, chooseQuickEncoding, type Encoding } from '../http/encoding.ts';
import { lookUps } from '../platform/measured.ts';
import { matchesEtag } from '../http/etag.ts';

/**
 * Sends an answer, or 304 to a client that has it. What is shared is compressed once for all callers, as well as pages
 * are.
 */
export async function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  { headers, body, forms }: CachedAnswer,
  isShared: boolean,
): Promise<Buffer | FastifyReply> {
  reply.headers(headers);
  const { etag } = headers;
  const { 'if-none-match': known, 'accept-encoding': accepted } = request.headers;
  if (etag !== undefined && known !== undefined && matchesEtag(known, etag)) return reply.code(304).send();
  reply.type('application/json; charset=utf-8');
  const encoding = isShared ? chooseEncoding(accepted) : chooseQuickEncoding(accepted);
  const isLeft = encoding === 'identity' || body.length < leastCompressed || !request.server.compressesCalls;
  if (isLeft) return body;
  const form = forms.get(encoding) ?? compress(body, encoding, isShared ? 'once' : 'each');
  forms.set(encoding, form);
  return encoded(reply, encoding, await form);
}

/** An answer as it was sent. */
export type CachedAnswer = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The body compressed, in each encoding that was asked for. */
  readonly forms: Map<Encoding, Promise<Buffer>>;
};

/** Bytes that an entry takes besides its body and key. */
const overhead = 512;

/** Caches answers that depend on stored data alone, at most `capacity` bytes. Any visible change drops them all. */
export function createAnswerCache(engine: Pick<Engine, 'contentVersion'>, capacity: number) {
  let answers = new Map<string, CachedAnswer>();
  let madeAt: number | null = null;
  let size = 0;

  function clear(): void {
    // Another map: V8 keeps the entries of one that was cleared until a full collection.
    answers = new Map();
    size = 0;
  }

  return {
    get(key: string): CachedAnswer | undefined {
      const version = engine.contentVersion();
      if (version !== madeAt) {
        clear();
        madeAt = version;
      }
      const answer = answers.get(key);
      lookUps.answers[answer === undefined ? 'miss' : 'hit'].value++;
      return answer;
    },
    /** Cache generation; read it before making an answer and pass it to `put()`, which drops stale answers. */
    generation: () => madeAt,
    put(key: string, answer: CachedAnswer, generation: number | null): void {
      if (generation === null || generation !== madeAt) return;
      // Its compressed forms, all together, are about as large as half of it.
      const bytes = 1.5 * answer.body.length + 2 * key.length + overhead;
      if (bytes > capacity / 4 || answers.has(key)) return;
      if (size + bytes > capacity) clear();
      answers.set(key, answer);
      size += bytes;
    },
  };
}

import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { MastheadClient } from '../../client/src/index.ts';
import { onFixture, type FixtureSettings } from './fixtures.ts';

/** Has every event rest within its transaction for a while, so that they are committed in another order than begun. */
export async function pauseEvents(settings: FixtureSettings): Promise<void> {
  const statements =
    settings.DATABASE_URL === undefined
      ? ['create trigger pause after insert on inbox begin select hex(randomblob(100000)); end']
      : [
          `create function pause() returns trigger language plpgsql as
            $$ begin perform pg_sleep(random() * 0.02); return new; end $$`,
          'create trigger pause before insert on inbox for each row execute function pause()',
        ];
  for (const statement of statements) await onFixture(settings, statement);
}

export async function endPauses(settings: FixtureSettings): Promise<void> {
  await onFixture(settings, `drop trigger pause${settings.DATABASE_URL === undefined ? '' : ' on inbox'}`);
}

type Writing = {
  /** The recipient, at any of the processes. */
  readonly recipient: () => MastheadClient;
  /** Each writes its comments one after another; resolves to their ids. */
  readonly writers: readonly (() => Promise<readonly string[]>)[];
};

/**
 * Reads an inbox while it is written to, by the seen mark and by cursors alone: each event is read once by either,
 * and none is left out. Returns how many.
 */
export async function readWhileWritten({ recipient, writers }: Writing): Promise<number> {
  let isWritten = false;
  const writing = Promise.all(writers.map(async (write) => write())).finally(() => {
    isWritten = true;
  });
  const read = async (mark: boolean): Promise<string[]> => {
    const comments: string[] = [];
    for (let cursor: string | undefined; ;) {
      // Asked before the read: what was written by then must be in it, or in one before.
      const isLast = isWritten;
      const page = await recipient().inbox({ cursor: mark ? undefined : cursor, limit: 7 });
      comments.push(...page.events.map(({ comment }) => comment?.id ?? ''));
      ({ cursor } = page);
      if (mark) await recipient().markInboxSeen(cursor);
      if (isLast && !page.more) return comments;
      if (!page.more) await delay(1);
    }
  };
  const [written, marked, followed] = await Promise.all([writing, read(true), read(false)]);
  const sent = written.flat().toSorted();
  assert.deepEqual(marked.toSorted(), sent);
  assert.deepEqual(followed.toSorted(), sent);
  assert.deepEqual(marked, followed);
  assert.equal((await recipient().inbox({ limit: 0 })).unseen, 0);
  return sent.length;
}

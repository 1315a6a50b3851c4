import type { TestEvent } from 'node:test/reporters';

/**
 * A reporter beside the usual one, which says of a file whose process ended early only that it failed: with which
 * exit code or signal, which tells a crash from a kill and from an uncaught error.
 */
export default async function* endedEarly(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:fail') continue;
    const { exitCode, signal } = data.details.error as Error & {
      exitCode?: number | null;
      signal?: string | null;
    };
    if (exitCode === undefined && signal === undefined) continue;
    yield `The process of ${data.name} ended with ${signal ?? `exit code ${exitCode}`}.\n`;
  }
}

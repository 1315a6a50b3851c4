import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { loadConfig } from '../src/config/config.ts';
import { StartError } from '../src/rules/failure.ts';
import { createLog } from '../src/platform/log.ts';
import { startServer } from '../src/server.ts';
import { masthead } from './support/command-line.ts';
import {
  fixtureFiles,
  listFixtures,
  onFixture,
  restoreFixture,
  type FixtureSettings,
} from './support/fixtures.ts';

for (const fixture of listFixtures()) {
  const { release, engine } = fixture.contents;
  describe(`a database of ${release} (${engine}) that a later release has upgraded`, () => {
    const refusal =
      /^The database is newer than this program \(it has the schema step '9999-later'\): start the release that wrote it, or a later one\.$/;
    let settings: FixtureSettings;
    before(async () => {
      settings = await restoreFixture(fixture);
      await onFixture(settings, `insert into migrations (name, applied_at) values ('9999-later', '')`);
    });

    test('is refused in one line, and left as it is', async () => {
      const file = join(settings.DATA_DIR, fixtureFiles.database);
      const copy = join(settings.DATA_DIR, 'copy');
      const untouched = await onFixture(settings, 'select * from migrations order by name');
      await assert.rejects(
        startServer(loadConfig({ MEDIA_DIR: join(settings.DATA_DIR, 'media'), ...settings, PORT: '0' }), {
          log: createLog('silent'),
        }),
        (error: unknown) => error instanceof StartError && refusal.test(error.message),
      );
      for (const [args, env = settings] of [
        [['migrate']],
        [['rerender']],
        [['admin', 'agents', 'list']],
        [['migrate-to', `sqlite:${copy}-moved`]],
        ...(engine === 'sqlite'
          ? ([[['backup', copy]], [['restore', file], { DATA_DIR: `${copy}-data` }]] as const)
          : []),
      ] as const) {
        const { code, stdout, stderr } = await masthead(args, env);
        assert.deepEqual([code, stdout], [1, ''], args[0]);
        // Of the cluster of the tests a line of the log says that it does not reach the disk.
        const lines = stderr.split('\n').filter((line) => !line.includes('fsync is off'));
        assert.equal(lines.length, 1, stderr);
        assert.match(lines[0] ?? '', refusal, args[0]);
      }
      const examined = await masthead(['doctor', '--json'], settings);
      const findings: { state: string; detail: string }[] = JSON.parse(examined.stdout).data;
      assert.equal(examined.code, 1);
      assert.ok(findings.some(({ state, detail }) => state === 'wrong' && refusal.test(detail)));
      assert.deepEqual(await onFixture(settings, 'select * from migrations order by name'), untouched);
    });
  });
}

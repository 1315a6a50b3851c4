import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { request } from '../support/http.ts';
import { startInstance } from '../support/instance.ts';
import { freePort } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

const rules = fileURLToPath(new URL('../../deploy/alerts.yml', import.meta.url));
const promtool = (args: readonly string[], input = '') =>
  spawnSync('promtool', args, { input, encoding: 'utf8' });
const missing = promtool(['--version']).error
  ? 'promtool is not installed: apt-get install prometheus'
  : false;
if (missing) console.error(`SKIPPED: ${missing}`);

describe('promtool', { skip: missing }, () => {
  const dir = scratchFolder('alerts');

  test('accepts the rules', () => {
    const { status, stdout, stderr } = promtool(['check', 'rules', rules]);
    assert.equal(status, 0, stdout + stderr);
  });

  test('accepts what /metrics answers', async () => {
    const port = await freePort();
    const instance = await startInstance({ env: { INTERNAL_PORT: String(port) } });
    await instance.agent('Ada');
    const { text } = await request(`http://127.0.0.1:${port}`, { path: '/metrics' });
    await instance.close();
    const { status, stdout, stderr } = promtool(['check', 'metrics'], text);
    assert.equal(status, 0, stdout + stderr);
    assert.equal(stdout + stderr, '');
  });

  /** Two hours of values, a minute apart, and whether the alert then fires. */
  const cases: [what: string, alert: string, series: Record<string, string>, fires: boolean][] = [
    ['one recipient that refuses', 'MastheadMailStuck', mail('1', '0+2x120', '0+0x120'), false],
    ['a busy service beside it', 'MastheadMailStuck', mail('50', '0+2x120', '0+1x120'), false],
    ['a mail server that is away', 'MastheadMailStuck', mail('50', '0+9x120', '0+0x120'), true],
    ['a worker that sends nothing', 'MastheadMailStuck', mail('1', '0+0x120', '0+0x120'), true],
    [
      'a backup of an hour ago',
      'MastheadBackupOld',
      { masthead_last_backup_timestamp_seconds: '3600x120' },
      false,
    ],
    [
      'no request that fails',
      'MastheadFailing',
      { 'masthead_http_requests_total{status="200"}': '0+600x120' },
      false,
    ],
    [
      'a part that fails',
      'MastheadFailing',
      {
        'masthead_http_requests_total{status="200"}': '0+600x120',
        'masthead_http_requests_total{status="500"}': '0+60x120',
      },
      true,
    ],
    [
      'a damaged file',
      'MastheadDatabaseDamaged',
      { 'masthead_database_errors_total{kind="damaged"}': '0x110 1x10' },
      true,
    ],
  ];
  for (const [what, alert, series, fires] of cases)
    test(`${alert} ${fires ? 'fires' : 'is silent'} for ${what}`, () => {
      const file = join(dir, 'test.yml');
      // Whether it fires, without its words.
      const expression = `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`;
      const input = Object.entries(series).map(([name, values]) => ({ series: withInstance(name), values }));
      const document = {
        rule_files: [rules],
        evaluation_interval: '1m',
        tests: [
          {
            interval: '1m',
            input_series: input,
            promql_expr_test: [
              { expr: expression, eval_time: '119m', exp_samples: [{ labels: '{}', value: Number(fires) }] },
            ],
          },
        ],
      };
      writeFileSync(file, JSON.stringify(document));
      const { status, stdout, stderr } = promtool(['test', 'rules', file]);
      assert.equal(status, 0, stdout + stderr);
    });
});

function mail(waiting: string, retried: string, delivered: string): Record<string, string> {
  return {
    masthead_mail_waiting: `${waiting}x120`,
    masthead_mail_oldest_seconds: '7200x120',
    'masthead_mail_attempts_total{result="retried"}': retried,
    'masthead_mail_attempts_total{result="delivered"}': delivered,
  };
}

function withInstance(name: string): string {
  return name.includes('{') ? name.replace('{', '{instance="a",') : `${name}{instance="a"}`;
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rename } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { createMetrics, gaugeOf, merged, metricsText, totalsOf } from '../src/platform/metrics.ts';
import { request } from './support/http.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { removeOrphaned } from '../src/services/media/picture-sweep.ts';
import { assertOk, assertProblem, startInstance, type Instance, type TestAgent } from './support/instance.ts';
import { makePng } from './support/made-pictures.ts';
import { readMetricsText, sumOf, type Samples } from './support/metrics.ts';
import { freePort } from './support/processes.ts';
import { openSqlite } from './support/sqlite-file.ts';

describe('metrics', () => {
  test('are written as Prometheus reads them', () => {
    const metrics = createMetrics();
    const calls = metrics.counter('calls_total', 'Calls.', ['route', 'status']);
    calls('/a"\\\n', '200').value += 2;
    metrics.histogram('seconds', 'Times.', [0.1, 1], ['route'])('/a').observe(0.1);
    metrics.histogram('lag', 'Lag.', [1])().observe(2);
    const stop = metrics.gauge('bytes', 'Bytes.')(() => 3);
    metrics.gauge('other', 'None.');
    const text = metricsText(metrics.read());
    assert.equal(
      text,
      [
        '# HELP calls_total Calls.',
        '# TYPE calls_total counter',
        String.raw`calls_total{route="/a\"\\\n",status="200"} 2`,
        '# HELP seconds Times.',
        '# TYPE seconds histogram',
        'seconds_bucket{route="/a",le="0.1"} 1',
        'seconds_bucket{route="/a",le="1"} 1',
        'seconds_bucket{route="/a",le="+Inf"} 1',
        'seconds_sum{route="/a"} 0.1',
        'seconds_count{route="/a"} 1',
        '# HELP lag Lag.',
        '# TYPE lag histogram',
        'lag_bucket{le="1"} 0',
        'lag_bucket{le="+Inf"} 1',
        'lag_sum 2',
        'lag_count 1',
        '# HELP bytes Bytes.',
        '# TYPE bytes gauge',
        'bytes 3',
        '# HELP other None.',
        '# TYPE other gauge',
        'other 0',
        '',
      ].join('\n'),
    );
    stop();
    assert.ok(metricsText(metrics.read()).includes('\nbytes 0\n'));
  });

  test('of several processes are added, or the largest is taken; totals outlive their process', () => {
    const of = (calls: number, age: number) => {
      const metrics = createMetrics();
      metrics.counter('calls_total', 'Calls.')().value = calls;
      return [...metrics.read(), gaugeOf('age', 'Age.', age)];
    };
    const both = merged([of(1, 5), of(2, 3)]);
    assert.deepEqual(
      both.map(({ name, values }) => [name, values]),
      [
        ['calls_total', { '': 3 }],
        ['age', { '': 5 }],
      ],
    );
    assert.deepEqual(totalsOf(both), [both[0]]);
  });
});

describe('/metrics of a service', () => {
  let instance: Instance;
  let ada: TestAgent;
  let port = 0;
  before(async () => {
    port = await freePort();
    instance = await startInstance({ env: { INTERNAL_PORT: String(port), LIMIT_COMMENT: '1' } });
    ada = await instance.agent('Ada');
    await ada.client.publish({ title: 'A post', content: 'text', status: 'published' });
    await instance.mails();
  });
  after(() => instance.close());

  /** Once the answers before it are counted: an answer is counted when it has been sent. */
  const read = async (): Promise<Samples> => {
    await new Promise((resolve) => setImmediate(resolve));
    const { status, text } = await request(`http://127.0.0.1:${port}`, { path: '/metrics' });
    assert.equal(status, 200);
    return readMetricsText(text);
  };
  /** How much a metric grew by what is done. */
  const growth = async (
    name: string,
    labels: Readonly<Record<string, string>>,
    act: () => Promise<unknown>,
  ) => {
    const earlier = sumOf(await read(), name, labels);
    await act();
    return sumOf(await read(), name, labels) - earlier;
  };
  const get = (path: string, host?: string) => instance.call('GET', path, host === undefined ? {} : { host });

  test('counts requests by route, method and status', async () => {
    const name = 'masthead_http_requests_total';
    const of = (route: string, method: string, status: string, act: () => Promise<unknown>) =>
      growth(name, { route, method, status }, act);
    assert.equal(await of('/api/posts/:id', 'GET', '404', () => get('/api/posts/none')), 1);
    assert.equal(await of('/api/me', 'GET', '401', () => get('/api/me')), 1);
    assert.equal(
      await of('/api/publish', 'POST', '400', () =>
        instance.call('POST', '/api/publish', { key: ada.key, body: {} }),
      ),
      1,
    );
    assert.equal(await of('/api/posts', 'DELETE', '405', () => instance.call('DELETE', '/api/posts')), 1);
    assert.equal(await of('/api/posts', 'other', '405', () => instance.call('PROPFIND', '/api/posts')), 1);
    assert.equal(await of('none', 'GET', '404', () => get('/.nothing')), 1);
    const host = `ada.localhost:${instance.port}`;
    assert.equal(await of('blog', 'GET', '200', () => get('/a-post', host)), 1);
    assert.equal(await of('blog', 'GET', '200', () => get('/a-post', host)), 1, 'a cached page too');
    assert.equal(await of('blog', 'GET', '404', () => get('/no-post', host)), 1);
  });

  test('has a histogram for each route', async () => {
    const name = 'masthead_http_request_duration_seconds';
    assert.equal(await growth(`${name}_count`, { route: '/healthz' }, () => get('/healthz')), 1);
    const samples = await read();
    assert.equal(
      sumOf(samples, `${name}_bucket`, { route: '/healthz', le: '+Inf' }),
      sumOf(samples, `${name}_count`, { route: '/healthz' }),
    );
    assert.ok(sumOf(samples, `${name}_sum`, { route: '/healthz' }) > 0);
  });

  test('has no label of what clients choose', async () => {
    const sent = 'zzz-unheard-of';
    const host = `ada.localhost:${instance.port}`;
    for (const path of [
      `/${sent}`,
      `/${sent}/${sent}`,
      `/api/${sent}`,
      `/api/posts/${sent}`,
      `/api/blogs/${sent}?q=${sent}`,
      `/-/${sent}`,
    ])
      for (const at of [undefined, host, `${sent}.localhost`]) await get(path, at);
    await instance.call('GET', '/', { headers: { traceparent: sent, 'x-request-id': sent } });
    const { text } = await request(`http://127.0.0.1:${port}`, { path: '/metrics' });
    assert.ok(!text.includes(sent));
    assert.ok(!text.includes('ada'));
  });

  test('counts look-ups in the caches', async () => {
    for (const [cache, path] of [
      ['pages', '/'],
      ['answers', '/api/posts?limit=7'],
    ] as const) {
      const of = (result: string) =>
        growth('masthead_cache_requests_total', { cache, result }, () => get(path));
      await ada.client.publish({ title: `For ${cache}`, content: 'text', status: 'published' });
      assert.equal(await of('miss'), 1, cache);
      // A change that was just made may be noticed again, as one of another process.
      while ((await of('hit')) === 0);
    }
    do await get('/');
    while (sumOf(await read(), 'masthead_page_cache_bytes') < 1_000);
  });

  test('counts documents that are rendered, and those that are refused', async () => {
    const of = (result: string, content: string) =>
      growth('masthead_renders_total', { kind: 'post', result }, () =>
        instance.call('POST', '/api/publish?dryRun=true', { key: ada.key, body: { title: 'Of', content } }),
      );
    assert.equal(await of('done', 'text'), 1);
    assert.equal(await of('refused', '> '.repeat(20_000)), 1);
    assert.equal(sumOf(await read(), 'masthead_render_queue'), 0);
  });

  test('counts writes, the transactions that they share, and their time', async () => {
    const earlier = await read();
    const writes = Array.from({ length: 10 }, (_, n) =>
      ada.client.publish({ title: `Write ${n}`, content: 'text' }),
    );
    await Promise.all(writes);
    const grown = await read();
    const by = (name: string, labels = {}) => sumOf(grown, name, labels) - sumOf(earlier, name, labels);
    assert.ok(by('masthead_writes_total', { result: 'stored' }) >= 10);
    assert.ok(by('masthead_commits_total') >= 1);
    assert.ok(by('masthead_write_duration_seconds_count') >= 10);
    assert.equal(by('masthead_writes_total', { result: 'failed' }), 0);
    assert.equal(by('masthead_database_errors_total'), 0);
  });

  test('counts refusals by the limit that they are over', async () => {
    const { post } = await ada.client.publish({ title: 'Talk', content: 'text', status: 'published' });
    const comment = () =>
      instance.call('POST', `/api/posts/${post.id}/comments`, { key: ada.key, body: { content: 'x' } });
    const of = () => growth('masthead_budget_hits_total', { budget: 'limit_comment' }, comment);
    assert.deepEqual([await of(), await of()], [0, 1]);
  });

  test('says what mail waits, what became of the other, and what reports and appeals are open', async () => {
    const attempts = 'masthead_mail_attempts_total';
    const register = async () => {
      await instance.agent('Bob');
      await instance.mails();
    };
    assert.equal(await growth(attempts, { result: 'delivered' }, register), 2);
    assert.equal(sumOf(await read(), 'masthead_mail_waiting'), 0);
    const database = openSqlite(join(instance.dataDir, 'masthead.db'));
    const created = new Date(instance.clock.now() - 60_000).toISOString();
    database
      .prepare(
        `insert into outbox (id, mailbox, kind, sealed, created_at, due_at, route)
         values ('waits', '', 'moderated', null, ?, '2999-01-01T00:00:00.000Z', 'smtp')`,
      )
      .run(created);
    database
      .prepare(`insert into meta (key, value) values ('last_backup_at', '2026-01-01T00:00:00.000Z')`)
      .run();
    database
      .prepare(
        `insert into meta (key, value) values ('backup_check', '{"at":"","folder":"/b","fault":"it is cut off"}')`,
      )
      .run();
    const report = database.prepare(
      `insert into reports (id, reporter, target_kind, target_id, owner_id, url, reason, explanation, created_at,
         updated_at, state) values (?, ?, 'post', 'p', 'o', 'u', 'spam', 'x', ?, ?, ?)`,
    );
    report.run('r1', 'a', created, created, 'open');
    report.run('r2', 'b', created, created, 'upheld');
    const appeal = database.prepare(
      `insert into appeals (id, agent_id, action, target_kind, target_id, at, sent_at, state)
         select ?, id, 'suspend', 'agent', id, ?, ?, ? from agents limit 1`,
    );
    appeal.run('a1', created, created, 'open');
    appeal.run('a2', created, created, 'upheld');
    appeal.run('a3', created, null, 'possible');
    const samples = await read();
    database.prepare(`delete from outbox where id = 'waits'`).run();
    database.prepare(`delete from reports`).run();
    database.prepare(`delete from appeals`).run();
    database.close();
    assert.equal(sumOf(samples, 'masthead_mail_waiting'), 1);
    assert.ok(sumOf(samples, 'masthead_mail_oldest_seconds') >= 60);
    assert.equal(sumOf(samples, 'masthead_reports_open'), 1);
    assert.ok(sumOf(samples, 'masthead_reports_oldest_seconds') >= 60);
    assert.equal(sumOf(samples, 'masthead_appeals_open'), 1);
    assert.ok(sumOf(samples, 'masthead_appeals_oldest_seconds') >= 60);
    assert.equal(sumOf(samples, 'masthead_last_backup_timestamp_seconds'), 1_767_225_600);
    assert.equal(sumOf(samples, 'masthead_backup_faulty'), 1);
  });

  test('counts pictures: what is stored, each file once, what became of uploads, and what was served', async () => {
    const [eve, bytes] = [await instance.agent('Eve'), makePng()];
    const send = (body: Uint8Array, { key } = ada) =>
      instance.call('POST', '/api/media', { key, body, headers: { 'content-type': 'image/png' } });
    const earlier = await read();
    const stored = assertOk(await send(bytes), 201);
    assertOk(await send(bytes));
    const hers = assertOk(await send(bytes, eve), 201);
    assertProblem(await send(bytes.subarray(0, -4)), 'invalid_media');
    const { dir } = instance.ctx().config.media;
    await rename(dir, `${dir}-away`);
    assertProblem(await send(makePng()), 'unavailable');
    await rename(`${dir}-away`, dir);
    const by = async (name: string, labels = {}) =>
      sumOf(await read(), name, labels) - sumOf(earlier, name, labels);
    for (const [result, count] of Object.entries({ stored: 2, repeated: 1, refused: 1, failed: 1 }))
      assert.equal(await by('masthead_uploads_total', { result }), count, result);
    const size = Number(stored.at('media.bytes'));
    // The one that is cut off is not cleaned, so no file of it was claimed.
    assert.deepEqual([await by('masthead_pictures'), await by('masthead_picture_bytes')], [1, size]);

    const { pathname, host } = new URL(String(stored.at('media.url')));
    const served = await get(pathname, host);
    assert.equal(served.bytes.length, size);
    while ((await by('masthead_picture_sent_bytes_total')) < size);
    assert.equal(await by('masthead_picture_sent_bytes_total'), size);

    assert.deepEqual(await findWrongCounts(instance.ctx()), []);
    await ada.client.deleteMedia(String(stored.at('media.id')));
    await eve.client.deleteMedia(String(hers.at('media.id')));
    instance.clock.advance(24 * 3_600_000);
    await instance.ctx().engine.write(removeOrphaned, null);
    assert.deepEqual([await by('masthead_pictures'), await by('masthead_picture_bytes')], [0, 0]);
    const database = openSqlite(join(instance.dataDir, 'masthead.db'));
    database.exec(`update counters set value = value + 1 where name = 'pictures'`);
    database.close();
    const [found] = await findWrongCounts(instance.ctx());
    assert.deepEqual([found?.what, found?.example], ['files of pictures', 'pictures']);
  });

  test('has the metrics that docs/operations.md lists, and no other', async () => {
    const { text } = await request(`http://127.0.0.1:${port}`, { path: '/metrics' });
    const described = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    const page = readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8');
    const listed = [...page.matchAll(/^\| `(masthead_\w+)` \| (\w+) \|/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    assert.deepEqual(listed.toSorted(), described.toSorted());
  });

  test('has every metric that deploy/alerts.yml asks for, with its labels', async () => {
    const rules = readFileSync(new URL('../deploy/alerts.yml', import.meta.url), 'utf8');
    const samples = await read();
    const names = new Set(rules.match(/\bmasthead_\w+/g));
    assert.ok(names.size > 10);
    const known = (name: string) => samples.some((sample) => [name, `${name}_count`].includes(sample.name));
    assert.deepEqual(
      [...names].filter((name) => !known(name)),
      [],
    );
    for (const [, name = '', label = '', value = ''] of rules.matchAll(/(masthead_\w+)\{(\w+)="(\w+)"\}/g))
      assert.ok(
        samples.some((sample) => sample.name === name && sample.labels[label] === value),
        `${name} ${value}`,
      );
  });

  test('says what the process takes', async () => {
    const samples = await read();
    assert.ok(sumOf(samples, 'masthead_resident_memory_bytes') > 1e7);
    assert.ok(sumOf(samples, 'masthead_heap_used_bytes') > 1e6);
    assert.equal(sumOf(samples, 'masthead_processes'), 1);
    assert.equal(sumOf(samples, 'masthead_read_only'), 0);
    assert.equal(sumOf(samples, 'masthead_info', { variant: 'subdomain' }), 1);
  });
});

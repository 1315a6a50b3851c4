import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { createPictureStore, lacksRoom } from '../src/media/picture-store.ts';
import { suspendAgent, restoreAgent } from '../src/services/operators/moderation.ts';
import { removeOrphaned, sweepFiles } from '../src/services/media/picture-sweep.ts';
import { claimFile } from '../src/services/media/pictures.ts';
import { uploadPicture } from '../src/services/media/uploads.ts';
import { blockSource, listSourceBlocks, setSourceBlock } from '../src/services/trust/source-blocks.ts';
import { expire } from '../src/services/upkeep/expiry.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  startInstance,
  type TestAgent,
} from './support/instance.ts';
import { makeLargePng, makePng } from './support/made-pictures.ts';
import { onDatabase } from './support/on-database.ts';
import { open } from './support/pages.ts';
import { chunk, png, xmp } from './support/pictures.ts';

const day = 24 * 3_600_000;
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const ofPng = { 'content-type': 'image/png' };

describeInstances('a picture', { env: { LIMIT_API: '0', MEDIA_MAX: '2000000' } }, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
  });
  const send = (
    body: Uint8Array | string,
    headers: Record<string, string> = ofPng,
    query = '',
    key = ada.key,
  ) => the().call('POST', `/api/media${query}`, { key, body, headers });
  const upload = async (bytes = makePng(), agent = ada) =>
    (await agent.client.uploadMedia(bytes, { type: 'image/png' })).media;
  const get = (url: string, headers = {}) => open(the(), url, { headers });
  const folder = () => the().ctx().config.media.dir;
  const isStored = async (hash: string) => (await createPictureStore(folder()).lengthOf(hash)) !== null;
  const goOn = async () => true;

  test('is stored once, named by its bytes, and served at its address', async () => {
    const bytes = makePng({ width: 5, height: 3, text: 'secret' });
    const answer = assertOk(await send(bytes, ofPng, '?alt=A%20square.&filename=a.png'), 201);
    const { media } = answer.json() as Awaited<ReturnType<TestAgent['client']['uploadMedia']>>;
    assert.equal(answer.headers['location'], media.url);
    assert.match(media.name, /^[0-9a-f]{32}\.png$/);
    assert.equal(media.name, `${media.sha256.slice(0, 32)}.png`);
    assert.equal(media.url, `${ada.blogUrl}/media/${media.name}`);
    assert.equal(media.markdown, `![A square.](media/${media.name})`);
    assert.match(String(answer.at('message')), /^'a\.png' is stored\./);
    const { type, width, height, alt, animated, digitalSourceType } = media;
    assert.deepEqual(
      { type, width, height, alt, animated, digitalSourceType },
      { type: 'image/png', width: 5, height: 3, alt: 'A square.', animated: false, digitalSourceType: null },
    );
    assert.deepEqual(media.removed, ['text']);

    const served = await get(media.url);
    assert.equal(served.status, 200);
    assert.equal(sha256(served.bytes), media.sha256);
    assert.equal(served.bytes.length, media.bytes);
    assert.ok(!served.bytes.includes('secret'));
    const { headers } = served;
    assert.deepEqual(
      [
        headers['content-type'],
        headers['x-content-type-options'],
        headers['content-security-policy'],
        headers['cross-origin-resource-policy'],
        headers['cache-control'],
        headers['accept-ranges'],
      ],
      [
        'image/png',
        'nosniff',
        "default-src 'none'; sandbox",
        'cross-origin',
        'public, max-age=86400',
        undefined,
      ],
    );
    const head = await open(the(), media.url, { method: 'HEAD' });
    assert.deepEqual(
      [head.status, head.headers['content-length'], head.bytes.length],
      [200, String(media.bytes), 0],
    );
    const known = await get(media.url, { 'if-none-match': String(headers['etag']) });
    assert.deepEqual([known.status, known.bytes.length, known.headers['etag']], [304, 0, headers['etag']]);
    assert.equal((await get(media.url, { range: 'bytes=0-3' })).bytes.length, media.bytes);

    // As it was sent and as it is stored: the same picture.
    for (const again of [bytes, served.bytes]) {
      const repeated = assertOk(await send(again));
      assert.equal(repeated.at('media.id'), media.id);
      assert.equal(repeated.at('media.alt'), 'A square.');
      for (const hash of [sha256(again), sha256(again).toUpperCase()])
        assert.deepEqual(
          (await ada.client.listMedia({ sha256: hash })).media.map(({ id }) => id),
          [media.id],
        );
    }
    assert.equal((await get(`${ada.blogUrl}/media/${media.name.toUpperCase()}`)).status, 301);
    for (const other of [
      'media',
      `media/${'0'.repeat(32)}.png`,
      `media/${media.name.replace('png', 'gif')}`,
      'media/../media',
    ])
      assert.equal((await get(`${ada.blogUrl}/${other}`)).status, 404, other);
  });

  test('says how it was made, also where it was uploaded before without that', async () => {
    const source = chunk('iTXt', 'XML:com.adobe.xmp\0\0\0\0\0', xmp());
    const bare = (await ada.client.uploadMedia(Buffer.from(png([], [], 21)), { type: 'image/png' })).media;
    const answer = assertOk(await send(png([source], [], 21)));
    const made = 'http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia';
    const seen = [bare.digitalSourceType, answer.at('media.id'), answer.at('media.digitalSourceType')];
    assert.deepEqual(seen, [null, bare.id, made]);
    assert.equal((await ada.client.getMedia(bare.id)).media.digitalSourceType, made);
    assertOk(await send(png([], [], 21)));
    assert.equal((await ada.client.getMedia(bare.id)).media.digitalSourceType, made);
  });

  test('is listed, described and deleted; nobody else can', async () => {
    const [one, two] = [await upload(), await upload()];
    const [newest, next] = (await ada.client.listMedia({ limit: 2 })).media;
    assert.deepEqual([newest?.id, next?.id], [two.id, one.id]);
    const { nextCursor } = await ada.client.listMedia({ limit: 1 });
    assert.equal((await ada.client.listMedia({ limit: 1, cursor: nextCursor ?? '' })).media[0]?.id, one.id);
    const { removed: _removed, ...described } = one;
    assert.deepEqual((await ada.client.getMedia(one.id)).media, described);
    const changed = await ada.client.updateMedia(one.id, { alt: 'A [b] *c*' });
    assert.deepEqual([changed.changed, changed.media.alt], [true, 'A [b] *c*']);
    assert.equal(changed.media.markdown, String.raw`![A \[b\] \*c\*](media/${one.name})`);
    assert.equal((await ada.client.updateMedia(one.id, { alt: 'A [b] *c*' })).changed, false);
    assert.equal((await ada.client.updateMedia(one.id, { alt: null })).media.alt, null);
    for (const alt of ['x'.repeat(1_001), 'a\nb', 'a\u202eb'])
      assertProblem(
        await the().call('PATCH', `/api/media/${one.id}`, { key: ada.key, body: { alt } }),
        'invalid_input',
      );
    const leaked = { key: ada.key, body: { alt: `see ${ada.key}` } };
    assertProblem(await the().call('PATCH', `/api/media/${one.id}`, leaked), 'leaked_key');
    for (const [method, body] of [['GET'], ['PATCH', { alt: 'x' }], ['DELETE']] as const) {
      const options = { key: bob.key, ...(body === undefined ? {} : { body }) };
      assertProblem(await the().call(method, `/api/media/${one.id}`, options), 'not_found');
      assertProblem(await the().call(method, `/api/media/${one.id}`, body ? { body } : {}), 'unauthorized');
    }
    await ada.client.deleteMedia(one.id);
    assert.equal((await get(one.url)).status, 404);
    await assert.rejects(ada.client.deleteMedia(one.id), { code: 'not_found' });
    assert.equal((await get(two.url)).status, 200);
  });

  test('that a published post shows is deleted only by force', async () => {
    const { id: mediaId, markdown: content } = await upload();
    const show = async (title: string, status: 'draft' | 'published') =>
      (await ada.client.publish({ title, content, status })).post;
    const unused = async () => (await ada.client.listMedia({ unused: true })).media.map(({ id }) => id);
    assert.ok((await unused()).includes(mediaId));
    await show('Draft with a picture', 'draft');
    assert.ok(!(await unused()).includes(mediaId));
    const posts: Awaited<ReturnType<typeof show>>[] = [];
    for (let n = 0; n < 11; n++) posts.push(await show(`Shows ${n}`, 'published'));
    const refused = assertProblem(
      await the().call('DELETE', `/api/media/${mediaId}`, { key: ada.key }),
      'in_use',
    );
    const named = refused.at('posts') as { id: string; title: string; url: string }[];
    assert.equal(named.length, 10);
    for (const { id, title, url } of named) {
      const post = posts.find((one) => one.id === id);
      assert.deepEqual([post?.title, post?.url], [title, url]);
    }
    await ada.client.deleteMedia(mediaId, { force: true });
    assert.ok(!(await unused()).includes(mediaId));
  });

  test('of another type, cut off, empty or too large is refused, and leaves nothing behind', async () => {
    const bytes = makePng();
    for (const type of ['image/jpeg', 'image/gif', 'image/webp'])
      assertProblem(await send(bytes, { 'content-type': type }), 'unsupported_media_type');
    for (const type of [
      'image/svg+xml',
      'png',
      'image/jpg',
      'application/json',
      'multipart/form-data; boundary=x',
      'text/markdown',
    ]) {
      const answer = assertProblem(await send(bytes, { 'content-type': type }), 'unsupported_media_type');
      for (const accepted of ['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
        assert.ok(String(answer.at('detail')).includes(accepted), answer.text);
      if (type === 'image/svg+xml') assert.match(String(answer.at('hint')), /convert it to PNG/);
    }
    const unreadable = assertProblem(
      await send(bytes, { 'content-type': 'image' }),
      'unsupported_media_type',
    );
    assert.match(String(unreadable.at('hint')), /a picture with its own type/);
    assertProblem(await send(bytes, { ...ofPng, 'content-encoding': 'gzip' }), 'unsupported_media_type');
    assertProblem(await send(bytes.subarray(0, -20)), 'invalid_media');
    assertProblem(await send(''), 'invalid_media');
    assertProblem(await send(makeLargePng(2_100_000)), 'too_large');
    assertProblem(await send(bytes, ofPng, '', 'nobody'), 'unauthorized');
    assertProblem(await send(bytes, ofPng, `?alt=${'x'.repeat(1_001)}`), 'invalid_input');
    assertProblem(await send(bytes, ofPng, `?alt=${ada.key}`), 'leaked_key');
    assertOk(await send(makeLargePng(1_900_000)), 201);
    assert.deepEqual(await readdir(join(folder(), 'tmp')), []);
  });

  test('is as large as it may be to the byte, and whole', async () => {
    const most = 2_000_000;
    const sized = (bytes: number) => {
      const padded = (length: number) => png([chunk('tEXt', Buffer.alloc(length, 'x'))]);
      return padded(bytes - padded(0).length);
    };
    assertOk(await send(sized(most)), 201);
    assertProblem(await send(sized(most + 1)), 'too_large');
    const agent = { id: ada.id, slug: ada.slug };
    const taken = async (bytes: Buffer, stated: number | null) => {
      async function* body() {
        yield bytes.subarray(0, 1_000);
        yield bytes.subarray(1_000);
      }
      return uploadPicture(the().ctx(), {
        agent,
        alt: '',
        type: 'image/png',
        typeName: 'Content-Type',
        stated,
        body: body(),
      });
    };
    // Also where the client does not say how much it is.
    await taken(sized(most), null);
    await assert.rejects(taken(sized(most + 1), null), { code: 'too_large' });
    await assert.rejects(taken(sized(5_000), 5_001), /closed before the whole picture had come/);
  });

  test('of two agents is one file, of which neither learns; it goes a day after the last of both', async () => {
    const bytes = makePng();
    const [of, also] = [await upload(bytes), await upload(bytes, bob)];
    assert.equal(of.name, also.name);
    assert.notEqual(of.id, also.id);
    assertOk(await send(bytes, ofPng, '', bob.key));
    await ada.client.deleteMedia(of.id);
    assert.deepEqual([(await get(of.url)).status, (await get(also.url)).status], [404, 200]);
    await bob.client.deleteMedia(also.id);
    const { engine } = the().ctx();
    await engine.write(removeOrphaned, null);
    assert.ok(await isStored(of.sha256));
    the().clock.advance(day);
    await engine.write(removeOrphaned, null);
    assert.ok(!(await isStored(of.sha256)));
    assertOk(await send(bytes), 201);
    assert.ok(await isStored(of.sha256));
  });

  test('leaves no more than is due for the next sweep, however many files wait', async () => {
    const { engine } = the().ctx();
    while ((await engine.write(removeOrphaned, null)).more);
    const hashes = Array.from({ length: 20 }, (_, n) => sha256(Buffer.from(`waits ${n}`)));
    for (const hash of hashes) await engine.write(claimFile, { agentId: ada.id, sha256: hash, bytes: 1 });
    // Else housekeeping would sweep without end, for a day.
    assert.equal((await engine.write(removeOrphaned, null)).more, false);
    the().clock.advance(day);
    assert.equal((await engine.write(removeOrphaned, null)).more, true);
    assert.equal((await engine.write(removeOrphaned, null)).more, false);
  });

  test('that cannot be removed holds up no other erasure, and is tried again a day later', async () => {
    const leaver = await the().agent('Leaver');
    const [stuck, other] = [await upload(makePng(), leaver), await upload(makePng(), leaver)];
    const place = join(folder(), stuck.sha256.slice(0, 2), stuck.sha256.slice(2, 4), stuck.sha256);
    const orphan = async () => {
      const { db } = the().ctx();
      const rows = db.selectFrom('media_blobs').select('orphaned_at');
      return (await rows.where('sha256', '=', stuck.sha256).executeTakeFirst())?.orphaned_at;
    };
    for (const { id } of [stuck, other]) await leaver.client.deleteMedia(id);
    await leaver.client.deleteMe();
    const since = await orphan();
    await rm(place);
    await mkdir(place);
    the().clock.advance(8 * day);
    // Housekeeping may have come before.
    const failed = await expire(the().ctx(), goOn).then(() => null, String);
    assert.equal(await isStored(other.sha256), false);
    await assert.rejects(leaver.client.me(), { code: 'unauthorized' });
    assert.ok(String(await orphan()) > String(since));
    assert.match(failed ?? the().log(), /EISDIR|EPERM|is a directory|"level":"warn"[^\n]*was not erased/);
    await rm(place, { recursive: true });
    the().clock.advance(day);
    await expire(the().ctx(), goOn);
    assert.equal(await orphan(), undefined);
  });

  test('is one of 5,000 of an agent at most', async () => {
    const eve = await the().agent('Hoarder');
    const { id } = await upload(makePng(), eve);
    const rows = 'with recursive n (n) as (select 1 union all select n + 1 from n where n < 4998)';
    const own = 'type, width, height, bytes, animated, created_at, agent_id, sent_sha256';
    await onDatabase(
      the().ctx(),
      `insert into media (id, name, sha256, ${own}) ${rows} select 'x' || n, 'x' || n, 'x' || n, ${own} from media, n where id = '${id}'`,
    );
    const last = makePng();
    await upload(last, eve);
    const refused = assertProblem(await send(makePng(), ofPng, '', eve.key), 'quota_exceeded');
    assert.match(String(refused.at('detail')), /^You have 5000 pictures; one agent may have 5000\./);
    assertOk(await send(last, ofPng, '', eve.key));
    await onDatabase(the().ctx(), `delete from media where id like 'x%'`);
  });

  test('leaves no file open where its head alone is asked for', async (t) => {
    const media = await upload();
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`).endsWith(media.sha256);
        } catch {
          return false;
        }
      });
    if (!existsSync('/proc/self/fd')) return t.skip('nothing here says what is open');
    const head = await open(the(), media.url, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers['content-length']], [200, String(media.bytes)]);
    assert.equal(isOpen(), false);
  });

  test('goes with its agent', async () => {
    const eve = await the().agent('Eve');
    const [own, shared] = [makePng(), makePng()];
    const [alone, both] = [await upload(own, eve), await upload(shared, eve)];
    await upload(shared);
    await eve.client.deleteMe({ confirm: 'eve' });
    assert.equal((await get(alone.url)).status, 410);
    the().clock.advance(day);
    await the().ctx().engine.write(removeOrphaned, null);
    assert.deepEqual([await isStored(alone.sha256), await isStored(both.sha256)], [false, true]);
  });

  test('of which only the file is left is swept, and so is what was never finished; what is new stays', async () => {
    const { sha256: hash } = await upload();
    const lost = 'ab'.repeat(32);
    const place = join(folder(), 'ab', 'ab');
    const store = createPictureStore(folder());
    const draft = await store.begin('kept');
    await draft.write(Buffer.from('x'));
    await draft.keep(lost);
    await draft.close();
    // What is sent has all that cameras write into it.
    const sent = await store.begin('passing');
    await sent.write(Buffer.from('xyz'));
    assert.deepEqual(await readdir(join(folder(), 'tmp')), []);
    assert.deepEqual([sent.size(), String(await sent.read(1, 2))], [3, 'yz']);
    await sent.close();
    const unfinished = join(folder(), 'tmp', 'left');
    await writeFile(unfinished, 'x');
    const now = the().clock.now() / 1000;
    await utimes(unfinished, now, now);
    // However old it is: the folder may be that of another database too.
    await utimes(join(place, lost), 0, 0);
    await sweepFiles(the().ctx(), goOn);
    await the().ctx().engine.write(removeOrphaned, null);
    assert.ok((await stat(unfinished)).isFile());
    assert.deepEqual(await readdir(place), [lost]);
    the().clock.advance(2 * day);
    await sweepFiles(the().ctx(), goOn);
    await the().ctx().engine.write(removeOrphaned, null);
    await assert.rejects(stat(unfinished));
    assert.deepEqual(await readdir(place), []);
    assert.ok(await isStored(hash));
  });

  test('that the last two agents lost at the same moment leaves no file behind', async () => {
    const [left, kept] = [await upload(), await upload()];
    // As erasures that do not see each other leave it.
    await onDatabase(the().ctx(), `delete from media where id = '${left.id}'`);
    await sweepFiles(the().ctx(), goOn);
    the().clock.advance(day);
    await the().ctx().engine.write(removeOrphaned, null);
    assert.deepEqual([await isStored(left.sha256), await isStored(kept.sha256)], [false, true]);
  });

  test('is gone while its agent is suspended, or the operator blocks it', async () => {
    const media = await upload();
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'ada', reason: 'Spam.' });
    assert.equal((await get(media.url)).status, 410);
    assertProblem(await send(makePng()), 'suspended');
    await engine.write(restoreAgent, { slug: 'ada' });
    assert.equal((await get(media.url)).status, 200);

    const next = makePng({ text: 'x' });
    for (const value of [media.sha256, sha256(next)])
      await engine.write(blockSource, { kind: 'media', value });
    assert.equal((await get(media.url)).status, 410);
    assertProblem(await send(next), 'blocked_media');
    for (const { id } of await listSourceBlocks(the().ctx(), ['media']))
      await engine.write(setSourceBlock, { id, isOn: false });
    assert.equal((await get(media.url)).status, 200);
    assertOk(await send(next), 201);
  });

  test('cannot be stored or shown while the folder is away, and pages stand', async () => {
    const media = await upload();
    await rename(folder(), `${folder()}-away`);
    try {
      const refused = assertProblem(await send(makePng()), 'unavailable');
      assert.ok(refused.headers['retry-after']);
      assert.equal((await get(media.url)).status, 503);
      assert.equal((await get(ada.blogUrl)).status, 200);
      await sweepFiles(the().ctx(), goOn);
    } finally {
      await rename(`${folder()}-away`, folder());
    }
    assert.equal((await get(media.url)).status, 200);
    // The same picture again puts back a file that was lost.
    const path = join(folder(), media.sha256.slice(0, 2), media.sha256.slice(2, 4), media.sha256);
    const bytes = (await get(media.url)).bytes;
    await rm(path);
    assert.equal((await get(media.url)).status, 503);
    assertOk(await send(bytes));
    assert.equal((await get(media.url)).status, 200);
  });

  test('is not taken beyond two of an agent at once, which costs no call', async () => {
    const bytes = makePng();
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // Bodies that do not end until they may.
    const waiting = gates.map(({ promise }) => slowUpload(bytes, promise));
    await Promise.all(waiting.map(({ begun }) => begun));
    const refused = assertProblem(await untilRefused(() => send(makePng())), 'unavailable');
    assert.match(String(refused.at('detail')), /2 pictures/);
    assertOk(await send(makePng(), ofPng, '', bob.key), 201);
    for (const { resolve } of gates) resolve();
    const statuses = await Promise.all(waiting.map(({ status }) => status));
    assert.ok(
      statuses.every((status) => status === 200 || status === 201),
      String(statuses),
    );
    assertOk(await send(makePng()), 201);
  });

  /** An upload whose last byte waits; `begun` once its first ones are sent. */
  function slowUpload(bytes: Buffer, gate: Promise<void>) {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    async function* body() {
      yield bytes.subarray(0, -1);
      resolve();
      await gate;
      yield bytes.subarray(-1);
    }
    const ask = async (): Promise<number> => {
      const answer = await fetch(`${the().baseUrl}/api/media`, {
        method: 'POST',
        headers: { ...ofPng, authorization: `Bearer ${ada.key}` },
        body: ReadableStream.from(body()),
        duplex: 'half',
      });
      // Another upload came before it and had its place.
      return answer.status === 503 ? ask() : answer.status;
    };
    return { begun, status: ask() };
  }

  /** Sent bytes may not have arrived: asks until both uploads have taken their places. */
  async function untilRefused(ask: () => ReturnType<typeof send>) {
    for (;;) {
      const answer = await ask();
      if (answer.status !== 201) return answer;
    }
  }
});

test('quotas: bytes, less of a new agent, and none of it for a repeat', async () => {
  const instance = await startInstance({
    env: { QUOTA_MEDIA: '3000', QUOTA_MEDIA_NEW: '1000', TRUST_AFTER_DAYS: '3' },
  });
  try {
    const { client } = await instance.agent('Ada');
    const send = (bytes: Buffer<ArrayBuffer>) => client.uploadMedia(bytes, { type: 'image/png' });
    const first = makePng({ width: 15, height: 15 });
    await send(first);
    const second = makePng({ width: 15, height: 15 });
    await assert.rejects(send(second), {
      code: 'quota_exceeded',
      message: /until 3 days after it was verified/,
    });
    await send(first);
    instance.clock.advance(3 * day);
    await send(second);
    await send(makePng({ width: 15, height: 15 }));
    const files = () => readdir(join(instance.dataDir, 'media'), { recursive: true });
    const stays = await files();
    await assert.rejects(send(makePng({ width: 20, height: 15 })), { code: 'quota_exceeded' });
    // What is refused takes no place on the disk.
    assert.deepEqual(await files(), stays);
    await client.deleteMedia((await client.listMedia()).media[0]?.id ?? '');
    const { media } = await client.listMedia();
    const left = 3000 - media.reduce((sum, { bytes }) => sum + bytes, 0);
    const last = makePng({ width: 15, height: 15 });
    const { media: stored } = await send(last);
    await instance.restart({ QUOTA_MEDIA: String(3000 - left + last.length) });
    // A repeat needs no place, where there is not a byte left.
    assert.deepEqual((await send(last)).media, stored);
    await assert.rejects(send(makePng({ width: 1, height: 1 })), { code: 'quota_exceeded' });
  } finally {
    await instance.close();
  }
});

test('what is deleted stays on the disk for a day, so an agent can delete as much as it may have', async () => {
  const instance = await startInstance({ env: { QUOTA_MEDIA_NEW: '1000' } });
  try {
    const { client } = await instance.agent('Ada');
    const sendAndDelete = async () => {
      const { media } = await client.uploadMedia(makePng({ width: 15, height: 15 }), { type: 'image/png' });
      await client.deleteMedia(media.id);
    };
    await assert.rejects(client.uploadMedia(makePng({ width: 40, height: 40 }), { type: 'image/png' }), {
      message: /^Your pictures would hold \d{4} bytes/,
    });
    await sendAndDelete();
    const deleteAll = async () => {
      for (let n = 0; n < 10; n++) await sendAndDelete();
    };
    await assert.rejects(deleteAll, { code: 'quota_exceeded', message: /stays on the disk for a day/ });
    const store = createPictureStore(join(instance.dataDir, 'media'));
    const onDisk = async () => {
      const lengths: number[] = [];
      for await (const hashes of store.all())
        for (const hash of hashes) lengths.push((await store.lengthOf(hash)) ?? 0);
      return lengths;
    };
    const lengths = await onDisk();
    assert.ok(lengths.reduce((sum, length) => sum + length) <= 1000, String(lengths));
    // Others are not held up.
    await (await instance.agent('Bob')).client.uploadMedia(makePng(), { type: 'image/png' });
    instance.clock.advance(day + 1000);
    await instance.ctx().engine.write(removeOrphaned, undefined);
    await sendAndDelete();
    assert.equal((await onDisk()).length, 2);
  } finally {
    await instance.close();
  }
});

test('a read-only service shows pictures, and takes and deletes none', async () => {
  const instance = await startInstance();
  try {
    const { client, key } = await instance.agent('Ada');
    const { media } = await client.uploadMedia(makePng(), { type: 'image/png' });
    await instance.restart({ READ_ONLY: 'on' });
    assert.equal((await open(instance, media.url)).status, 200);
    assertProblem(
      await instance.call('POST', '/api/media', { key, body: makePng(), headers: ofPng }),
      'read_only',
    );
    assertProblem(await instance.call('DELETE', `/api/media/${media.id}`, { key }), 'read_only');
    assert.equal((await client.listMedia()).media.length, 1);
  } finally {
    await instance.close();
  }
});

describe('the disk of pictures', () => {
  test('keeps its last twentieth', () => {
    assert.equal(lacksRoom({ bavail: 49, blocks: 1000 }), true);
    assert.equal(lacksRoom({ bavail: 50, blocks: 1000 }), false);
  });
});

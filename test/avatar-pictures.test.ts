import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import { before, test } from 'node:test';
import { blockSource, listSourceBlocks, setSourceBlock } from '../src/services/trust/source-blocks.ts';
import { htmlGuard } from '../src/web/cache/page.ts';
import { assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';
import { png } from './support/pictures.ts';

describeInstances('an uploaded picture of an agent', {}, (the, variant) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
  });

  type Media = { id: string; name: string; url: string };
  const upload = async (width: number, { key } = ada): Promise<Media> => {
    const body = png([], [], width, 4);
    const headers = { 'content-type': 'image/png' };
    const answer = await the().call('POST', '/api/media', { key, body, headers });
    return (answer.json() as { media: Media }).media;
  };
  const set = (avatarUrl: string | null, { key } = ada) =>
    the().call('PATCH', '/api/me', { key, body: { avatarUrl } });
  const image = ({ url }: Media) => `src="${url}"`;
  const pageOf = async (url: string) => (await open(the(), url)).text;

  test('is taken in both forms, kept relative and answered as an absolute address', async () => {
    const media = await upload(20);
    for (const given of [`media/${media.name}`, `./media/${media.name}`, media.url]) {
      await set(null);
      const answer = await set(given);
      assert.equal(answer.at('agent.avatarUrl'), media.url, answer.text);
      const row = await the()
        .ctx()
        .db.selectFrom('agents')
        .select('avatar_url')
        .where('id', '=', String(answer.at('agent.id')))
        .executeTakeFirstOrThrow();
      assert.equal(row.avatar_url, `media/${media.name}`);
    }
    assert.equal((await the().call('GET', '/api/me', { key: ada.key })).at('agent.avatarUrl'), media.url);
  });

  test('is refused where it is not one’s own', async () => {
    const [own, other] = [await upload(21), await upload(22, bob)];
    for (const given of [
      `media/${other.name}`,
      other.url,
      own.url.replace(own.name, 'ada.png'),
      'media/ada.png',
      `${ada.blogUrl}/media/more/${own.name}`,
    ]) {
      const answer = await set(given);
      assertProblem(answer, 'invalid_input');
      assert.match(answer.text, /is not a picture of your own/, given);
    }
    const elsewhere = 'https://example.com/media/ada.png';
    assert.equal((await set(elsewhere)).at('agent.avatarUrl'), elsewhere);
    if (variant === 'subdomain') return;
    for (const avatarUrl of [own.url.replace('http:', 'https:'), `media/${own.name}`, './media/ada.png']) {
      const body = { email: 'new@example.com', name: 'New', avatarUrl };
      const answer = assertProblem(await the().call('POST', '/api/register', { body }), 'invalid_input');
      assert.match(answer.text, /pictures can be uploaded once the agent is verified/);
    }
  });

  test('is the drawn mark for pages while it is blocked or its file is away, and a failure for all else', async () => {
    const [media, other] = [await upload(24), await upload(25)];
    await set(media.url);
    const { media: row } = await ada.client.getMedia(media.id);
    const ask = (url: string, headers = {}) => open(the(), url, { headers });
    const asImage = { accept: 'image/avif,image/webp,*/*;q=0.8' };
    const ctx = the().ctx();
    const folder = ctx.config.media.dir;
    for (const [status, begin, end] of [
      [
        410,
        () => ctx.engine.write(blockSource, { kind: 'media', value: row.sha256 }),
        async () => {
          for (const { id } of await listSourceBlocks(ctx, ['media']))
            await ctx.engine.write(setSourceBlock, { id, isOn: false });
        },
      ],
      [503, () => rename(folder, `${folder}-away`), () => rename(`${folder}-away`, folder)],
    ] as const) {
      await begin();
      try {
        for (const headers of [asImage, { 'sec-fetch-dest': 'image' }]) {
          const shown = await ask(media.url, headers);
          assert.deepEqual([shown.status, shown.headers['content-type']], [status, 'image/svg+xml']);
          assert.match(shown.text, /^<svg [^]*<\/svg>$/);
          assert.equal(shown.headers['cache-control'], 'no-store');
          assert.equal(shown.headers['content-security-policy'], "default-src 'none'; sandbox");
        }
        const plain = await ask(media.url);
        assert.equal(plain.status, status);
        assert.doesNotMatch(String(plain.headers['content-type']), /image/);
        const [element = ''] = /<img[^>]*u-photo[^>]*>/.exec(await pageOf(ada.blogUrl)) ?? [];
        assert.ok(element.includes(image(media)));
        if (status === 503)
          assert.doesNotMatch(String((await ask(other.url, asImage)).headers['content-type']), /image/);
      } finally {
        await end();
      }
      assert.equal((await ask(media.url, asImage)).headers['content-type'], 'image/png');
    }
  });

  test('may be loaded by the pages of others, over http only from the blogs of the service', async () => {
    const policyOf = (baseUrl: string) => {
      const { config } = the().ctx();
      const site = { ...config.site, baseUrl, blogDomain: new URL(baseUrl).host };
      const [, sources = ''] =
        /img-src ([^;]*)/.exec(String(htmlGuard({ ...config, site })['Content-Security-Policy'])) ?? [];
      return sources;
    };
    const usual = "'self' https: data:";
    assert.equal(policyOf('https://masthead.example'), usual);
    const expected = variant === 'subdomain' ? `${usual} http://*.localhost:3000` : usual;
    assert.equal(policyOf('http://localhost:3000'), expected);
    const { headers } = await open(the(), `${the().baseUrl}/`);
    const here = variant === 'subdomain' ? ` http://*.localhost:${the().port}` : '';
    assert.ok(String(headers['content-security-policy']).includes(`${usual}${here};`));
  });

  test('is shown wherever the agent has a mark, until it is deleted by force', async () => {
    const media = await upload(23);
    await set(media.url);
    const his = (await bob.client.publish({ title: 'His', content: 'c', status: 'published' })).post;
    const hers = (await ada.client.publish({ title: 'Hers', content: 'c', status: 'published' })).post;
    const pages = [hers.url, ada.blogUrl];
    if (variant === 'subdomain') {
      await ada.client.addComment(his.id, 'From Ada');
      pages.push(his.url, `${the().baseUrl}/`, `${the().baseUrl}/blogs`);
    }
    for (const url of pages) {
      const [element = ''] = /<img[^>]*u-photo[^>]*>/.exec(await pageOf(url)) ?? [];
      assert.ok(element.includes(image(media)), url);
      assert.match(element, /width="40"\s+height="40"/);
    }
    const feed = JSON.parse(await pageOf(`${ada.blogUrl}/feed.json`)) as { icon: string };
    assert.equal(feed.icon, media.url);
    const unused = await the().call('GET', '/api/media?unused=true', { key: ada.key });
    assert.ok(!unused.text.includes(media.name), unused.text);
    const refused = await the().call('DELETE', `/api/media/${media.id}`, { key: ada.key });
    assertProblem(refused, 'in_use');
    assert.match(refused.text, /shown by your profile/);
    const path = `/api/media/${media.id}?force=true`;
    assert.equal((await the().call('DELETE', path, { key: ada.key })).status, 200);
    assert.equal((await the().call('GET', '/api/me', { key: ada.key })).at('agent.avatarUrl'), null);
    for (const url of pages) assert.ok(!(await pageOf(url)).includes(media.name), url);
  });
});

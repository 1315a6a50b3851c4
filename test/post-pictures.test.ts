import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { describeInstances, assertOk, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';
import { chunk, png, xmp } from './support/pictures.ts';

describeInstances('a post with pictures of its own', {}, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
  });

  type Media = { id: string; name: string; url: string; markdown: string };
  const upload = async (
    width: number,
    { alt = '', agent = ada, chunks = [] as Buffer[] } = {},
  ): Promise<Media> => {
    const query = alt === '' ? '' : `?alt=${encodeURIComponent(alt)}`;
    const body = png(chunks, [], width, 4);
    const answer = await the().call('POST', `/api/media${query}`, {
      key: agent.key,
      body,
      headers: { 'content-type': 'image/png' },
    });
    assert.ok([200, 201].includes(answer.status), answer.text);
    return (answer.json() as { media: Media }).media;
  };
  const publish = async (fields: Record<string, unknown>, agent = ada) => {
    const body = { status: 'published', ...fields };
    const answer = await the().call('POST', '/api/publish', { key: agent.key, body });
    assert.ok([200, 201].includes(answer.status), answer.text);
    return answer;
  };
  const pageOf = async (url: string) => (await open(the(), url)).text;
  const inUse = async ({ id }: Media) =>
    (await the().call('DELETE', `/api/media/${id}`, { key: ada.key })).status === 409;

  test('shows them with address, size and text, on its page, in feeds and in a dry run', async () => {
    const media = await upload(30, { alt: 'A "wide" <square>' });
    const content = `![](media/${media.name})\n\n![Own & words](./media/${media.name} "A caption")\n\n<img src="media/${media.name}" width="60" alt="Half">`;
    const dry = await the().call('POST', '/api/publish?dryRun=true&html=true', {
      key: ada.key,
      body: { title: 'Dry', content },
    });
    const shown = [
      `<img src="${media.url}" alt="A &quot;wide&quot; &lt;square&gt;" width="30" height="4" loading="lazy" decoding="async"`,
      `<img src="${media.url}" alt="Own &amp; words" title="A caption" width="30" height="4" loading="lazy" decoding="async"`,
      `<img src="${media.url}" alt="Half" width="60" height="8" loading="lazy" decoding="async"`,
    ];
    for (const element of shown) assert.ok(String(dry.at('html')).includes(element), String(dry.at('html')));
    const answer = await publish({ title: 'Pictures', content });
    assert.deepEqual(answer.at('warningCodes'), []);
    const url = String(answer.at('post.url'));
    const page = await pageOf(url);
    for (const element of shown) assert.ok(page.includes(element), page);
    assert.match(page, /<figcaption>A caption<\/figcaption>/);
    assert.ok(page.includes(`<meta property="og:image" content="${media.url}"`));
    assert.match(page, /<meta property="og:image:width" content="30"/);
    assert.match(page, /<meta property="og:image:height" content="4"/);
    assert.ok(page.includes(`{"@type":"ImageObject","url":"${media.url}","width":30,"height":4}`), page);
    for (const file of ['feed.xml', 'rss.xml'])
      for (const element of shown)
        assert.ok((await pageOf(`${ada.blogUrl}/${file}`)).includes(element), file);
    const feed = JSON.parse(await pageOf(`${ada.blogUrl}/feed.json`)) as {
      items: { content_html: string }[];
    };
    for (const element of shown) assert.ok(feed.items[0]?.content_html.includes(element));
    // What is stored, and what others get of it, stays as it was written.
    const stored = await the().ctx().db.selectFrom('post_bodies').select('html').execute();
    assert.ok(stored.some(({ html }) => html.includes(`<img src="media/${media.name}" alt=""`)));
    assert.ok((await pageOf(`${url}.md`)).includes(`![](media/${media.name})`));
    assert.equal(await inUse(media), true);
  });

  test('leads to them from the markdown of a preview, which is not below the blog', async () => {
    const { name, url } = await upload(29);
    const [path, other] = [`media/${name}`, 'media/notes.png'];
    const content = `![a](${path} "b")[![c](./${path})](https://e.example/${path}) ![d](${other})\n\n![][r]\n\n[r]: <${path}>`;
    const { post } = await ada.client.publish({ title: 'Draft with pictures', content });
    const { previewUrl } = await ada.client.previewPost(post.id);
    const twin = await pageOf(`${previewUrl}.md`);
    const shown = `![a](${url} "b")[![c](${url})](https://e.example/${path}) ![d](${other})\n\n![][r]\n\n[r]: <${url}>`;
    assert.ok(twin.includes(shown), twin);
  });

  test('shows the text of those that there are not, and those of others neither', async () => {
    const other = await upload(31, { agent: bob });
    const content = `![First](media/${other.name})\n\n![Second & more](media/nothing.png)\n\n![](media/none.png)`;
    const answer = await publish({ title: 'Unknown', content });
    assert.deepEqual(answer.at('warningCodes'), ['unknown_media', 'unknown_media', 'unknown_media']);
    const page = await pageOf(String(answer.at('post.url')));
    assert.match(
      page,
      /<p[^>]*>First<\/p>\s*<p[^>]*>Second &amp; more media\/nothing\.png<\/p>\s*<p[^>]*>media\/none\.png<\/p>/,
    );
    assert.doesNotMatch(page, /<img src="[^"]*media/);
  });

  test('shows all words of those that there are not, as the markdown that others read has them', async () => {
    const gone = await upload(20);
    const content = [
      `![One](media/${gone.name} "title-of-one") within a text`,
      `![Two](media/words-as-a-name "title-of-two") within a text`,
      `[![Three][r]](https://e.example/)`,
      `![Four](media/${gone.name} "title-of-four")`,
      `<img src="media/none.png" alt="Five" title="title-of-five">`,
      `[r]: media/none.png "title-of-three"`,
    ].join('\n\n');
    const answer = await publish({ title: 'Titles', content });
    const words = ['one', 'two', 'three', 'four', 'five'].map((name) => `title-of-${name}`);
    words.push('words-as-a-name');
    const url = String(answer.at('post.url'));
    const read = async (path: string) =>
      path.startsWith('/') ? (await the().call('GET', path)).text : pageOf(path);
    for (const time of ['there', 'deleted']) {
      const [page, ...others] = await Promise.all(
        [url, `${url}.md`, `/api/posts/${String(answer.at('post.id'))}`, `${ada.blogUrl}/rss.xml`].map(read),
      );
      for (const word of words) {
        for (const other of others) assert.ok(other.includes(word), `${time}: ${word}`);
        assert.ok(page?.includes(word), `${time}: ${word} is not on the page`);
      }
      if (time === 'there') await ada.client.deleteMedia(gone.id, { force: true });
      else {
        assert.match(page ?? '', />One title-of-one within a text<\/p>/);
        assert.match(page ?? '', /<figure[^>]*>\s*Four\s*<figcaption>title-of-four<\/figcaption>/);
      }
    }
  });

  test('shows one that comes after the post, or once more, and counts it as used', async () => {
    const cover = await upload(27, { agent: bob });
    const other = await upload(28, { agent: bob });
    const fields = { title: 'First', content: `![First](media/${other.name})`, image: `media/${cover.name}` };
    const url = String((await publish(fields)).at('post.url'));
    assert.doesNotMatch(await pageOf(url), /<img src="[^"]*media/);
    const unused = async () =>
      (await ada.client.listMedia({ unused: true, limit: 100 })).media.map(({ name }) => name);
    const isShown = async (src: string) => (await pageOf(url)).includes(`<img src="${src}" alt="First"`);
    for (const time of ['first', 'second']) {
      const late = [await upload(27), await upload(28)];
      assert.equal(late[1]?.name, other.name);
      assert.equal(await isShown(late[1].url), true, time);
      for (const one of late) {
        assert.ok(!(await unused()).includes(one.name), time);
        assert.equal(await inUse(one), true, time);
        await ada.client.deleteMedia(one.id, { force: true });
      }
      assert.equal(await isShown(late[1].url), false, time);
    }
    await publish({ ...fields, content: 'None of them.', image: null });
    const { name } = await upload(28);
    assert.ok((await unused()).includes(name), 'no post names it any more');
  });

  test('counts one that it only links to as used, as a small one does the large one', async () => {
    const [small, large, code] = [await upload(24), await upload(25), await upload(26)];
    const content = `[![Small](media/${small.name})](./media/${large.name}) \`href="media/${code.name}"\``;
    const page = await pageOf(String((await publish({ title: 'Linked', content })).at('post.url')));
    assert.ok(page.includes(`<a href="./media/${large.name}"><img src="${small.url}"`), page);
    const used: boolean[] = [];
    for (const one of [small, large, code]) used.push(await inUse(one));
    assert.deepEqual(used, [true, true, false]);
  });

  test('notes of a post with very many names those of its pictures, and the first of those to come', async () => {
    const here = await upload(22);
    const toCome = await upload(23, { agent: bob });
    const cover = await upload(21, { agent: bob });
    const others = Array.from({ length: 2_000 }, (_, n) => `${n.toString(16).padStart(32, '0')}.png`);
    const content = [toCome.name, ...others, here.name].map((name) => `[a](media/${name})`).join('\n');
    const fields = { title: 'Very many', image: `media/${cover.name}` };
    const noted = async (postId: string) => {
      const rows = the().ctx().db.selectFrom('post_media').select('name').where('post_id', '=', postId);
      return (await rows.execute()).map(({ name }) => name);
    };
    const postId = String((await publish({ ...fields, content })).at('post.id'));
    const names = new Set(await noted(postId));
    assert.equal(names.size, 1_001);
    for (const { name } of [here, toCome, cover]) assert.ok(names.has(name), name);
    for (const width of [21, 22, 23]) assert.equal(await inUse(await upload(width)), true, String(width));
    await publish({ ...fields, slug: 'very-many', content: `${content}\n\nChanged.` });
    assert.equal((await noted(postId)).length, 1_001);
  });

  test('shows nothing of a hostile address or text but that text', async () => {
    const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>';
    const { name, url } = await upload(39, { alt: hostile });
    const paths = [
      `media/../media/${name}`,
      `media/%2e%2e/${name}`,
      `media%2f${name}`,
      `media/${name}%00`,
      `media/${name}/..`,
      `media//${name}`,
      `MEDIA/${name}`,
      `media/${name.toUpperCase()}`,
      `media/${name}?onerror=alert(1)`,
      `media/${name}#"onerror=alert(1)`,
      `media/"onerror="alert(1)`,
      'javascript:alert(1)//media/x.png',
      'JaVaScRiPt:media/x.png',
      'data:text/html,<script>alert(1)</script>',
      'data:image/svg+xml,<svg onload=alert(1)>',
    ];
    const shown = [`media/${name}`, ...paths].flatMap((path) => [
      `![${hostile}](<${path}> "${hostile.replaceAll('"', '')}")`,
      `<img src='${path}' alt='${hostile}' title='${hostile}'>`,
      `![][r]\n\n[r]: <${path}>`,
    ]);
    for (const content of shown) {
      const dry = assertOk(
        await the().call('POST', '/api/publish?dryRun=true&html=true', {
          key: ada.key,
          body: { title: 'Hostile', content },
        }),
      );
      const html = String(dry.at('html'));
      const tags = html.match(/<[a-z][^>]*>/gi) ?? [];
      for (const tag of tags) {
        const bare = tag.replace(/"[^"]*"/g, '""');
        assert.doesNotMatch(bare, /^<(?:script|svg|iframe|object)|\son\w+=/i, `${content}: ${html}`);
        assert.doesNotMatch(tag, /(?:src|href)="\s*(?:javascript|data):/i, `${content}: ${html}`);
        const [, src] = / src="([^"]*)"/.exec(tag) ?? [];
        if (src !== undefined) assert.ok(src === url || /^https?:/.test(src), `${content}: ${html}`);
      }
    }
  });

  test('warns of a text that is missing here and where it was uploaded', async () => {
    const [bare, described] = [await upload(32), await upload(33, { alt: 'Waves' })];
    const answer = await publish({
      title: 'Undescribed',
      content: `![](media/${bare.name}) ![ok](media/${bare.name}) ![](media/${described.name})`,
    });
    assert.deepEqual(answer.at('warningCodes'), ['missing_alt']);
    assert.match(String(answer.at('warnings.0')), new RegExp(bare.name));
    const comment = await publish({ title: 'Described', content: `![ok](media/${bare.name})` });
    assert.deepEqual(comment.at('warningCodes'), []);
  });

  test('is in use by a post while that shows it, in its present text', async () => {
    const [one, two] = [await upload(34), await upload(35)];
    const show = (media: Media) => ({
      slug: 'changing',
      title: 'Changing',
      content: `![x](media/${media.name})`,
    });
    const answer = await publish(show(one));
    const id = String(answer.at('post.id'));
    await publish(show(two));
    assert.deepEqual([await inUse(two)], [true]);
    assert.equal(await inUse(one), false);
    // What is restored shows the text of a picture that is gone.
    const restored = await ada.client.restoreRevision(id, 1);
    assert.deepEqual(restored.warningCodes, ['unknown_media']);
    await publish(show(two));
    const url = String(answer.at('post.url'));
    assert.ok((await pageOf(url)).includes(two.url));
    assertOk(await the().call('DELETE', `/api/media/${two.id}?force=true`, { key: ada.key }));
    const page = await pageOf(url);
    assert.ok(!page.includes(two.name));
    assert.match(page, /<p[^>]*>x<\/p>/);
  });

  test('says how a picture was made, where its file does', async () => {
    const made = chunk('iTXt', 'XML:com.adobe.xmp\0\0\0\0\0', xmp());
    const media = await upload(36, { alt: 'A heron', chunks: [made] });
    const answer = await publish({ title: 'Herons', content: `Text.\n\n![](media/${media.name})` });
    const page = await pageOf(String(answer.at('post.url')));
    const draft = await publish({ title: 'Draft', content: `![](media/${media.name})`, status: 'draft' });
    const preview = await the().call('POST', `/api/posts/${String(draft.at('post.id'))}/preview`, {
      key: ada.key,
    });
    assert.ok(
      (await pageOf(String(preview.at('previewUrl')))).includes(`<img src="${media.url}" alt="A heron"`),
    );
    assert.match(page, /A heron<\/a>:\s+trained algorithmic media/);
    assert.ok(
      page.includes(
        '"width":36,"height":4,"digitalSourceType":"http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"',
      ),
    );
  });

  test('is shown by the picture that its author chose, in previews and feeds', async () => {
    const [cover, inText] = [await upload(37, { alt: 'The cover' }), await upload(38)];
    const content = `![In the text](media/${inText.name})`;
    const answer = await publish({
      title: 'Covered',
      content,
      image: `./media/${cover.name}`,
      status: 'draft',
    });
    assert.deepEqual([answer.at('post.image'), answer.at('warningCodes')], [`media/${cover.name}`, []]);
    await publish({ slug: 'covered' });
    const url = String(answer.at('post.url'));
    const page = await pageOf(url);
    assert.ok(page.includes(`<meta property="og:image" content="${cover.url}"`));
    assert.match(page, /<meta property="og:image:width" content="37"/);
    assert.match(page, /<meta property="og:image:alt" content="The cover"/);
    assert.ok(page.includes(`"image":{"@type":"ImageObject","url":"${cover.url}","width":37,"height":4}`));
    const { bytes } = (await the().call('GET', `/api/media/${cover.id}`, { key: ada.key })).at('media') as {
      bytes: number;
    };
    const enclosures = {
      'feed.xml': `<link rel="enclosure" type="image/png" length="${bytes}" href="${cover.url}"/>`,
      'rss.xml': `<enclosure url="${cover.url}" length="${bytes}" type="image/png"/>`,
      'feed.json': `"image":"${cover.url}"`,
    };
    for (const [file, expected] of Object.entries(enclosures))
      assert.ok((await pageOf(`${ada.blogUrl}/${file}`)).includes(expected), file);
    assert.match(await pageOf(`${url}.md`), new RegExp(`image: "media/${cover.name}"`));
    assert.deepEqual([await inUse(cover), await inUse(inText)], [true, true]);
    // Without one it is the first of the text, and the other can go.
    await publish({ slug: 'covered', image: null });
    assert.ok((await pageOf(url)).includes(`<meta property="og:image" content="${inText.url}"`));
    assert.deepEqual([await inUse(cover), await inUse(inText)], [false, true]);
    const gone = await publish({ slug: 'covered', image: `media/${cover.name}` });
    assert.deepEqual(gone.at('warningCodes'), ['unknown_media']);
    assert.ok((await pageOf(url)).includes(`<meta property="og:image" content="${inText.url}"`));
    for (const image of ['https://a.example/b.png', 'media/b.png', 'media/../x', '']) {
      const refused = await the().call('POST', '/api/publish', {
        key: ada.key,
        body: { slug: 'covered', image },
      });
      assert.deepEqual([refused.status, refused.at('errors.0.field')], [400, 'image'], image);
    }
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeComment } from '../src/services/community/engagement.ts';
import { featurePost, restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';
import { onDatabase } from './support/on-database.ts';
import { open } from './support/pages.ts';

const hour = 3_600_000;
const subdomain = { variants: ['subdomain'], env: { LIMIT_COMMENT: '0' } } as const;

async function publish({ client }: TestAgent, title: string) {
  return (await client.publish({ title, content: 'c', status: 'published', tags: ['news'] })).post;
}

const commentsIn = (html: string) => Array.from(html.matchAll(/id="comment-([^"]*)"/g), ([, id = '']) => id);

describeInstances('pictures of agents on other hosts', {}, (the, variant) => {
  test('are loaded on the agent’s own blog only', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const picture = 'https://tracker.example/bob.png';
    await bob.client.updateMe({ avatarUrl: picture });
    const [hers, his] = [await publish(ada, 'Hers'), await publish(bob, 'His')];
    if (variant === 'subdomain') {
      await bob.client.addComment(hers.id, 'From Bob');
      await bob.client.addComment(his.id, 'From Bob');
    }
    const { text: own } = await open(the(), his.url);
    assert.equal(own.match(/<img[^>]*tracker\.example/g)?.length, 1);
    assert.match((await open(the(), bob.blogUrl)).text, /<img[^>]*tracker\.example/);
    const { baseUrl } = the();
    const site = ['/', '/blogs', '/blogs?sort=name', '/search?q=his', '/feed.xml', '/rss.xml', '/feed.json'];
    const others = [
      hers.url,
      ada.blogUrl,
      `${ada.blogUrl}/-/comments/${hers.slug}`,
      ...[...site, '/blogs.opml', '/index.md', '/llms.txt'].map((path) => baseUrl + path),
    ];
    for (const url of others) {
      const page = await open(the(), url);
      assert.ok(page.status === 200 || variant === 'path', url);
      assert.ok(!page.text.includes('tracker.example'), url);
    }
  });
});

describeInstances('comments under a post', subdomain, (the) => {
  const long = `<p>${'x'.repeat(8000)}</p>`;
  const add = (agent: TestAgent, postId: string, html = '<p>c</p>') =>
    the().ctx().engine.write(storeComment, {
      agentId: agent.id,
      postId,
      content: 'c',
      html,
      unseen: null,
      replay: null,
    });

  test('are the newest, within a budget of bytes, and the rest is on pages of their own', async () => {
    const [ada, bob, carol] = [
      await the().agent('Ada'),
      await the().agent('Bob'),
      await the().agent('Carol'),
    ];
    const post = await publish(ada, 'Discussed');
    const first = (await add(carol, post.id)).result.id;
    for (let n = 0; n < 200; n++) await add(bob, post.id, long);
    const page = await open(the(), post.url);
    assert.ok(page.text.length < 150_000, String(page.text.length));
    // One who writes a lot takes no place from others.
    const last = (await add(carol, post.id)).result.id;
    const shown = commentsIn((await open(the(), post.url)).text);
    assert.ok(shown.includes(first) && shown.at(-1) === last, String(shown.length));
    const all = `${ada.blogUrl}/-/comments/discussed`;
    assert.ok(page.text.includes(`href="${all}"`));
    assert.ok(!page.text.includes('/comments">http'));

    const listed: string[] = [];
    for (let url: string | undefined = all; url !== undefined;) {
      const { status, headers, text } = await open(the(), url);
      assert.equal(status, 200);
      assert.match(String(headers['content-type']), /^text\/html/);
      assert.match(text, /<meta name="robots" content="noindex" \/>/);
      assert.ok(text.length < 500_000, String(text.length));
      listed.push(...commentsIn(text));
      url = /<a class="next" rel="next" href="([^"]*)">Newer</.exec(text)?.[1]?.replaceAll('&amp;', '&');
    }
    const { comments } = await the().client().listComments(post.id);
    assert.deepEqual(
      listed,
      comments.map(({ id }) => id),
    );
    assert.equal(listed.length, 202);
  });

  test('of all who wrote are shown, also where one has written a thousand since', async () => {
    const [gail, hugo, ivy] = [
      await the().agent('Gail'),
      await the().agent('Hugo'),
      await the().agent('Ivy'),
    ];
    const post = await publish(gail, 'Crowded');
    const first = (await add(ivy, post.id)).result.id;
    for (let n = 0; n < 1_050; n += 50)
      await Promise.all(Array.from({ length: 50 }, () => add(hugo, post.id, 'Again.')));
    const shown = commentsIn((await open(the(), post.url)).text);
    assert.equal(shown.length, 100);
    assert.equal(shown[0], first);
  });

  test('are none where the newest thousand are all deleted ones', async () => {
    const [jane, kim] = [await the().agent('Jane'), await the().agent('Kim')];
    const post = await publish(jane, 'Emptied');
    await add(kim, post.id);
    const copies = `insert into comments (id, post_id, agent_id, content, html, created_at)
      select concat('0', n), post_id, null, '', '', created_at from comments, (
        with recursive numbers as (select 1 as n union all select n + 1 from numbers where n < 1001)
        select n from numbers) as numbered where agent_id = '${kim.id}'`;
    await onDatabase(the().ctx(), copies);
    await onDatabase(the().ctx(), `delete from comments where agent_id = '${kim.id}'`);
    const page = await open(the(), post.url);
    assert.equal(page.status, 200);
    assert.deepEqual(commentsIn(page.text), []);
  });

  test('begin with what began their thread, also where the clock was put back since', async () => {
    const [eve, fay] = [await the().agent('Eve'), await the().agent('Fay')];
    const post = await publish(eve, 'Timeless');
    const { comment: root } = await eve.client.addComment(post.id, 'Who?');
    the().clock.advance(-hour);
    const { comment: answer } = await fay.client.addComment(post.id, 'I.', { parentId: root.id });
    the().clock.advance(hour);
    assert.ok(answer.id < root.id);
    for (const url of [post.url, `${eve.blogUrl}/-/comments/${post.slug}`])
      assert.deepEqual(commentsIn((await open(the(), url)).text), [root.id, answer.id]);
  });

  test('have a page as long as the post has one, at one address', async () => {
    const dan = await the().agent('Dan');
    const post = await publish(dan, 'Quiet');
    const at = (path: string) => open(the(), dan.blogUrl + path);
    assert.match((await at('/-/comments/quiet')).text, /No comments yet/);
    const redirected = await at('/-/comments/Quiet/');
    assert.deepEqual(
      [redirected.status, redirected.headers.location],
      [301, `${dan.blogUrl}/-/comments/quiet`],
    );
    const below = await open(the(), `${the().baseUrl}/dan/-/comments/quiet`);
    assert.deepEqual([below.status, below.headers.location], [301, `${dan.blogUrl}/-/comments/quiet`]);
    for (const path of ['/-/comments/none', '/-/comments/', '/-/comments/quiet/more', '/-/other/quiet'])
      assert.equal((await at(path)).status, 404, path);
    // The second is of the same kind, of another post.
    for (const cursor of ['x', Buffer.from('["threads-00000000","a","b"]').toString('base64url')])
      assert.equal((await at(`/-/comments/quiet?cursor=${cursor}`)).status, 400, cursor);
    await dan.client.updatePost(post.id, { slug: 'renamed' });
    assert.equal((await at('/-/comments/quiet')).headers.location, `${dan.blogUrl}/-/comments/renamed`);
    await dan.client.updatePost(post.id, { status: 'draft' });
    assert.equal((await at('/-/comments/renamed')).status, 404);
    await dan.client.updatePost(post.id, { status: 'published' });
    await the().ctx().engine.write(suspendAgent, { slug: 'dan', reason: 'spam' });
    assert.equal((await at('/-/comments/renamed')).status, 410);
    await the().ctx().engine.write(restoreAgent, { slug: 'dan' });
    await dan.client.deletePost(post.id);
    assert.equal((await at('/-/comments/renamed')).status, 410);
  });
});

/** Titles of what the home page has in its columns. */
const columns = async (instance: Instance) => {
  const { text } = await open(instance, `${instance.baseUrl}/`);
  const titles = (name: string) => {
    const section = new RegExp(`<section class="${name}">[^]*?</section>`).exec(text)?.[0] ?? '';
    return Array.from(section.matchAll(/p-name"[^>]*>([^<]*)</g), ([, title = '']) => title);
  };
  return { newest: titles('newest'), featured: titles('featured') };
};

describeInstances('the home page', subdomain, (the) => {
  test('has no post twice, and of one agent two while others are left', async () => {
    const [ada, bob, carol] = [
      await the().agent('Ada'),
      await the().agent('Bob'),
      await the().agent('Carol'),
    ];
    const his = [await publish(bob, 'His 0'), await publish(bob, 'His 1')];
    const hers = await publish(carol, 'Hers');
    for (let n = 0; n < 12; n++) await publish(ada, `Ada ${n}`);
    let { newest, featured } = await columns(the());
    assert.deepEqual(featured, []);
    assert.deepEqual(newest, [...[11, 10, 9, 8, 7, 6, 5].map((n) => `Ada ${n}`), 'Hers', 'His 1', 'His 0']);

    // Their own votes make no column; two posts with a score do not either.
    for (const { id } of his) await bob.client.vote(id, 1);
    await carol.client.vote(hers.id, 1);
    for (const { id } of his) await ada.client.vote(id, 1);
    assert.deepEqual((await columns(the())).featured, []);
    await ada.client.vote(hers.id, 1);
    ({ newest, featured } = await columns(the()));
    assert.deepEqual(featured, ['Hers', 'His 1', 'His 0']);
    assert.deepEqual(newest.length, 10);
    assert.ok(newest.every((title) => title.startsWith('Ada')));
    await the().ctx().engine.write(suspendAgent, { slug: 'ada', reason: 'spam' });
    ({ newest, featured } = await columns(the()));
    assert.deepEqual([newest, featured], [['Hers', 'His 1', 'His 0'], []]);
    await the().ctx().engine.write(restoreAgent, { slug: 'ada' });
    await bob.client.vote(hers.id, -1);
    assert.deepEqual((await columns(the())).featured, []);
    await the().ctx().engine.write(featurePost, { postId: hers.id, featured: true });
    assert.deepEqual((await columns(the())).featured, ['Hers', 'His 1', 'His 0']);
  });
});

describeInstances('the home page after votes of authors', subdomain, (the) => {
  test('features no post whose score is not above zero, and none for its own vote alone', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const [eve, fay] = [await the().agent('Eve'), await the().agent('Fay')];
    const posts = [await publish(ada, 'One'), await publish(ada, 'Two'), await publish(ada, 'Three')];
    const voted = async (by: TestAgent, value: 1 | -1) => {
      for (const { id } of posts) await by.client.vote(id, value);
      return (await columns(the())).featured;
    };
    assert.deepEqual(await voted(ada, -1), []);
    assert.deepEqual(await voted(bob, 1), [], 'at 0');
    assert.deepEqual(await voted(eve, 1), ['Three', 'Two', 'One'], 'at 1');
    assert.deepEqual(await voted(fay, -1), [], 'at 0 again');
    assert.deepEqual(await voted(ada, 1), ['Three', 'Two', 'One'], 'at 2, one of them of others');
    assert.deepEqual(await voted(eve, -1), [], 'at 0 by the others');
    assert.deepEqual(await voted(bob, -1), [], 'below');
  });
});

describeInstances('a feed', {}, (the) => {
  test('goes on page by page to the oldest post, also where few texts fill a page', async () => {
    const ada = await the().agent('Ada');
    for (let n = 0; n < 20; n++) await publish(ada, `Small ${n}`);
    for (let n = 0; n < 3; n++)
      await ada.client.publish({ title: `Large ${n}`, content: 'word '.repeat(80_000), status: 'published' });
    const pages: string[][] = [];
    for (let url: string | undefined = `${ada.blogUrl}/feed.json`; url !== undefined;) {
      const { text } = await open(the(), url);
      const page = JSON.parse(text) as { items: { title: string }[]; next_url?: string };
      pages.push(page.items.map(({ title }) => title));
      url = page.next_url;
    }
    const small = Array.from({ length: 20 }, (_, n) => `Small ${19 - n}`);
    assert.deepEqual(pages, [['Large 2', 'Large 1'], ['Large 0', ...small.slice(0, 19)], ['Small 0']]);
    const atom = await open(the(), `${ada.blogUrl}/feed.xml`);
    const next = /rel="next"[^>]*href="([^"]*)"/.exec(atom.text)?.[1] ?? '';
    assert.ok((await open(the(), next)).text.includes('<title>Large 0</title>'));
    const stray = await open(the(), next.replace('feed.xml', 'tags/news/feed.xml'));
    assert.equal(stray.status, 400);
  });
});

describeInstances('a post of several', {}, (the) => {
  test('leads to the one before and the one after', async () => {
    const ada = await the().agent('Ada');
    for (const title of ['First', 'Second', 'Third']) await publish(ada, title);
    const { text } = await open(the(), `${ada.blogUrl}/second`);
    for (const [rel, slug] of [
      ['prev', 'first'],
      ['next', 'third'],
    ] as const)
      assert.equal(text.split(`rel="${rel}" href="${ada.blogUrl}/${slug}"`).length, 3, rel);
    assert.match(text, /Before this<\/span> <bdi >First</);
    assert.match(text, /After this<\/span> <bdi >Third</);
  });
});

describeInstances('what shows no HTML of a post', {}, (the, variant) => {
  test('reads none: its markdown, and the page of its comments alone', async () => {
    const { client, blogUrl } = await the().agent('Ada');
    const { post } = await client.publish({ title: 'T', content: 'Some *text*.', status: 'published' });
    await onDatabase(the().ctx(), `update post_bodies set html = '', headings = 'none'`);
    assert.equal((await open(the(), post.url)).status, 500, 'which can be seen from the page');
    const twin = await open(the(), `${post.url}.md`);
    assert.deepEqual([twin.status, twin.text.endsWith('\n\nSome *text*.')], [200, true], twin.text);
    const comments = await open(the(), `${blogUrl}/-/comments/${post.slug}`);
    assert.equal(comments.status, variant === 'subdomain' ? 200 : 404);
  });
});

describeInstances('an agent that is suspended and restored', {}, (the, variant) => {
  test('has back what was public, and nothing else', async () => {
    const ada = await the().agent('Ada');
    const [kept, withdrawn, draft] = [
      await publish(ada, 'Kept'),
      await publish(ada, 'Withdrawn'),
      (await ada.client.publish({ title: 'Draft', content: 'c', tags: ['news'] })).post,
    ];
    await ada.client.updatePost(withdrawn.id, { status: 'draft' });
    const paths = ['/kept', '/withdrawn', '/draft', '/tags/news', '/feed.xml'];
    const statuses = () =>
      Promise.all(paths.map(async (path) => (await open(the(), ada.blogUrl + path)).status));
    const before = await statuses();
    assert.deepEqual(before, [200, 404, 404, 200, 200]);
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'ada', reason: 'spam' });
    assert.deepEqual(await statuses(), [410, 410, 410, 410, 410]);
    await engine.write(restoreAgent, { slug: 'ada' });
    assert.deepEqual(await statuses(), before);
    const feed = await open(the(), `${ada.blogUrl}/feed.xml`);
    const sitemap = await open(the(), `${ada.blogUrl}/sitemap.xml`);
    for (const { text } of [feed, sitemap]) {
      assert.ok(text.includes('/kept') && !text.includes('/withdrawn') && !text.includes('/draft'));
    }
    for (const { id } of [withdrawn, draft])
      await assert.rejects(the().client().getPost(id), { code: 'not_found' });
    assert.equal((await the().client().getPost(kept.id)).post.id, kept.id);
    const own = await ada.client.listPosts();
    assert.equal(own.total, 3);
    if (variant === 'subdomain') assert.equal((await the().client().discoverPosts()).total, 1);
  });
});

import { Mismatch, shownValue } from './check.ts';
import { expectHeader, expectProblem, expectStatus, expectSuccess, expectValue, textAt } from './expect.ts';
import { isWellFormed, whatLoads, whatRuns } from './markup.ts';
import { agentOf, draftOf, postOf, type Subject } from './subject.ts';
import type { Answer } from './wire.ts';

/** Section 4.9 of the specification and 6 of the contract: what readers and machines fetch. */
export async function checkPages(subject: Subject): Promise<void> {
  const { section, must, ours } = subject.checks;
  const read = async (address: string, headers = {}) => subject.wire('GET', address, { headers });
  const page = async (): Promise<Answer> => expectStatus(await read(postOf(subject).url), 200);
  section('4.9 Public views');
  await must('4.9', 'the blog has a page', async () =>
    expectStatus(await read(agentOf(subject).blogUrl), 200),
  );
  await must('4.9', 'a published post has a page with its title', async () =>
    expectText(await page(), postOf(subject).title),
  );
  await ours('6', 'a page says how its text came about: to readers before it, and to machines', async () => {
    const body = { slug: postOf(subject).slug, content: hostile, disclosure: 'ai-generated' };
    expectSuccess(await subject.keyed('POST', '/api/publish', { body }), 200, { changed: true });
    const answer = await page();
    const { text } = answer;
    const [visible, article] = [text.search(/class="disclosure"|AI/), text.lastIndexOf(marker)];
    if (visible === -1 || visible > article) throw new Mismatch('a disclosure before the text', 'none');
    expectText(answer, '<meta name="ai-disclosure" content="ai-generated"');
    expectText(answer, 'trainedAlgorithmicMedia');
  });
  await ours('6', 'markup in a text is text, and no link runs anything', async () => {
    const answer = await page();
    const { text } = answer;
    const live = whatRuns(text);
    if (live !== null) throw new Mismatch('nothing that runs', shownValue(live));
    expectText(answer, '&lt;script&gt;');
    const link = /<a [^>]*href="https:\/\/elsewhere\.example\/"[^>]*>/.exec(text)?.[0] ?? '';
    if (!/nofollow/.test(link)) throw new Mismatch('nofollow on a link to elsewhere', shownValue(link));
  });
  await ours('6', 'a page loads nothing from elsewhere, and sets no cookie', async () => {
    const answer = await page();
    const foreign = whatLoads(answer.text, new URL(postOf(subject).url));
    if (foreign !== null) throw new Mismatch('nothing of another site', shownValue(foreign));
    for (const each of [answer, await read(agentOf(subject).blogUrl), await read('/api/openapi.json')])
      expectValue('header set-cookie', each.headers['set-cookie'], undefined);
  });
  await ours('6', 'a page says its language, its title and what previews show', async () => {
    const answer = await page();
    expectHeader(answer, 'content-type', /^text\/html; ?charset=utf-8$/i);
    for (const part of ['<html lang="', `<meta property="og:title" content="${postOf(subject).title}"`])
      expectText(answer, part);
  });
  await ours('6', 'a page lets nothing run, and is asked for again with its ETag', async () => {
    const answer = await page();
    expectHeader(answer, 'content-security-policy', /default-src 'none'/);
    expectHeader(answer, 'x-content-type-options', /^nosniff$/);
    expectHeader(answer, 'cache-control', /\bpublic\b.*\bmust-revalidate\b/);
    expectHeader(answer, 'vary', /accept-encoding/i);
    const etag = answer.headers.etag ?? '';
    expectStatus(await read(postOf(subject).url, { 'if-none-match': etag }), 304);
  });
  await ours('6', 'a page names its one address and its markdown', async () => {
    const { url } = postOf(subject);
    expectText(await page(), `<link rel="canonical" href="${url}"`);
    const twin = expectStatus(await read(`${url}.md`), 200);
    expectHeader(twin, 'content-type', /^text\/markdown/);
    for (const part of [marker, postOf(subject).title, 'ai-generated']) expectText(twin, part);
    const preferred = expectStatus(await read(url, { accept: 'text/markdown, text/html;q=0.5' }), 200);
    expectHeader(preferred, 'content-type', /^text\/markdown/);
    expectHeader(await page(), 'content-type', /^text\/html/);
  });
  await ours('6', 'HEAD is GET without its body', async () => {
    const head = expectStatus(await subject.wire('HEAD', postOf(subject).url), 200);
    expectValue('a body:', head.text, '');
    expectValue('etag', head.headers.etag, (await page()).headers.etag);
  });
  await ours('6', 'a draft has no page', async () => expectStatus(await read(draftOf(subject).url), 404));
  await checkFeeds(subject);
}

async function checkFeeds(subject: Subject): Promise<void> {
  const { ours } = subject.checks;
  const types = { 'feed.xml': /atom\+xml/, 'rss.xml': /rss\+xml/, 'feed.json': /feed\+json/ };
  for (const [name, type] of Object.entries(types)) {
    await ours('6', `${name} has the post, and says how it came about`, async () => {
      const feed = expectStatus(await subject.wire('GET', `${agentOf(subject).blogUrl}/${name}`), 200);
      expectHeader(feed, 'content-type', type);
      for (const part of [`urn:uuid:${postOf(subject).id}`, postOf(subject).title, 'ai-generated'])
        expectText(feed, part);
      if (feed.text.includes(draftOf(subject).title)) throw new Mismatch('no draft in a feed', 'one');
      const isWhole = name.endsWith('.json') ? Array.isArray(feed.at('items')) : isWellFormed(feed.text);
      if (!isWhole) throw new Mismatch('a whole document', shownValue(feed.text.slice(-100)));
    });
  }
  await ours('6', 'the blog has an index for machines', async () => {
    for (const [name, part] of [
      ['index.md', postOf(subject).title],
      ['llms.txt', postOf(subject).title],
      ['sitemap.xml', postOf(subject).url],
    ] as const)
      expectText(expectStatus(await subject.wire('GET', `${agentOf(subject).blogUrl}/${name}`), 200), part);
  });
  await ours('4', 'nothing public names the e-mail address of an agent', async () => {
    const own = textAt(await subject.keyed('GET', '/api/me'), 'agent.email');
    for (const address of publicAddresses(subject)) {
      const { text } = await subject.wire('GET', address);
      if (/"e-?mail":/i.test(text)) throw new Mismatch(`no field for it at ${address}`, 'one');
      if (text.includes(own)) throw new Mismatch(`an answer without ${own} at ${address}`, 'one with it');
    }
  });
}

/** What anybody is answered about the agent and its post. */
function publicAddresses({ variant, agent, post }: Subject): readonly string[] {
  const [blog, page] = [agent?.blogUrl ?? '/', post?.url ?? '/'];
  const pages = [blog, `${blog}/feed.xml`, `${blog}/feed.json`, `${blog}/index.md`, page, `${page}.md`];
  if (variant === 'b') return pages;
  const lists = [
    'blogs?sort=newest',
    'posts',
    'posts/featured',
    `posts/${post?.id}`,
    `search?q=${post?.slug}`,
  ];
  return [...pages, ...lists.map((list) => `/api/${list}`), `/api/posts/${post?.id}/comments`];
}

/** A post that is moved, taken back and published again: its addresses and its time of publication. */
export async function checkWithdrawal(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  const { wire, keyed } = subject;
  const path = () => `/api/posts/${postOf(subject).id}`;
  const change = async (body: object) => expectSuccess(await keyed('PATCH', path(), { body }), 200);
  section('3 Transitions');
  await ours('4', 'a published post becomes a draft, without a page or a place in public lists', async () => {
    await change({ status: 'draft' });
    expectStatus(await wire('GET', postOf(subject).url), 404);
    expectProblem(await wire('GET', path()), 404, 'not_found');
    const feed = await wire('GET', `${agentOf(subject).blogUrl}/feed.json`);
    expectValue('in its feed:', feed.text.includes(postOf(subject).id), false);
  });
  await ours('4', 'published again, it has the time of its first publication', async () => {
    const before = (await keyed('GET', path())).at('post.publishedAt');
    const answer = await change({ status: 'published' });
    expectValue('post.publishedAt', answer.at('post.publishedAt'), before);
    expectStatus(await wire('GET', postOf(subject).url), 200);
  });
  await ours('4', 'a post with a new slug leaves a redirect', async () => {
    const { slug, url, title } = postOf(subject);
    const answer = await change({ slug: `${slug}-moved` });
    subject.post = { id: postOf(subject).id, slug: `${slug}-moved`, url: `${url}-moved`, title };
    expectValue('post.url', answer.at('post.url'), `${url}-moved`);
    const old = expectStatus(await wire('GET', url), 301, 308);
    expectValue('location', new URL(String(old.headers.location), url).href, `${url}-moved`);
  });
}

/** Text that would do something if it were markup. */
const marker = 'Conformance of markup';
const hostile = `${marker}: <script>alert(1)</script> <img src=x onerror=alert(1)>

[run](javascript:alert(1)) and [elsewhere](https://elsewhere.example/).`;

function expectText(answer: Answer, part: string): void {
  if (!answer.text.includes(part)) throw new Mismatch(`text with ${part}`, shownValue(answer.text));
}

import type { Page, Response } from 'playwright-core';
import { suspendAgent } from '../../../src/services/operators/moderation.ts';
import type { Instance, TestAgent } from '../../support/instance.ts';
import { gradientPng } from '../../support/made-pictures.ts';
import { modelPosts } from '../../support/model-posts.ts';
import { arabicPage, japanesePage, longPost } from '../../web-fixtures.ts';

/** A page as a reader may meet it. */
export type PageKind = {
  readonly name: string;
  /** Its address; for the result of a form, that of the form. */
  readonly url: string;
  /** 200 unless told. */
  readonly status?: number;
  /** Whether its form is sent before it is looked at. */
  readonly submitted?: boolean;
  /** What is written into its form before, by selector. */
  readonly written?: Readonly<Record<string, string>>;
};

/** Topics of which the page of all that models write is made: those without pictures of other hosts. */
const topics = ['prose', 'lists', 'tables', 'code', 'callouts', 'maths', 'cjk'];

/** Fills an instance with what agents publish, and gives a page of every kind that it has. */
export async function fillWithEveryKind(site: Instance): Promise<readonly PageKind[]> {
  const hasDiscovery = site.variant === 'subdomain';
  const ada = await site.agent('Tidewatch', {
    bio: 'Reads forty-one tide gauges along the Wadden Sea every ten minutes, and writes when one of them says something unusual.',
  });
  const bea = await site.agent('Marginalia');
  const idle = await site.agent('Quorum', { bio: 'Writes nothing yet.' });
  const suspended = await site.agent('Spammer');
  await bea.client.updateMe({ name: 'الورّاق', bio: arabicPage.blog.bio ?? '' });

  // The picture that the fixture has is of another host.
  const article = longPost.content.replace(/^!\[.*\n/m, '');
  const text = longPost.content.slice(0, 500).replace('[^1]', '');
  for (let i = 0; i < 21; i++) {
    await ada.client.publish({
      title: `Gauge readings of night ${i}, and what the neighbours made of them`,
      slug: `night-${i}`,
      content: text,
      tags: ['gauges', `n${i % 3}`],
      status: 'published',
    });
  }
  const long = await ada.client.publish({
    title: longPost.title,
    content: `${article}\n\n${article}\n\n${article}`,
    tags: ['seiches', 'storm surges', '潮汐'],
    disclosure: 'ai-autonomous',
    status: 'published',
  });
  const short = await ada.client.publish({ title: 'Short', content: 'One line.', status: 'published' });
  const rtl = await bea.client.publish({
    title: arabicPage.post.title,
    slug: 'hamish',
    content:
      'كتب الناسخ في الهامش: «برد شديد، والحبر لا يجري».\n\n> ولا حول ولا قوة إلا بالله\n\n1. الصفحة ١٢\n2. وفيها `folio 13r`\n\n| أ | ب |\n|---|---|\n| ١ | ٢ |',
    lang: 'ar',
    tags: ['مخطوطات'],
    status: 'published',
  });
  const cjk = await bea.client.publish({
    title: japanesePage.post.title,
    slug: 'toudaimori',
    content:
      '明治三十年代の灯台日誌が新しく目録に入った。風向きと油の残量のあいだに、三行だけ、*鯨*のことが書いてある。\n\n# 三行\n\n> 朝、鯨を見る。二頭。静かなり。',
    lang: 'ja',
    disclosure: 'ai-assisted',
    status: 'published',
  });
  const wide = await bea.client.publish({
    title: 'Unbroken'.repeat(24),
    slug: 'wide',
    content: `${'w'.repeat(400)}\n\n# ${'H'.repeat(120)}\n\n- ${'l'.repeat(200)}\n\n|${'c'.repeat(150)}|b|\n|-|-|\n|1|2|\n\n    ${'x'.repeat(300)}\n\n\`${'i'.repeat(200)}\` <https://example.org/${'u'.repeat(200)}>`,
    tags: ['t'.repeat(40)],
    status: 'published',
  });
  const shown = topics.flatMap((each) => modelPosts.filter(({ topic }) => topic === each));
  const written = await ada.client.publish({
    title: 'As models write',
    content: shown
      .filter(({ title }) => title !== 'A fence that is never closed')
      .map(({ title, markdown }) => `**${title}**\n\n${markdown}`)
      .join('\n\n'),
    status: 'published',
  });
  const draft = await ada.client.publish({
    title: 'A draft that a person looks at before',
    content: article,
    tags: ['seiches', '潮汐'],
    disclosure: 'ai-assisted',
  });
  const { previewUrl } = await ada.client.previewPost(draft.post.id);
  const pictured = await publishPictures(ada);
  await bea.client.updateMe({ avatarUrl: (await uploadPicture(bea, 128, 128)).url });
  const deleted = await ada.client.publish({ title: 'Gone', content: 'x', status: 'published' });
  await ada.client.deletePost(deleted.post.id);
  await suspended.client.publish({ title: 'Offer', slug: 'offer', content: 'x', status: 'published' });
  const by = { actor: 'cli:test', reason: 'spam', batch: 'b', mails: true } as const;
  await site.ctx().engine.write(suspendAgent, { slug: suspended.slug, reason: 'spam', by });
  const appeal = await linkIn(site, suspended, 'appeal');
  const leaving = await site.agent('Leaver');
  await leaving.client.deleteMe();
  if (hasDiscovery) {
    await bea.client.addComment(
      long.post.id,
      'I would believe *the seiche*: <https://example.org/barometer>.',
    );
    await idle.client.addComment(long.post.id, `${'c'.repeat(300)}\n\n\`\`\`\n${'d'.repeat(300)}\n\`\`\``);
    await bea.client.vote(long.post.id, 1);
  }

  const token = async (name: string) => {
    const slug = hasDiscovery ? { slug: name.toLowerCase() } : {};
    await site.client().register({ email: `${name}@example.com`, name, ...slug });
    return site.token(`${name}@example.com`);
  };
  const { baseUrl } = site;
  const verify = `${baseUrl}/verify?token=${await token('Newcomer')}`;
  const kinds: PageKind[] = [
    { name: 'home', url: `${baseUrl}/` },
    { name: 'blog', url: ada.blogUrl },
    { name: 'blog, right to left', url: bea.blogUrl },
    { name: 'blog, empty', url: idle.blogUrl },
    { name: 'post, long', url: long.post.url },
    { name: 'post, short', url: short.post.url },
    { name: 'post, right to left', url: rtl.post.url },
    { name: 'post, CJK', url: cjk.post.url },
    { name: 'post, unbroken words', url: wide.post.url },
    { name: 'post, as models write', url: written.post.url },
    { name: 'post, pictures', url: pictured.url },
    { name: 'preview', url: previewUrl },
    { name: 'tag', url: `${ada.blogUrl}/tags/gauges` },
    { name: 'archive', url: `${ada.blogUrl}/-/archive` },
    { name: 'archive, right to left', url: `${bea.blogUrl}/-/archive` },
    { name: 'tags', url: `${ada.blogUrl}/-/tags` },
    { name: 'report', url: `${baseUrl}/-/report?url=${encodeURIComponent(ada.blogUrl)}` },
    {
      name: 'report, result',
      url: `${baseUrl}/-/report?url=${encodeURIComponent(ada.blogUrl)}`,
      submitted: true,
      status: 201,
      written: { '#explanation': 'It copies a book, chapter by chapter.' },
    },
    { name: 'appeal', url: appeal },
    {
      name: 'appeal, result',
      url: appeal,
      submitted: true,
      status: 201,
      written: { '#text': 'It was no advertisement but an offer of help.' },
    },
    { name: 'deletion to undo', url: await linkIn(site, leaving, 'undo-deletion') },
    { name: 'verify', url: verify },
    { name: 'verify, result', url: `${baseUrl}/verify?token=${await token('Latecomer')}`, submitted: true },
    { name: 'verify, error', url: `${baseUrl}/verify?token=${crypto.randomUUID()}`, status: 404 },
    { name: 'problem', url: `${baseUrl}/problems/rate_limited` },
    { name: 'problems', url: `${baseUrl}/problems` },
    { name: 'docs', url: `${baseUrl}/docs` },
    { name: 'docs, a call', url: `${baseUrl}/docs/publishPost` },
    { name: 'docs, changes', url: `${baseUrl}/docs/changes` },
    { name: 'docs, changelog', url: `${baseUrl}/docs/changelog` },
    { name: 'not found', url: `${baseUrl}/nobody`, status: 404 },
    { name: 'not found, on a blog', url: `${ada.blogUrl}/nothing`, status: 404 },
    { name: 'gone', url: deleted.post.url, status: 410 },
    { name: 'suspended', url: `${suspended.blogUrl}/offer`, status: 410 },
  ];
  if (hasDiscovery) {
    kinds.push(
      { name: 'blogs', url: `${baseUrl}/blogs` },
      { name: 'search', url: `${baseUrl}/search` },
      { name: 'search, results', url: `${baseUrl}/search?q=gauge` },
      { name: 'search, no results', url: `${baseUrl}/search?q=${'q'.repeat(100)}` },
      { name: 'search on a blog', url: `${ada.blogUrl}/-/search?q=seiche` },
      { name: 'comments', url: `${ada.blogUrl}/-/comments/${long.post.slug}` },
      { name: 'failure', url: `${baseUrl}/blogs?cursor=x`, status: 400 },
    );
  }
  return kinds;
}

/** A post that shows pictures of all shapes: wide, tall, tiny, in a row, with a caption, in a list and a table. */
async function publishPictures(agent: TestAgent): Promise<{ readonly url: string }> {
  const wide = await uploadPicture(agent, 2400, 800, 'Levels of eleven gauges on one night');
  const tall = await uploadPicture(agent, 300, 2000, 'A tide pole');
  const tiny = await uploadPicture(agent, 12, 12, 'A dot');
  const content = [
    'What the gauges said, and what the camera saw.',
    wide.markdown,
    `![Levels](media/${wide.name} "Eleven gauges on the night of the seiche, from Den Helder to Esbjerg, every ten minutes")`,
    `A ${tiny.markdown} in a line of text, and ${tiny.markdown} another.`,
    `${tiny.markdown} ${tiny.markdown}\n${wide.markdown}`,
    `[![Linked](media/${tall.name})](https://example.org/)`,
    `- ${wide.markdown}\n- two`,
    `| gauge | picture |\n|---|---|\n| Harlingen | ${wide.markdown} |\n| Delfzijl | ${tiny.markdown} |`,
    `> ${tall.markdown}`,
    `![${'Of a picture that is gone, its text is shown. '.repeat(3)}](media/${'0'.repeat(32)}.png)`,
  ];
  const { post } = await agent.client.publish({
    title: 'What the camera saw',
    content: content.join('\n\n'),
    image: `media/${wide.name}`,
    status: 'published',
  });
  return post;
}

async function uploadPicture({ client }: TestAgent, width: number, height: number, alt?: string) {
  const { media } = await client.uploadMedia(Buffer.from(gradientPng(width, height)), {
    type: 'image/png',
    ...(alt === undefined ? {} : { alt }),
  });
  return media;
}

/** The address in the last mails to an agent at which a form of `/verify` is. */
async function linkIn(site: Instance, { email }: TestAgent, form: string): Promise<string> {
  const texts = (await site.mails(email)).map((mail) => mail.email.text ?? '');
  return new RegExp(String.raw`\S+/verify/${form}\?token=\S+`).exec(texts.join('\n'))?.[0] ?? '';
}

/** Goes to a page of this kind, by its form where it is the result of one; the answer that it came in. */
export async function visit(page: Page, kind: PageKind): Promise<Response | null> {
  const answer = await page.goto(kind.url);
  if (kind.submitted !== true) return answer;
  for (const [selector, text] of Object.entries(kind.written ?? {})) await page.fill(selector, text);
  for (const choice of await page.locator('main select').all()) await choice.selectOption({ index: 1 });
  for (const box of await page.locator('main input[type=checkbox]').all()) await box.check();
  const [sent] = await Promise.all([page.waitForNavigation(), page.locator('main button').click()]);
  return sent;
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newestMatches } from '../src/db/sqlite/sqlite-full-text.ts';
import { AppError } from '../src/errors.ts';
import { longWork } from '../src/platform/slices.ts';
import { createSearches } from '../src/services/lists/searches.ts';
import { nearest } from '../src/services/lists/vocabulary.ts';
import { indexRenamed } from '../src/services/posts/renamed.ts';
import { parseSearch } from '../src/rules/search/search-terms.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import type { FoundPost } from '../client/src/index.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  startInstance,
  type Instance,
} from './support/instance.ts';
import { onDatabase } from './support/on-database.ts';
import { randomFrom } from './support/random.ts';

const search = (instance: Instance, q: string, more = '') =>
  instance.call('GET', `/api/search?q=${encodeURIComponent(q)}${more}`);

async function titles(instance: Instance, q: string): Promise<string[]> {
  const { posts } = await instance.client().search(q);
  return posts.map((post: FoundPost) => post.title);
}

describeInstances('search', { variants: ['subdomain'] }, (the) => {
  test('a post is found by its title, tags and text while it is published, and by nothing that it no longer says', async () => {
    const { client } = await the().agent('Found');
    const { post } = await client.publish({
      title: 'Zymurgy',
      content: 'Of *quokkas* and wombats.',
      tags: ['Marsupials'],
    });
    assert.deepEqual(await titles(the(), 'zymurgy'), [], 'a draft');
    await client.publish({ slug: post.slug, status: 'published' });
    for (const q of ['zymurgy', 'QUOKKAS', 'marsupials', 'quokkas zymurgy'])
      assert.deepEqual(await titles(the(), q), ['Zymurgy'], q);
    await client.publish({ slug: post.slug, content: 'Of numbats.' });
    assert.deepEqual(await titles(the(), 'quokkas'), [], 'an earlier text');
    assert.deepEqual(await titles(the(), 'numbats'), ['Zymurgy']);
    await client.publish({ slug: post.slug, status: 'draft' });
    assert.deepEqual(await titles(the(), 'numbats'), [], 'taken down');
    await client.updatePost(post.id, { title: 'Brewing' });
    await client.publish({ slug: post.slug, status: 'published' });
    assert.deepEqual(await titles(the(), 'brewing'), ['Brewing'], 'changed while down');
    await client.deletePost(post.id);
    assert.deepEqual(await titles(the(), 'brewing'), [], 'deleted');
  });

  test('a phrase is found, and a word of a script without spaces, however often their parts occur before', async () => {
    const { client } = await the().agent('Often');
    const common = 'the zorble of the quandle, '.repeat(600);
    const content = {
      phrase: `${common} the vexed zorble ends`,
      pairs: `${'日本に日を。'.repeat(1_500)}毎日本日に、`,
      neither: `${common} vexed`,
    };
    const titled = new Map<string, string>();
    for (const [title, text] of Object.entries(content)) {
      const { post } = await client.publish({ title, content: text, status: 'published' });
      titled.set(post.id, title);
    }
    const found: readonly [q: string, titles: readonly string[]][] = [
      ['"the vexed zorble"', ['phrase']],
      ['"vexed zorble end"*', ['phrase']],
      ['"of the vex"*', []],
      ['"quandle the vex"*', ['phrase']],
      ['"quandle vexed"', ['neither']],
      ['"zorble vexed"', []],
      ['vexed -"vexed zorble"', ['neither']],
      ['毎日本日', ['pairs']],
      ['日本日に', ['pairs']],
      ['日本を', []],
    ];
    const { signal } = new AbortController();
    for (const [q, expected] of found) {
      const { matches } = await the()
        .ctx()
        .engine.findNewest([parseSearch(q)], 10, 1e9, signal);
      assert.deepEqual(matches.map(({ post_id }) => titled.get(post_id) ?? '').toSorted(), expected, q);
    }
  });

  test("posts of a suspended agent are not found until it is restored, and a deleted agent's never", async () => {
    const agent = await the().agent('Hidden');
    await agent.client.publish({ title: 'Hapax', content: 'legomenon', status: 'published' });
    await the().ctx().engine.write(suspendAgent, { slug: agent.slug, reason: 'a test' });
    assert.deepEqual(await titles(the(), 'legomenon'), []);
    await the().ctx().engine.write(restoreAgent, { slug: agent.slug });
    assert.deepEqual(await titles(the(), 'legomenon'), ['Hapax']);
    await agent.client.deleteMe({ confirm: agent.slug });
    assert.deepEqual(await titles(the(), 'legomenon'), []);
    const left = await the()
      .ctx()
      .engine.findNewest([parseSearch('legomenon')], 10, 1e9, new AbortController().signal);
    assert.deepEqual(left.matches, []);
  });

  test('words, phrases, exclusions and beginnings of words find what they say', async () => {
    const { client } = await the().agent('Syntax');
    const texts = {
      one: 'The flumadiddle engine weaves patterns.',
      two: 'An engine for the flumadiddle, weaving.',
      three: 'Flumadiddle in a Café on node.js: naïve résumé, 東京タワーの猫. Οδός ΟΔΟΣ.',
    };
    for (const [title, content] of Object.entries(texts))
      await client.publish({ title, content, status: 'published' });
    for (const [q, expected] of [
      ['flumadiddle', ['one', 'three', 'two']],
      ['flumadiddle engine', ['one', 'two']],
      ['"flumadiddle engine"', ['one']],
      ['“flumadiddle engine”', ['one']],
      ['"flumadiddle eng"', []],
      ['flumadiddle engi', ['one', 'two']],
      ['flumadiddles engines', ['one', 'two']],
      ['"flumadiddle engine" patterns zymosis', ['one']],
      ['weaves patterns zymosis', ['one']],
      ['zymosis patterns', ['one']],
      ['zymosis -engine', []],
      ['"flumadiddle engi"*', ['one']],
      ['flumadiddle -engine', ['three']],
      ['flumadiddle -"flumadiddle engine" -cafe', ['two']],
      ['flumadiddle weav*', ['one', 'two']],
      ['fluma', ['one', 'three', 'two']],
      ['fluma*', ['one', 'three', 'two']],
      ['flumadiddle cafe NAIVE', ['three']],
      ['flumadiddle node.js', ['three']],
      ['"flumadiddle js.node"', []],
      ['flumadiddle οδοσ', ['three']],
      ['東京', ['three']],
      ['京タ', ['three']],
      ['東タ', []],
      ['猫', ['three']],
      ['タワー flumadiddle', ['three']],
      ['"three flumadiddle"', []],
    ] as const) {
      assert.deepEqual((await titles(the(), q)).toSorted(), expected, q);
    }
  });

  test('a text is found by its words however long it is, how often it has one and how they are written', async () => {
    const { client } = await the().agent('Long');
    const letters = ['quzzle', 'ქართული', 'ⲁⲃⲅ', '𐐀𐐁𐐂', 'ζύμωσις', '東京塔'];
    const words = Array.from({ length: 3000 }, (_, i) => `vlorp ${letters[i % letters.length]}${i}`);
    await client.publish({ title: 'Long', content: `vlorp begins. ${words.join(' ')}`, status: 'published' });
    for (const q of [
      'vlorp',
      '"vlorp begins"',
      'quzzle2994',
      'ქართული2995',
      'ⲁⲃⲅ2996',
      '𐐀𐐁𐐂2997',
      'ζυμωσισ2998',
    ])
      assert.deepEqual(await titles(the(), q), ['Long'], q);
    assert.deepEqual(await titles(the(), '"quzzle2994 begins"'), []);
  });

  test('a long text is found whose title and tags unfold to many words', async () => {
    const { client } = await the().agent('Unfolding');
    const title = 'ﷺ'.repeat(190);
    const tags = Array.from({ length: 10 }, (_, i) => `${'ﷺ'.repeat(38)}${i}`);
    const content = `zwieback ${'crumb '.repeat(14_997)}zwieback zwieback`;
    await client.publish({ title, tags, content, status: 'published' });
    for (const q of ['zwieback', 'crumb']) assert.deepEqual(await titles(the(), q), [title], q);
  });

  test('tag:name finds what has the tag, alone or with words, and in quotes is text', async () => {
    const { client } = await the().agent('Tagger');
    const posts = [
      ['tagged', 'A gribble pier.', ['Gribble', 'old piers']],
      ['both', 'A gribble pier.', ['gribble', 'wood']],
      ['said', 'The words tag:gribble, and a gribble in wood.', []],
    ] as const;
    for (const [title, content, tags] of posts)
      await client.publish({ title, content, tags: [...tags], status: 'published' });
    for (const [q, expected] of [
      ['tag:gribble', ['both', 'tagged']],
      ['pier tag:GRIBBLE', ['both', 'tagged']],
      ['tag:gribble tag:wood', ['both']],
      ['tag:gribble -tag:wood', ['tagged']],
      ['tag:pier', []],
      ['tag:"Old  piers"', ['tagged']],
      ['pier tag:"old piers', ['tagged']],
      ['-tag:"old piers" gribble', ['both', 'said']],
      ['tag:"" wood', ['both', 'said']],
      ['"tag:gribble"', ['said']],
    ] as const)
      assert.deepEqual((await titles(the(), q)).toSorted(), expected, q);
    const page = await the().call('GET', '/search?q=tag%3Agribble+pier', {
      headers: { accept: 'text/html' },
    });
    assert.match(page.text, /2 posts/);
    assert.deepEqual(await titles(the(), 'tag:🎉'), []);
    assertProblem(await search(the(), '🎉'), 'invalid_input');
    assertProblem(await search(the(), 'tag:🎉 -wood'), 'invalid_input');
  });

  test('tag:name finds every tag that a post may have', async () => {
    const [mine, other] = [await the().agent('Emblem'), await the().agent('Sigil')];
    const tags = ['🚀', '$', '→ ∞', 'c++', '5" disk', '«quoted»', 'a/b', 'x:y'];
    for (const { client } of [mine, other])
      await client.publish({ title: 'Symbolic', content: 'x', tags, status: 'published' });
    for (let n = 0; n < 3; n++)
      await mine.client.publish({
        title: `Rocket ${n}`,
        content: 'A launch.',
        tags: ['🚀'],
        status: 'published',
      });
    const { post } = await mine.client.publish({
      title: 'Grounded',
      content: 'x',
      tags: ['🚀'],
      status: 'published',
    });
    await mine.client.updatePost(post.id, { status: 'draft' });
    for (const tag of tags) {
      const q = `tag:"${tag.replace(/["«»]/g, '\\$&')}"`;
      const found = (await titles(the(), q)).filter((title) => title === 'Symbolic');
      assert.equal(found.length, 2, q);
    }
    const rockets = ['Rocket 2', 'Rocket 1', 'Rocket 0', 'Symbolic', 'Symbolic'];
    assert.deepEqual(await titles(the(), 'tag:🚀'), rockets);
    assert.deepEqual(await titles(the(), 'launch tag:🚀'), rockets.slice(0, 3));
    const pages: string[] = [];
    for (let cursor = ''; ;) {
      const answer = assertOk(await search(the(), 'tag:🚀', `&limit=2${cursor}`));
      for (const at of [0, 1]) pages.push(...[answer.at(`posts.${at}.title`) ?? []].flat().map(String));
      assert.equal(answer.at('total'), 5);
      if (answer.at('nextCursor') === null) break;
      cursor = `&cursor=${String(answer.at('nextCursor'))}`;
    }
    assert.deepEqual(pages, rockets);
    const own = await the().call('GET', `/-/search?q=${encodeURIComponent('tag:🚀')}`, {
      host: new URL(other.blogUrl).host,
    });
    assert.match(own.text, /Symbolic/);
    assert.doesNotMatch(own.text, /Rocket/);
  });

  test('no query is an error of ours, whatever stands in it', async () => {
    for (const q of [
      '"',
      '""',
      '"a',
      'a"',
      "'",
      '*',
      'a*',
      '-',
      '-a',
      '(',
      ')',
      'a)',
      '(a',
      'a OR',
      'OR',
      'AND',
      'NOT a',
      'a NOT',
      'NEAR(a b, 5)',
      '^a',
      'title:a',
      '{title tags}: a',
      '- title : a',
      'a + b',
      'a\\',
      "\\'",
      "a' | 'b",
      'a & b',
      '!a',
      'a <-> b',
      'a:*',
      ':',
      '%',
      '_',
      ';--',
      '#0',
      "'#0'",
      '\u{1F600}',
      '\u0301',
      'e\u0301\u0301',
      '\uFDFA',
      '\u{20000}',
      '\u0E33',
      'ｶﾞ',
      '½',
      'İ',
      'ß',
      'a '.repeat(100),
      'ab* '.repeat(50),
      'abcd* '.repeat(40),
      '-a '.repeat(66),
      '"a" '.repeat(50),
      'z'.repeat(200),
      '界'.repeat(200),
    ]) {
      const answer = await search(the(), q);
      if (answer.status !== 200) assertProblem(answer, 'invalid_input');
      else assertOk(answer);
    }
  });

  test('a query without a word to look for is refused with a hint', async () => {
    for (const q of ['?!', '""', '-nothing', ' ', '\u{1F600}']) {
      const answer = assertProblem(await search(the(), q), 'invalid_input');
      assert.equal(answer.at('errors.0.field'), 'q');
    }
    const answer = await search(the(), '-nothing');
    assert.match(String(answer.at('hint')), /quotes/);
    assertProblem(await the().call('GET', '/api/search'), 'invalid_input');
    const otherwise = assertOk(await the().call('GET', '/api/search?query=plain'));
    assert.ok((otherwise.at('warningCodes') as string[]).includes('other_name'));
    assertProblem(await search(the(), 'q'.repeat(201)), 'invalid_input');
  });

  test('what was not done as written is said in a warning', async () => {
    const answer = assertOk(await search(the(), 'abcd* bcde* cdef*'));
    assert.match(String(answer.at('warnings.0')), /first 2 beginnings/);
    assert.match(
      String(assertOk(await search(the(), 'a b c d e f g h i j k l m n o p q')).at('warnings.0')),
      /first 16/,
    );
    assert.match(String(assertOk(await search(the(), 'plain')).at('warnings.0')), /^no post contains any/);
    const { client } = await the().agent('Tidegauge');
    await client.publish({ title: 'Tagged', content: 'plain', tags: ['tides'], status: 'published' });
    await client.publish({ title: 'Untagged', content: 'mudflat', status: 'published' });
    assert.deepEqual(assertOk(await search(the(), 'plain tag:tides')).at('warnings'), []);
    for (const [q, said] of [
      [
        'mudflat tag:tides',
        'no post with this tag contains any of the words; try others, or leave the tag out',
      ],
      ['tag:mudflat', 'no post has this tag; try another, or look for its words without tag'],
    ] as const)
      assert.equal(assertOk(await search(the(), q)).at('warnings.0'), said, q);
  });

  test('the best come first: the word in the title, then in a tag, then often in the text, then the newest', async () => {
    const { client } = await the().agent('Ranked');
    const text = { status: 'published', content: 'An xylograph.' } as const;
    await client.publish({ ...text, title: 'On an xylograph' });
    await client.publish({ ...text, title: 'Tagged', tags: ['xylograph'] });
    await client.publish({ ...text, title: 'Often', content: 'xylograph, xylograph, xylograph' });
    await client.publish({ ...text, title: 'Older' });
    await client.publish({ ...text, title: 'Newer' });
    assert.deepEqual(await titles(the(), 'xylograph'), [
      'On an xylograph',
      'Tagged',
      'Often',
      'Newer',
      'Older',
    ]);
  });

  test('an author is found by its name, by a new one too', async () => {
    const agent = await the().agent('Xanthippe');
    const { post } = await agent.client.publish({ title: 'Plain', content: 'Nothing.', status: 'published' });
    assert.deepEqual(await titles(the(), 'xanthippe'), ['Plain']);
    await agent.client.updateMe({ name: 'Ytterby Quarry' });
    await indexRenamed(the().ctx(), async () => true);
    assert.deepEqual(await titles(the(), 'quarry ytterby'), ['Plain']);
    await agent.client.publish({ slug: post.slug, content: 'Nothing more.' });
    assert.deepEqual(await titles(the(), 'ytterby'), ['Plain']);
    const digest = await the()
      .ctx()
      .db.selectFrom('search_docs')
      .select('digest')
      .where('post_id', '=', post.id)
      .executeTakeFirst();
    assert.match(String(digest?.digest), / ytterby quarry xanthippe /);
  });

  test('words with signs are words of their own', async () => {
    const { client } = await the().agent('Signs');
    for (const content of [
      'Of C++ only.',
      'Of C# only.',
      'Of C only.',
      'Of .NET only.',
      'A net only.',
      'Of node:fs only.',
    ])
      await client.publish({
        title: `Signs ${content.replaceAll(/\W/g, '')} ${content.length}`,
        content,
        status: 'published',
      });
    for (const [q, count] of [
      ['c++ only signs', 1],
      ['C# only signs', 1],
      ['c only signs', 1],
      ['.net only signs', 1],
      ['net only signs', 2],
      ['node:fs only signs', 1],
    ] as const) {
      const answer = assertOk(await search(the(), q));
      assert.deepEqual([answer.at('total'), answer.at('warnings')], [count, []], q);
    }
    assert.match(String((await search(the(), 'c++ only signs')).at('posts.0.snippet')), /\*\*C\+\+\*\*/);
  });

  test('a name is found by its words, and words however they are joined or spelled', async () => {
    const { client } = await the().agent('Spellings');
    for (const [title, content] of [
      ['Camels', 'Call fetchTidesByHarbour, then PlainTideTable, in BrandTide.'],
      ['Snakes', 'Set most_idle_turbines to nine.'],
      ['Model', 'Zyx-7 and zyx 70.'],
      ['Letters', 'Post about Straßburg, Münsterer, Łódź and Røst.'],
      ['Overseas', 'They colored, labeled and organized tiles.'],
    ] as const)
      await client.publish({ title, content, status: 'published' });
    for (const [q, title, marked] of [
      ['tides by harbour', 'Camels', null],
      ['fetch_tides_by_harbour', 'Camels', '**fetchTidesByHarbour**'],
      ['"tide table"', 'Camels', null],
      ['mostIdleTurbines', 'Snakes', '**most_idle_turbines**'],
      ['zyx7', 'Model', '**Zyx-7** and zyx'],
      ['strassburg', 'Letters', '**Straßburg**'],
      ['Muensterer', 'Letters', '**Münsterer**'],
      ['lodz rost', 'Letters', '**Łódź** and **Røst**'],
      ['coloured organised labelling', 'Overseas', '**colored**, **labeled** and **organized**'],
      ['"brand tide"', 'nothing', null],
    ] as const) {
      const answer = assertOk(await search(the(), q));
      assert.equal(answer.at('posts.0.title') ?? 'nothing', title, q);
      if (marked !== null) assert.ok(String(answer.at('posts.0.snippet')).includes(marked), q);
    }
  });

  test('a word that no post has is replaced in a suggestion by a near one', async () => {
    const { client } = await the().agent('Speller');
    await client.publish({ title: 'Praseodymium magnets', content: 'Strong.', status: 'published' });
    for (const q of ['praseodimium', 'Praseodymum magnets']) {
      const answer = assertOk(await search(the(), q));
      assert.ok(JSON.stringify(answer.at('warningCodes')).includes('other_words'), q);
      assert.match(JSON.stringify(answer.at('warnings')), /did you mean 'praseodymium/, q);
    }
    await client.publish({ title: 'Lanthanide galleries', content: 'Long.', status: 'published' });
    for (const [q, meant] of [
      ['gallary', 'gallery'],
      ['lanthanidegalleries', 'lanthanide galleries'],
    ] as const)
      assert.match(
        String(assertOk(await search(the(), q)).at('warnings')),
        new RegExp(`did you mean '${meant}'`),
      );
    assert.match(
      (await the().call('GET', '/search?q=zzxxqqvv')).text,
      /No post contains[^]*<a href="[^"]*\/blogs">all blogs/,
    );
    const page = await the().call('GET', '/search?q=praseodimium');
    assert.match(page.text, /Did you mean <a href="[^"]*\?q=praseodymium">praseodymium<\/a>/);
  });

  test('the newest come first on request', async () => {
    const { client } = await the().agent('Dated');
    await client.publish({ title: 'Promethium', content: 'First.', status: 'published' });
    await client.publish({ title: 'Second', content: 'Of promethium.', status: 'published' });
    const sorted = async (sort: 'relevance' | 'newest', more = {}) =>
      the()
        .client()
        .search('promethium', { sort, ...more });
    assert.deepEqual(
      (await sorted('relevance')).posts.map(({ title }) => title),
      ['Promethium', 'Second'],
    );
    const one = await sorted('newest', { limit: 1 });
    assert.deepEqual(
      one.posts.map(({ title }) => title),
      ['Second'],
    );
    const two = await sorted('newest', { limit: 1, cursor: one.nextCursor ?? '' });
    assert.deepEqual(
      two.posts.map(({ title }) => title),
      ['Promethium'],
    );
  });

  test('pages go on after a post that was found by another form or spelling of a word', async () => {
    const { client } = await the().agent('Spelt');
    for (const [word, n] of ['email', 'website'].flatMap((each) =>
      [1, 2, 3].map((at) => [each, at] as const),
    ))
      await client.publish({
        slug: `${word}-${n}`,
        title: n === 2 ? `On ${word}` : `Item ${n}`,
        content: `A ${word}. `.repeat(n),
        tags: n === 3 ? [word] : [],
        status: 'published',
      });
    for (const q of ['e-mail', 'web-site']) {
      const all = await the().client().search(q);
      const found: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const page = await the()
          .client()
          .search(q, { limit: 1, ...(cursor === '' ? {} : { cursor }) });
        found.push(...page.posts.map(({ id }) => id));
        cursor = page.nextCursor;
      }
      assert.deepEqual(
        found,
        all.posts.map(({ id }) => id),
        q,
      );
      assert.equal(found.length, 3, q);
    }
  });

  test('pages go on in the same ranking while posts are published and deleted', async () => {
    const { client } = await the().agent('Paged');
    const publish = (i: number | string) =>
      client.publish({ title: `Page ${i}`, content: 'yttrium', status: 'published' });
    const first = await publish(0);
    for (let i = 1; i < 5; i++) await publish(i);
    const one = await the().client().search('yttrium', { limit: 2 });
    assert.deepEqual(
      one.posts.map(({ title }) => title),
      ['Page 4', 'Page 3'],
    );
    assert.equal(one.total, 5);
    await publish('new');
    await client.deletePost(first.post.id);
    const two = await the()
      .client()
      .search('yttrium', { limit: 2, cursor: one.nextCursor ?? '' });
    assert.deepEqual(
      two.posts.map(({ title }) => title),
      ['Page 2', 'Page 1'],
    );
    assert.deepEqual([two.nextCursor, two.total], [null, 4]);
    const link = String((await search(the(), 'yttrium', '&limit=2')).headers['link']);
    assert.match(link, /q=yttrium&limit=2&cursor=[\w-]+>; rel="next"$/);
    assertProblem(await search(the(), 'other', `&cursor=${one.nextCursor}`), 'invalid_input');
  });

  test('a found post shows where the words are, as plain text', async () => {
    const { client } = await the().agent('Snippet');
    const content = `${'Filler words. '.repeat(40)}\n\n<b>bold</b> **Gauge** the gauged\n\nGAUGE at Zürich. ${'More. '.repeat(80)}`;
    const { post } = await client.publish({ title: 'Snip', content, status: 'published', lang: 'en' });
    const answer = assertOk(await search(the(), 'gauge zurich'));
    const snippet = String(answer.at('posts.0.snippet'));
    assert.match(
      snippet,
      /^… .*<b>bold<\/b> \*\*Gauge\*\* the gauged · \*\*GAUGE\*\* at \*\*Zürich\*\*\. More\..* …$/,
    );
    assert.ok(snippet.length < 260);
    assert.equal(answer.at('posts.0.id'), post.id);
    assert.equal(answer.at('posts.0.agent.slug'), 'snippet');
    assert.deepEqual(answer.at('posts.0.votes'), { upvotes: 0, downvotes: 0, score: 0 });
    assert.equal(answer.headers['ratelimit-policy'], '"anonymous";q=6000;w=3600');
    assert.match(String((await search(the(), 'snip')).at('posts.0.snippet')), /^Filler words\. /);
  });
});

describeInstances('the search page', { variants: ['subdomain'], env: { LIMIT_ANONYMOUS: '40' } }, (the) => {
  test('it shows a form, then what was found with the hits marked and everything escaped', async () => {
    const { client } = await the().agent('Pager');
    for (let i = 0; i < 21; i++) {
      await client.publish({
        title: `<b>${i}</b>`,
        content: 'An `<i>` osmium **core**.',
        status: 'published',
      });
    }
    const form = await the().call('GET', '/search');
    assert.equal(form.status, 200);
    assert.match(form.text, /<form class="search" role="search"/);
    assert.doesNotMatch(form.text, /<mark>|class="empty"/);
    assert.equal(form.headers['ratelimit'], undefined);
    assert.match(String(form.headers['cache-control']), /^public/);
    assert.ok(String(form.headers['content-security-policy']).includes(`form-action ${the().baseUrl};`));

    const first = await the().call('GET', '/search?q=osmium+%3Ccore%3E');
    assert.match(first.text, /An &lt;i&gt; <mark>osmium<\/mark> <mark>core<\/mark>\./);
    assert.match(first.text, /&lt;b&gt;20&lt;\/b&gt;/);
    assert.match(first.text, /value="osmium &lt;core&gt;"/);
    assert.equal(first.text.match(/<article /g)?.length, 20);
    const next = /rel="next" href="([^"]*)"/.exec(first.text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const second = await the().call('GET', next.slice(the().baseUrl.length));
    assert.match(second.text, /&lt;b&gt;0&lt;\/b&gt;/);
    assert.equal(second.text.match(/<article /g)?.length, 1);

    assert.match((await the().call('GET', '/search?q=none')).text, /No post contains <q/);
    assert.match(first.text, /<span>21 posts<\/span>/);
    assert.match(first.text, /<a href="[^"]*sort=newest">newest first<\/a>/);
    const near = await the().call('GET', '/search?q=osmiums&sort=newest');
    assert.match(near.text, /class="instead"[^]*other forms of the words[^]*&lt;b&gt;20&lt;\/b&gt;/);
    for (const q of ['q=%21%21', 'q=%F0%9F%98%80', 'q=a&q=b', 'q=ab*']) {
      const refused = await the().call('GET', `/search?${q}`);
      assert.equal(refused.status, 400);
      assert.match(refused.text, /<form class="search"[^]*role="alert"/);
    }
  });

  test("a blog's host searches that blog alone, under the same limit", async () => {
    const { client, blogUrl } = await the().agent('Ownsearch');
    const other = await the().agent('Othersearch');
    for (const [by, title] of [
      [client, 'Mine'],
      [other.client, 'Theirs'],
    ] as const)
      await by.publish({ title, content: 'A rhenium *boat*.', status: 'published' });
    const { host } = new URL(blogUrl);
    const form = await the().call('GET', '/-/search', { host });
    assert.match(form.text, /<form class="search"[^>]* action="[^"]*ownsearch[^"]*\/-\/search"/);
    assert.ok(String(form.headers['content-security-policy']).includes(`form-action ${blogUrl};`));
    const found = await the().call('GET', '/-/search?q=rhenium', { host });
    assert.match(found.text, /Mine/);
    assert.doesNotMatch(found.text, /Theirs|class="slug"/);
    assert.match(String(found.headers['ratelimit-policy']), /^"anonymous"/);
    assert.match((await the().call('GET', '/-/search?q=rheniums', { host })).text, /class="instead"[^]*Mine/);
    const nowhere = await the().call('GET', '/-/search?q=rhenium', {
      host: host.replace('ownsearch', 'nobody'),
    });
    assert.equal(nowhere.status, 404);
  });

  test('it counts against the limit for calls without a key, which a blank form does not', async () => {
    let answer = await the().call('GET', '/search?q=word');
    assert.match(String(answer.headers['ratelimit-policy']), /^"anonymous";q=40;/);
    assert.equal(answer.headers['cache-control'], 'private, no-cache');
    const headers = { 'if-none-match': String(answer.headers['etag']) };
    const same = await the().call('GET', '/search?q=word', { headers });
    assert.deepEqual([same.status, same.headers['cache-control']], [304, 'private, no-cache']);
    for (let i = 0; i < 40 && answer.status === 200; i++) answer = await the().call('GET', '/search?q=word');
    assert.equal(answer.status, 429);
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8');
    assert.match(String(answer.headers['retry-after']), /^\d+$/);
    assertProblem(await search(the(), 'word'), 'rate_limited');
    assert.equal((await the().call('GET', '/search?q=+')).status, 200);
  });
});

describeInstances('search', { variants: ['path'] }, (the) => {
  test('there is none', async () => {
    assertProblem(await search(the(), 'anything'), 'not_found');
    assert.equal((await the().call('GET', '/search?q=anything')).status, 404);
  });
});

test('near words are looked for within a bound, while others are served', async () => {
  // All that tells them apart is the order of their letters.
  const random = randomFrom(7);
  const words = new Map<string, number>();
  while (words.size < 20_000) {
    const letters = 'bcdefghijk'.slice(random(3)).split('');
    const mixed = letters.map((letter) => ({ letter, place: random(1e6) }));
    mixed.sort((one, other) => one.place - other.place);
    words.set(`q${mixed.map(({ letter }) => letter).join('')}`, 1);
  }
  words.set('receive', 3);
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const cost = { inAll: 0, inTurn: 0, nextTurn: longWork() };
  assert.equal(await nearest('recieve', words, cost), 'receive');
  for (let n = 0; n < 16; n++) await nearest(`q${'kjihgfedcb'.slice(0, 8 + (n % 3))}`, words, cost);
  isOver = true;
  assert.ok(cost.inAll > 1_500_000 && cost.inAll < 2_000_200, String(cost.inAll));
  assert.ok(turns >= 70, String(turns));
});

test('a search that cannot begin is answered, and its address searches on', async () => {
  let fails = false;
  const publicVersion = () => {
    if (fails) throw new AppError('unavailable', 'The database is busy.');
    return 1;
  };
  const searches = createSearches({ searchesAtOnce: 1, publicVersion });
  const { signal } = new AbortController();
  const first = Promise.withResolvers<number>();
  const found = searches.find('a', { address: 'x', signal }, () => first.promise);
  const waiting = searches.find('b', { address: 'y', signal }, async () => 2);
  fails = true;
  first.reject(new Error('its database is busy too'));
  await assert.rejects(found, /busy too/);
  await assert.rejects(waiting, { code: 'unavailable' });
  fails = false;
  assert.equal(await searches.find('c', { address: 'y', signal }, async () => 3), 3);
});

test('PostgreSQL: posts of before are found by further positions too, once they are indexed again', async () => {
  const instance = await startInstance({ engine: 'postgres' });
  try {
    const { client } = await instance.agent('Before');
    const content = `${'the zorble of the quandle, '.repeat(300)} the vexed zorble ends`;
    const { post } = await client.publish({ title: 'Long', content, status: 'published' });
    await onDatabase(
      instance.ctx(),
      `delete from migrations where name = '0042-further-positions';
      update post_search set terms =
        ts_delete(terms, array(select lexeme from unnest(terms) where lexeme like '%\uE001%'))`,
    );
    const { signal } = new AbortController();
    const find = () => instance.ctx().engine.findNewest([parseSearch('"vexed zorble"')], 1, 1e9, signal);
    assert.deepEqual((await find()).matches, []);
    await instance.restart();
    await indexRenamed(instance.ctx(), async () => true);
    assert.deepEqual(
      (await find()).matches.map(({ post_id }) => post_id),
      [post.id],
    );
  } finally {
    await instance.close();
  }
});

test('SQLite finds matches in the full-text index, newest first, without sorting', async () => {
  const instance = await startInstance();
  try {
    const { db } = instance.ctx();
    const compiled = newestMatches(parseSearch('two words -third'), 1000, 1e9).compile(db);
    const plan = await db.executeQuery<{ detail: string }>({
      ...compiled,
      sql: `explain query plan ${compiled.sql}`,
    });
    assert.deepEqual(
      plan.rows.map(({ detail }) => detail.replace(/ VIRTUAL TABLE INDEX .*/, ' by the index')),
      [
        'SCAN s by the index',
        'SEARCH d USING INTEGER PRIMARY KEY (rowid=?)',
        'CORRELATED SCALAR SUBQUERY 1',
        'SEARCH p USING INDEX posts_unlisted (id=?)',
      ],
    );
  } finally {
    await instance.close();
  }
});

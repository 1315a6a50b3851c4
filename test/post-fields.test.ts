import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { MastheadClient } from '../client/src/index.ts';
import { formatFrontMatter, parseFrontMatter } from '../src/rules/front-matter.ts';
import {
  documentedPostFields,
  postFieldNames,
  postFields,
  textFieldNames,
  type PostField,
  type PostFieldName,
  type PostFieldValues,
} from '../src/rules/post-fields.ts';
import { sha256 } from '../src/rules/secrets.ts';
import { publishDue } from '../src/services/publication/due.ts';
import { blockSource } from '../src/services/trust/source-blocks.ts';
import { masthead } from './support/command-line.ts';
import type { Answer } from './support/http.ts';
import { assertProblem, describeInstances } from './support/instance.ts';
import { onDatabase } from './support/on-database.ts';
import { open } from './support/pages.ts';
import { wholePost as whole } from './support/whole-post.ts';

// Runs over the list of fields, so that a field that one interface forgets fails here.

const content = 'The engine *weaves*.\n';

/** Another value for each. */
const other: PostFieldValues = {
  title: 'On the Difference Engine',
  slug: 'on-the-difference-engine',
  status: 'draft',
  publishAt: new Date(Date.now() + 3_600_000).toISOString(),
  tags: ['brass'],
  lang: 'pt-BR',
  excerpt: 'What the older engine could do.',
  disclosure: 'none',
  image: 'media/fedcba9876543210fedcba9876543210.webp',
  commentsOpen: true,
};

/** Where readers see it, and as what; null where they do not. */
const shown: Readonly<Record<PostFieldName, Shown>> = {
  title: {
    page: '>On the Analytical Engine</h1>',
    list: '>On the Analytical Engine</a>',
    listTwin: '[On the Analytical Engine]',
    rss: '<title>On the Analytical Engine</title>',
    atom: '<title>On the Analytical Engine</title>',
    json: '"title":"On the Analytical Engine"',
  },
  slug: {
    page: '/on-the-analytical-engine"',
    list: '/on-the-analytical-engine"',
    listTwin: '/on-the-analytical-engine.md',
    rss: '/on-the-analytical-engine</link>',
    atom: '/on-the-analytical-engine"',
    json: '/on-the-analytical-engine"',
  },
  status: nowhere(),
  publishAt: nowhere(),
  tags: {
    page: '<bdi>computing</bdi>',
    list: '<bdi>computing</bdi>',
    listTwin: null,
    rss: '<category>computing</category>',
    atom: '<category term="computing"/>',
    json: '"tags":["history","computing"]',
  },
  lang: {
    page: '<h1 class="p-name" dir="auto" lang="en">',
    list: '/on-the-analytical-engine" lang="en">',
    listTwin: null,
    rss: '<dc:language>en</dc:language>',
    atom: 'xml:lang="en"',
    json: '"language":"en"',
  },
  excerpt: {
    page: '<meta name="description" content="Why the engine is more than a calculator."',
    list: '>Why the engine is more than a calculator.</p>',
    listTwin: ': Why the engine is more than a calculator.',
    rss: '<description>Why the engine is more than a calculator.</description>',
    atom: '<summary>Why the engine is more than a calculator.</summary>',
    json: '"summary":"Why the engine is more than a calculator."',
  },
  disclosure: {
    page: '<meta name="ai-disclosure" content="ai-autonomous"',
    list: null,
    listTwin: null,
    rss: '>ai-autonomous</category>',
    atom: ' term="ai-autonomous"',
    json: '"value":"ai-autonomous"',
  },
  // Of a picture that there is: see post-pictures.
  image: nowhere(),
  // Where there are no comments, nowhere: see api-engagement.
  commentsOpen: nowhere(),
};

type Shown = Readonly<Record<'page' | 'list' | 'listTwin' | 'rss' | 'atom' | 'json', string | null>>;

function nowhere(): Shown {
  return { page: null, list: null, listTwin: null, rss: null, atom: null, json: null };
}

/** Documents leave the excerpt out, since one that was made from the text would stay when that changes. */
const { excerpt: _excerpt, ...documented } = whole;

describeInstances('every field of a post', {}, (the, variant) => {
  test('is taken and answered by the API', async () => {
    const { client } = await the().agent('Json');
    const { post } = await client.publish({ ...whole, content });
    assertHas(post, 'publish', 'list');
    assertHas((await client.getPost(post.id)).post, 'publish', 'list', 'post');
    assertHas((await client.listPosts()).posts[0], 'publish', 'list');
    if (variant === 'subdomain') {
      assertHas((await client.discoverPosts({ agent: 'json' })).posts[0], 'publish', 'list');
      assertHas((await client.search('weaves')).posts[0], 'publish', 'list');
    }
    assert.equal((await client.publish({ ...whole, content })).changed, false);
  });

  test('can be changed alone, and taken away where null is taken', async () => {
    const { client } = await the().agent('Changer');
    const { post } = await client.publish({ ...whole, content });
    for (const name of postFieldNames) {
      const { changed } = await client.updatePost(post.id, { [name]: other[name] });
      assert.equal(changed, true, name);
      const { post: read } = await client.getPost(post.id);
      assert.deepEqual(Reflect.get(read, name), other[name]);
      const field: PostField = postFields[name];
      if (field.nullable !== true) continue;
      await client.updatePost(post.id, { [name]: null });
      const { post: without } = await client.getPost(post.id);
      if (field.initial === null) assert.equal(Reflect.get(without, name), null);
      else assert.notEqual(Reflect.get(without, name), other[name]);
    }
  });

  test('is taken from front matter and from the query, and a twin or archive gives it back', async () => {
    const agent = await the().agent('Markdown');
    const { client } = agent;
    const inQuery = await client.publishMarkdown(content, withoutNull(whole));
    await assertStored(client, inQuery.post.id);
    await client.deletePost(inQuery.post.id);
    const { post } = await client.publishMarkdown(formatFrontMatter(texts(whole), content));
    await assertStored(client, post.id);

    const twin = (await open(the(), `${post.url}.md`)).text;
    assertDocument(twin, documented);
    assert.equal((await client.publishMarkdown(twin)).changed, false);
    const archive = gunzipSync(Buffer.from(await (await client.exportMe()).arrayBuffer())).toString();
    const file = archive.slice(archive.indexOf('---\n', archive.indexOf('posts/'))).replace(/\0.*/s, '');
    assertDocument(file, whole);
    assert.equal((await client.publishMarkdown(file)).changed, false);
  });

  test('is shown on its page, in lists and in feeds', async () => {
    const { client, blogUrl } = await the().agent('Web');
    const { post } = await client.publish({ ...whole, content });
    const seen: Readonly<Record<keyof Shown, string>> = {
      page: (await open(the(), post.url)).text,
      list: (await open(the(), blogUrl)).text,
      listTwin: (await open(the(), `${blogUrl}/index.md`)).text,
      rss: (await open(the(), `${blogUrl}/rss.xml`)).text,
      atom: (await open(the(), `${blogUrl}/feed.xml`)).text,
      json: (await open(the(), `${blogUrl}/feed.json`)).text,
    };
    for (const name of postFieldNames)
      for (const [place, expected] of Object.entries(shown[name]))
        if (expected !== null)
          assert.ok(Reflect.get(seen, place).includes(expected), `${name} on ${place}: ${expected}`);
  });

  test('is taken and answered by the tools, and stands in the resource', async () => {
    const agent = await the().agent('Tools');
    const mcp = new Client({ name: 'test', version: '1' });
    const headers = { authorization: `Bearer ${agent.key}` };
    await mcp.connect(
      new StreamableHTTPClientTransport(new URL('/mcp', the().baseUrl), { requestInit: { headers } }),
    );
    const call = async (name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> => {
      const [block] = (await mcp.callTool({ name, arguments: args })).content;
      assert.equal(block?.type, 'text');
      return JSON.parse(block.text);
    };
    const { post } = await call('publish', { ...whole, content });
    assertHas(post, 'publish', 'list');
    const { posts } = await call('my_posts', { full: true });
    assert.ok(Array.isArray(posts));
    assertHas(posts[0], 'publish', 'list');
    const { id } = posts[0];
    assertHas((await call('get_post', { post: id })).post, 'publish', 'list', 'post');
    const { contents } = await mcp.readResource({ uri: `masthead://post/${id}` });
    assertDocument(String(Reflect.get(contents[0] ?? {}, 'text')), documented);
    await mcp.close();
  });

  test('is taken from a file by the command line, and what it prints publishes the same', async () => {
    const agent = await the().agent('Terminal');
    const dir = await mkdtemp(join(tmpdir(), 'masthead-fields-'));
    const env = { HOME: dir, MASTHEAD_URL: the().baseUrl, MASTHEAD_API_KEY: agent.key };
    const run = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await masthead(args, env);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const file = join(dir, 'post.md');
    await writeFile(file, formatFrontMatter(texts(whole), content));
    await run('post', 'publish', file);
    const [post] = (await agent.client.listPosts()).posts;
    assert.ok(post);
    await assertStored(agent.client, post.id);
    const { etag } = await agent.client.getPost(post.id);

    const printed = await run('post', 'get', whole.slug);
    assertDocument(`${printed}\n`, documented);
    await writeFile(join(dir, 'again.md'), `${printed}\n`);
    await run('post', 'publish', join(dir, 'again.md'));
    assert.equal((await agent.client.getPost(post.id)).etag, etag);
    await rm(dir, { recursive: true });
    const help = (await run('post', 'publish', '--help')).replaceAll(/\s+/g, ' ');
    for (const name of postFieldNames)
      assert.match(help, new RegExp(`Front matter may give [^.]*\\b${name}\\b`));
  });

  test('may hold neither a key that works nor hidden text', async () => {
    const agent = await the().agent('Careless');
    for (const name of postFieldNames) {
      const { kind }: PostField = postFields[name];
      const send = (text: string): Promise<Answer> =>
        the().call('POST', '/api/publish', {
          key: agent.key,
          body: { ...whole, content, [name]: kind === 'tags' ? [text] : text },
        });
      // Of the others, no value can be a key.
      const isText = (textFieldNames as readonly PostFieldName[]).includes(name);
      const leaked = assertProblem(await send(agent.key), isText ? 'leaked_key' : 'invalid_input');
      assert.equal(leaked.at('errors.0.field'), name);
      for (const hidden of ['a\u202Eb', 'a\u{E0041}b', '\u2800']) {
        const refused = assertProblem(await send(hidden), 'invalid_input');
        assert.match(String(refused.at('errors.0.field')), new RegExp(`^${name}\\b`), hidden);
      }
    }
    assert.equal((await agent.client.listPosts()).total, 0);
  });

  test('is looked through again where what was stored is shown', async () => {
    const [{ client }, eve] = [await the().agent('Late'), await the().agent('Eve')];
    const ctx = the().ctx();
    for (const name of [...textFieldNames, 'content']) {
      // Stored as any text is; then a key is given out that is the same, and the operator blocks the other.
      const [key, phrase] = [randomUUID(), randomUUID()];
      const draft = async (text: string, publishAt: string | null) => {
        // As readers see it, not in the markdown.
        const shownText = name === 'content' ? `${text.slice(0, 10)}**${text.slice(10)}**` : text;
        const value = name === 'tags' ? [shownText] : shownText;
        const fields = { title: text.slice(0, 4), excerpt: 'Late.', content, [name]: value };
        return (await client.publish({ ...fields, publishAt })).post;
      };
      const publishAt = new Date(the().clock.now() + 120_000).toISOString();
      const scheduled = await draft(key, publishAt);
      const blocked = await draft(phrase, null);
      await onDatabase(ctx, `update agents set key_hash = '${sha256(key)}' where id = '${eve.id}'`);
      await ctx.engine.write(blockSource, { kind: 'phrase', value: phrase });
      the().clock.advance(180_000);
      await publishDue(ctx, async () => true);
      const [failed] = (await client.inbox()).events.filter(({ post }) => post?.id === scheduled.id);
      assert.match(String(failed?.reason), new RegExp(`^'${name}' contains a key`));
      await client.deletePost(scheduled.id);
      await assert.rejects(client.restorePost(scheduled.id), {
        code: 'leaked_key',
        message: new RegExp(`'${name}' contains an API key`),
      });
      const { post } = await client.updatePost(blocked.id, { status: 'published' });
      assert.equal(post.moderation?.action, 'held', name);
    }
  });

  test('is not taken for a text of its author where its values are given', async () => {
    const { client } = await the().agent('Plain');
    await the().ctx().engine.write(blockSource, { kind: 'phrase', value: 'published' });
    const { post } = await client.publish({ ...whole, content });
    assert.equal(post.moderation, undefined);
  });
});

test('every field of a post is named in the guide for agents', async () => {
  const guide = await readFile(new URL('../docs/agents.md', import.meta.url), 'utf8');
  const [sentence] = /Front matter may give [^.]*\./.exec(guide) ?? [];
  for (const name of postFieldNames) assert.ok(sentence?.includes(`\`${name}\``), name);
});

function withoutNull<Fields extends object>(fields: Fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== null);
  return Object.fromEntries(given) as { readonly [Name in keyof Fields]: Exclude<Fields[Name], null> };
}

/** As front matter has them. */
function texts(fields: Partial<PostFieldValues>): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) =>
      value === null || value === true
        ? []
        : [[name, typeof value === 'object' ? [...value] : String(value)]],
    ),
  );
}

/** An answer has all fields that answers of these kinds are the first to name, and none of the others. */
function assertHas(post: unknown, ...kinds: PostField['answered'][]): void {
  assert.ok(typeof post === 'object' && post !== null);
  const answered = Object.fromEntries(postFieldNames.map((name) => [name, Reflect.get(post, name)]));
  const expected = postFieldNames.map((name) => [
    name,
    kinds.includes(postFields[name].answered) ? whole[name] : undefined,
  ]);
  assert.deepEqual(answered, Object.fromEntries(expected));
}

async function assertStored(client: MastheadClient, id: string): Promise<void> {
  const { post } = await client.getPost(id);
  assertHas(post, 'publish', 'list', 'post');
  assert.equal(post.content, content);
}

/** A document has these fields of a post and no others, and the content. */
function assertDocument(document: string, fields: Partial<PostFieldValues>): void {
  const parsed = parseFrontMatter(document);
  assert.ok(parsed.ok, document);
  const ofPost = Object.entries(parsed.fields).filter(([name]) => Object.hasOwn(postFields, name));
  assert.deepEqual(Object.fromEntries(ofPost), texts(fields));
  assert.deepEqual(
    ofPost.map(([name]) => name),
    documentedPostFields.filter((name) => Object.hasOwn(texts(fields), name)),
    'every document has them in one order',
  );
  assert.equal(parsed.content, content);
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCodes } from '../src/errors.ts';
import type { JsonSchema, OpenApiDocument } from '../src/schemas/openapi.ts';
import { disclosures } from '../src/web/disclosure.ts';
import { firstCalls } from '../src/web/documents/first-calls.ts';
import { agentSkillsIndex } from '../src/web/documents/skill.ts';
import { keyFileLine, keyFileName } from '../src/rules/agent-setup.ts';
import { sha256 } from '../src/rules/secrets.ts';
import { bodySchemaOf, documentOf, operationAt, operationsOf, parametersOf } from './support/api-document.ts';
import { describeInstances, type Instance } from './support/instance.ts';
import { makePng } from './support/made-pictures.ts';
import { listedCalls, noteNamed, shellBlocks, shellCalls, type ShellCall } from './support/shell-calls.ts';

const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';
const variables = {
  TOKEN: id,
  HOME: '/home/ada',
  POST_ID: id,
  COMMENT_ID: id,
  MEDIA_ID: id,
  UPLOAD_TOKEN: id,
  REVISION: '1',
  AGENT_SLUG: 'grace',
  MASTHEAD_API_KEY: id,
  CURSOR: 'WyJpbmJveCIsNDJd',
};
/** Calls that every agent makes. */
const daily = [
  'register',
  'verify',
  'publish',
  'myPosts',
  'getPost',
  'previewPost',
  'updatePost',
  'deletePost',
  'restorePost',
  'uploadMedia',
  'updateMe',
  'regenerateKey',
  'recover',
  'confirmRecovery',
  'inbox',
  'markInboxSeen',
  'deleteMe',
  'restoreMe',
];
/** What an agent has written to files: a post, and the key of this service. */
const filesAt = (baseUrl: string) => ({ ...postFile, [keyFileAt(baseUrl)]: keyFileLine(id) });
const variablesAt = (baseUrl: string) => ({ ...variables, MASTHEAD_KEY: keyFileAt(baseUrl) });
const keyFileAt = (baseUrl: string) => `${variables.HOME}/.config/masthead/${keyFileName(baseUrl)}`;
const postFile = { 'picture.png': '', 'post.md': '---\ntitle: A\n---\n\ntext' };

describeInstances('every description of the service', {}, (the, variant) => {
  test('shows calls in skill.md, on the front page and in the document that the document describes', async () => {
    const instance = the();
    const { baseUrl } = instance;
    const document = await documentOf(instance);
    const slugSource = variant === 'subdomain' ? 'client' : 'name';
    const skill = await skillOf(instance);
    const samples = operationsOf(document).flatMap(({ operation }) => operation['x-codeSamples']);
    const texts = [
      ...shellBlocks(skill),
      ...Object.values(firstCalls(baseUrl, slugSource)),
      ...samples.map(({ source }) => source),
    ];
    const calls = texts.flatMap((text) => shellCalls(text, variablesAt(baseUrl), filesAt(baseUrl)));
    for (const call of calls) assertDescribed(document, call, baseUrl);
    const listed = listedCalls(skill, baseUrl, variables);
    assert.ok(calls.length + listed.length > 20);
    for (const call of listed) assertPlaced(document, call, baseUrl);
  });

  test('has what daily life takes in skill.md, and leads to the rest', async () => {
    const document = await documentOf(the());
    const skill = await skillOf(the());
    const calls = [
      ...shellBlocks(skill).flatMap((block) =>
        shellCalls(block, variablesAt(the().baseUrl), filesAt(the().baseUrl)),
      ),
      ...listedCalls(skill, the().baseUrl, variables),
    ];
    const shown = new Set(
      calls.map(({ method, url }) => operationAt(document, method, url.pathname)?.operation.operationId),
    );
    const social = ['listPosts', 'search', 'listComments', 'addComment', 'vote', 'block'];
    for (const name of [...daily, ...(variant === 'subdomain' ? social : [])])
      assert.ok(shown.has(name), name);
    assert.ok(skill.includes(`${the().baseUrl}/docs.md`));
    for (const path of ['/docs/publish.md', '/problems/{code}.md', '/api/openapi.json', '/docs/mcp.md'])
      assert.ok(skill.includes(`\`${path}\``), path);
    for (const sentence of [/works for 24 hours.*held for 1 hour/, /If-Match/, /comes by mail too/])
      assert.match(skill, sentence);
  });

  test('has the whole of the document on the reference page', async () => {
    const document = await documentOf(the());
    const page = (await the().call('GET', '/docs')).text;
    for (const { method, path, operation } of operationsOf(document)) {
      assert.ok(page.includes(`id="${operation.operationId}"`), operation.operationId);
      assert.ok(page.includes(`<code>${method} ${path}</code>`), `${method} ${path}`);
    }
    for (const code of errorCodes) assert.ok(page.includes(`/problems/${code}"`), code);
    const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), ([, each = '']) => each);
    assert.deepEqual(
      ids.filter((each, at) => ids.indexOf(each) !== at),
      [],
    );
    for (const [, target = ''] of page.matchAll(/href="#([^"]+)"/g)) assert.ok(ids.includes(target), target);
    for (const { policy, limit } of document['x-limits']) {
      assert.ok(page.includes(`<code>${policy}</code>`));
      assert.ok(page.includes(`${limit} calls for each`));
    }
    for (const disclosure of Object.keys(disclosures)) assert.ok(page.includes(`<code>${disclosure}</code>`));
  });

  test('gives the limits that are in force', async () => {
    const instance = the();
    const { limits } = instance.ctx().config;
    const inForce = Object.entries(limits).filter(([, limit]) => limit > 0);
    const document = await documentOf(instance);
    const given = document['x-limits'].map(({ policy, limit }) => [policy, limit]);
    assert.deepEqual(Object.fromEntries(given), Object.fromEntries(inForce));
    const skill = await skillOf(instance);
    for (const [policy, limit] of inForce) {
      assert.ok(document.info.description.includes(`\`${policy}\`: ${limit} calls`), policy);
      assert.match(skill, new RegExp(`[ ,]${limit} (?:publishing |other )?calls`));
    }
  });

  test('gives the lengths and choices that are checked', async () => {
    const document = await documentOf(the());
    const skill = await skillOf(the());
    const publish = bodyOf(document, 'publish').properties ?? {};
    const lengths = { title: 'characters', slug: 'of', excerpt: 'characters' } as const;
    for (const [name, unit] of Object.entries(lengths))
      assert.ok(skill.includes(`\`${name}\` (${publish[name]?.maxLength} ${unit}`), name);
    const { maxItems, items } = publish['tags'] ?? {};
    assert.ok(skill.includes(`\`tags\` (${maxItems} of ${items?.maxLength} characters)`));
    const bio = bodyOf(document, 'register').properties?.['bio']?.maxLength;
    assert.ok(skill.includes(`(at most ${bio} characters)`));
    assert.deepEqual(publish['disclosure']?.enum, Object.keys(disclosures));
    for (const choice of Object.keys(disclosures).slice(1))
      assert.ok(skill.includes(`\`${choice}\``), choice);
    if (variant === 'subdomain') {
      const comment = bodyOf(document, 'addComment').properties?.['content']?.maxLength ?? 0;
      assert.ok(skill.includes(`1 to ${comment.toLocaleString('en')} characters`));
    }
  });

  test('knows the same error codes everywhere, and explains each at its address', async () => {
    const document = await documentOf(the());
    const used = new Set(operationsOf(document).flatMap(({ operation }) => operation['x-errors']));
    // No operation answers with a method that it lacks, and where there are no comments none refuses them.
    assert.deepEqual(
      errorCodes.filter((code) => !used.has(code)),
      [
        ...(variant === 'path' ? ['blocked', 'comments_closed'] : []),
        'method_not_allowed',
        'expectation_failed',
        'not_implemented',
      ],
    );
    for (const code of errorCodes) {
      const page = await the().call('GET', `/problems/${code}`);
      assert.equal(page.status, 200, code);
      assert.ok(page.text.includes(`&quot;code&quot;: &quot;${code}&quot;`), code);
    }
  });

  test('leads to addresses that there are', async () => {
    const instance = the();
    const index: unknown = JSON.parse(
      (await instance.call('GET', '/.well-known/agent-skills/index.json')).text,
    );
    assert.deepEqual(index, JSON.parse(agentSkillsIndex(instance.ctx().config)));
    const skill = await skillOf(instance);
    assert.ok(JSON.stringify(index).includes(`sha256:${sha256(skill)}`));
    assert.ok(skill.length < 4 * 4_000, 'more than about 4,000 tokens');
    for (const path of ['/.well-known/api-catalog', '/llms.txt', '/skill.md']) {
      const { status, text } = await instance.call('GET', path);
      assert.equal(status, 200, path);
      const links = text.matchAll(
        /(?:\]\(|"href":"|: )(http:\/\/localhost:\d+)(\/[\w./-]*[\w/])(?=[)"\s,])/g,
      );
      for (const [, , address = ''] of links) {
        // The blog of the examples is nobody's.
        if (address.startsWith('/ada')) continue;
        const found = await instance.call('GET', address);
        assert.ok([200, 405].includes(found.status), `${path} leads to ${address}: ${found.status}`);
      }
    }
  });
});

describeInstances('skill.md', {}, (the) => {
  test('leads an agent that follows it to the letter through a whole life without one failed call', async () => {
    const instance = the();
    const skill = await skillOf(instance);
    const blocks = shellBlocks(skill);
    const keyFile = keyFileAt(instance.baseUrl);
    const stored = keyFile.replace(variables.HOME, '~');
    const store = blocks.find((block) => block.includes('PASTE_THE_KEY_HERE')) ?? '';
    assert.ok(store.includes(`echo '${keyFileLine('PASTE_THE_KEY_HERE')}' > ${stored})`));
    assert.ok(store.includes(`export MASTHEAD_KEY=${stored}\n`));
    const { slug } = await instance.agent('Grace');
    const known: Record<string, string> = {
      HOME: variables.HOME,
      MASTHEAD_KEY: keyFile,
      MASTHEAD_API_KEY: id,
      AGENT_SLUG: slug,
    };

    async function make(source: string, read: () => ShellCall[]): Promise<void> {
      if (/\$TOKEN|"token"/.test(source)) known['TOKEN'] = await instance.token('ada@example.com');
      for (const { method, url, headers, body } of read()) {
        const isPicture = url.pathname === '/api/media';
        const answer = await instance.call(method, url.pathname + url.search, {
          headers: { ...headers, ...(isPicture ? { 'content-type': 'image/png' } : {}) },
          ...(isPicture ? { body: makePng() } : body === null ? {} : { body }),
        });
        assert.ok(answer.status < 300, `${source} ${answer.status} ${answer.text}`);
        assert.deepEqual(answer.at('warnings'), [], source);
        noteNamed(answer, known);
      }
    }
    const filesNow = () => ({ [keyFile]: keyFileLine(known['MASTHEAD_API_KEY'] ?? '') });
    for (const { source } of blocks.flatMap((block) =>
      shellCalls(block, variablesAt(instance.baseUrl), filesNow()),
    ))
      await make(source, () => shellCalls(source, known, filesNow()));
    for (const { source } of listedCalls(skill, instance.baseUrl, variables))
      await make(source, () => listedCalls(source, instance.baseUrl, known));
    assert.equal(
      (await instance.client(known['MASTHEAD_API_KEY'] ?? '').me()).agent.bio,
      'Writes about tides.',
    );
  });
});

/** A call of a text is one of the document: its parameters, its fields, and the key where it is needed. */
function assertDescribed(document: OpenApiDocument, call: ShellCall, baseUrl: string): void {
  const { security, requestBody } = assertPlaced(document, call, baseUrl).operation;
  const hasKey = call.headers['authorization'] === `Bearer ${id}`;
  const takesKey = security.some((scheme) => Object.hasOwn(scheme, 'apiKey'));
  const needsKey = takesKey && security.length === 1;
  assert.ok(needsKey ? hasKey : takesKey || !hasKey, `the key: ${call.source}`);
  const type = call.headers['content-type'];
  assert.equal(requestBody === undefined, type === undefined, `the body: ${call.source}`);
  if (type !== undefined) assert.ok(requestBody?.content[type], `the type: ${call.source}`);
}

/** The operation of a call, whose parameters and fields it has. */
function assertPlaced(document: OpenApiDocument, call: ShellCall, baseUrl: string) {
  assert.equal(call.url.origin, baseUrl, call.source);
  const placed = operationAt(document, call.method, call.url.pathname);
  assert.ok(placed, `not in the document: ${call.source}`);
  const names = [...call.url.searchParams.keys()];
  assert.deepEqual(
    names.filter((name) => !parametersOf(placed.operation.parameters, 'query').includes(name)),
    [],
    call.source,
  );
  if (call.headers['content-type'] !== 'application/json') return placed;
  const sent: object = JSON.parse(call.body ?? '');
  const fields = Object.keys(bodySchemaOf(placed)?.properties ?? {});
  assert.deepEqual(
    Object.keys(sent).filter((name) => !fields.includes(name)),
    [],
    call.source,
  );
  return placed;
}

function bodyOf(document: OpenApiDocument, operationId: string): JsonSchema {
  const placed = operationsOf(document).find(({ operation }) => operation.operationId === operationId);
  return (placed && bodySchemaOf(placed)) ?? {};
}

async function skillOf(instance: Instance): Promise<string> {
  return (await instance.call('GET', '/skill.md')).text;
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errorCodes } from '../src/errors.ts';
import { bodySchemaOf, documentOf, operationsOf, parametersOf } from './support/api-document.ts';
import { describeInstances } from './support/instance.ts';

/** The largest piece, bytes: what a model can read beside its work. */
const largest = 8_000;
const asMarkdown = { headers: { accept: 'text/markdown' } };

describeInstances('the reference in pieces', {}, (the) => {
  /** A page in both forms: HTML at its address, markdown at `.md` and by `Accept`. */
  async function read(path: string): Promise<string> {
    const page = await the().call('GET', path, { headers: { accept: 'text/html' } });
    assert.equal(page.status, 200, path);
    assert.match(String(page.headers['content-type']), /^text\/html/);
    assert.match(String(page.headers['link']), new RegExp(`${path}\\.md>; rel="alternate"`));
    const twin = await the().call('GET', `${path}.md`);
    assert.match(String(twin.headers['content-type']), /^text\/markdown/, path);
    const negotiated = await the().call('GET', path, asMarkdown);
    assert.equal(negotiated.text, twin.text);
    assert.equal(negotiated.headers['content-location'], `${the().baseUrl}${path}.md`);
    return twin.text;
  }

  test('has an index with a line for each call', async () => {
    const text = await read('/docs');
    assert.ok(Buffer.byteLength(text) <= largest, String(Buffer.byteLength(text)));
    for (const { method, path, operation } of operationsOf(await documentOf(the())))
      assert.ok(text.includes(`- \`${operation.operationId}\`: ${method} ${path}`), operation.operationId);
    for (const [, link = ''] of text.matchAll(/(http:\/\/localhost:\d+\/[\w./-]*[\w/])(?![\w{])/g)) {
      if (link.endsWith('/docs/') || link.endsWith('/problems/') || link.endsWith('/mcp')) continue;
      const { status } = await the().call('GET', link.slice(the().baseUrl.length));
      assert.equal(status, 200, link);
    }
  });

  test('has a page for each call, with all that it takes, answers and fails with', async () => {
    const document = await documentOf(the());
    for (const placed of operationsOf(document)) {
      const { operationId, parameters, responses } = placed.operation;
      assert.ok(!['changes', 'changelog', 'mcp'].includes(operationId));
      const text = await read(`/docs/${operationId}`);
      assert.ok(Buffer.byteLength(text) <= largest, `${operationId}: ${Buffer.byteLength(text)}`);
      assert.ok(text.startsWith(`# ${placed.method} ${placed.path}\n`));
      const names = [
        ...['query', 'path', 'header'].flatMap((place) => parametersOf(parameters, place)),
        ...Object.keys(bodySchemaOf(placed)?.properties ?? {}),
        ...Object.values(responses).flatMap((response) => {
          const schema = 'content' in response ? response.content?.['application/json']?.schema : undefined;
          const name = schema?.$ref?.split('/').at(-1) ?? '';
          return Object.keys(document.components.schemas[name]?.properties ?? {});
        }),
      ];
      for (const name of names) assert.match(text, new RegExp(`^- \`${name}[.[\`]`, 'm'), operationId);
      for (const code of placed.operation['x-errors']) assert.ok(text.includes(` ${code}\``), operationId);
    }
  });

  test('explains every error code at its address', async () => {
    const all = await read('/problems');
    for (const code of errorCodes) {
      assert.ok(all.includes(`- \`${code}\``), code);
      const text = await read(`/problems/${code}`);
      assert.ok(text.includes(`"code": "${code}"`) && Buffer.byteLength(text) <= largest, code);
    }
  });

  test('has the policy of changes, and the changelog as it is shipped', async () => {
    assert.match(await read('/docs/changes'), /Deprecation.*Sunset/s);
    const shipped = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8');
    const served = await read('/docs/changelog');
    assert.deepEqual(served.match(/^#.*/gm), shipped.match(/^#.*/gm));
    assert.doesNotMatch(served, /\]\((?!https?:)/);
    const page = (await the().call('GET', '/docs/changes')).text;
    assert.match(page, /<a href="http:\S+\/docs\/changelog.md">/);
  });

  test('has how a client of MCP is set up', async () => {
    const text = await read('/docs/mcp');
    assert.ok(Buffer.byteLength(text) <= 2000, String(Buffer.byteLength(text)));
    const [, configuration = ''] = /```json\n([^]*?)\n```/.exec(text) ?? [];
    const { url } = JSON.parse(configuration).mcpServers.masthead;
    assert.equal(url, `${the().baseUrl}/mcp`);
    for (const path of ['/skill.md', '/llms.txt', '/docs.md'])
      assert.ok((await the().call('GET', path)).text.includes('/docs/mcp.md'), path);
    assert.match(String((await the().call('GET', '/mcp')).at('hint')), /\/docs\/mcp\.md says more/);
  });

  test('has nothing at other addresses', async () => {
    for (const path of [
      '/docs/nothing',
      '/docs/nothing.md',
      '/problems/nothing',
      '/docs/.md',
      '/docs/toString',
    ])
      assert.equal((await the().call('GET', path)).status, 404, path);
  });
});

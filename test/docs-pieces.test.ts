import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errorCodes } from '../src/errors.ts';
import { renderComment, renderPost } from '../src/markdown/render.ts';
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
      assert.ok(!['changes', 'changelog', 'markdown', 'mcp'].includes(operationId));
      const text = await read(`/docs/${operationId}`);
      assert.ok(Buffer.byteLength(text) <= largest, `${operationId}: ${Buffer.byteLength(text)}`);
      assert.ok(text.startsWith(`# ${placed.method} ${placed.path}\n`));
      // A long answer that another call has too is listed there.
      const [, elsewhere] = /^As `(\w+)` answers: \S+\/docs\/\1\.md$/m.exec(text) ?? [];
      const listed = elsewhere === undefined ? text : text + (await read(`/docs/${elsewhere}`));
      const names = [
        ...['query', 'path', 'header'].flatMap((place) => parametersOf(parameters, place)),
        ...Object.keys(bodySchemaOf(placed)?.properties ?? {}),
      ];
      for (const name of names) assert.match(text, new RegExp(`^- \`${name}[.[\`]`, 'm'), operationId);
      const answered = Object.values(responses).flatMap((response) => {
        const schema = 'content' in response ? response.content?.['application/json']?.schema : undefined;
        const name = schema?.$ref?.split('/').at(-1) ?? '';
        return Object.keys((document.components.schemas[name] ?? schema)?.properties ?? {});
      });
      for (const name of answered) assert.match(listed, new RegExp(`^- \`${name}[.[\`]`, 'm'), operationId);
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

  test('says of a change of a post what is so for that call alone', async () => {
    const changed = await read('/docs/updatePost');
    assert.match(changed, /^As `publish` answers: \S+\/docs\/publish\.md$/m);
    assert.match(changed, /^- `slug` .*Another one moves it\.$/m);
    assert.doesNotMatch(changed, /of the same slug is updated|by default|if absent.*if absent/);
    assert.match(changed, /^- `edits\[\]\.old` string, required: Text of the content, exactly\./m);
    const restored = await read('/docs/restoreRevision');
    assert.ok(Buffer.byteLength(restored) <= 2500, String(Buffer.byteLength(restored)));
    assert.doesNotMatch(restored, /edit_not_applied|slug_taken|idempotency/);
    const published = await read('/docs/publish');
    assert.match(published, /fields left out stay as they are/);
    assert.match(published, /\?status=published&tags=a,b/);
    assert.match(published, /the heading that it begins with is the title/);
    assert.ok(published.includes('/docs/markdown.md'));
  });

  test('has what markdown may hold, by examples that become what it says', async () => {
    const text = await read('/docs/markdown');
    assert.ok(Buffer.byteLength(text) <= 4000, String(Buffer.byteLength(text)));
    for (const path of ['/skill.md', '/docs.md', '/docs/publish.md'])
      assert.ok((await the().call('GET', path)).text.includes('/docs/markdown.md'), path);
    const examples = Array.from(
      text.matchAll(/^`{4}markdown\n([^]*?)\n`{4}$/gm),
      ([, example = '']) => example,
    );
    const parts = [
      [/^<figure [^>]*>\n<img [^>]*alt="A lamp"[^>]*>\n<figcaption>The lamp of 1820<\/figcaption>/],
      [/class="callout warning"[^>]*>\n<p class="callout-title">Hot<\/p>\n<p>The glass/],
      [
        /is <math><mrow><mi>P<\/mi>/,
        /<math display="block"><mi>R<\/mi>|<math display="block"><mrow><mi>R<\/mi>/,
      ],
      [/<span>lamp\.js<\/span> <span>js<\/span>/, /<span>mermaid, shown as source<\/span>/],
      [/<dt>Lumen<\/dt>\n<dd>How much light/],
      [
        /<nav class="toc"[^>]*>\n<ul>\n<li class="level-2"><a href="#h-whale-oil">Whale oil<\/a>/,
        /well<sup class="footnote-ref">/,
        /🔥 until <a href="#h-gas">/,
        /role="doc-endnotes"[^]*And smelt\./,
      ],
      [/<strong>电灯。<\/strong>它/],
      [
        /<mark>new<\/mark> <ins>in<\/ins> <s>out<\/s> <u>name<\/u> <small>fine print<\/small> H<sub>2<\/sub>O/,
        /10<sup>3<\/sup>, <kbd>Esc<\/kbd>, <abbr title="light-emitting diode">LED<\/abbr>, <ruby>灯<rt>dēng<\/rt><\/ruby><br>next line\s*<\/p>/,
        /<details>\n<summary[^>]*>More<\/summary>\n<p[^>]*>Hidden until/,
      ],
    ];
    assert.equal(examples.length, parts.length);
    for (const [n, example] of examples.entries()) {
      const { html, warnings } = renderPost(example);
      for (const part of parts[n] ?? []) assert.match(html, part);
      // What a comment says is left out for others.
      assert.deepEqual(
        warnings.map(({ code }) => code),
        example.includes('<!--') ? ['unseen_text'] : [],
      );
    }
    for (const kind of ['NOTE', 'TIP', 'IMPORTANT', 'CAUTION'])
      assert.match(
        renderPost(`> [!${kind}]\n> x`).html,
        new RegExp(`callout-title"><bdi lang="en">${kind}<`, 'i'),
      );
    for (const formula of ['\\(x^2\\)', '\\[x^2\\]', '```math\nx^2\n```'])
      assert.match(renderPost(formula).html, /<math/);
    assert.match(
      renderPost('<img src="https://example.com/a.png" alt="A" width="320" height="200">').html,
      /<img [^>]*width="320" height="200"/,
    );
    assert.equal(renderPost('<b>x</b>').warnings[0]?.code, 'raw_html');
    const comment = renderComment('# H\n\n![p](https://example.com/a.png)\n\n- *e* `c`\n\n> q').html;
    assert.match(
      comment,
      /<strong>H<\/strong>[^]*<a href="https:\/\/example.com\/a.png"[^]*<li><em>[^]*<code>[^]*<blockquote/,
    );
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

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { renderPost } from '../src/markdown/render.ts';
import { withoutRepeatedTitle } from '../src/rules/text/repeated-title.ts';
import { modelPosts } from './support/model-posts.ts';

describe('posts as language models write them', () => {
  const rendered = modelPosts.map(({ title, markdown }) =>
    withoutRepeatedTitle({ title, html: renderPost(markdown).html }).html.trimEnd(),
  );

  for (const [at, { topic, title, html }] of modelPosts.entries())
    test(`${topic}: ${title}`, () => {
      assert.equal(plain(rendered[at] ?? ''), html);
    });

  test('are at least 200, with highlighted code in ten languages', () => {
    assert.ok(modelPosts.length >= 200);
    const highlighted = rendered
      .join('')
      .matchAll(/<code class="language-([^"]+)">(?=[^\n]*<span class="hljs)/g);
    const languages = new Set(Array.from(highlighted, ([, language]) => language));
    assert.ok(languages.size >= 10, [...languages].join(' '));
  });
});

/** Without what highlight.js and temml decide alone: classes of words of code, and how operators are spaced. */
function plain(html: string): string {
  return withoutClasses(
    html.replace(/<math\b.*?<\/math>/gs, (math) =>
      math.replace(/<([a-z]+)( display="block")?[^>]*>/g, '<$1$2>'),
    ),
  );
}

function withoutClasses(html: string): string {
  const inner = html.replace(/<span class="hljs[^"]*">([^<]*)<\/span>/g, '$1');
  return inner === html ? html : withoutClasses(inner);
}

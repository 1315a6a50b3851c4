import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import MarkdownIt, { type Token } from 'markdown-it';
import { AppError } from '../src/errors.ts';
import { leanTokens } from '../src/markdown/parse/lean.ts';
import { renderComment, renderPost } from '../src/markdown/render.ts';

const rel = 'rel="ugc nofollow noopener"';

describe('a post in HTML', () => {
  const cases: readonly (readonly [what: string, markdown: string, html: string])[] = [
    [
      'a heading gets an id, an anchor and the level after the title',
      '# A *b*',
      '<h2 id="h-a-b" dir="auto">A <em>b</em> <a class="anchor" href="#h-a-b" aria-labelledby="h-a-b"></a></h2>\n',
    ],
    [
      'a link says whose it is',
      '[a](https://b.example "t")',
      `<p dir="auto"><a href="https://b.example" title="t" ${rel}>a</a></p>\n`,
    ],
    [
      'a relative link stays relative, and is as good as our own',
      '[a](../b?c#d) [e](//f.example) [g](/\\h.example)',
      `<p dir="auto"><a href="../b?c#d">a</a> <a href="//f.example" ${rel}>e</a> <a href="/%5Ch.example">g</a></p>\n`,
    ],
    [
      'an image is lazy and sends no referrer',
      '![a *b*](https://c.example/d.png "t") c',
      '<p dir="auto"><img src="https://c.example/d.png" alt="a b" title="t" loading="lazy" decoding="async" referrerpolicy="no-referrer"> c</p>\n',
    ],
    [
      'a table that fits every screen is no stop of the Tab key, and aligns by class',
      '| a | b |\n| :- | -: |',
      '<div class="table">\n<table dir="auto">\n<thead>\n<tr>\n' +
        '<th class="left">a</th>\n<th class="right">b</th>\n</tr>\n</thead>\n</table>\n</div>\n',
    ],
    [
      'a task is a checkbox with a name',
      '- [x] a\n- [ ] b',
      '<ul dir="auto">\n<li class="task"><input type="checkbox" disabled checked aria-label="Done"> a</li>\n' +
        '<li class="task"><input type="checkbox" disabled aria-label="To do"> b</li>\n</ul>\n',
    ],
    [
      'an ordered list is counted, however its items are numbered',
      '7. a\n7. b\n8. c\n02) d\n02) e\n9) f',
      '<ol start="7" dir="auto">\n<li>a</li>\n<li>b</li>\n<li>c</li>\n</ol>\n' +
        '<ol start="2" dir="auto">\n<li>d</li>\n<li>e</li>\n<li>f</li>\n</ol>\n',
    ],
    [
      'a number that is no way of counting is shown',
      '5. a\n   1. b\n   83. c\n   2. d\n6767. e\n008. f\n5. g',
      '<ol start="5" dir="auto">\n<li>a<ol>\n<li>b</li>\n<li value="83">c</li>\n<li value="3">d</li>\n' +
        '</ol>\n</li>\n<li class="digits-4" value="6767">e</li>\n<li value="8">f</li>\n<li value="8">g</li>\n</ol>\n',
    ],
    [
      'a long number says how long it is, and a task keeps its number',
      '99. a\n100. b\n1. [ ] c\n123456789. [x] d',
      '<ol start="99" dir="auto">\n<li>a</li>\n<li class="digits-3">b</li>\n' +
        '<li class="task digits-3"><input type="checkbox" disabled aria-label="To do"> c</li>\n' +
        '<li class="task digits-9" value="123456789"><input type="checkbox" disabled checked aria-label="Done"> d</li>\n</ol>\n',
    ],
    ['an ordered list keeps its start', '7. a', '<ol start="7" dir="auto">\n<li>a</li>\n</ol>\n'],
    [
      'code is highlighted by class',
      '```js\nlet a\n```',
      '<figure class="code">\n<figcaption><span>js</span></figcaption>\n' +
        '<pre><code class="language-js"><span class="hljs-keyword">let</span> a\n</code></pre>\n</figure>\n',
    ],
    [
      'code in a language nobody knows is plain',
      '```brainfog\n<a>\n```',
      '<figure class="code">\n<figcaption><span>brainfog</span></figcaption>\n' +
        '<pre><code class="language-brainfog">&lt;a&gt;\n</code></pre>\n</figure>\n',
    ],
    [
      'code of a line that only a narrow screen has no room for is reached by the keyboard there',
      `\`\`\`\n${'a'.repeat(33)}\n\`\`\``,
      `<pre class="fits" tabindex="0"><code>${'a'.repeat(33)}\n</code></pre>\n`,
    ],
    [
      'code within a list has less room',
      `- a\n\n      ${'a'.repeat(49)}`,
      `<ul dir="auto">\n<li><p>a</p>\n<pre tabindex="0"><code>${'a'.repeat(49)}\n</code></pre>\n</li>\n</ul>\n`,
    ],
    [
      'code that fits is no stop of the Tab key',
      `\`\`\`\n${'a'.repeat(32)}\nb\n\`\`\``,
      `<pre><code>${'a'.repeat(32)}\nb\n</code></pre>\n`,
    ],
    [
      'wide letters and tabs have their width',
      '```\n\t日本語日本語日本語日本語日本語\n```',
      '<pre class="fits" tabindex="0"><code>\t日本語日本語日本語日本語日本語\n</code></pre>\n',
    ],
    ['a language is never guessed', '```\nlet a\n```', '<pre><code>let a\n</code></pre>\n'],
    [
      'an info string is escaped',
      '```"><script>\na\n```',
      '<figure class="code">\n<figcaption><span>&quot;&gt;&lt;script&gt;</span></figcaption>\n' +
        '<pre><code class="language-&quot;&gt;&lt;script&gt;">a\n</code></pre>\n</figure>\n',
    ],
    [
      'our own tags work within text',
      'H<sub>2</sub>O<br>E=mc<SUP>2</SUP> <kbd>^C</kbd>',
      '<p dir="auto">H<sub>2</sub>O<br>E=mc<sup>2</sup> <kbd>^C</kbd></p>\n',
    ],
    [
      'our own tags count only when closed where they were opened',
      '<sub>a *b</sub>* </kbd> <kbd class="x">',
      '<p dir="auto">&lt;sub&gt;a <em>b&lt;/sub&gt;</em> &lt;/kbd&gt; &lt;kbd class=&quot;x&quot;&gt;</p>\n',
    ],
    [
      'details hold markdown',
      '<details open>\n<summary>A *b*</summary>\n\n- c\n\n</details>',
      '<details open>\n<summary dir="auto">A <em>b</em></summary>\n<ul dir="auto">\n<li>c</li>\n</ul>\n</details>\n',
    ],
    [
      'details without a summary get one',
      '<details>\na\n</details>',
      '<details>\n<summary>Details</summary>\n<p dir="auto">a</p>\n</details>\n',
    ],
    [
      'details that are not closed in their container are text',
      '> <details><summary>a</summary>\n\n</details>',
      '<blockquote dir="auto">\n<p>&lt;details&gt;</p>\n<p>&lt;summary&gt;a&lt;/summary&gt;</p>\n</blockquote>\n' +
        '<p dir="auto">&lt;/details&gt;</p>\n',
    ],
    ['an HTML comment shows nothing', 'a <!-- do as I say --> b', '<p dir="auto">a  b</p>\n'],
    ['one that is never closed is text', 'a <!-- b', '<p dir="auto">a &lt;!-- b</p>\n'],
    [
      'an entity of something invisible is shown as it was written',
      'a&#x202e;b &zwj; &#xe0041; &nbsp;&#9;&lt;',
      '<p dir="auto">a&amp;#x202e;b &amp;zwj; &amp;#xe0041; \u00a0\t&lt;</p>\n',
    ],
    [
      'an address keeps its underscores',
      'https://a.example/__init__.py',
      `<p dir="auto"><a href="https://a.example/__init__.py" ${rel}>https://a.example/__init__.py</a></p>\n`,
    ],
    [
      'an address ends at full-width punctuation',
      '看https://a.example/b。好',
      `<p dir="auto">看<a href="https://a.example/b" ${rel}>https://a.example/b</a>。好</p>\n`,
    ],
    [
      'an address in a link text is text',
      '[https://a.example](https://b.example)',
      `<p dir="auto"><a href="https://b.example" ${rel}>https://a.example</a></p>\n`,
    ],
    [
      'a look-alike host is shown encoded where it was written so',
      '<https://xn--80ak6aa92e.example>',
      `<p dir="auto"><a href="https://xn--80ak6aa92e.example" ${rel}>https://xn--80ak6aa92e.example</a></p>\n`,
    ],
    ['straight quotes and dashes stay', '"a" -- \'b\'...', '<p dir="auto">&quot;a&quot; -- \'b\'...</p>\n'],
  ];
  for (const [what, markdown, html] of cases) {
    test(what, () => assert.equal(renderPost(markdown).html, html));
  }

  test('footnotes are numbered by first reference, linked both ways, and may refer to each other', () => {
    const { html } = renderPost('a[^x] b[^y] c[^X] d[^no]\n\n[^y]: Y[^z]\n[^x]:\n    > X\n[^z]: Z');
    const notes = Array.from(
      html.matchAll(/<li id="(fn-\d)"[^>]*>\s*(?:<blockquote>\s*)?<p>(\w)/g),
      ([, id, text]) => `${id} ${text}`,
    );
    assert.deepEqual(notes, ['fn-1 X', 'fn-2 Y', 'fn-3 Z']);
    assert.deepEqual(
      Array.from(html.matchAll(/ id="(fnref-[\d-]+)"/g), ([, id]) => id),
      ['fnref-1', 'fnref-2', 'fnref-1-2', 'fnref-3'],
    );
    assert.deepEqual(
      Array.from(html.matchAll(/href="#(fnref-[\d-]+)"/g), ([, id]) => id),
      ['fnref-1', 'fnref-1-2', 'fnref-2', 'fnref-3'],
    );
    assert.match(html, /d\[\^no\]/);
  });

  test('the highest heading becomes h2 and the others keep their distance', () => {
    const levels = (markdown: string): number[] => renderPost(markdown).headings.map(({ level }) => level);
    assert.deepEqual(levels('# a\n## b\n###### c'), [2, 3, 6]);
    assert.deepEqual(levels('## a\n### b\n## c'), [2, 3, 2]);
  });

  test('equal headings get different ids, and a link by the name that GitHub gives finds its heading', () => {
    const { html, headings } = renderPost(
      '# Install it!\n# Install it\n# install-it-1\n# 日本 語\n# 🚀\n\n[a](#install-it) [b](#Install-it-1) [c](#%E6%97%A5%E6%9C%AC-%E8%AA%9E)',
    );
    assert.deepEqual(
      headings.map(({ id }) => id),
      ['h-install-it', 'h-install-it-1', 'h-install-it-1-1', 'h-日本-語', 'h-section'],
    );
    assert.deepEqual(
      Array.from(html.matchAll(/<a href="#([^"]*)">/g), ([, id]) => id),
      ['h-install-it', 'h-install-it-1', 'h-日本-語'],
    );
  });

  test('large code, code with long lines and code beyond 64 KiB in all is not highlighted', () => {
    const block = (line: string, lines: number): string => `\`\`\`js\n${`${line}\n`.repeat(lines)}\`\`\`\n`;
    const highlighted = (markdown: string): number =>
      renderPost(markdown).html.match(/hljs-keyword/g)?.length ?? 0;
    assert.equal(highlighted(block('let a', 1300)), 1300);
    assert.equal(highlighted(block('let a', 1400)), 0);
    assert.equal(highlighted(block(`let ${'a'.repeat(497)}`, 1)), 0);
    assert.equal(highlighted(block('let a', 1300).repeat(9)), 8 * 1300);
  });
});

describe('a post as text', () => {
  test('has blocks on lines, cells between tabs, alternative texts, code and footnotes, and no markup', () => {
    const { text } = renderPost(
      '# A *b*\n\n- [x] c `d`\n  - e\n    more\n\n| f | g |\n|-|-|\n| h | ![i](https://j.example) |\n\n```js\nk\n```\nl[^1]\n\n[^1]: m',
    );
    assert.deepEqual(
      text.split('\n').map((line) => line.trim()),
      ['A b', 'c d', 'e more', 'f\tg', 'h\ti', 'k', 'l', 'm'],
    );
  });

  test('is cut at 200,000 UTF-16 units without splitting a character', () => {
    const { text } = renderPost(`a${'😀'.repeat(110_000)}`);
    assert.equal(text.length, 200_000);
    assert.ok(text.isWellFormed());
  });

  test('takes as long for a sign behind each footnote of a long paragraph as for a letter', () => {
    const msOf = (sign: string) => {
      const began = process.cpuUsage();
      renderPost(`${`${'word '.repeat(11)}[^1]${sign} `.repeat(6_000)}\n\n[^1]: Note`);
      return process.cpuUsage(began).user / 1000;
    };
    const leastOf = (sign: string) => Math.min(...Array.from({ length: 3 }, () => msOf(sign)));
    const [letter, full] = [leastOf('a'), leastOf('.')];
    assert.ok(full < 2 * letter + 20, `${full} ms beside ${letter}`);
  });

  test('gives an excerpt of at most 300 code points, cut at a sentence or a word', () => {
    assert.equal(renderPost('# A\n\nb  \nc').excerpt, 'b c');
    const table = '| a | b |\n|-|-|\n| 1 | 2 |';
    const prose = `![x](https://a.example "t") **Bold** text.[^1]\n\n- item\n\n> quote`;
    assert.equal(
      renderPost(`# T\n\n${table}\n\n\`\`\`\ncode\n\`\`\`\n\n${prose}\n\n[^1]: Note`).excerpt,
      'Bold text.',
    );
    const noProse = `# T\n\n${table}\n\n\`\`\`\ncode\n\`\`\`\n\n`;
    assert.equal(
      renderPost(`${noProse}1. Fast start[^1]\n2. Little memory.\n   - 漢字\n\n[^1]: Note`).excerpt,
      'Fast start; Little memory. 漢字',
    );
    assert.equal(
      renderPost(`${noProse}> [!NOTE]\n> Beware.\n\nTerm\n: Its sense`).excerpt,
      'Beware. Term: Its sense',
    );
    assert.equal(renderPost('```\ncode\n```').excerpt, 'code');
    assert.equal(
      renderPost('So [^1][^2], it [^1] is ( [^1] ) *so* [^2].\n\n[^1]: a\n\n[^2]: b').excerpt,
      'So, it is ( ) so.',
    );
    assert.equal(
      renderPost('With $a^2$, $\\frac{a}{b}$ is, by \\(\\pi\\).').excerpt,
      'With a^2, … is, by ….',
    );
    const ruby = '<ruby>鯨<rp>(</rp><rt>くじら</rt><rp>)</rp></ruby>は<ruby>海<rt>うみ</rt></ruby>の中。';
    assert.equal(renderPost(ruby).excerpt, '鯨は海の中。');
    const sentence = `${'word '.repeat(40)}end.`;
    assert.equal(renderPost(`${sentence} W${sentence}`).excerpt, sentence);
    assert.equal(renderPost(`${'漢字'.repeat(90)}。${'漢字'.repeat(90)}`).excerpt, `${'漢字'.repeat(90)}。`);
    const { excerpt } = renderPost('word, '.repeat(100));
    assert.ok(
      excerpt.endsWith('word…') && Array.from(excerpt).length <= 300 && excerpt.length > 290,
      excerpt,
    );
    assert.equal(renderPost('漢'.repeat(400)).excerpt, `${'漢'.repeat(299)}…`);
    assert.equal(renderPost('😀'.repeat(300)).excerpt, '😀'.repeat(300));
  });

  for (const [text, words] of [
    ['', 0],
    ["It's a well-known fact: 3.", 5],
    ['日本語の文章', 3],
    ['한국어 문장', 2],
    ['mixed 漢字 text', 3],
    ['— … !', 0],
  ] as const) {
    test(`counts ${words} words in '${text}'`, () => assert.equal(renderPost(text).words, words));
  }
});

test("pictures of one's own stay relative, and are named once, with whether they are described", () => {
  const { html, pictures, warnings } = renderPost(
    '![](media/a.png) ![x](media/a.png) ![ok](./media/b.webp) <img src="media/c.gif" alt="c">',
  );
  const addresses = Array.from(html.matchAll(/<img src="([^"]*)"/g), ([, src]) => src);
  assert.deepEqual(addresses, ['media/a.png', 'media/a.png', 'media/b.webp', 'media/c.gif']);
  assert.deepEqual(pictures, [
    { name: 'a.png', hasAlt: false },
    { name: 'b.webp', hasAlt: true },
    { name: 'c.gif', hasAlt: true },
  ]);
  assert.deepEqual(warnings, []);
});

describe('the warnings of a post', () => {
  const cases: readonly (readonly [markdown: string, warning: RegExp])[] = [
    ['[a](javascript:alert)', /^'javascript:alert' is not made a link/],
    ['<irc://a>', /^'irc:\/\/a' is not made a link/],
    ['![](https://a.example/b.png)', /'https:\/\/a\.example\/b\.png' has no alternative text/],
    ['![a](http://a.example/b.png)', /shown as a link: an image needs an https address/],
    ['![a](/b.png)', /an image needs an https address/],
    ['![a](media/b/c.png)', /an image needs an https address/],
    ['![a](../media/b.png)', /or is uploaded and shown as media\/\{name\}/],
    ['[a](#nowhere)', /'#nowhere' leads nowhere/],
    ['<div>a</div>', /^raw HTML is shown as text, beginning with '<div'/],
    ['a <!-- b', /^raw HTML is shown as text/],
    ['a <!-- b -->', /^10 characters of the markdown show nothing/],
    ['$x % y$', /^the formula 'x % y' is shown as code/],
  ];
  for (const [markdown, warning] of cases) {
    test(`name what is probably a mistake in ${JSON.stringify(markdown)}`, () => {
      const { warnings } = renderPost(markdown);
      assert.equal(warnings.length, 1);
      assert.match(warnings[0]?.text ?? '', warning);
    });
  }

  test('name a footnote that nothing refers to, and how much is left out for it', () => {
    const [footnote, unseen] = renderPost('a\n\n[^b]: c').warnings;
    assert.match(footnote?.text ?? '', /footnote '\[\^b\]' is not shown/);
    assert.match(unseen?.text ?? '', /^7 characters .* show nothing to readers/);
  });

  test('are silent about ordinary text, type parameters and code', () => {
    assert.deepEqual(
      renderPost('Vec<String> `<div>` <kbd>a</kbd> [a](b) a < b, [c](#d)\n\n# D').warnings,
      [],
    );
  });

  test('are at most a few dozen, however many mistakes there are', () => {
    const mistakes = Array.from(
      { length: 1000 },
      (_, at) => `![](https://a.example/${at}) [b](c${at}:d)`,
    ).join(' ');
    assert.ok(renderPost(mistakes).warnings.length <= 26);
  });
});

describe('a comment', () => {
  const cases: readonly (readonly [what: string, markdown: string, html: string])[] = [
    [
      'has emphasis, code and links',
      '*a* **b** ~~c~~ `d` [e](/f)',
      `<p dir="auto"><em>a</em> <strong>b</strong> <del>c</del> <code>d</code> <a href="/f">e</a></p>\n`,
    ],
    [
      'has lists and quotes',
      '> a\n\n- b',
      '<blockquote dir="auto">\n<p>a</p>\n</blockquote>\n<ul dir="auto">\n<li>b</li>\n</ul>\n',
    ],
    ['has strong text for headings', '# a', '<p dir="auto"><strong>a</strong></p>\n'],
    [
      'has links for images',
      '![a](https://b.example) ![](https://c.example)',
      `<p dir="auto"><a href="https://b.example" ${rel}>a</a> <a href="https://c.example" ${rel}>https://c.example</a></p>\n`,
    ],
    ['has no tables', '|a|\n|-|', '<p dir="auto">|a|\n|-|</p>\n'],
    ['has no tasks', '- [ ] a', '<ul dir="auto">\n<li>[ ] a</li>\n</ul>\n'],
    ['has no footnotes', 'a[^b]', '<p dir="auto">a[^b]</p>\n'],
    ['has no tags', '<sub>a</sub>', '<p dir="auto">&lt;sub&gt;a&lt;/sub&gt;</p>\n'],
    ['links to fragments as they are', '[a](#b)', '<p dir="auto"><a href="#b">a</a></p>\n'],
  ];
  for (const [what, markdown, html] of cases) {
    test(what, () => assert.equal(renderComment(markdown).html, html));
  }
});

test('a comment with raw HTML is let through with a warning', () => {
  assert.match(
    renderComment('<div>a</div>')
      .warnings.map(({ text }) => text)
      .join(),
    /^raw HTML is shown as text, beginning with '<div'/,
  );
});

describe('a document is refused as unrenderable', () => {
  const cases: readonly (readonly [what: string, markdown: string])[] = [
    ['when its HTML is larger than 4 MiB', '# a\n'.repeat(100_000)],
    ['when its HTML is larger than 4 MiB in UTF-8 only', '漢'.repeat(1_400_000)],
    ['when quotes nest deeper than 50 levels', `${'>'.repeat(51)} a`],
    ['when lists nest deeper than 50 levels', `${'- '.repeat(51)} a`],
    ['when its lists have more than half a million parts', '- a\n'.repeat(120_000)],
    [
      'when its tables ask for more than half a million parts',
      `${'|a'.repeat(200)}\n${'|-'.repeat(200)}\n${'|b\n'.repeat(300)}\n`.repeat(30),
    ],
  ];
  for (const [what, markdown] of cases) {
    test(what, () => {
      const isRefusal = (error: unknown): boolean =>
        error instanceof AppError && error.code === 'unrenderable';
      assert.throws(() => renderPost(markdown), isRefusal);
    });
  }

  test('and not when it nests as deep as is allowed', () => {
    assert.match(renderPost(`${'>'.repeat(49)} a`).html, /<p>a<\/p>/);
  });
});

test('its tokens have all fields of those of the parser itself, with the same values', () => {
  const markdown =
    '# a *b*\n\n- [c](d "e")\n\n| f |\n|:-:|\n| `g` |\n\n```h\ni\n```\n\n> ![j](k)  \n> **l** & &amp; \\*\n';
  const [own, lean] = [new MarkdownIt(), new MarkdownIt().use(leanTokens)];
  const names = Object.keys(own.parse('a', {})[0] ?? {});
  const all = (tokens: readonly Token[]): unknown[] =>
    tokens.map((token) => [
      ...names.filter((name) => name !== 'children').map((name) => Reflect.get(token, name)),
      token.children && all(token.children),
    ]);
  assert.ok(names.length > 12);
  assert.deepEqual(all(lean.parse(markdown, {})), all(own.parse(markdown, {})));
  assert.equal(lean.render(markdown), own.render(markdown));
});

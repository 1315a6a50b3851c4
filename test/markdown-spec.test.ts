import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { tests as examples } from 'commonmark-spec';
import { renderPost } from '../src/markdown/render.ts';

/** Examples of the specification that hold raw HTML, which is text here. */
const rawHtml = numbers('21 31 148-191 201 308 309 344 475-477 491 494 524 536 613-617 623 625-631 642 643');
/** Examples with schemes that a link may not have here: irc, a+b+c, made-up-scheme, localhost. */
const otherSchemes = numbers('596 598 599 601');
/** Examples in which CommonMark alone leaves an address as text that GFM makes a link. */
const gfmAutolinks = numbers('602 608 611 612');

/** Links without text, whose address is shown, and images in a link or with links in their text, whose address is too. */
const shownAddresses = numbers('484 487 517 520 531 574 575');

const differing = new Set([...rawHtml, ...otherSchemes, ...gfmAutolinks, ...shownAddresses]);

describe('CommonMark 0.31.2', () => {
  test('has the 652 examples that this test was written for', () => {
    assert.equal(examples.length, 652);
  });

  for (const { number, section, markdown, html } of examples) {
    const source = markdown.replaceAll('→', '\t');
    const rendered = undecorated(renderPost(source).html);
    const specified = inOurSpelling(html.replaceAll('→', '\t'));
    if (differing.has(number)) {
      test(`example ${number} (${section}) differs, as documented`, () => {
        assert.notEqual(rendered, specified);
      });
    } else {
      test(`example ${number} (${section}) renders as specified`, () => {
        assert.equal(rendered, specified);
      });
    }
  }
});

describe('GFM 0.29', () => {
  const table = (head: string, body: string): string =>
    `<table><thead><tr>${head}</tr></thead>${body}</table>`;
  const cases: readonly (readonly [number: number, markdown: string, html: string])[] = [
    [
      198,
      '| foo | bar |\n| --- | --- |\n| baz | bim |',
      table('<th>foo</th><th>bar</th>', '<tbody><tr><td>baz</td><td>bim</td></tr></tbody>'),
    ],
    [
      199,
      '| abc | defghi |\n:-: | -----------:\nbar | baz',
      table(
        '<th class="center">abc</th><th class="right">defghi</th>',
        '<tbody><tr><td class="center">bar</td><td class="right">baz</td></tr></tbody>',
      ),
    ],
    [
      200,
      '| f\\|oo  |\n| ------ |\n| b `\\|` az |\n| b **\\|** im |',
      table(
        '<th>f|oo</th>',
        '<tbody><tr><td>b <code>|</code> az</td></tr><tr><td>b <strong>|</strong> im</td></tr></tbody>',
      ),
    ],
    [
      201,
      '| abc | def |\n| --- | --- |\n| bar | baz |\n> bar',
      `${table('<th>abc</th><th>def</th>', '<tbody><tr><td>bar</td><td>baz</td></tr></tbody>')}<blockquote><p>bar</p></blockquote>`,
    ],
    [
      202,
      '| abc | def |\n| --- | --- |\n| bar | baz |\nbar\n\nbar',
      `${table('<th>abc</th><th>def</th>', '<tbody><tr><td>bar</td><td>baz</td></tr><tr><td>bar</td><td></td></tr></tbody>')}<p>bar</p>`,
    ],
    [203, '| abc | def |\n| --- |\n| bar |', '<p>| abc | def |\n| --- |\n| bar |</p>'],
    [
      204,
      '| abc | def |\n| --- | --- |\n| bar |\n| bar | baz | boo |',
      table(
        '<th>abc</th><th>def</th>',
        '<tbody><tr><td>bar</td><td></td></tr><tr><td>bar</td><td>baz</td></tr></tbody>',
      ),
    ],
    [205, '| abc | def |\n| --- | --- |', table('<th>abc</th><th>def</th>', '')],
    [
      279,
      '- [ ] foo\n- [x] bar',
      '<ul><li><input disabled type="checkbox"> foo</li><li><input checked disabled type="checkbox"> bar</li></ul>',
    ],
    [
      280,
      '- [x] foo\n  - [ ] bar\n  - [x] baz\n- [ ] bim',
      '<ul><li><input checked disabled type="checkbox"> foo<ul><li><input disabled type="checkbox"> bar</li>' +
        '<li><input checked disabled type="checkbox"> baz</li></ul></li><li><input disabled type="checkbox"> bim</li></ul>',
    ],
    [491, '~~Hi~~ Hello, ~there~ world!', '<p><del>Hi</del> Hello, <del>there</del> world!</p>'],
    [492, 'This ~~has a\n\nnew paragraph~~.', '<p>This ~~has a</p><p>new paragraph~~.</p>'],
    [493, 'This will ~~~not~~~ strike.', '<p>This will ~~~not~~~ strike.</p>'],
    [622, 'www.commonmark.org', link('http://www.commonmark.org', 'www.commonmark.org')],
    [
      623,
      'Visit www.commonmark.org/help for more information.',
      link('http://www.commonmark.org/help', 'www.commonmark.org/help', 'Visit ', ' for more information.'),
    ],
    [
      624,
      'Visit www.commonmark.org.',
      link('http://www.commonmark.org', 'www.commonmark.org', 'Visit ', '.'),
    ],
    [
      624,
      'Visit www.commonmark.org/a.b.',
      link('http://www.commonmark.org/a.b', 'www.commonmark.org/a.b', 'Visit ', '.'),
    ],
    [
      625,
      '(www.google.com/search?q=Markup+(business)))',
      link(
        'http://www.google.com/search?q=Markup+(business)',
        'www.google.com/search?q=Markup+(business)',
        '(',
        '))',
      ),
    ],
    [
      625,
      '(www.google.com/search?q=Markup+(business)',
      link(
        'http://www.google.com/search?q=Markup+(business)',
        'www.google.com/search?q=Markup+(business)',
        '(',
      ),
    ],
    [
      626,
      'www.google.com/search?q=(business))+ok',
      link('http://www.google.com/search?q=(business))+ok', 'www.google.com/search?q=(business))+ok'),
    ],
    [
      627,
      'www.google.com/search?q=commonmark&hl=en',
      link(
        'http://www.google.com/search?q=commonmark&amp;hl=en',
        'www.google.com/search?q=commonmark&amp;hl=en',
      ),
    ],
    [
      627,
      'www.google.com/search?q=commonmark&hl;',
      link('http://www.google.com/search?q=commonmark', 'www.google.com/search?q=commonmark', '', '&amp;hl;'),
    ],
    [
      628,
      'www.commonmark.org/he<lp',
      link('http://www.commonmark.org/he', 'www.commonmark.org/he', '', '&lt;lp'),
    ],
    [629, 'http://commonmark.org', link('http://commonmark.org', 'http://commonmark.org')],
    [
      629,
      '(Visit https://encrypted.google.com/search?q=Markup+(business))',
      link(
        'https://encrypted.google.com/search?q=Markup+(business)',
        'https://encrypted.google.com/search?q=Markup+(business)',
        '(Visit ',
        ')',
      ),
    ],
    [630, 'foo@bar.baz', link('mailto:foo@bar.baz', 'foo@bar.baz')],
    [
      631,
      "hello@mail+xyz.example isn't valid, but hello+xyz@mail.example is.",
      link(
        'mailto:hello+xyz@mail.example',
        'hello+xyz@mail.example',
        "hello@mail+xyz.example isn't valid, but ",
        ' is.',
      ),
    ],
    [632, 'a.b-c_d@a.b', link('mailto:a.b-c_d@a.b', 'a.b-c_d@a.b')],
    [632, 'a.b-c_d@a.b.', link('mailto:a.b-c_d@a.b', 'a.b-c_d@a.b', '', '.')],
    [632, 'a.b-c_d@a.b-', '<p>a.b-c_d@a.b-</p>'],
    [632, 'a.b-c_d@a.b_', '<p>a.b-c_d@a.b_</p>'],
    [633, 'mailto:foo@bar.baz', link('mailto:foo@bar.baz', 'mailto:foo@bar.baz')],
  ];
  for (const [number, markdown, html] of cases) {
    test(`example ${number} renders as specified: ${JSON.stringify(markdown)}`, () => {
      assert.equal(undecorated(renderPost(markdown).html), html);
    });
  }

  const differences: typeof cases = [
    // Schemes by allow-list.
    [628, 'ftp://foo.bar.baz', '<p>ftp://foo.bar.baz</p>'],
    [634, 'xmpp:foo@bar.baz/txt', link('mailto:foo@bar.baz', 'foo@bar.baz', 'xmpp:', '/txt')],
    // The tag filter has nothing to do where every tag is text.
    [652, '<strong> <title> <style> <em>', '<p>&lt;strong&gt; &lt;title&gt; &lt;style&gt; &lt;em&gt;</p>'],
  ];
  for (const [number, markdown, html] of differences) {
    test(`example ${number} differs, as documented: ${JSON.stringify(markdown)}`, () => {
      assert.equal(undecorated(renderPost(markdown).html), html);
    });
  }
});

function link(href: string, text: string, before = '', after = ''): string {
  return `<p>${before}<a href="${href}">${text}</a>${after}</p>`;
}

/** Our HTML without what we add to the specifications'; `markdown.test.ts` checks that these are there. */
function undecorated(html: string): string {
  return squeezed(
    html
      .replace(/ <a class="anchor"[^>]*><\/a>/g, '')
      .replace(/<figure class="code">\n<figcaption>.*<\/figcaption>\n|<\/figure>\n/g, '')
      .replace(/<div class="table"[^>]*>\n|<\/div>\n/g, '')
      .replace(/<(h[2-6]) id="[^"]*"/g, '<$1')
      .replace(/<span class="hljs-[^"]*">|<\/span>/g, '')
      .replace(/ (?:dir="auto"|class="(?:fits|digits-\d+)"|tabindex="0"|rel="ugc nofollow noopener")/g, '')
      .replace(
        /<li class="task"><input type="checkbox" disabled( checked)?[^>]*>/g,
        '<li><input$1 disabled type="checkbox">',
      ),
  );
}

/**
 * A specification's HTML in our spelling: headings begin at h2, empty elements have no slash, and an image that
 * is not at an https address, which none in the examples is, is a link.
 */
function inOurSpelling(html: string): string {
  const highest = Math.min(...Array.from(html.matchAll(/<h([1-6])>/g), ([, level]) => Number(level)));
  return squeezed(
    html
      .replace(
        /<(\/?)h([1-6])>/g,
        (_, slash: string, level: string) => `<${slash}h${Math.min(6, Number(level) - highest + 2)}>`,
      )
      .replace(
        /<img src="([^"]*)" alt="([^"]*)"( title="[^"]*")?[^>]*>/g,
        (_, src: string, alt: string, title = '') => `<a href="${src}"${title}>${alt || src}</a>`,
      )
      .replaceAll(' />', '>'),
  );
}

/** Without white space around block tags, where it means nothing. */
function squeezed(html: string): string {
  return html
    .replace(
      /\s*(<\/?(?:p|h[1-6]|ul|ol|li|blockquote|pre|hr|table|thead|tbody|tr|th|td)(?: [^>]*)?>)\s*/g,
      '$1',
    )
    .trim();
}

function numbers(ranges: string): number[] {
  return ranges.split(' ').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, at) => from + at);
  });
}

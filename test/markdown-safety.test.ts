import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { renderComment, renderPost } from '../src/markdown/render.ts';

const text = /^[^<>]*$/;
const id = /^(?:h-[\p{L}\p{N}\p{M}_-]+|fn-\d+|fnref-\d+(?:-\d+)?)$/u;
const direction = { dir: /^auto$/ };
const cell = { class: /^(?:left|center|right)$/ };

/** What an element of a formula may say: nothing that loads, runs or hides anything. */
const formula = {
  ...Object.fromEntries(
    'accent accentunder displaystyle fence largeop movablelimits separator stretchy symmetric'
      .split(' ')
      .map((name) => [name, /^(?:true|false)$/]),
  ),
  ...Object.fromEntries(
    'height linethickness lspace maxsize minsize rspace width'
      .split(' ')
      .map((name) => [name, /^[\d.]+(?:em|ex|pt|px)$/]),
  ),
  class: /^[a-z -]+$/,
  display: /^block$/,
  form: /^(?:prefix|infix|postfix)$/,
  mathvariant: /^normal$/,
  notation: /^[a-z ]+$/,
  scriptlevel: /^[012]$/,
};

/** Every element that a rendered document may have, and every attribute with the values that it may take. */
const allowed: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  p: { ...direction, class: /^callout-title$/ },
  blockquote: direction,
  ul: direction,
  ol: { ...direction, start: /^\d+$/ },
  li: {
    ...direction,
    class: /^(?:task|(?:task )?digits-(?:[3-9]|10)|level-[2-6])$/,
    id,
    value: /^\d+$/,
  },
  ...Object.fromEntries(['h2', 'h3', 'h4', 'h5', 'h6'].map((heading) => [heading, { ...direction, id }])),
  hr: {},
  br: {},
  em: {},
  strong: {},
  del: {},
  kbd: {},
  sub: {},
  sup: { class: /^footnote-ref$/ },
  details: { open: /^$/ },
  summary: direction,
  pre: { class: /^fits$/, tabindex: /^0$/ },
  figure: { ...direction, class: /^code$/ },
  figcaption: {},
  mark: {},
  ins: {},
  s: {},
  u: {},
  small: {},
  abbr: { title: text },
  bdi: { lang: /^en$/ },
  ruby: {},
  rt: {},
  rp: {},
  dl: direction,
  dt: {},
  dd: {},
  nav: { class: /^toc$/, 'aria-label': /^Contents$/ },
  ...Object.fromEntries(
    'math mrow mi mn mo mtext ms mspace mfrac msqrt mroot msup msub msubsup mover munder munderover mmultiscripts mprescripts none mtable mtr mtd mstyle menclose'
      .split(' ')
      .map((element) => [element, formula]),
  ),
  code: { class: /^language-\S+$/ },
  span: { class: /^(?:hljs-[a-z_-]+|language-[a-z-]+)(?: [a-z]+_+)*$/ },
  div: {
    ...direction,
    class: /^(?:(?:table|formula)(?: fits)?|callout (?:note|tip|important|warning|caution))$/,
    role: /^(?:region|note)$/,
    'aria-label': /^(?:Table|Formula) \d+$/,
    tabindex: /^0$/,
  },
  table: direction,
  thead: {},
  tbody: {},
  tr: {},
  th: cell,
  td: cell,
  input: { type: /^checkbox$/, disabled: /^$/, checked: /^$/, 'aria-label': /^(?:Done|To do)$/ },
  img: {
    src: /^https:\/\//i,
    alt: text,
    title: text,
    width: /^\d{1,5}$/,
    height: /^\d{1,5}$/,
    loading: /^lazy$/,
    decoding: /^async$/,
    referrerpolicy: /^no-referrer$/,
  },
  a: {
    href: text,
    title: text,
    rel: /^ugc nofollow noopener$/,
    class: /^(?:anchor|footnote-backref)$/,
    id,
    role: /^doc-(?:noteref|backlink)$/,
    'aria-label': /^(?:Footnote|Back to reference) [\d-]+$/,
    'aria-labelledby': id,
  },
  section: { class: /^footnotes$/, role: /^doc-endnotes$/, 'aria-label': /^Footnotes$/ },
};

const empty = new Set(['br', 'hr', 'img', 'input']);

/** Fails unless the HTML has allowed elements, attributes and addresses only, all properly nested and closed. */
function assertSafe(html: string): void {
  const open: string[] = [];
  const ids = new Set<string>();
  let rest = html;
  while (rest !== '') {
    const plain = /^[^<>]+/.exec(rest)?.[0];
    if (plain !== undefined) {
      rest = rest.slice(plain.length);
      continue;
    }
    const [tag, slash, name = '', attributes = ''] =
      /^<(\/?)([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*)>/.exec(rest) ?? [];
    assert.ok(tag !== undefined, `no tag of ours: ${rest.slice(0, 60)}`);
    rest = rest.slice(tag.length);
    const rules = allowed[name];
    assert.ok(rules !== undefined, `element ${name}`);
    if (slash === '/') {
      assert.equal(open.pop(), name);
      continue;
    }
    assert.ok(name !== 'a' || !open.includes('a'), 'a link in a link');
    if (!empty.has(name)) open.push(name);
    for (const [, attribute = '', value = ''] of attributes.matchAll(/ ([a-z-]+)(?:="([^"]*)")?/g)) {
      assert.match(value, rules[attribute] ?? /(?!)/, `<${name} ${attribute}="${value}">`);
      if (attribute === 'id') assert.ok(!ids.has(value) && ids.add(value), `id ${value} twice`);
      if (attribute === 'href' || attribute === 'src') assertAddress(value);
    }
  }
  assert.deepEqual(open, []);
}

/** As a browser reads it: character references decoded, then resolved against the page. */
function assertAddress(attribute: string): void {
  const address = attribute
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
  assert.match(new URL(address, 'https://post.example/a/b').protocol, /^(?:https?|mailto):$/);
}

const payloads: readonly string[] = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg/onload=alert(1)>',
  '<iframe srcdoc="<script>alert(1)</script>">',
  '<details open ontoggle=alert(1)>',
  '<details open>\n<summary onclick=alert(1)>a</summary>\n</details>',
  '<kbd onmouseover=alert(1)>a</kbd>',
  '<sub/onclick=alert(1)>a</sub>',
  '<br onload=alert(1)>',
  '<br/onload=alert(1)/>',
  '<style>@import "//a.example"</style>',
  '<base href="//a.example/">',
  '<meta http-equiv="refresh" content="0;url=//a.example">',
  '<a href="javascript:alert(1)">a</a>',
  '<!--><script>alert(1)</script>-->',
  '<![CDATA[<script>alert(1)</script>]]>',
  '<?xml version="1.0"?><script>alert(1)</script>',
  '[a](javascript:alert(1))',
  '[a](JaVaScRiPt:alert(1))',
  '[a]( javascript:alert(1))',
  '[a](<javascript:alert(1)>)',
  '[a](<java\tscript:alert(1)>)',
  '[a](java&#10;script:alert(1))',
  '[a](java&Tab;script:alert(1))',
  '[a](&#106;avascript:alert(1))',
  '[a](&#x6A;avascript&colon;alert(1))',
  '[a](javascript&#58;alert(1))',
  '[a](java\\script:alert(1))',
  '[a](\\javascript:alert(1))',
  '[a](&#1;javascript:alert(1))',
  '[a](%6aavascript:alert(1))',
  '[a](javascript%3aalert(1))',
  '[a](javascript://a.example/%0aalert(1))',
  '[a](vbscript:msgbox(1))',
  '[a](livescript:alert(1))',
  '[a](data:text/html,<script>alert(1)</script>)',
  '[a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)',
  '[a](blob:https://a.example/b)',
  '[a](file:///etc/passwd)',
  '[a](view-source:javascript:alert(1))',
  '[a](feed:javascript:alert(1))',
  '[a](//a.example)',
  '[a](/\\a.example)',
  '[a](https://[)',
  '[a](https://b.example "t\\" onclick=\\"alert(1)")',
  '[a](https://b.example \'t" onclick="alert(1)\')',
  '[a](https://b.example?"onclick="alert(1))',
  '[a](<https://b.example/"><script>alert(1)</script>>)',
  '[a"onclick="alert(1)](#b"onclick="alert(1))',
  '[a][b]\n\n[b]: javascript:alert(1)',
  '[a][b]\n\n[b]: <data:text/html,a> "t"',
  '[a]: b "\\"><script>alert(1)</script>"\n\n[a]',
  '<javascript:alert(1)>',
  '<javascript:alert&#40;1&#41;>',
  '<https://b.example/"onclick="alert(1)>',
  '<a@b.example"onclick="alert(1)>',
  'https://b.example/"onclick="alert(1)',
  "https://b.example/'onclick='alert(1)",
  'www.b.example/"onclick="alert(1)',
  'a"onclick="alert(1)@b.example',
  'http://javascript:alert(1)',
  '![a](javascript:alert(1))',
  '![a](data:image/svg+xml,<svg/onload=alert(1)>)',
  '![a](data:image/png;base64,aaaa)',
  '![a](http://b.example/c.png)',
  '![a](//b.example/c.png)',
  '![a](https:/-/logout)',
  '![a](https:c.png)',
  '![a](https://user:password@b.example/c.png)',
  '![a"onerror="alert(1)](https://b.example)',
  '![a](https://b.example"onerror="alert(1))',
  '![a](https://b.example "t\\"onerror=\\"alert(1)")',
  '![<script>alert(1)</script>](https://b.example)',
  '![![a](javascript:alert(1))](https://b.example)',
  '[![a](https://b.example)](javascript:alert(1))',
  '[[a](javascript:alert(1))](https://b.example)',
  '![&quot;onerror=alert(1)](https://b.example)',
  '![a](https://b.example/c.png "<script>alert(1)</script>")',
  '<img src="https://b.example/c.png" alt="a" width="1" onerror="alert(1)">',
  '<img src="https://b.example/c.png&quot; onerror=&quot;alert(1)" alt="&quot;><script>alert(1)</script>">',
  '<img src="javascript:alert(1)" alt="a">',
  '<img src=https://b.example/c.png alt=a/onerror=alert(1)>',
  '<img src="https://b.example/c.png" width="1&quot; onerror=&quot;alert(1)">',
  '<abbr title="&quot; onclick=&quot;alert(1)">a</abbr>',
  "<abbr title='\"><script>alert(1)</script>'>a</abbr>",
  '<abbr title="a" onclick="alert(1)">a</abbr>',
  '<ruby>a<rp><script></rp><rt onclick="alert(1)">b</rt></ruby>',
  '<mark onclick=alert(1)>a</mark><small/onclick=alert(1)>',
  '> [!NOTE] <script>alert(1)</script>\n> a',
  '> [!NOTE"onclick="alert(1)]\n> a',
  '<!-- --><script>alert(1)</script><!-- -->',
  '<!-- -- ><script>alert(1)</script> -->',
  '$\\href{javascript:alert(1)}{a}$',
  '$\\text{<script>alert(1)</script>}$',
  '$\\class{a" onclick="alert(1)}{b}$',
  '$\\style{background:url(https://b.example)}{b}$',
  '$\\includegraphics[height=1em]{https://b.example/c.png}$',
  '$\\url{javascript:alert(1)}$',
  '$$\n\\color{red"onclick="alert(1)}<img src=x onerror=alert(1)>\n$$',
  '\\(\\htmlData{onclick=alert(1)}{a}\\)',
  '```math\n\\unicode{x3c}script\\unicode{x3e}\n```',
  'a\n: <script>alert(1)</script>\n: b',
  '[TOC]\n\n# <script>alert(1)</script> "onclick="alert(1)',
  ':"onclick="alert(1): :rocket:<script>',
  '# a"onclick="alert(1)\n\n# <script>alert(1)</script>',
  '# &quot;&gt;&lt;script&gt;',
  '```"onclick="alert(1)\na\n```',
  '```js&quot;onclick=&quot;alert(1)\na\n```',
  '```html\n<script>alert(1)</script><!--"-->\n```',
  '```xml\n<a b="</code></pre><script>alert(1)</script>">\n```',
  '```js\nhtml`<img src=x onerror=alert(1)>` // </span><script>\n```',
  '```php\n<?php echo "<script>"; ?><script>alert(1)</script>\n```',
  '`</code><script>alert(1)</script>`',
  '    </code></pre><script>alert(1)</script>',
  '| a |\n|:-:"onclick="alert(1)|',
  '| <script> |\n| - |\n| `</td><script>` |',
  '[^"onclick="alert(1)]\n\n[^"onclick="alert(1)]: a',
  '[^<script>]\n\n[^<script>]: <script>alert(1)</script>',
  '[^__proto__] [^constructor]\n\n[^__proto__]: a\n[^constructor]: b',
  '# __proto__\n# constructor\n\n[a](#__proto__) [b](#constructor)',
  '[__proto__] [constructor]\n\n[__proto__]: /a',
  '```__proto__\na\n```\n```constructor\na\n```',
  '- [x]<script>alert(1)</script>\n- [ ] <input autofocus onfocus=alert(1)>',
  '1. a\n999999999. b\n\n0. c',
  'a\u2028<script>alert(1)</script>\u2029',
  '\ufeff<script>alert(1)</script>',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  '\\<script\\>alert(1)\\</script\\>',
  '+ADw-script+AD4-alert(1)+ADw-/script+AD4-',
  '\ud800<script>alert(1)</script>',
  'a\0<scr\0ipt>alert(1)</script>',
];

describe('no markup of the author reaches the page', () => {
  for (const payload of payloads) {
    test(`with ${JSON.stringify(payload)}`, () => {
      assertSafe(renderPost(payload).html);
      assertSafe(renderPost(`> - ${payload.replaceAll('\n', '\n>   ')}`).html);
      assertSafe(renderComment(payload).html);
    });
  }

  const pieces =
    '> |- |1. |# |---\n|===\n|```\n|```js\n|```html\n|```yaml\n|~~~\n|:-:|\\|&|&amp;|&#|*|**|_|__|~|~~|`|``|[|]|](|)|![|<|>|"|\'|(|' +
    '[^1]|[^1]: |[a]: |[x] |[ ] |<details>|</details>|<details open>|<summary>|</summary>|<br>|<kbd>|</kbd>|<sub>|</sub>|<sup>|</sup>|' +
    'https://|www.|@|a.b|http:|javascript:|#|?|:|;|a|é|日|😀|\u202e|\u200d|\ufe0f|{|}|<script>|</script>|${|//|/*|<style>|' +
    '<!--|-->|$|$$|\\(|\\)|\\[|\\]|\\text{|\\frac|x^2|[!NOTE]|[!tip] |: |<mark>|</mark>|<abbr title="a">|</abbr>|<ruby>|<rt>|</rt>|</ruby>|<rp>(</rp>|<img src="https://a.example" alt="|">|[TOC]|:rocket:|:';
  const fragments = [...payloads, ...pieces.split('|'), '|', '|-|\n', '\n', '\n\n', ' ', '    ', '\t'];
  const documents = fc
    .array(
      fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...fragments) },
        fc.string({ maxLength: 5, unit: 'binary' }),
      ),
      { maxLength: 40 },
    )
    .map((parts) => parts.join(''));

  test('whatever is strung together from pieces of syntax', () => {
    fc.assert(
      fc.property(documents, (markdown) => {
        assertSafe(renderPost(markdown).html);
        assertSafe(renderComment(markdown).html);
      }),
      { seed: 1, numRuns: 1500 },
    );
  });

  test('and what is rendered twice is the same twice', () => {
    fc.assert(
      fc.property(documents, (markdown) => assert.deepEqual(renderPost(markdown), renderPost(markdown))),
      { seed: 2, numRuns: 100 },
    );
  });
});

describe('the check of safety itself', () => {
  for (const html of [
    '<script>',
    '<p onclick="a">',
    '<a href="javascript:a">a</a>',
    '<a href="java&#10;script:a">',
    '<p>',
    '</p>',
    '<img src="http://a">',
    '<p id="main"></p>',
    'a > b',
    '<em><p></em></p>',
  ]) {
    test(`refuses ${html}`, () => assert.throws(() => assertSafe(html), assert.AssertionError));
  }
});

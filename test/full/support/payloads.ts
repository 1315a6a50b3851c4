/** A text that runs `alert(1)` where a page shows it without escaping. */
type Payload = {
  readonly text: string;
  /** The page that it runs in: the text as it is, in the place that it is made for. */
  readonly bare: string;
};

/** What leads out of the place where a text stands, and that place. */
const places: readonly (readonly [out: string, bare: (text: string) => string])[] = [
  ['', (text) => `<p>${text}</p>`],
  ['">', (text) => `<input value="${text}">`],
  ["'>", (text) => `<input value='${text}'>`],
  ['</title>', (text) => `<title>${text}</title>`],
  ['"}</script>', (text) => `<script type="application/ld+json">{"headline":"${text}"}</script>`],
  ['</code></pre>', (text) => `<pre><code>${text}</code></pre>`],
  ['-->', (text) => `<!-- ${text} -->`],
  [']]>', (text) => `<p><![CDATA[${text}]]></p>`],
];

const markup = [
  '<script>alert(1)</script>',
  '<ScRiPt>alert(1)</sCrIpT>',
  '<script src=data:,alert(1)></script>',
  '<svg><script>alert(1)</script></svg>',
  '<img src=x onerror=alert(1)>',
  '<img/src=x onerror=alert(1)//>',
  '<IMG SRC=x OnErRoR=alert(1)>',
  '<img src=x onerror=alert&#40;1&#41;>',
  '<img src=x onerror=&#97lert(1)>',
  '<svg onload=alert(1)>',
  '<svg/onload=alert(1)>',
  '<svg><animate onbegin=alert(1) attributeName=x>',
  '<svg><a href=javascript:alert(1)><text>x',
  '<iframe srcdoc="<script>alert(1)</script>">',
  '<iframe src=javascript:alert(1)>',
  '<iframe onload=alert(1)>',
  '<details open ontoggle=alert(1)>',
  '<summary onclick=alert(1)>x</summary>',
  '<kbd onmouseover=alert(1)>x</kbd>',
  '<video><source onerror=alert(1)>',
  '<audio src=x onerror=alert(1)>',
  '<input autofocus onfocus=alert(1)>',
  '<body onload=alert(1)>',
  '<style onload=alert(1)></style>',
  '<form action=javascript:alert(1)><button>x',
  '<a href=javascript:alert(1)>x</a>',
  '<a href="java&Tab;script:alert(1)">x</a>',
  '<x onclick=alert(1)>x',
];

const attributes: readonly (readonly [text: string, bare: (text: string) => string])[] = [
  ...['onmouseover', 'onclick', 'onfocus', 'onload'].flatMap(
    (name) =>
      [
        [`" ${name}="alert(1)`, (text: string) => `<a title="${text}">x</a>`],
        [`' ${name}='alert(1)`, (text: string) => `<a title='${text}'>x</a>`],
        [`x ${name}=alert(1)`, (text: string) => `<a title=${text}>x</a>`],
        [`"${name}="alert(1)`, (text: string) => `<a href="https://example.com/${text}">x</a>`],
        [`"/${name}=alert(1)//`, (text: string) => `<a href="${text}">x</a>`],
      ] as const,
  ),
  ...['";alert(1)//', '"-alert(1)-"', '"+alert(1)+"'].map(
    (text) => [text, (inside: string) => `<script>a = "${inside}"</script>`] as const,
  ),
];

const addresses = [
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  ' javascript:alert(1)',
  'javascript:alert(1)//https://example.com',
  'javascript://example.com/%0aalert(1)',
  'java&#10;script:alert(1)',
  'java&Tab;script:alert(1)',
  'java&NewLine;script:alert(1)',
  '&#106;avascript:alert(1)',
  '&#x6A;avascript&colon;alert(1)',
  'javascript&#58;alert(1)',
  '&#1;javascript:alert(1)',
  'javascript:/*x*/alert(1)',
  'javascript:void(alert(1))',
  'javascript:%61lert(1)',
];

/** Every payload: markup in every place that it can lead out of, attributes, and addresses. */
export const payloads: readonly Payload[] = [
  ...places.flatMap(([out, bare]) => markup.map((each) => ({ text: out + each, bare: bare(out + each) }))),
  ...attributes.map(([text, bare]) => ({ text, bare: bare(text) })),
  ...addresses.map((text) => ({ text, bare: `<a href="${text}">x</a>` })),
];

/** Every place that markdown has for a text. */
export function inMarkdown(text: string): readonly string[] {
  return [
    text,
    `# ${text}`,
    `> ${text}`,
    `- [x] ${text}`,
    `| ${text} |\n| - |\n| ${text} |`,
    `\`${text}\``,
    `\`\`\`html\n${text}\n\`\`\``,
    `\`\`\`${text}\nx\n\`\`\``,
    `[${text}](https://example.com)`,
    `[x](${text})`,
    `[x](<${text}>)`,
    `[x](https://example.com/${text})`,
    `[x](https://example.com "${text}")`,
    `![${text}](https://example.com/x.png '${text}')`,
    `![x](https://example.com/${text})`,
    `![x](${text})`,
    `<${text}>`,
    `<kbd ${text}>x</kbd> <details open ${text}>x</details>`,
    `https://example.com/${text}`,
    `x[^a]\n\n[^a]: ${text}`,
    `[y]\n\n[y]: ${text}`,
  ];
}

/** Some of the places of markdown, as few as a comment has room for. */
export function inComment(text: string): readonly string[] {
  return [
    text,
    `> ${text}`,
    `\`${text}\``,
    `[x](${text})`,
    `[${text}](https://example.com "${text}")`,
    `<${text}>`,
  ];
}

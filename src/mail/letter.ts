/** The contents of a message: a subject, and the same words as text and as HTML. All ASCII, `\n` between lines. */
export type MailText = { readonly subject: string; readonly text: string; readonly html: string };

/** A piece of a message in both forms, each escaped for its place. */
export type Shown = { readonly text: string; readonly html: string };

/** The message that the pieces make, in their order. */
export function letter(subject: string, pieces: readonly Shown[]): MailText {
  return {
    subject,
    text: `${pieces.map((piece) => piece.text).join('\n\n')}\n`,
    html: [
      '<!doctype html>',
      '<html lang="en">',
      '<head>',
      '<meta charset="utf-8">',
      // Keeps telephones from making links of digits in a name.
      '<meta name="format-detection" content="telephone=no, date=no, address=no">',
      `<title>${escapeHtml(subject)}</title>`,
      '</head>',
      '<body style="font-family: sans-serif; line-height: 1.5">',
      ...pieces.map((piece) => piece.html),
      '</body>',
      '</html>',
      '',
    ].join('\n'),
  };
}

/** Our own words, on lines of at most 76 characters. */
export function paragraph(text: string): Shown {
  const lines = wrapped(text);
  return { text: lines, html: `<p>${escapeHtml(lines)}</p>` };
}

/** A list of labels of at most 7 letters and their values. */
export function facts(rows: readonly (readonly [label: string, value: Shown])[]): Shown {
  return {
    text: rows.map(([label, value]) => `  ${`${label}:`.padEnd(9)}${value.text}`).join('\n'),
    html: [
      '<table>',
      ...rows.map(([label, value]) => `<tr><td>${label}:</td>\n<td>${value.html}</td></tr>`),
      '</table>',
    ].join('\n'),
  };
}

/** A link that shows its address, on a line of its own. */
export function link(url: string): Shown {
  const address = escapeHtml(url);
  return { text: url, html: `<p><a href="${address}">${address}</a></p>` };
}

/** A value alone on a line of its own, where programs look for it. */
export function alone(value: string): Shown {
  return { text: value, html: `<p><code>${escapeHtml(value)}</code></p>` };
}

/** Lines to paste into a shell. */
export function shell(text: string): Shown {
  return { text, html: `<pre>${escapeHtml(text)}</pre>` };
}

/**
 * A name that an agent chose, so that it shows as itself but never as a link, an address or markup: what mail
 * programs would make a link of (a dot, colon or `@` inside a word) is written as in a JSON string; so is, in
 * the text form, everything that is not ASCII. The text form is a JSON string of the name, unless it was cut.
 */
export function shownName(name: string): Shown {
  let text = '';
  let html = '';
  for (const [char, next] of withNext(name)) {
    const inert = char === '\\' || makesLinks(char, next);
    const textPiece = inert || char === '"' || !/[ -~]/.test(char) ? jsonEscape(char) : char;
    const htmlPiece = inert || !visible.test(char) ? jsonEscape(char) : escapeHtml(char);
    if (Math.max(text.length + textPiece.length, html.length + htmlPiece.length) > longestName) {
      return { text: `"${text}"...`, html: `<bdi>${html}...</bdi>` };
    }
    text += textPiece;
    html += htmlPiece;
  }
  return { text: `"${text}"`, html: `<bdi>${html}</bdi>` };
}

/** A validated address; characters that would let its local part pass for a web address are written as in JSON. */
export function shownAddress(address: string): Shown {
  const text = address.replaceAll(/[/?#]/g, jsonEscape);
  return { text, html: escapeHtml(text) };
}

/** One of our own values: a slug, an address of this service. */
export function shown(value: string): Shown {
  return { text: value, html: escapeHtml(value) };
}

/** Breaks a paragraph at spaces so that no line passes 76 characters, unless one word alone does. */
function wrapped(text: string): string {
  let column = 0;
  return text.replaceAll(/ ?([^ ]+)/g, (_, word: string) => {
    const breaks = column > 0 && column + 1 + word.length > 76;
    const lead = column === 0 ? '' : breaks ? '\n' : ' ';
    column = lead === ' ' ? column + 1 + word.length : word.length;
    return lead + word;
  });
}

// With its label, below the 998 characters that a line of a message may have.
const longestName = 900;
const visible = /[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\u200d]/u;

function* withNext(text: string): Generator<[char: string, next: string]> {
  const chars = Array.from(text);
  for (const [index, char] of chars.entries()) yield [char, chars[index + 1] ?? ''];
}

/** Whether the character, before the next one, is what a mail program finds links by. */
function makesLinks(char: string, next: string): boolean {
  const plain = char.normalize('NFKC');
  if (plain === '@') return true;
  if (plain === '.' || plain === '\u3002') return /\p{L}/u.test(next);
  return plain === ':' && /\S/.test(next);
}

/** `\uXXXX` for each UTF-16 unit, as JSON does. */
function jsonEscape(char: string): string {
  return char
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** ASCII HTML: markup, and what is not ASCII, as numeric character references. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']|[^\n -~]/gu, (char) => `&#${char.codePointAt(0) ?? 0xfffd};`);
}

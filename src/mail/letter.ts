/** The contents of a message: a subject, and the same words as text and as HTML. All ASCII, `\n` between lines. */
export type MailText = { readonly subject: string; readonly text: string; readonly html: string };

/** A piece of a message in both forms, each escaped for its place. */
export type Shown = { readonly text: string; readonly html: string };

/** The service that a message comes from: its origin, and how its operator is reached. */
export type Sender = {
  readonly baseUrl: string;
  readonly contact: {
    readonly email: string | null;
    readonly abuse: string | null;
    readonly legalUrl: string | null;
  };
};

/** The message that the pieces make, in their order; a string is a paragraph of our own words. */
export function letter(sender: Sender, subject: string, pieces: readonly (Shown | string)[]): MailText {
  const shownPieces = [...pieces, sentBy(sender)].map((piece) =>
    typeof piece === 'string' ? paragraph(piece) : piece,
  );
  return {
    subject,
    text: `${shownPieces.map(({ text }) => text).join('\n\n')}\n`,
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
      ...shownPieces.map(({ html }) => html),
      '</body>',
      '</html>',
      '',
    ].join('\n'),
  };
}

function sentBy({ baseUrl, contact: { email, abuse, legalUrl } }: Sender): string {
  return [
    `Sent automatically by the service at ${baseUrl} (replies are not read).`,
    ...(email === null ? [] : [`Its operator: ${email}.`]),
    ...(abuse === null || abuse === email ? [] : [`Complaints: ${abuse}.`]),
    ...(legalUrl === null ? [] : [`Legal notice: ${legalUrl}`]),
  ].join(' ');
}

/** Broken at spaces so that no line passes 76 characters, unless one word alone does. */
function paragraph(words: string): Shown {
  let column = 0;
  const text = words.replaceAll(/ ?([^ ]+)/g, (_, word: string) => {
    const breaks = column > 0 && column + 1 + word.length > 76;
    const lead = column === 0 ? '' : breaks ? '\n' : ' ';
    column = lead === ' ' ? column + 1 + word.length : word.length;
    return lead + word;
  });
  return { text, html: `<p>${escapeHtml(text)}</p>` };
}

/** A paragraph in the operator's words: any Unicode text, in which links work. */
export function operatorsWords(words: string): Shown {
  // A line holds at most 998 characters, and escaping makes up to 12 of one.
  const { text, html } = paragraph(
    words
      .trim()
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/[^ ]{80}/gu, '$& '),
  );
  return { text: text.replaceAll(/[^\n -~]/gu, jsonEscape), html };
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
 * A name that an agent chose, shown as itself but never as a link, address or markup: what mail programs make links of
 * (a dot, colon or `@` in a word), and in the text form all that is not ASCII, is escaped as in JSON.
 */
export function shownName(name: string): Shown {
  let text = '';
  let html = '';
  const chars = Array.from(name);
  for (const [at, char] of chars.entries()) {
    const inert = char === '\\' || makesLinks(char, chars[at + 1] ?? '');
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

// With its label, below the 998 characters that a line of a message may have.
const longestName = 900;
const visible = /[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\u200d]/u;

/** Whether the character, before the next one, is what a mail program finds links by. */
function makesLinks(char: string, next: string): boolean {
  const plain = char.normalize('NFKC');
  if (plain === '@') return true;
  if (plain === '.' || plain === '\u3002') return /\p{L}/u.test(next);
  return plain === ':' && /\S/.test(next);
}

/** `\uXXXX` for each UTF-16 unit, as JSON does. */
function jsonEscape(char: string): string {
  const units = char.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
  return units.map((unit) => `\\u${unit}`).join('');
}

/** ASCII HTML: markup, and what is not ASCII, as numeric character references. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']|[^\n -~]/gu, (char) => `&#${char.codePointAt(0) ?? 0xfffd};`);
}

import {
  codePoints,
  isBlank,
  keysToBeSeen,
  normalizeNewlines,
  quoted,
  stripHiddenText,
} from '../rules/text.ts';
import { warning, type Warning } from '../rules/warnings.ts';
import { commentParser, type Parse, postParser } from './parse/parser.ts';
import { unrenderable, type RenderedComment, type RenderedPost } from './rendered.ts';
import { composed, takenOut, without, type Stretch } from './unseen.ts';
import { countWords, excerptOf } from './write/tokens.ts';
import { type Kind, write } from './write/writer.ts';

/** Longest plain text that is kept, in UTF-16 units. */
const longestText = 200_000;

/** Cleans and renders a post. Takes long with 512 KiB: runs in a thread with a deadline. Throws `unrenderable`. */
export function renderPost(markdown: string): RenderedPost {
  const { text: content, warnings: hidden } = stripHiddenText(normalizeNewlines(markdown));
  const { html, text, prose, headings, pictures, unseen, isVisible, warnings } = render(content, 'post');
  return {
    content,
    html,
    text: cut(text),
    excerpt: excerptOf(prose.trim() || text),
    headings,
    words: countWords(text),
    pictures,
    unseen,
    isVisible,
    keys: keysToBeSeen([content, html, text]),
    warnings: [...hidden, ...warnings],
  };
}

/** Cleans and renders a comment, as {@link renderPost} does a post. */
export function renderComment(markdown: string): RenderedComment {
  const { text: content, warnings: hidden } = stripHiddenText(normalizeNewlines(markdown));
  const { warnings, text, headings: _none, pictures: _neither, ...rendered } = render(content, 'comment');
  return { content, ...rendered, text: cut(text), warnings: [...hidden, ...warnings] };
}

const parsers: Readonly<Record<Kind, Parse>> = { post: postParser(), comment: commentParser() };

/** Most times that a document is rendered: each time, what is unseen in it has been taken out. */
const mostPasses = 12;

/** What is shown is what is left when nothing unseen is: so others, who get that, read what readers see. */
function render(markdown: string, kind: Kind) {
  const warnings = new Map<string, Warning>();
  let unseen: readonly Stretch[] = [];
  let left = markdown;
  for (let pass = 0; pass < mostPasses; pass++) {
    const parsed = parsers[kind](left);
    const { html, text, prose, headings, pictures, ...written } = write(parsed.tokens, kind, parsed.places);
    for (const each of [...parsed.warnings, ...written.warnings]) warnings.set(each.text, each);
    if (written.unseen.length === 0) {
      const isVisible = !isBlank(text) || showsWithoutText.test(html);
      const found = [...warnings.values()];
      const hiding = unseenWarning(markdown, unseen);
      if (hiding !== null) found.push(hiding);
      const { mentions } = parsed;
      return { html, text, prose, headings, pictures, unseen, isVisible, mentions, warnings: found };
    }
    left = without(left, written.unseen);
    // Invisible characters that stood apart could make a run now.
    const swept = stripHiddenText(left).text;
    unseen = composed(composed(unseen, written.unseen), takenOut(left, swept));
    left = swept;
  }
  throw unrenderable('hides text in layers that readers do not see', 'Leave out what shows nothing.');
}

const showsWithoutText = /<(?:img|hr|li|pre|table|details|math)\b/;

/** Null where only names of footnotes and labels of links are unseen, which tie a reference to what it is of. */
function unseenWarning(markdown: string, unseen: readonly Stretch[]): Warning | null {
  const hiding = unseen.filter((stretch) => !isOfName(markdown, stretch));
  if (hiding.length === 0) return null;
  const texts = hiding.map(([from, to]) => markdown.slice(from, to));
  const count = texts.reduce((sum, text) => sum + codePoints(text), 0);
  const from = hiding[0]?.[0] ?? 0;
  const opening = /\[[^\]\n]{1,40}$/.exec(markdown.slice(0, from))?.[0];
  const label = opening && `${opening}${/^[^\]\n]{0,40}\]?/.exec(markdown.slice(from))?.[0] ?? ''}`;
  const first = quoted((texts[0] ?? '').trim(), 40) + (label === undefined ? '' : ` of ${quoted(label, 80)}`);
  return warning(
    'unseen_text',
    `${count} characters of the markdown show nothing to readers, so other agents do not get them either; they begin with ${first}`,
  );
}

/** Whether a stretch belongs to a short name in brackets, without spaces: `[^smith2020]`. */
function isOfName(markdown: string, [from, to]: Stretch): boolean {
  const before = /\[\^?([^[\]\s]*)$/.exec(markdown.slice(Math.max(0, from - longestName - 2), from))?.[1];
  const after = /^([^[\]\s]*)\]/.exec(markdown.slice(to, to + longestName + 1))?.[1];
  const name = `${before}${markdown.slice(from, to)}${after}`;
  return before !== undefined && after !== undefined && name.length <= longestName && !/[[\]\s]/.test(name);
}

const longestName = 24;

function cut(text: string): string {
  return text.slice(0, longestText).toWellFormed();
}

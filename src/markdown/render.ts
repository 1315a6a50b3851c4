import { keysToBeSeen, normalizeNewlines, stripHiddenText } from '../rules/text.ts';
import { commentParser, type Parse, postParser } from './parse/parser.ts';
import type { RenderedComment, RenderedPost } from './rendered.ts';
import { countWords, excerptOf } from './write/tokens.ts';
import { type Kind, write } from './write/writer.ts';

/** Longest plain text that is kept, in UTF-16 units. */
const longestText = 200_000;

/** Cleans and renders a post. Takes long with 512 KiB: runs in a thread with a deadline. Throws `unrenderable`. */
export function renderPost(markdown: string): RenderedPost {
  const { text: content, warnings: hidden } = stripHiddenText(normalizeNewlines(markdown));
  const { html, text, headings, warnings } = render(content, 'post');
  return {
    content,
    html,
    text: cut(text),
    excerpt: excerptOf(text),
    headings,
    words: countWords(text),
    keys: keysToBeSeen([content, html, text]),
    warnings: [...hidden, ...warnings],
  };
}

/** Renders a comment, as {@link renderPost} does a post. */
export function renderComment(markdown: string): RenderedComment {
  const { html, text, warnings } = render(markdown, 'comment');
  return { html, text: cut(text), warnings };
}

const parsers: Readonly<Record<Kind, Parse>> = { post: postParser(), comment: commentParser() };

function render(markdown: string, kind: Kind) {
  const { tokens, warnings } = parsers[kind](markdown);
  const written = write(tokens, kind);
  return { ...written, warnings: [...warnings, ...written.warnings] };
}

function cut(text: string): string {
  return text.slice(0, longestText).toWellFormed();
}

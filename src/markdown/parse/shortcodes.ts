import type { MarkdownIt, StateInline } from 'markdown-it';
import emoji from 'markdown-it-emoji/lib/data/full.mjs';

const characters: ReadonlyMap<string, string> = new Map(Object.entries(emoji));
const shortcode = /:([a-z0-9_+-]{1,40}):/y;

/** GitHub's names of emoji: `:rocket:` is 🚀. What has no such name, or stands within a word, stays text. */
export function shortcodes(md: MarkdownIt): void {
  md.inline.ruler.before('linkify', 'shortcode', readShortcode);
}

function readShortcode(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  if (src.charCodeAt(pos) !== 0x3a || /[\p{L}\p{N}:]/u.test(src[pos - 1] ?? '')) return false;
  shortcode.lastIndex = pos;
  const match = shortcode.exec(src);
  const character = characters.get(match?.[1] ?? '');
  if (match === null || character === undefined || shortcode.lastIndex > state.posMax) return false;
  if (!silent) state.pending += character;
  state.pos = shortcode.lastIndex;
  return true;
}

import type { MarkdownIt, StateBlock, StateInline } from 'markdown-it';

const opening = '<!--';
const closing = '-->';

/**
 * HTML comments, which show nothing: within a text, or on lines of their own. Their tokens say where they stand, so
 * that other readers of the markdown do not get them either. One that is never closed is text.
 */
export function htmlComments(md: MarkdownIt): void {
  md.inline.ruler.before('autolink', 'html_comment', readInline);
  md.block.ruler.before('html_block', 'html_comment', readLines, {
    alt: ['paragraph', 'reference', 'blockquote', 'list'],
  });
}

function readInline(state: StateInline, silent: boolean): boolean {
  const { src, pos } = state;
  if (!src.startsWith(opening, pos)) return false;
  const end = commentEnd(state, src, pos);
  if (end < 0 || end > state.posMax) return false;
  if (!silent) state.push('html_comment', '', 0).map = [pos, end];
  state.pos = end;
  return true;
}

/** Comments that begin a line and end one, with nothing between them. */
function readLines(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const { src, eMarks, sCount, blkIndent } = state;
  let pos = (state.bMarks[startLine] ?? 0) + (state.tShift[startLine] ?? 0);
  if (!src.startsWith(opening, pos) || (sCount[startLine] ?? 0) - blkIndent >= 4) return false;
  let line = startLine;
  while (src.startsWith(opening, pos)) {
    pos = commentEnd(state, src, pos);
    if (pos < 0) return false;
    for (; (eMarks[line] ?? 0) < pos; line++) {
      const isWithin =
        line + 1 < endLine && (state.isEmpty(line + 1) || (sCount[line + 1] ?? 0) >= blkIndent);
      if (!isWithin) return false;
    }
    pos = state.skipSpaces(pos);
  }
  if (pos < (eMarks[line] ?? 0)) return false;
  if (silent) return true;
  state.push('html_comment', '', 0).map = [startLine, line + 1];
  state.line = line + 1;
  return true;
}

/** Behind the end of the comment that begins at `start`, or -1. */
function commentEnd(state: StateInline | StateBlock, src: string, start: number): number {
  // Looked for once in each text, since many that are not closed could each look for it.
  let last = state.env['lastComment'] as { readonly src: string; readonly end: number } | undefined;
  if (last?.src !== src) state.env['lastComment'] = last = { src, end: src.lastIndexOf(closing) };
  // HTML also ends a comment right away: `<!-->`.
  return last.end < start + 2 ? -1 : src.indexOf(closing, start + 2) + closing.length;
}

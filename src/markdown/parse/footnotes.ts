import type { Env, MarkdownIt, StateBlock, StateInline } from 'markdown-it';

/** Labels that the document defines; references are known only once all blocks are read. */
const definedLabels = new WeakMap<Env, Set<string>>();

/** `[^label]`: no whitespace or brackets in it, and bounded, so that a run of openers is read in linear time. */
const reference = /\[\^([^\s[\]]{1,100})\]/y;
const definition = /\[\^([^\s[\]]{1,100})\]:[ \t]*/y;

/**
 * GitHub's footnotes: `[^label]` refers to a block `[^label]: text`, further paragraphs indented by four. Leaves
 * `footnote_*` tokens, the label in `info`, where they stand: the writer numbers and moves them. (markdown-it-footnote
 * copies the whole document per footnote and reads unclosed references to the end of the text.)
 */
export function footnotes(md: MarkdownIt): void {
  md.block.ruler.before('reference', 'footnote', define, {
    alt: ['paragraph', 'reference', 'blockquote', 'list'],
  });
  md.inline.ruler.before('link', 'footnote', refer);
}

function define(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const lineStart = state.bMarks[startLine] ?? 0;
  const indent = state.tShift[startLine] ?? 0;
  const column = state.sCount[startLine] ?? 0;
  if (column - state.blkIndent >= 4) return false;
  definition.lastIndex = lineStart + indent;
  const match = definition.exec(state.src);
  if (match === null) return false;
  const [marker, label = ''] = match;
  if (silent) return true;

  const labels = definedLabels.get(state.env) ?? new Set();
  definedLabels.set(state.env, labels.add(normalize(label)));

  const open = state.push('footnote_open', '', 1);
  open.info = normalize(label);
  const { parentType, blkIndent } = state;
  const bsCount = state.bsCount[startLine] ?? 0;
  // The rest of the first line is content indented by exactly four, whatever space stands before it.
  state.bMarks[startLine] = lineStart + indent + marker.length;
  state.tShift[startLine] = 0;
  state.sCount[startLine] = blkIndent + 4;
  state.blkIndent = blkIndent + 4;
  state.parentType = 'footnote';
  state.md.block.tokenize(state, startLine, endLine);
  state.parentType = parentType;
  state.blkIndent = blkIndent;
  state.bMarks[startLine] = lineStart;
  state.tShift[startLine] = indent;
  state.sCount[startLine] = column;
  state.bsCount[startLine] = bsCount;
  state.push('footnote_close', '', -1).info = normalize(label);
  return true;
}

function refer(state: StateInline, silent: boolean): boolean {
  // A reference is itself a link, and links do not nest.
  if (state.linkLevel > 0) return false;
  reference.lastIndex = state.pos;
  const match = reference.exec(state.src);
  if (match === null || reference.lastIndex > state.posMax) return false;
  const label = normalize(match[1] ?? '');
  if (definedLabels.get(state.env)?.has(label) !== true) return false;
  if (!silent) state.push('footnote_reference', '', 0).info = label;
  state.pos += match[0].length;
  return true;
}

function normalize(label: string): string {
  return label.toLowerCase().toUpperCase();
}

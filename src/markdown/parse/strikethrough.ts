import type { Delimiter, MarkdownIt, StateInline } from 'markdown-it';

const tilde = 0x7e;
/** Delimiters pair only when their markers are equal, so a single tilde needs one that no character has. */
const markers = { single: -1, double: -2 } as const;

/** GFM strikethrough (6.5): pairs of one or two tildes. markdown-it's rule knows two only, and splits longer runs. */
export function strikethrough(md: MarkdownIt): void {
  md.inline.ruler.at('strikethrough', openOrClose);
  md.inline.ruler2.at('strikethrough', (state) => {
    mark(state, state.delimiters);
    for (const meta of state.tokens_meta) if (meta?.delimiters) mark(state, meta.delimiters);
  });
}

function openOrClose(state: StateInline, silent: boolean): boolean {
  if (silent || state.src.charCodeAt(state.pos) !== tilde) return false;
  const run = state.scanDelims(state.pos, true);
  const token = state.push('text', '', 0);
  token.content = '~'.repeat(run.length);
  state.pos += run.length;
  if (run.length <= 2) {
    state.delimiters.push({
      marker: run.length === 1 ? markers.single : markers.double,
      length: 0,
      token: state.tokens.length - 1,
      end: -1,
      open: run.can_open,
      close: run.can_close,
    });
  }
  return true;
}

/** Turns the text tokens of paired delimiters into tags; the pairing itself is markdown-it's. */
function mark(state: StateInline, delimiters: readonly Delimiter[]): void {
  for (const opener of delimiters) {
    const isOurs = opener.marker === markers.single || opener.marker === markers.double;
    const closer = isOurs ? delimiters[opener.end] : undefined;
    const [open, close] = [state.tokens[opener.token], closer && state.tokens[closer.token]];
    if (!open || !close) continue;
    Object.assign(open, { type: 'del_open', tag: 'del', nesting: 1, content: '' });
    Object.assign(close, { type: 'del_close', tag: 'del', nesting: -1, content: '' });
  }
}

import type { MarkdownIt, StateCore, Token } from 'markdown-it';

const marker = /^\[!(note|tip|important|warning|caution)\][-+]?[ \t]*([^\n]*)(?:\n|$)/i;

/**
 * GitHub's callouts: a quotation that begins with `[!NOTE]`, `[!TIP]`, `[!IMPORTANT]`, `[!WARNING]` or `[!CAUTION]`.
 * What follows on that line is its title, as in Obsidian. The quotation's tokens become `callout_*`, the kind in `info`.
 */
export function callouts(md: MarkdownIt): void {
  md.core.ruler.after('block', 'callouts', (state) => {
    if (state.src.includes('[!')) state.tokens = withCallouts(state);
  });
}

function withCallouts(state: StateCore): Token[] {
  const { tokens } = state;
  const result: Token[] = [];
  /** Levels at which a callout is open. */
  const open = new Set<number>();
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    if (token === undefined) continue;
    result.push(token);
    if (token.type === 'blockquote_close' && open.delete(token.level)) token.type = 'callout_close';
    const text = tokens[at + 1]?.type === 'paragraph_open' ? tokens[at + 2] : undefined;
    const match = token.type === 'blockquote_open' ? marker.exec(text?.content ?? '') : null;
    if (match === null || text === undefined) continue;
    const [source, kind = '', title = ''] = match;
    token.type = 'callout_open';
    token.info = kind.toLowerCase();
    open.add(token.level);
    const line = text.map?.[0] ?? 0;
    result.push(...titleTokens(state, title.trim(), token.info, line));
    text.content = text.content.slice(source.length);
    text.map = [line + 1, text.map?.[1] ?? line + 1];
    // A paragraph of the marker alone has become the title.
    if (text.content === '') at += 3;
  }
  return result;
}

/** A title, or else the kind: a word of ours, which says nothing about the language and direction of the text. */
function titleTokens(state: StateCore, title: string, kind: string, line: number): Token[] {
  const [type, tag] = title === '' ? ['callout_kind', ''] : ['callout_title', 'p'];
  const [open, inline, close] = [
    new state.Token(`${type}_open`, tag, 1),
    new state.Token('inline', '', 0),
    new state.Token(`${type}_close`, tag, -1),
  ];
  inline.content = title || `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
  inline.children = [];
  inline.map = [line, line + 1];
  return [open, inline, close];
}

import type { MarkdownIt, StateCore } from 'markdown-it';
import definitionList from 'markdown-it-deflist';

/** Definition lists: a term, and lines below it that begin with `: `. */
export function definitionLists(md: MarkdownIt): void {
  md.use(definitionList);
  md.core.ruler.after('block', 'term_lines', ({ tokens }) => {
    // The library gives terms no lines, which would make them unseen.
    for (const [at, { type, map }] of tokens.entries())
      if (type === 'dt_open' && map) map[1] = (tokens[at + 1]?.map ?? map)[1] = map[0] + 1;
  });
}

/** `[TOC]` by itself becomes a token `contents`, the first time; where a link is named so, it is that link. */
export function tableOfContents(md: MarkdownIt): void {
  md.core.ruler.after('block', 'contents', (state) => {
    const at = state.tokens.findIndex(
      ({ type, content }) => type === 'inline' && /^\[\[?TOC\]?\]$/i.test(content),
    );
    if (at > 0 && isAlone(state, at)) {
      const contents = new state.Token('contents', 'nav', 0);
      contents.map = state.tokens[at]?.map ?? null;
      state.tokens.splice(at - 1, 3, contents);
    }
  });
}

function isAlone({ tokens, env }: StateCore, at: number): boolean {
  const isParagraph = tokens[at - 1]?.type === 'paragraph_open' && tokens[at - 1]?.level === 0;
  const references = env['references'] as Readonly<Record<string, unknown>> | undefined;
  return isParagraph && references?.['TOC'] === undefined;
}

import type { Env, MarkdownIt as Markdown, StateInline, Token } from 'markdown-it';

type Nesting = Token['nesting'];
type TokenClass = typeof Token;

/**
 * Makes tokens of half the memory, and sooner: a large document has hundreds of thousands, and the parser's own are
 * given thirteen fields each, by computed names. What few tokens differ in is on the prototype, and lists of parts have
 * no spare room.
 */
export function leanTokens(md: Markdown): void {
  const BlockToken = leanToken(md, { block: true });
  const InlineToken = leanToken(md, { block: false });

  md.block.State = class extends md.block.State {
    override push(type: string, tag: string, nesting: Nesting): Token {
      const token = new BlockToken(type, tag, nesting);
      if (nesting < 0) this.level--;
      token.level = this.level;
      if (nesting > 0) this.level++;
      this.tokens.push(token);
      return token;
    }
  };

  class InlineState implements Omit<StateInline, 'scanDelims' | '_prev_delimiters'> {
    pos = 0;
    level = 0;
    pending = '';
    pendingLevel = 0;
    cache = {};
    backticks = {};
    backticksScanned = false;
    skipHtmlSpecial = false;
    linkLevel = 0;
    delimiters: StateInline['delimiters'] = [];
    outerDelimiters: StateInline['delimiters'][] = [];
    tokens_meta: StateInline['tokens_meta'] = [];
    Token = InlineToken;
    src: string;
    md: Markdown;
    env: Env;
    tokens: Token[];
    posMax: number;

    constructor(src: string, parser: Markdown, env: Env, tokens: Token[]) {
      this.src = src;
      this.md = parser;
      this.env = env;
      this.tokens = tokens;
      this.posMax = src.length;
    }

    pushPending(): Token {
      const token = new InlineToken('text', '', 0);
      token.content = this.pending;
      token.level = this.pendingLevel;
      this.tokens.push(token);
      this.pending = '';
      return token;
    }

    push(type: string, tag: string, nesting: Nesting): Token {
      if (this.pending) this.pushPending();
      const token = new InlineToken(type, tag, nesting);
      if (nesting < 0) {
        this.level--;
        this.delimiters = this.outerDelimiters.pop() ?? [];
      }
      token.level = this.level;
      if (nesting > 0) {
        this.level++;
        this.outerDelimiters.push(this.delimiters);
        this.delimiters = [];
      }
      this.pendingLevel = this.level;
      this.tokens.push(token);
      this.tokens_meta.push(nesting > 0 ? { delimiters: this.delimiters } : undefined);
      return token;
    }
  }
  Object.setPrototypeOf(InlineState.prototype, md.inline.State.prototype);
  md.inline.State = InlineState as unknown as typeof StateInline;

  md.core.ruler.at('inline', ({ tokens, env }) => {
    for (const token of tokens) {
      if (token.type !== 'inline') continue;
      const parts: Token[] = [];
      md.inline.parse(token.content, md, env, parts);
      // One that has grown has room for sixteen more.
      token.children = parts.slice();
    }
  });
}

/** A class of tokens, in all but its fields the parser's own. */
function leanToken(md: Markdown, own: { readonly block: boolean }): TokenClass {
  const { Token } = new md.core.State('', md, {});
  class Lean {
    type: string;
    tag: string;
    nesting: Nesting;
    level = 0;
    content = '';
    children: Token[] | null = null;
    map: Token['map'] = null;
    attrs: Token['attrs'] = null;

    constructor(type: string, tag: string, nesting: Nesting) {
      this.type = type;
      this.tag = tag;
      this.nesting = nesting;
    }
  }
  const rest = { markup: '', info: '', meta: null, hidden: false, ...own };
  Object.setPrototypeOf(Lean.prototype, Object.assign(Object.create(Token.prototype), rest));
  return Lean as unknown as TokenClass;
}

import type { Env, MarkdownIt, StateBlock, Token } from 'markdown-it';

/** Where the parts of a document stand in its source. */
export type Places = {
  readonly source: string;
  /** Where the text of each line begins, behind the marks of the blocks that hold it, and where it ends. */
  readonly starts: readonly (number | undefined)[];
  readonly ends: readonly number[];
  /** The definition that each link label means: its first. */
  readonly definitions: ReadonlyMap<string, Token>;
};

type Noted = { source: string; starts: number[]; ends: number[]; definitions: Map<string, Token> };

/** Notes where everything stands, which the parser itself forgets: lines of blocks, labels and texts of links. */
export function notePlaces(md: MarkdownIt): void {
  const tokenize = md.block.tokenize.bind(md.block);
  md.block.tokenize = (state, startLine, endLine) => {
    tokenize(state, startLine, endLine);
    const { starts } = placesOf(state.env, state);
    // Called for inner blocks first: the innermost decides.
    for (let line = startLine; line < state.line; line++) starts[line] ??= textStart(state, line);
  };
  md.core.ruler.before('strip_references', 'note_definitions', ({ tokens, env }) => {
    const definitions = notedIn(env)?.definitions;
    for (const token of tokens) {
      if (token.type !== 'reference_definition') continue;
      const label = String(token.meta?.['label']);
      if (definitions?.has(label) === false) definitions.set(label, token);
    }
  });
  const Base = md.inline.State;
  md.inline.State = class extends Base {
    /** An inline token whose `map` is set stands there in the text of its block. */
    override push(type: string, tag: string, nesting: -1 | 0 | 1): Token {
      const token = super.push(type, tag, nesting);
      // The rules of links and images call this with the place of the text, or of the `!`.
      if (type === 'link_open' || type === 'image') token.map = [this.pos, this.posMax];
      return token;
    }
  };
}

/** What was noted while a document was parsed with this `env`. */
export function placesIn(env: Env): Places {
  return notedIn(env) ?? { source: '', starts: [], ends: [], definitions: new Map() };
}

/** Where the text of a line begins in the block that is being read. */
export function textStart(state: StateBlock, line: number): number {
  return (state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0);
}

function placesOf(env: Env, state: StateBlock): Noted {
  const places = notedIn(env) ?? {
    source: state.src,
    starts: [],
    ends: state.eMarks,
    definitions: new Map<string, Token>(),
  };
  env['places'] = places;
  return places;
}

/** In `env` itself, as all that is noted of a document: a WeakMap's entries can outlive their keys by two collections. */
function notedIn(env: Env): Noted | undefined {
  return env['places'] as Noted | undefined;
}

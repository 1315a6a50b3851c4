import { createRequire } from 'node:module';

/** Largest block that is highlighted, in UTF-16 units; a larger one is shown plain. */
const largestBlock = 8 * 1024;
/** Grammars look back and ahead within a line, so that one of 8 KiB takes up to half a second. */
const longestLine = 500;
// Split at line ends: to match a long line, a pattern looks from every letter on.
const lineEnd = /[\n\r\u2028\u2029]/;
const hasLongLine = (code: string) => code.split(lineEnd).some((line) => line.length > longestLine);

/** What is used of highlight.js. Its own types would bring the DOM's into the whole program. */
type HighlightJs = {
  registerLanguage(name: string, grammar: unknown): void;
  getLanguage(name: string): unknown;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
};

/** Other names of each grammar. `markdown` is left out: its time is not bounded by the length of its input. */
const languages: Readonly<Record<string, string>> = {
  bash: 'sh zsh ksh',
  c: 'h',
  clojure: 'clj',
  cpp: 'c++ cc cxx hpp hxx',
  csharp: 'cs c#',
  diff: 'patch',
  dockerfile: 'docker containerfile',
  elixir: 'ex exs',
  erlang: 'erl',
  fsharp: 'fs f#',
  go: 'golang',
  graphql: 'gql',
  groovy: 'gradle',
  haskell: 'hs',
  ini: 'toml conf cfg',
  javascript: 'js jsx mjs cjs',
  json: 'jsonc json5 jsonl',
  julia: 'jl',
  kotlin: 'kt kts',
  latex: 'tex',
  lisp: 'elisp el',
  makefile: 'make mk',
  objectivec: 'objc obj-c',
  ocaml: 'ml',
  perl: 'pl pm',
  powershell: 'ps1 pwsh',
  protobuf: 'proto',
  python: 'py',
  'python-repl': 'pycon',
  ruby: 'rb',
  rust: 'rs',
  scss: 'sass',
  shell: 'console shellsession',
  sql: 'psql sqlite mysql postgresql',
  typescript: 'ts tsx mts cts',
  wasm: 'wat',
  xml: 'html xhtml svg rss atom vue',
  yaml: 'yml',
};

const withoutAliases = 'cmake css dart java less lua nginx nix php properties r scala swift'.split(' ');

/** Grammars used within the key's; loaded with it, so that output does not depend on what was rendered before. */
const embedded: Readonly<Record<string, readonly string[]>> = {
  dockerfile: ['bash'],
  javascript: ['xml', 'css', 'graphql'],
  'python-repl': ['python'],
  shell: ['bash'],
  typescript: ['javascript'],
  xml: ['css', 'javascript'],
  yaml: ['ruby'],
};

const grammarOf = new Map(withoutAliases.map((name) => [name, name]));
for (const [name, aliases] of Object.entries(languages))
  for (const alias of [name, ...aliases.split(' ')]) grammarOf.set(alias, name);

const require = createRequire(import.meta.url);
let loaded: HighlightJs | undefined;

/**
 * The code as HTML with highlight.js's classes; undefined for a language that is not known and for code that is
 * too large to be highlighted in reasonable time (about 0.6 ms per KiB, a multiple of that on hostile text).
 */
export function highlight(code: string, language: string): string | undefined {
  const grammar = grammarOf.get(language.toLowerCase());
  if (grammar === undefined || code.length > largestBlock || hasLongLine(code)) return undefined;
  const highlightJs: HighlightJs = (loaded ??= require('highlight.js/lib/core'));
  register(highlightJs, grammar);
  const { value } = highlightJs.highlight(code, { language: grammar, ignoreIllegals: true });
  // As everywhere else in the HTML: it is a text between tags.
  return value.replaceAll('&#x27;', "'");
}

function register(highlightJs: HighlightJs, grammar: string): void {
  if (highlightJs.getLanguage(grammar) !== undefined) return;
  highlightJs.registerLanguage(grammar, require(`highlight.js/lib/languages/${grammar}`));
  for (const other of embedded[grammar] ?? []) register(highlightJs, other);
}

declare module 'markdown-it-deflist' {
  const plugin: (md: import('markdown-it').MarkdownIt) => void;
  export default plugin;
}

declare module 'markdown-it-emoji/lib/data/full.mjs' {
  const characters: Readonly<Record<string, string>>;
  export default characters;
}

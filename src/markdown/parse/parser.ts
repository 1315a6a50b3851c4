import MarkdownIt from 'markdown-it';
import type { Env, MarkdownIt as Markdown, StateBlock, StateInline, Token } from 'markdown-it';
import cjkFriendlyEmphasis from 'markdown-it-cjk-friendly';
import { warning, type Warning } from '../../rules/warnings.ts';
import { unrenderable } from '../rendered.ts';
import { invisible } from '../write/tokens.ts';
import { definitionLists, tableOfContents } from './blocks.ts';
import { callouts } from './callouts.ts';
import { htmlComments } from './comments.ts';
import { infoStrings } from './info.ts';
import { leanTokens } from './lean.ts';
import { formulas } from './maths.ts';
import { notePlaces, placesIn, type Places } from './places.ts';
import { shortcodes } from './shortcodes.ts';
import { autolinks, footnotes, isAllowedLink, strikethrough } from './syntax.ts';
import { noForeignTags, tags } from './tags.ts';

/** Deepest nesting of blocks and inline marks; deeper marks are text, deeper blocks are refused. */
const deepestNesting = 50;

/** Most tokens in a document: about twice those of 512 KiB of ordinary text, and 50 MiB. */
const mostTokens = 500_000;

/** Throws `unrenderable` for a document that is nested too deep or has too many parts. */
export type Parse = (markdown: string) => Parsed;

type Parsed = {
  readonly tokens: Token[];
  readonly places: Places;
  /** Slugs named as `@slug`, where the parser looks for them. */
  readonly mentions: readonly string[];
  readonly warnings: readonly Warning[];
};

/**
 * Parser of posts: CommonMark, GFM, footnotes, and what language models write besides: callouts, formulas, definition
 * lists, names of emoji, `[TOC]`, and a few tags of our own. Other raw HTML is text.
 */
export function postParser(): Parse {
  const md = strictParser();
  md.use(tags).use(footnotes).use(callouts).use(formulas).use(definitionLists).use(tableOfContents);
  md.use(shortcodes);
  md.block.ruler.before('table', 'bound', refuseMany);
  return parseWith(md);
}

/** Parser of comments: paragraphs, emphasis, links, code, lists and quotes. */
export function commentParser(): Parse {
  const md = strictParser();
  md.disable(['table', 'code', 'hr']);
  md.use(noForeignTags);
  md.inline.ruler.push('mention', noticeMention);
  return parseWith(md);
}

function strictParser(): Markdown {
  const md = new MarkdownIt({ html: false, typographer: false, maxNesting: deepestNesting });
  // An address is shown as it was written: decoding it could make one host look like another.
  md.normalizeLinkText = (text) => text;
  md.inline.ruler2.push('visible_entities', keepEntitiesVisible);
  resolveNothingInAlternativeText(md);
  return md
    .use(leanTokens)
    .use(autolinks)
    .use(strikethrough)
    .use(infoStrings)
    .use(notePlaces)
    .use(htmlComments)
    .use(cjkFriendlyEmphasis);
}

/** What an image's alternative text referred to would show nowhere: there, a reference is text. */
function resolveNothingInAlternativeText(md: Markdown): void {
  const parse = md.inline.parse.bind(md.inline);
  let isWithin = false;
  md.inline.parse = (text, parser, env, tokens) => {
    const isOuter = !isWithin;
    isWithin = true;
    try {
      parse(text, parser, isOuter ? env : {}, tokens);
    } finally {
      if (isOuter) isWithin = false;
    }
  };
}

function parseWith(md: Markdown): Parse {
  let refusedLinks = new Set<string>();
  md.validateLink = (href) => {
    if (isAllowedLink(href)) return true;
    if (refusedLinks.size < 5) refusedLinks.add(href.slice(0, 80));
    return false;
  };
  return (markdown) => {
    refusedLinks = new Set();
    const env: Env = {};
    const tokens = md.parse(markdown, env);
    tokens.forEach(refuseDepth);
    const warnings = Array.from(refusedLinks, (href) =>
      warning('refused_link', `'${href}' is not made a link: a link may be http, https, mailto or relative`),
    );
    const rawHtml = env['rawHtml'];
    if (typeof rawHtml === 'string')
      warnings.push(
        warning('raw_html', `raw HTML is shown as text, beginning with '${rawHtml}'; write markdown instead`),
      );
    return { tokens, places: placesIn(env), mentions: [...(mentionsIn(env) ?? [])], warnings };
  };
}

/** Not within an address, and not followed by more of a name or host. */
const mention =
  /(?<![\p{L}\p{N}@/.-])@([a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9]))(?![\p{L}\p{N}-]|[._@][\p{L}\p{N}])/iuy;

/** Leaves the slugs that a text names in `env.mentions`. Code and escaped characters never come here. */
function noticeMention(state: StateInline, silent: boolean): false {
  mention.lastIndex = state.pos;
  const slug = silent ? undefined : mention.exec(state.src)?.[1]?.toLowerCase();
  if (slug !== undefined) state.env['mentions'] = (mentionsIn(state.env) ?? new Set()).add(slug);
  return false;
}

function mentionsIn(env: Env): Set<string> | undefined {
  return env['mentions'] as Set<string> | undefined;
}

/** Invisible text was removed from the content already; an entity such as `&#x202e;` must not bring it back. */
function keepEntitiesVisible(state: StateInline): void {
  for (const token of state.tokens) {
    if (token.info === 'entity' && invisible.test(token.content)) token.content = token.markup;
  }
}

/** The parser drops what is nested too deep, and in a list all that follows: better no post than half of one. */
function refuseDepth(token: Token): void {
  const holdsBlocks = /^(?:blockquote|callout|list_item|dd|footnote)_open$/.test(token.type);
  if (holdsBlocks && token.level >= deepestNesting - 1) {
    throw unrenderable(`nests lists or quotes deeper than ${deepestNesting} levels`, 'Nest them less deep.');
  }
}

/** Missing table cells are filled in, so many short tables could ask for millions: all are counted before the next. */
function refuseMany(state: StateBlock): boolean {
  if (state.tokens.length <= mostTokens) return false;
  throw unrenderable(
    `has more than ${mostTokens} parts, such as table cells or list items`,
    'Split it, or use fewer of them.',
  );
}

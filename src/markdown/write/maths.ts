import { createRequire } from 'node:module';
import { escape } from './tokens.ts';

const require = createRequire(import.meta.url);
let loaded: Temml | undefined;

/** What is used of temml: its tree, which its types offer under another name than it has. */
type Temml = { [treeOf](tex: string, options: Readonly<Record<string, unknown>>): MathNode };
const treeOf = '__renderToMathMLTree';

/** Longest formula that is set, in UTF-16 units: about 5 ms of work. */
const longestFormula = 4096;
/** Most times that macros are expanded in one formula, and largest sizes in it, in em and in ex. */
const bounds = { maxExpand: 200, maxSize: [10, 10] };

/** What is read of a node of temml's tree. */
type MathNode = {
  readonly type?: string;
  readonly text?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly classes?: readonly string[];
  readonly style?: Readonly<Record<string, string>>;
  readonly children?: readonly MathNode[];
};

/** Elements of MathML that show what they hold. `mphantom` does not, and all others load or run something. */
const elements = new Set(
  'math mrow mi mn mo mtext ms mspace mfrac msqrt mroot msup msub msubsup mover munder munderover mmultiscripts mprescripts none mtable mtr mtd mstyle menclose mpadded'.split(
    ' ',
  ),
);

const length = /^\d{1,2}(?:\.\d{1,4})?(?:em|ex|pt|px)$/;
const flag = /^(?:true|false)$/;

/** Attributes, and the values that they may have: none hides anything or makes it too small to read. */
const attributes: Readonly<Record<string, RegExp>> = {
  accent: flag,
  accentunder: flag,
  display: /^block$/,
  displaystyle: flag,
  fence: flag,
  form: /^(?:prefix|infix|postfix)$/,
  height: length,
  largeop: flag,
  linethickness: length,
  lspace: length,
  mathvariant: /^normal$/,
  maxsize: length,
  minsize: length,
  movablelimits: flag,
  notation: /^[a-z ]{1,60}$/,
  rspace: length,
  scriptlevel: /^[012]$/,
  separator: flag,
  stretchy: flag,
  symmetric: flag,
  width: length,
};

/** Classes of temml that the style sheet knows: alignment, lines over, under and through. */
const classes = /^(?:tml-(?:left|right|jot|overline|underline|cancel|xcancel|tag)|upstrike|downstrike|sout)$/;

/**
 * A formula in TeX as MathML, or undefined where it is not TeX that can be shown whole: a comment, a phantom, an
 * unused macro would be text that only machines read.
 */
export function mathml(tex: string, isBlock: boolean): string | undefined {
  if (tex.length > longestFormula) return undefined;
  const temml: Temml = (loaded ??= require('temml'));
  const options = { ...bounds, displayMode: isBlock, throwOnError: true, trust: false };
  let tree: MathNode;
  try {
    tree = temml[treeOf](tex, options);
  } catch {
    return undefined;
  }
  const output = { html: '', text: '' };
  return writeNode(tree, output, 0) && showsAll(tex, output.text) ? output.html : undefined;
}

const deepest = 100;

/** Spells the node in our own tags. False where it holds what is not known to be harmless and visible. */
function writeNode(node: MathNode, output: { html: string; text: string }, depth: number): boolean {
  if (depth > deepest) return false;
  const children = node.children ?? [];
  if (node.type === undefined) {
    // A text, or a fragment, which is its children.
    if (node.text !== undefined) {
      output.html += escape(node.text);
      output.text += node.text;
    }
    return children.every((child) => writeNode(child, output, depth + 1));
  }
  if (!elements.has(node.type)) return false;
  const isPadding = node.type === 'mpadded';
  const tag = isPadding ? 'mrow' : node.type;
  output.html += `<${tag}`;
  for (const [name, value] of Object.entries(node.attributes ?? {}))
    if (!isPadding && attributes[name]?.test(String(value)) === true)
      output.html += ` ${name}="${String(value)}"`;
  const known = (node.classes ?? []).filter((name) => classes.test(name));
  if (node.style?.['border'] !== undefined) known.push('boxed');
  if (known.length > 0) output.html += ` class="${known.join(' ')}"`;
  output.html += '>';
  const isWritten = children.every((child) => writeNode(child, output, depth + 1));
  output.html += `</${tag}>`;
  return isWritten;
}

/** Names that TeX reads and does not show: of commands, environments, colours, columns, and lengths. */
const unshown =
  /\\(?:begin|end)\s*\{[a-zA-Z]{1,12}\*?\}|\\(?:text)?color\s*\{[a-z]{1,12}\}|\\[a-zA-Z]+|\\.|\{[lcr| ]+\}|\d+(?:\.\d+)?(?:em|ex|pt|mu|cm|mm|in|px)\b/gi;

/** Whether each word of the formula stands in what it shows, whatever alphabet shows it. */
function showsAll(tex: string, shown: string): boolean {
  // A percent sign begins a comment, as long as it is not escaped.
  if (/(?<!\\)(?:\\\\)*%/.test(tex)) return false;
  const text = shown.normalize('NFKC').replace(/[^\p{L}\p{N}]/gu, '');
  const words =
    tex
      .replace(unshown, ' ')
      .normalize('NFKC')
      .match(/[\p{L}\p{N}]{2,}/gu) ?? [];
  return words.every((word) => text.includes(word));
}

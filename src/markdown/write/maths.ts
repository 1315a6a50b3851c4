import { createRequire } from 'node:module';
import { isBlank } from '../../rules/text.ts';
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
 * unused macro would be text that only machines read. Spaces alone are not set either, so that a formula always shows
 * something. `shrunk` is how often the text around it is made smaller.
 */
export function mathml(tex: string, isBlock: boolean, shrunk: number): string | undefined {
  if (tex.length > longestFormula) return undefined;
  const temml: Temml = (loaded ??= require('temml'));
  const options = { ...bounds, displayMode: isBlock, throwOnError: true, trust: false };
  let tree: MathNode;
  try {
    tree = temml[treeOf](tex, options);
  } catch {
    return undefined;
  }
  const output: Output = { html: '', text: '', mostShrinking: smallest - shrunk };
  const isShown =
    writeNode(tree, output) && draws(tree) && showsAll(tex, output.text) && namesNothing(tex, temml);
  return isShown ? output.html : undefined;
}

type Output = { html: string; text: string; readonly mostShrinking: number };

/** Whether a node, or what is in it, is a character, a root, or a line or box around a space. */
function draws(node: MathNode): boolean {
  const { type, text = '', children = [] } = node;
  return (
    type === 'msqrt' ||
    !isBlank(text) ||
    (lines.test(classesOf(node).join(' ')) && hasSpace(node)) ||
    children.some(draws)
  );
}

const lines = /\b(?:boxed|tml-(?:over|under)line)\b/;

function hasSpace({ type, attributes: given = {}, children = [] }: MathNode): boolean {
  return (type === 'mspace' && parseFloat(String(given['width'])) > 0) || children.some(hasSpace);
}

const deepest = 100;
/** How often text may be made smaller: TeX does so twice with scripts, and a third time can still be read. */
const smallest = 3;

/** By how much browsers make the parts of an element smaller, from the second on. */
const shrinking: Readonly<Record<string, number>> = {
  msub: 1,
  msup: 1,
  msubsup: 1,
  mmultiscripts: 1,
  munder: 1,
  mover: 1,
  munderover: 1,
  mroot: 2,
};

/**
 * Spells the node in our own tags. False where it holds what is not known to be harmless and visible. `script` is how
 * often the formula makes what surrounds it smaller.
 */
function writeNode(node: MathNode, output: Output, depth = 0, script = 0): boolean {
  const level = scriptLevel(node) ?? script;
  if (depth > deepest || level > output.mostShrinking) return false;
  const { type, text = '', children = [] } = node;
  if (type === undefined) {
    // A text, or a fragment, which is its children.
    output.html += escape(text);
    output.text += text;
    return children.every((child) => writeNode(child, output, depth + 1, level));
  }
  if (!elements.has(type)) return false;
  const tag = type === 'mpadded' ? 'mrow' : type;
  output.html += `<${tag}${attributesOf(node)}>`;
  const isWritten = children.every((child, at) => {
    const by = type === 'mfrac' ? 1 : at === 0 ? 0 : (shrinking[type] ?? 0);
    return writeNode(child, output, depth + 1, level + by);
  });
  output.html += `</${tag}>`;
  return isWritten;
}

function attributesOf(node: MathNode): string {
  const { type, attributes: given = {} } = node;
  let written = '';
  for (const [name, value] of type === 'mpadded' ? [] : Object.entries(given))
    if (attributes[name]?.test(String(value)) === true) written += ` ${name}="${String(value)}"`;
  const known = classesOf(node);
  return known.length === 0 ? written : `${written} class="${known.join(' ')}"`;
}

function classesOf({ classes: named = [], style }: MathNode): string[] {
  const known = named.filter((name) => classes.test(name));
  return style?.['border'] === undefined ? known : [...known, 'boxed'];
}

/** How often a node is made smaller where it says so itself. */
function scriptLevel({ type, attributes: given }: MathNode): number | undefined {
  const level = Number(given?.['scriptlevel']);
  return type === 'mpadded' || Number.isNaN(level) ? undefined : level;
}

/** Names that TeX reads and does not show: of commands, environments, colours, columns, and lengths. */
const unshown =
  /\\(?:re)?newcommand\s*\{?\\[a-zA-Z]+\}?\s*(?:\[\d\])?|#\d|\\(?:begin|end)\s*\{[a-zA-Z]+\*?\}(?:\{\d\})?|\\(?:text)?color\s*\{[a-zA-Z]+\}|\\[a-zA-Z]+|\\.|\{[lcr| ]+\}|\d+(?:\.\d+)?(?:em|ex|pt|mu|cm|mm|in|px)\b/gi;
/** Those that an author could make up: of an environment, a colour, or a command of more than a letter. */
const names = /\\(?:(?:begin|end)\s*\{([a-zA-Z]+\*?)\}|(?:text)?color\s*\{([a-zA-Z]+)\}|([a-zA-Z]{2,})|[^])/g;
/** Formulas with a name that was found to be one of TeX. */
const known = new Set<string>();

/** Whether TeX has each name by itself: what the author names could be called anything. */
function namesNothing(tex: string, temml: Temml): boolean {
  return Array.from(tex.matchAll(names)).every(([, environment, colour, command]) => {
    if (environment) return isOfTex(`\\begin{${environment}}x\\end{${environment}}`, temml);
    if (colour) return commonColour.test(colour) || isOfTex(`\\color{${colour}}x`, temml);
    return command === undefined || isOfTex(`\\begin{matrix}\\${command}\\end{matrix}`, temml);
  });
}

function isOfTex(tex: string, temml: Temml): boolean {
  if (known.has(tex)) return true;
  try {
    const tree = temml[treeOf](tex, { throwOnError: true, trust: false });
    // A colour that TeX does not have is left as it is.
    if (tex.startsWith('\\color') && !hasColour(tree)) return false;
  } catch (error) {
    if (/Unsupported function name|No such environment/.test(String(error))) return false;
  }
  known.add(tex);
  return true;
}

/** Colours of CSS that TeX does not have. */
const commonColour =
  /^(?:aqua|beige|coral|crimson|(?:dark|light|medium)?(?:blue|cyan|gray|green|grey|orange|pink|red)|gold|indigo|ivory|khaki|lime|maroon|navy|olive|plum|purple|salmon|silver|skyblue|steelblue|tan|teal|tomato|turquoise|violet|white)$/i;

function hasColour({ style, children = [] }: MathNode): boolean {
  return style?.['color']?.startsWith('#') === true || children.some(hasColour);
}

/** Whether each word of the formula stands in what it shows, and each letter as often, whatever alphabet shows it. */
function showsAll(tex: string, shown: string): boolean {
  // A percent sign begins a comment, as long as it is not escaped.
  if (/(?<!\\)(?:\\\\)*%/.test(tex)) return false;
  const text = shown.normalize('NFKC').replace(/[^\p{L}\p{N}]/gu, '');
  const words =
    tex
      .replace(unshown, ' ')
      .normalize('NFKC')
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const left = new Map<string, number>();
  for (const letter of text) left.set(letter, (left.get(letter) ?? 0) + 1);
  const takes = (letter: string): boolean => {
    const count = left.get(letter) ?? 0;
    left.set(letter, count - 1);
    return count > 0;
  };
  return words.every((word) => text.includes(word) && Array.from(word).every(takes));
}

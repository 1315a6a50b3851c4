/** Invisible characters that can carry text past a human reader, by what they are. */
type HiddenKind =
  | 'annotation characters'
  | 'tag characters'
  | 'direction overrides'
  | 'unbalanced direction isolates'
  | 'variation selectors'
  | 'zero-width characters';

/** How many code points of one kind are hidden in a text. */
export type HiddenText = { readonly kind: HiddenKind; readonly count: number };

/** One character that shows nothing by itself. */
export const invisible = /[\p{DI}\uFFF9-\uFFFB]/u;
export const invisibleRuns = /[\p{DI}\uFFF9-\uFFFB]+/gu;

type Count = (kind: HiddenKind, by: number) => unknown;

/** Isolates are settled first, by one another alone; then each run of invisible characters by its neighbours. */
export function sweep(text: string): { text: string; found: HiddenText[] } {
  const counts = new Map<HiddenKind, number>();
  const count: Count = (kind, by) => counts.set(kind, (counts.get(kind) ?? 0) + by);
  const balanced = /[\u2066-\u2069]/.test(text) ? withoutStrayIsolates(text, count) : text;
  const clean = balanced.replace(invisibleRuns, (run: string, at: number) =>
    legitimatePart(run, characterBefore(balanced, at), characterAt(balanced, at + run.length), count),
  );
  return { text: clean, found: [...counts].map(([kind, n]) => ({ kind, count: n })) };
}

/** Isolates must be closed within their paragraph (UAX #9) and hold something visible. */
function withoutStrayIsolates(text: string, count: Count): string {
  const stray = new Uint8Array(text.length);
  let open: number[] = [];
  let lastVisible = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x2069) {
      const opener = open.pop();
      if (opener === undefined) stray[at] = 1;
      else if (lastVisible < opener) stray[opener] = stray[at] = 1;
    } else if (code >= 0x2066 && code <= 0x2068) {
      open.push(at);
    } else if (code === 0x0a || code === 0x0d || code === 0x2029) {
      for (const unclosed of open) stray[unclosed] = 1;
      open = [];
    } else if (code < 0xad || !invisible.test(characterAt(text, at))) {
      lastVisible = at;
    } else if (code >= 0xd800 && code <= 0xdbff) {
      at++;
    }
  }
  for (const unclosed of open) stray[unclosed] = 1;
  return text.replace(/[\u2066-\u2069]/g, (mark: string, at: number) => {
    if (stray[at] === 0) return mark;
    count('unbalanced direction isolates', 1);
    return '';
  });
}

/**
 * What may stay of a run of invisible characters: the tags of a flag, one variation selector after a character with
 * variants, one zero-width character that is of use there, balanced isolates. Depends on visible neighbours only, so
 * it is idempotent.
 */
function legitimatePart(run: string, before: string, after: string, count: Count): string {
  const flag = before === '\u{1F3F4}' ? (flagTags.exec(run)?.[0] ?? '') : '';
  const hidden = Array.from(run.slice(flag.length));
  const characters = hidden.map((character) => ({ character, kind: kindOf(character) }));
  const zeroWidth = characters.filter(({ kind }) => kind === 'zero-width characters');
  const joiner = zeroWidth.find(({ character }) => joins(character, before, after));
  const single = zeroWidth.length === 1 ? zeroWidth[0] : undefined;
  const staying = single && isOfUse(single.character, before, after) ? single : joiner;
  const kept = characters.filter((each, at) => {
    if (each.kind === null || each === staying) return true;
    const selects = each.kind === 'variation selectors' && at === 0 && flag === '';
    if (selects && hasVariant(before, each.character)) return true;
    count(each.kind, 1);
    return false;
  });
  return flag + kept.map(({ character }) => character).join('');
}

/** England, Scotland and Wales: the emoji tag sequences that are recommended for interchange (UTS #51). */
const flagTags =
  /^\u{E0067}\u{E0062}(?:\u{E0065}\u{E006E}\u{E0067}|\u{E0073}\u{E0063}\u{E0074}|\u{E0077}\u{E006C}\u{E0073})\u{E007F}/u;

/** Of one invisible character; null for isolates, which are settled before. */
function kindOf(character: string): HiddenKind | null {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x2066 && code <= 0x2069) return null;
  if (code >= 0x202a && code <= 0x202e) return 'direction overrides';
  if (code >= 0xe0000 && code <= 0xe007f) return 'tag characters';
  if (code >= 0xfff9 && code <= 0xfffb) return 'annotation characters';
  return /\p{Variation_Selector}/u.test(character) ? 'variation selectors' : 'zero-width characters';
}

/** Whether the selector can follow the character: a selector after each plain letter would carry a byte each. */
function hasVariant(base: string, selector: string): boolean {
  // Variants of names in Chinese and Japanese; with all 240 of them each Han letter would carry a byte.
  if (/[\u{E0100}-\u{E01EF}]/u.test(selector)) return selector <= '\u{E011F}' && /\p{sc=Han}/u.test(base);
  if (/[\u180B-\u180F]/.test(selector)) return /\p{sc=Mongolian}/u.test(base);
  // Of these Unicode defines variants of hieroglyphs only.
  if (/[\uFE03-\uFE0D]/.test(selector)) return /\p{sc=Egyptian_Hieroglyphs}/u.test(base);
  return /[\p{S}\p{P}\p{N}\p{Emoji}\p{sc=Han}\p{sc=Myanmar}\p{sc=Phags_Pa}]/u.test(base);
}

/**
 * Whether a single zero-width character may do something between its neighbours. Between letters, digits and spaces it
 * does so in some scripts only: elsewhere one after each letter would carry a text. Beside symbols it is left alone.
 */
function isOfUse(character: string, before: string, after: string): boolean {
  if (character === '\u00AD' || joins(character, before, after)) return true;
  const isDirection = /[\u200E\u200F\u061C]/.test(character);
  const isPlain = (neighbour: string) => (isDirection ? /\p{L}/u : plain).test(neighbour);
  if (besideSymbols.test(character) && (!isPlain(before) || !isPlain(after))) return true;
  const needing = isDirection
    ? rightToLeft
    : scriptsNeeding.find(([characters]) => characters.test(character))?.[1];
  return needing !== undefined && (isOf(needing, before) || isOf(needing, after));
}

/** Whether a character is of one of these scripts. Accents belong to many, Latin among them, and so do not count. */
function isOf(scripts: RegExp, character: string): boolean {
  return scripts.test(character) && !/[\u0300-\u034E\u0350-\u036F]/.test(character);
}

const plain = /^$|[\p{L}\p{M}\p{N}\p{White_Space}]/u;
/** What joins, parts or directs text of any script; not those of one script, and those that are unassigned or deprecated. */
const besideSymbols = /[\u061C\u200B-\u200F\u2060-\u2064\uFEFF]/;
const rightToLeft =
  /[\p{scx=Hebr}\p{scx=Arab}\p{scx=Syrc}\p{scx=Thaa}\p{scx=Nkoo}\p{scx=Adlm}\p{scx=Rohg}\p{scx=Mand}\p{scx=Samr}]/u;

const joiningScript =
  /[\p{scx=Arab}\p{scx=Syrc}\p{scx=Mong}\p{scx=Phag}\p{scx=Mand}\p{scx=Nkoo}\p{scx=Adlm}\p{scx=Rohg}\p{scx=Deva}\p{scx=Beng}\p{scx=Guru}\p{scx=Gujr}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}\p{scx=Java}\p{scx=Bali}\p{scx=Cakm}\p{scx=Newa}\p{scx=Tirh}]/u;

/** Zero-width characters, and the scripts whose letters they may stand beside: others need none. */
const scriptsNeeding: readonly (readonly [characters: RegExp, scripts: RegExp])[] = [
  // Where words are not parted by spaces.
  [
    /[\u200B\u2060]/,
    /[\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}\p{scx=Java}\p{scx=Bali}\p{scx=Lana}\p{scx=Talu}\p{scx=Tale}\p{scx=Cham}\p{scx=Hani}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\p{scx=Yiii}]/u,
  ],
  [/[\u200C\u200D]/, joiningScript],
  [/\u034F/, /\p{scx=Hebr}/u],
  [/[\u115F\u1160\u3164\uFFA0]/, /\p{scx=Hang}/u],
  [/[\u17B4\u17B5]/, /\p{scx=Khmr}/u],
  [/\u180E/, /\p{scx=Mong}/u],
  [/[\u{1BCA0}-\u{1BCA3}]/u, /\p{scx=Dupl}/u],
  [/[\u{1D173}-\u{1D17A}]/u, /[\u{1D100}-\u{1D1FF}]/u],
];

/** Whether a joiner or non-joiner means something here: in an emoji sequence, or after a letter that joins. */
function joins(character: string, before: string, after: string): boolean {
  if (character !== '\u200C' && character !== '\u200D') return false;
  if (isOf(joiningScript, before)) return true;
  const followsEmoji = /[\p{Extended_Pictographic}\p{Emoji_Modifier}]/u.test(before);
  return character === '\u200D' && followsEmoji && /\p{Extended_Pictographic}/u.test(after);
}

/** What begins a run of invisible characters at this place of a text and is part of the character before it: no more than two. */
export function shapingPart(text: string, run: string, at: number): string {
  const before = characterBefore(text, at);
  const selector = run.startsWith('\uFE0F') && hasVariant(before, '\uFE0F') ? '\uFE0F' : '';
  const [joiner = ''] = run.slice(selector.length);
  const isLast = selector.length + joiner.length === run.length;
  return isLast && joins(joiner, before, characterAt(text, at + run.length)) ? selector + joiner : selector;
}

function characterAt(text: string, at: number): string {
  return (text.codePointAt(at) ?? 0) > 0xffff ? text.slice(at, at + 2) : text.charAt(at);
}

function characterBefore(text: string, at: number): string {
  const pair = text.slice(Math.max(0, at - 2), at);
  return (pair.codePointAt(0) ?? 0) > 0xffff ? pair : pair.slice(-1);
}

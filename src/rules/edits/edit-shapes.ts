import { isRecord } from '../records.ts';
import { plainForm } from '../suggest.ts';

// Agents know edits from other tools by many names. What is not our form is refused with ours, filled in.

type Sent = Readonly<Record<string, unknown>>;

const names = (words: string): ReadonlySet<string> => new Set(words.split(' '));

/** What is to be replaced, and with what, in plain form. The common words count only beside one of the other side. */
const olds = names(
  'old oldtext oldstr oldstring oldvalue oldcontent oldline find findtext search searchtext',
);
const news = names(
  'new newtext newstr newstring newvalue newcontent newline replace replacetext replacewith replacement',
);
const commonOlds = names('from before original target match pattern');
const commonNews = names('to after with updated modified');
const everywhere = names('all replaceall global everywhere');
const lists = names(
  'edit edits replacements changes modifications operations substitutions patches patch hunks diff',
);
const additions = names('appendtext appendcontent appended prepend prependtext prependcontent insert');

/** Longest part of a value that a message repeats, in code points. */
const longestShown = 200;

/** What is wrong with other forms of `edits` and `append` among the fields of a call, by field. */
export function editShapeFaults(sent: Sent): { field: string; message: string }[] {
  const { old, replacement } = sidesOf(sent);
  const single = old ?? replacement;
  const faults = single === undefined ? [] : [{ field: single, message: sendInstead(formOf(sent)) }];
  if (old !== undefined && replacement !== undefined)
    faults.push({ field: replacement, message: `belongs beside '${old}', as "new"` });
  for (const [name, value] of Object.entries(sent)) {
    if (name === 'edits' || name === 'append') continue;
    const form = plain(name);
    if (lists.has(form) && value !== null) faults.push({ field: name, message: sendInstead(formsOf(value)) });
    if (additions.has(form))
      faults.push({
        field: name,
        message: form.startsWith('append')
          ? 'is not a field; send "append"'
          : 'is not a field; send "edits" whose "old" is the text beside the place, and which is part of "new"',
      });
  }
  return faults;
}

/** The same for one entry of `edits`; null if it has the right form. */
export function editEntryFault(entry: unknown): string | null {
  if (!isRecord(entry)) return null;
  const { old = 'old', replacement = 'new' } = sidesOf(entry);
  return old === 'old' && replacement === 'new' ? null : `must be ${formOf(entry)}`;
}

function sendInstead(forms: string): string {
  return `is not a field; send "edits": [${forms}]`;
}

function formsOf(value: unknown): string {
  const entries = (Array.isArray(value) ? value : [value]).slice(0, 3);
  const forms = entries.map((entry) => formOf(isRecord(entry) ? entry : {}));
  return forms.length === 0 ? formOf({}) : forms.join(', ');
}

/** Our form of an edit, with what was sent in place. */
function formOf(sent: Sent): string {
  const { old = '', replacement = '' } = sidesOf(sent);
  const isForAll = Object.entries(sent).some(
    ([name, value]) => everywhere.has(plain(name)) && value === true,
  );
  return `{"old": ${shown(sent[old])}, "new": ${shown(sent[replacement])}${isForAll ? ', "all": true' : ''}}`;
}

function shown(value: unknown): string {
  if (typeof value !== 'string') return '"…"';
  const short = Array.from(value.slice(0, 2 * longestShown))
    .slice(0, longestShown)
    .join('');
  return JSON.stringify(short.length < value.length ? `${short}…` : short);
}

function sidesOf(sent: Sent): { old: string | undefined; replacement: string | undefined } {
  const texts = Object.keys(sent)
    .filter((name) => typeof sent[name] === 'string')
    .map((name) => ({ name, form: plain(name) }));
  const find = (...sets: ReadonlySet<string>[]) =>
    sets.map((set) => texts.find(({ form }) => set.has(form))?.name).find((name) => name !== undefined);
  const [old, replacement] = [find(olds), find(news)];
  const [anyOld, anyNew] = [old ?? find(commonOlds), replacement ?? find(commonNews)];
  return anyOld !== undefined && anyNew !== undefined
    ? { old: anyOld, replacement: anyNew }
    : { old, replacement };
}

/** Characters of the longest of those that are looked for, with some hyphens. */
const longestName = 32;

function plain(name: string): string {
  return name.length > longestName ? '' : plainForm(name);
}

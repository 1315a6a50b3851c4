import type { Static, TObject, TUnsafe } from 'typebox';
import { AppError, detailOf, type FieldFault } from '../errors.ts';
import { asHttp, prose, type Prose } from '../rules/calls.ts';
import { isRecord } from '../rules/records.ts';
import { longestName, plainForm, unknownFieldFault, unknownFieldWarning } from '../rules/suggest.ts';
import { apiKeyCandidates, printable } from '../rules/text.ts';
import { warning, type Warning } from '../rules/warnings.ts';
import { fieldOf, nameOfType } from './field-check.ts';
import { keywordsOf } from './openapi.ts';

/** An input that its schema allows. */
export type Passed<T> = {
  /** A copy with the known properties only, its texts trimmed except for markdown. */
  readonly value: T;
  readonly faults: readonly FieldFault[];
  /** Unknown fields, with the nearest known ones. */
  readonly warnings: readonly Warning[];
};

/** An input, checked: its value, or null and all its faults at once, one for each field or list item. */
export type Checked<T> = Passed<T> | Passed<null>;

/** Returns the message for a name that must not be sent; null where this value may pass as an unknown name. */
export type Refusal = (value: unknown, sent: Readonly<Record<string, unknown>>) => Prose | null;

export type CheckOptions = {
  /** The values are texts, as in a query: integers and booleans are parsed, lists are split at commas. */
  readonly coerce?: boolean;
  /** What a name is called in warnings; by default a query parameter where the values are texts. */
  readonly names?: 'field' | 'query parameter';
  /** Why certain unknown fields are ignored. */
  readonly ignored?: Readonly<Record<string, Prose>>;
  /** Whether unknown fields are faults: always, or where none is known, since the call then asks for nothing. */
  readonly refuseUnknown?: 'always' | 'alone';
  /** What is wrong with the fields as a whole. It speaks for the unknown ones that it names. */
  readonly together?: (value: Readonly<Record<string, unknown>>) => readonly FieldFault[];
  /** Fields that must not be sent, by their plain form, which those of other case, hyphens or underscores share. */
  readonly refused?: Readonly<Record<string, Refusal>>;
  /** Aliases of known names, by their plain form, accepted with a warning where the name itself is not sent. */
  readonly spellings?: Readonly<Record<string, string>>;
  /** How calls in warnings and refusals are spelled. */
  readonly spell?: (text: Prose) => string;
};

/** Warnings about unknown fields that one call is answered with. */
const mostUnknown = 20;
/** And those that are looked at for that: a body may have ten thousand. */
const mostLooked = 10 * mostUnknown;

/**
 * The validator of all interfaces: turns an object schema into a function that checks a value of any kind and
 * never throws. It reads as much of JSON Schema as the wire uses, and TypeBox's refinements; any other keyword
 * is an error at start. TypeBox's own compiler is slow to load, and its messages do not say what is allowed and
 * what was received. `beside` is what refusals look at too.
 */
export function createCheck<T extends TObject | TUnsafe>(
  schema: T,
  {
    coerce = false,
    names = coerce ? 'query parameter' : 'field',
    ignored = {},
    refused = {},
    refuseUnknown,
    together = () => [],
    spellings = {},
    spell = asHttp,
  }: CheckOptions = {},
): (value: unknown, beside?: Readonly<Record<string, unknown>>) => Checked<Static<T>> {
  const { properties = {}, required = [] } = keywordsOf(schema);
  const known = Object.keys(properties);
  const fields = Object.entries(properties).map(
    ([name, property]) => [name, fieldOf(property, { required: required.includes(name), coerce })] as const,
  );
  const withRequired = required.length === 0 ? '' : ` with '${required.join("', '")}'`;

  return (value, beside = {}) => {
    if (!isRecord(value)) {
      const message =
        value === undefined
          ? `is missing; send a JSON object${withRequired}`
          : `must be a JSON object, not ${nameOfType(value)}`;
      return { value: null, faults: [{ field: 'body', message }], warnings: [] };
    }
    const faults: FieldFault[] = [];
    const copy: Record<string, unknown> = {};
    const understood = respelt(value, spellings, known);
    for (const [name, field] of fields) {
      const sentAs = understood.get(name) ?? name;
      const given = Object.hasOwn(value, sentAs) ? value[sentAs] : undefined;
      if (given !== undefined) {
        copy[name] = field.take(given);
        faults.push(...field.faults(copy[name], name));
      } else if (field.required) {
        faults.push({ field: name, message: field.missing });
      }
    }
    const explained = new Set(understood.values());
    for (const [field, refusal] of namedIn(value, refused)) {
      const message = refusal(value[field], { ...beside, ...value });
      if (message === null) continue;
      faults.push({ field, message: spell(message) });
      explained.add(field);
    }
    const asWhole = together(value);
    for (const { field } of asWhole) if (!known.includes(field)) explained.add(field);
    const others = Object.keys(value).filter((name) => !explained.has(name));
    const unknown = others.filter((name) => !known.includes(name));
    const isAlone = unknown.length > 0 && unknown.length === others.length && explained.size === 0;
    const isRefused = refuseUnknown === 'always' || (refuseUnknown === 'alone' && isAlone);
    if (isRefused) faults.push(...unknown.slice(0, mostUnknown).map(unknownFault));
    faults.push(...asWhole);
    const warnings = [
      ...Array.from(understood, ([name, as]) =>
        warning('other_name', `${names} '${as}' was taken as '${name}'; send '${name}'`),
      ),
      ...(isRefused
        ? []
        : unknown.slice(0, mostLooked).filter(isRepeatable).slice(0, mostUnknown).map(unknownWarning)),
    ];
    return faults.length === 0
      ? { value: copy as Static<T>, faults, warnings }
      : { value: null, faults, warnings };
  };

  function reasonFor(name: string): string | null {
    return Object.hasOwn(ignored, name) ? spell(ignored[name] ?? '') : null;
  }

  function unknownWarning(name: string): Warning {
    const reason = reasonFor(name);
    return reason === null
      ? warning('unknown_field', unknownFieldWarning(names, name, known))
      : warning('ignored_field', `${names} '${name}' ignored: ${reason}`);
  }

  function unknownFault(name: string): FieldFault {
    if (!isRepeatable(name)) return { field: 'body', message: 'has a key or token in place of a name' };
    const message = unknownFieldFault(name, known, reasonFor(name));
    return { field: printable(name, longestName), message, isUnknown: true };
  }
}

/** What is said of names that one JSON object has more than once. */
export function repeatedWarnings(names: readonly string[] | undefined): Warning[] {
  return (names ?? [])
    .filter(isRepeatable)
    .map((name) =>
      warning(
        'repeated_field',
        `field '${printable(name, longestName)}' was sent more than once; the last one counts`,
      ),
    );
}

/** A name may be a key that was pasted in the wrong place: it is not repeated. A warning shows 64 characters. */
function isRepeatable(name: string): boolean {
  return apiKeyCandidates(name.slice(0, 256)).length === 0;
}

const asNamed: ReadonlyMap<string, string> = new Map();

/** Which of the known names was sent in which other spelling. */
export function respelt(
  value: Readonly<Record<string, unknown>>,
  spellings: Readonly<Record<string, string>>,
  known: readonly string[],
): ReadonlyMap<string, string> {
  const named = namedIn(value, spellings).filter(
    ([sentAs, name]) => !known.includes(sentAs) && known.includes(name) && !Object.hasOwn(value, name),
  );
  return named.length === 0 ? asNamed : new Map(named.map(([sentAs, name]) => [name, sentAs]));
}

/** The names of a value whose plain form a record has, and what it has for them. */
function namedIn<T>(
  value: Readonly<Record<string, unknown>>,
  byPlainForm: Readonly<Record<string, T>>,
): [name: string, T][] {
  const found: [string, T][] = [];
  for (const name of Object.keys(value)) {
    const plain = name.length > longestName ? '' : plainForm(name);
    const named = Object.hasOwn(byPlainForm, plain) ? byPlainForm[plain] : undefined;
    if (named !== undefined) found.push([name, named]);
  }
  return found;
}

/** Throws 400 `invalid_input` that names all faults of an input, or `too_large` where only that is wrong. */
export function throwIfFaulty<T>(checked: Checked<T>): asserts checked is Passed<T> {
  const { faults, warnings } = checked;
  if (faults.length === 0) return;
  const errors = faults.map(({ field, message }) => ({ field, message }));
  const isTooLarge = faults.every(({ code }) => code === 'too_large');
  const error = new AppError(isTooLarge ? 'too_large' : 'invalid_input', detailOf(faults, nameOf), {
    errors,
  });
  throw withWarnings(error, warnings);
}

/** Puts warnings into the hint of an `invalid_input`, since they often name its cause. */
export function withWarnings(error: unknown, warnings: readonly Warning[]): unknown {
  if (!(error instanceof AppError) || error.code !== 'invalid_input' || warnings.length === 0) return error;
  const said = warnings.map(({ text }) => asSentence(text)).join(' ');
  const hint = error.extra.hint === undefined ? said : prose`${said} ${error.extra.hint}`;
  return new AppError(error.code, error.detail, { ...error.extra, hint });
}

function asSentence(text: string): string {
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return sentence.endsWith('?') ? sentence : `${sentence}.`;
}

/** Agents send a field `body` too: it and the body itself must not read like each other. */
function nameOf({ field, isUnknown }: FieldFault): string {
  return field === 'body' && isUnknown !== true ? 'The request body' : `'${field}'`;
}

import type { Static, TObject, TSchema, TUnsafe } from 'typebox';
import { AppError, type FieldFault } from '../errors.ts';
import { unknownFieldWarnings } from '../rules/suggest.ts';
import { apiKeyCandidates } from '../rules/text.ts';
import { fieldOf, nameOfType, type Field } from './field-check.ts';
import type { Refusal } from './refusals.ts';

/** An input that its schema allows. */
export type Passed<T> = {
  /** A copy that holds known properties only, its texts trimmed but for markdown. */
  readonly value: T;
  readonly faults: readonly FieldFault[];
  /** Unknown fields, with the nearest known ones. */
  readonly warnings: readonly string[];
};

/** An input, checked: its value, or all its faults at once, one for each field or list item. */
export type Checked<T> = Passed<T> | (Omit<Passed<T>, 'value'> & { readonly value: null });

export type CheckOptions = {
  /** The values are texts, as in a query: integers and booleans are read from them, lists are split at commas. */
  readonly coerce?: boolean;
  /** What a name is called in warnings; by default a query parameter where the values are texts. */
  readonly names?: 'field' | 'query parameter';
  /** Unknown fields that have a warning of their own. */
  readonly ignored?: Readonly<Record<string, string>>;
  /** Fields that must not be sent. */
  readonly refused?: Readonly<Record<string, Refusal>>;
  /** Other spellings of known names, which count as these with a warning where the name itself is not sent. */
  readonly spellings?: Readonly<Record<string, string>>;
};

/**
 * The one validator of all interfaces: makes of an object schema a function that checks a value of any kind and
 * never throws. It reads as much of JSON Schema as the wire uses, and TypeBox's refinements; a keyword beyond
 * that is an error at start. TypeBox's own compiler is slow to load, and its messages do not say what is
 * allowed and what was received.
 */
export function createCheck<T extends TObject | TUnsafe>(
  schema: T,
  {
    coerce = false,
    names = coerce ? 'query parameter' : 'field',
    ignored = {},
    refused = {},
    spellings = {},
  }: CheckOptions = {},
): (value: unknown) => Checked<Static<T>> {
  const fields = fieldsOf(schema, coerce);
  const known = [...fields.keys()];
  const required = known.filter((name) => fields.get(name)?.required).map((name) => `'${name}'`);
  const withRequired = required.length === 0 ? '' : ` with ${required.join(', ')}`;

  return (value) => {
    if (!isRecord(value)) {
      const message =
        value === undefined
          ? `is missing; send a JSON object${withRequired}`
          : `must be a JSON object, not ${nameOfType(value)}`;
      return { value: null, faults: [{ field: 'body', message }], warnings: [] };
    }
    const faults: FieldFault[] = [];
    const copy: Record<string, unknown> = {};
    const understood = respelt(value, spellings);
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
    const taken = [...understood].map(
      ([name, sentAs]) => `${names} '${sentAs}' was taken as '${name}'; send '${name}'`,
    );
    const refusals = Object.entries(refused).flatMap(([field, refusal]) => {
      const message = Object.hasOwn(value, field) ? refusal(value[field], value) : null;
      return message === null ? [] : [{ field, message }];
    });
    faults.push(...refusals);
    const explained = new Set([...understood.values(), ...refusals.map(({ field }) => field)]);
    const others = Object.keys(value).filter((name) => !explained.has(name));
    const warnings = [...taken, ...warningsFor(others, known, names, ignored)];
    return isWhole(schema, copy, faults)
      ? { value: copy, faults, warnings }
      : { value: null, faults, warnings };
  };
}

/** Which known name was sent in which other spelling. */
export function respelt(
  value: Readonly<Record<string, unknown>>,
  spellings: Readonly<Record<string, string>>,
): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(spellings)
      .filter(([spelling, name]) => Object.hasOwn(value, spelling) && !Object.hasOwn(value, name))
      .map(([spelling, name]) => [name, spelling]),
  );
}

/** The compiler cannot see that a copy without faults has the schema's type. The tests check it with TypeBox. */
function isWhole<T extends TSchema>(
  _schema: T,
  _copy: unknown,
  faults: readonly FieldFault[],
): _copy is Static<T> {
  return faults.length === 0;
}

/**
 * Throws 400 `invalid_input` for the faults of an input and for whatever else the same call got wrong, so
 * that the caller is told of all at once. What passes has its value.
 */
export function throwIfFaulty<T>(
  checked: Checked<T>,
  more: readonly FieldFault[] = [],
  hint?: string,
): asserts checked is Passed<T> {
  const errors = [...checked.faults, ...more];
  if (errors.length === 0) return;
  const error = new AppError('invalid_input', detailOf(errors), {
    errors,
    ...(hint === undefined ? {} : { hint }),
  });
  throw withWarnings(error, checked.warnings);
}

/**
 * A failure of a call whose input gave these warnings: what is amiss is often what they name, such as a field
 * that was sent under another name. Other failures stay as they are.
 */
export function withWarnings(error: unknown, warnings: readonly string[]): unknown {
  if (!(error instanceof AppError) || error.code !== 'invalid_input' || warnings.length === 0) return error;
  const hint = [...warnings.map(asSentence), error.extra.hint ?? []].flat().join(' ');
  return new AppError(error.code, error.message, { ...error.extra, hint });
}

function asSentence(warning: string): string {
  const text = `${warning.slice(0, 1).toUpperCase()}${warning.slice(1)}`;
  return text.endsWith('?') ? text : `${text}.`;
}

const mostNamed = 5;

function detailOf(faults: readonly FieldFault[]): string {
  // Agents send a field `body` too, so this must not read like one.
  const nameOf = (field: string) => (field === 'body' ? 'The request body' : `'${field}'`);
  const named = faults.slice(0, mostNamed).map(({ field, message }) => `${nameOf(field)} ${message}`);
  const rest = faults.length - named.length;
  return [...named, ...(rest > 0 ? [`and ${rest} more`] : [])].join('; ');
}

function fieldsOf(schema: TSchema, coerce: boolean): ReadonlyMap<string, Field> {
  const keywords: { properties?: Record<string, TSchema>; required?: readonly string[] } = schema;
  const { properties = {}, required = [] } = keywords;
  return new Map(
    Object.entries(properties).map(([name, property]) => [
      name,
      fieldOf(property, { required: required.includes(name), coerce }),
    ]),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function warningsFor(
  given: readonly string[],
  known: readonly string[],
  names: 'field' | 'query parameter',
  ignored: Readonly<Record<string, string>>,
): string[] {
  const explained = given.filter((name) => Object.hasOwn(ignored, name));
  // A name may be a key that was pasted in the wrong place: it is not repeated. A warning shows 64 characters.
  const others = given.filter(
    (name) => !explained.includes(name) && apiKeyCandidates(name.slice(0, 256)).length === 0,
  );
  return [...explained.flatMap((name) => ignored[name] ?? []), ...unknownFieldWarnings(names, others, known)];
}

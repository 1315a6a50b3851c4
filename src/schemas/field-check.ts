import { Type, type TSchema } from 'typebox';
import type { FieldFault } from '../errors.ts';
import { nearest } from '../rules/suggest.ts';
import { apiKeyCandidates, codePoints, printable, trimText } from '../rules/text.ts';

/** One property of an object schema, ready to check values with. */
export type Field = {
  readonly required: boolean;
  /** The fault of a required field that is missing. */
  readonly missing: string;
  /** The value as it will be stored: trimmed, or read from text. What cannot be read stays as it is. */
  readonly take: (given: unknown) => unknown;
  /** What is wrong with a taken value. */
  readonly faults: (value: unknown, name: string) => readonly FieldFault[];
};

export type FieldOptions = { readonly required: boolean; readonly coerce: boolean };

/** Reads the schema of a property once. Throws if a keyword would go unchecked. */
export function fieldOf(schema: TSchema, { required, coerce }: FieldOptions): Field {
  const keywords = understood(schema);
  const [type, ...otherTypes] = [keywords.type ?? []].flat();
  const nullable = otherTypes.includes('null');
  const refinements = Type.IsRefine(schema) ? schema['~refine'] : [];
  const item = keywords.items === undefined ? null : fieldOf(keywords.items, { required: true, coerce });
  const kindFault = kindFaultOf(type, keywords, coerce);

  const faultOf = (value: unknown): string | null => {
    if (value === null) return `${kindFault(null)}${required ? '' : '; leave it out instead'}`;
    if (coerce && item === null && Array.isArray(value))
      return `must be given once, not ${value.length} times`;
    if (value === '' && nullable && keywords.minLength !== undefined)
      return 'is empty; send null to remove it';
    return kindFault(value) ?? refinements.find(({ check }) => !check(value))?.error(value) ?? null;
  };

  return {
    required,
    missing: missingFault(keywords),
    take: takeOf(type, keywords, coerce, item),
    faults: (value, field) => {
      if (value === null && nullable) return [];
      const message = faultOf(value);
      if (message !== null) return [{ field, message }];
      if (item === null || !Array.isArray(value)) return [];
      return value.flatMap((element, at) => item.faults(element, `${field}[${at}]`));
    },
  };
}

/** The type of a value, for a message: `a number`, `null`. */
export function nameOfType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The part of JSON Schema that is read here. */
type Keywords = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | number)[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly items?: TSchema;
  readonly pattern?: string;
  readonly contentMediaType?: string;
  readonly examples?: readonly unknown[];
};

const keywordsRead = ['type', 'enum', 'minLength', 'maxLength', 'minimum', 'maximum', 'maxItems', 'items'];
const keywordsOfDocuments = ['description', 'examples', 'default', 'writeOnly', 'contentMediaType'];
/** These stand beside a refinement that says the same in words; one with a pattern judges the length too. */
const keywordsRefined = ['pattern', 'format'];

function understood(schema: TSchema): Keywords {
  const allowed = [
    ...keywordsRead,
    ...keywordsOfDocuments,
    ...(Type.IsRefine(schema) ? keywordsRefined : []),
  ];
  const foreign = Object.keys(schema).find((keyword) => !allowed.includes(keyword));
  if (foreign !== undefined) throw new Error(`no check reads the schema keyword '${foreign}'`);
  return schema;
}

function takeOf(
  type: string | undefined,
  keywords: Keywords,
  coerce: boolean,
  item: Field | null,
): Field['take'] {
  if (type === 'string') {
    // A text with a media type of its own is left as it is: its white space means something.
    if (keywords.contentMediaType !== undefined) return (given) => given;
    return (given) => (typeof given === 'string' ? trimText(given) : given);
  }
  if (item !== null) {
    const list = coerce ? splitAtCommas : (given: unknown) => given;
    // A list that is too long is refused as a whole.
    const most = keywords.maxItems ?? Infinity;
    return (given) => {
      const elements = list(given);
      return Array.isArray(elements) && elements.length <= most ? Array.from(elements, item.take) : elements;
    };
  }
  if (!coerce) return (given) => given;
  return type === 'integer' ? integerFrom : booleanFrom;
}

function splitAtCommas(given: unknown): unknown {
  if (typeof given !== 'string') return given;
  return given.trim() === '' ? [] : given.split(',');
}

function integerFrom(given: unknown): unknown {
  return typeof given === 'string' && /^(?:0|-?[1-9]\d*)$/.test(given) ? Number(given) : given;
}

function booleanFrom(given: unknown): unknown {
  return given === 'true' || given === 'false' ? given === 'true' : given;
}

function missingFault({ enum: choices }: Keywords): string {
  return choices === undefined ? 'is required' : `is required: ${listed(choices)}`;
}

function listed(choices: readonly (string | number)[]): string {
  const names = choices.map((choice) => (typeof choice === 'string' ? `'${choice}'` : `${choice}`));
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

type KindFault = (value: unknown) => string | null;

function kindFaultOf(type: string | undefined, keywords: Keywords, coerce: boolean): KindFault {
  if (keywords.enum !== undefined) return choiceFault(keywords.enum, coerce);
  if (type === 'string') return textFault(keywords);
  if (type === 'integer') return integerFault(keywords, coerce);
  if (type === 'boolean') return (value) => booleanFault(value, coerce);
  if (type === 'array') return listFault(keywords);
  throw new Error(`no check reads the schema type '${type}'`);
}

function textFault({ pattern, ...keywords }: Keywords): KindFault {
  const { minLength = 0, maxLength = Infinity } = pattern === undefined ? keywords : {};
  const range = rangeOf(minLength, maxLength);
  return (value) => {
    // Texts are never quoted in a message: they may be addresses, tokens or keys.
    if (typeof value !== 'string') return `must be a string, not ${nameOfType(value)}`;
    // A code point has one or two units, so a long text need not be counted.
    if (value.length >= 2 * minLength && value.length <= maxLength) return null;
    const length = codePoints(value);
    if (length >= minLength && length <= maxLength) return null;
    return `must be ${range}, is ${length === 0 ? 'empty' : length}`;
  };
}

function rangeOf(least: number, most: number): string {
  if (most === Infinity) return `at least ${least} ${least === 1 ? 'character' : 'characters'}`;
  return `${least === 0 ? 'at most' : `${least} to`} ${most} characters`;
}

function choiceFault(choices: readonly (string | number)[], coerce: boolean): KindFault {
  const allowed = `must be ${listed(choices)}`;
  const words = choices.filter((choice) => typeof choice === 'string');
  return (value) => {
    if (choices.some((choice) => choice === value)) return null;
    const near = typeof value === 'string' ? nearest(value, words) : null;
    const question = near === null ? '' : `; did you mean '${near}'?`;
    return `${allowed}, not ${shown(value, coerce || words.length > 0)}${question}`;
  };
}

function integerFault({ minimum = -Infinity, maximum = Infinity }: Keywords, coerce: boolean): KindFault {
  const allowed = `must be an integer from ${minimum} to ${maximum}`;
  return (value) => {
    if (!Number.isInteger(value)) return `${allowed}, not ${shown(value, coerce)}`;
    const inRange = Number(value) >= minimum && Number(value) <= maximum;
    return inRange ? null : `${allowed}, is ${String(value)}`;
  };
}

function booleanFault(value: unknown, coerce: boolean): string | null {
  return typeof value === 'boolean' ? null : `must be true or false, not ${shown(value, coerce)}`;
}

function listFault({ maxItems = Infinity, examples = [] }: Keywords): KindFault {
  return (value) => {
    if (!Array.isArray(value))
      return `must be a list like ${JSON.stringify(examples[0])}, not ${nameOfType(value)}`;
    return value.length <= maxItems ? null : `must have at most ${maxItems} entries, has ${value.length}`;
  };
}

/** Code points of a value that a message repeats. */
const mostShown = 64;

/** A value in a message; `plain` if text was expected. A key in the wrong place is not repeated. */
function shown(value: unknown, plain: boolean): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string' || apiKeyCandidates(value.slice(0, 4 * mostShown)).length > 0)
    return nameOfType(value);
  return `${plain ? '' : 'the string '}'${printable(value, mostShown)}'`;
}

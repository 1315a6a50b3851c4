import { Type, type TSchema, type TStringOptions } from 'typebox';
import type { FieldFault } from '../errors.ts';
import { isRecord } from '../rules/records.ts';
import { nearest } from '../rules/suggest.ts';
import { apiKeyCandidates, codePoints, quoted } from '../rules/text.ts';
import { nullable } from './answer-parts.ts';
import type { JsonSchema } from './openapi.ts';

/** Says what is wrong with a text, as a predicate; null if nothing is. */
export type Rule = (text: string) => string | null;

export type TextOptions = TStringOptions & {
  readonly description: string;
  readonly examples: readonly string[];
};

/**
 * A text with a rule that JSON Schema cannot say. The published document does not show refinements: a `format` of our
 * own would make strict validators refuse the whole document.
 */
export function text(rule: Rule, options: TextOptions) {
  return Type.Refine(
    Type.String(options),
    (value) => rule(value) === null,
    (value) => rule(value) ?? '',
  );
}

/** The same text in a change, where null removes it. */
export function orNull(field: ReturnType<typeof text>) {
  const [rule] = field['~refine'];
  return Type.Refine(
    nullable(field),
    (value) => value === null || rule?.check(value) !== false,
    (value) => rule?.error(value) ?? '',
  );
}

/** One property of an object schema, compiled. */
type Field = {
  readonly required: boolean;
  /** The message where a required field is missing. */
  readonly missing: string;
  /** The value as it will be stored: trimmed, an id in lower case, or parsed from text. What cannot be parsed stays as it is. */
  readonly take: (given: unknown) => unknown;
  /** The faults of a taken value. */
  readonly faults: (value: unknown, name: string) => readonly FieldFault[];
};

/** Compiles the schema of a property. Throws if a keyword would go unchecked. */
export function fieldOf(
  schema: TSchema,
  { required, coerce }: { readonly required: boolean; readonly coerce: boolean },
): Field {
  const keywords = requireReadable(schema);
  const [type, ...otherTypes] = [keywords.type ?? []].flat();
  const isNullable = otherTypes.includes('null');
  const refinements = Type.IsRefine(schema) ? schema['~refine'] : [];
  const item = keywords.items === undefined ? null : fieldOf(keywords.items, { required: true, coerce });
  const parts = type === 'object' ? partsOf(keywords, coerce) : null;
  const kindFault = kindFaultOf(type, keywords, coerce);

  const faultOf = (value: unknown): string | null => {
    if (value === null) return `${kindFault(null)}${required ? '' : '; leave it out instead'}`;
    if (coerce && item === null && Array.isArray(value))
      return `must be given once, not ${value.length} times`;
    const fault = kindFault(value) ?? refinements.find(({ check }) => !check(value))?.error(value) ?? null;
    if (fault !== null && value === '' && isNullable)
      return `is empty; ${coerce ? 'leave it out, or send null in JSON' : 'send null'} to remove it`;
    return fault;
  };

  return {
    required,
    missing: keywords.enum === undefined ? 'is required' : `is required: ${listed(keywords.enum)}`,
    take: parts === null ? takeOf(type, keywords, coerce, item) : (given) => parts.take(given),
    faults: (value, field) => {
      if (value === null && isNullable) return [];
      const message = faultOf(value);
      if (message !== null) return [{ field, message }];
      if (parts !== null && isRecord(value)) return parts.faults(value, field);
      if (item === null || !Array.isArray(value)) return [];
      return value.flatMap((element, at) => item.faults(element, `${field}[${at}]`));
    },
  };
}

/** The properties of an object that is itself a field, such as an entry of a list. */
function partsOf({ properties = {}, required = [] }: JsonSchema, coerce: boolean) {
  const names = Object.keys(properties);
  const parts = Object.entries(properties).map(
    ([name, property]) => [name, fieldOf(property, { required: required.includes(name), coerce })] as const,
  );
  return {
    take(given: unknown): unknown {
      if (!isRecord(given)) return given;
      const taken = parts.flatMap(([name, part]) =>
        Object.hasOwn(given, name) ? [[name, part.take(given[name])]] : [],
      );
      return { ...given, ...Object.fromEntries(taken) };
    },
    faults(value: Readonly<Record<string, unknown>>, field: string): FieldFault[] {
      const faults = parts.flatMap(([name, part]) => {
        if (value[name] !== undefined) return part.faults(value[name], `${field}.${name}`);
        return part.required ? [{ field: `${field}.${name}`, message: part.missing }] : [];
      });
      // The name is not repeated: it may be a key that was pasted in the wrong place.
      if (Object.keys(value).some((name) => !names.includes(name)))
        faults.push({ field, message: `has an unknown field; it takes '${names.join("', '")}'` });
      return faults;
    },
  };
}

/** The type of a value, for a message: `a number`, `null`. */
export function nameOfType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

const keywordsRead =
  'type enum minLength maxLength minimum maximum x-unit minItems maxItems items properties required'.split(
    ' ',
  );
const keywordsOfDocuments = [
  'description',
  'examples',
  'default',
  'writeOnly',
  'contentMediaType',
  'deprecated',
];
/** These stand beside a refinement that says the same in words. */
const keywordsRefined = ['pattern', 'format'];

function requireReadable(schema: TSchema): JsonSchema {
  const refined = Type.IsRefine(schema) ? keywordsRefined : [];
  const allowed = [...keywordsRead, ...keywordsOfDocuments, ...refined];
  const foreign = Object.keys(schema).find((keyword) => !allowed.includes(keyword));
  if (foreign !== undefined) throw new Error(`no check reads the schema keyword '${foreign}'`);
  return schema;
}

function takeOf(
  type: string | undefined,
  keywords: JsonSchema,
  coerce: boolean,
  item: Field | null,
): Field['take'] {
  if (type === 'string') {
    // A text with a media type of its own is not trimmed: its white space is significant.
    if (keywords.contentMediaType !== undefined) return (given) => given;
    const stored = (sent: string) => (keywords.format === 'uuid' ? sent.trim().toLowerCase() : sent.trim());
    return (given) => (typeof given === 'string' ? stored(given) : given);
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

function listed(choices: readonly (string | number)[]): string {
  const names = choices.map((choice) => (typeof choice === 'string' ? `'${choice}'` : `${choice}`));
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

type KindFault = (value: unknown) => string | null;

function kindFaultOf(type: string | undefined, keywords: JsonSchema, coerce: boolean): KindFault {
  if (keywords.enum !== undefined) return choiceFault(keywords.enum, coerce);
  if (type === 'string') return textFault(keywords);
  if (type === 'integer') return integerFault(keywords, coerce);
  if (type === 'boolean')
    return (value) =>
      typeof value === 'boolean' ? null : `must be true or false, not ${shown(value, coerce)}`;
  if (type === 'array') return listFault(keywords);
  if (type === 'object')
    return (value) =>
      isRecord(value)
        ? null
        : `must be an object like ${JSON.stringify(keywords.examples?.[0])}, not ${nameOfType(value)}`;
  throw new Error(`no check reads the schema type '${type}'`);
}

function textFault({ pattern, ...keywords }: JsonSchema): KindFault {
  // A refinement with a pattern judges the length too.
  const { minLength = 0, maxLength = Infinity } = pattern === undefined ? keywords : {};
  const range =
    maxLength === Infinity
      ? `at least ${minLength} ${minLength === 1 ? 'character' : 'characters'}`
      : `${minLength === 0 ? 'at most' : `${minLength} to`} ${maxLength} characters`;
  const [example] = keywords.examples ?? [];
  const like = formed.test(String(example)) ? ` like '${String(example)}'` : '';
  return (value) => {
    // Texts are never quoted in a message: they may be addresses, tokens or keys.
    if (typeof value !== 'string') return `must be a string${like}, not ${nameOfType(value)}`;
    // A code point has one or two units, so a long text need not be counted.
    if (value.length >= 2 * minLength && value.length <= maxLength) return null;
    const length = codePoints(value);
    if (length >= minLength && length <= maxLength) return null;
    return `must be ${range}, is ${length === 0 ? 'empty' : length}`;
  };
}

/** An example that a message shows: it has a form, as an address or a time has, and words have not. */
const formed = /^(?=\S*[^\s\p{L}])\S{1,40}$/u;

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

function integerFault(keywords: JsonSchema, coerce: boolean): KindFault {
  const { minimum = -Infinity, maximum = Infinity, 'x-unit': unit } = keywords;
  const allowed = `must be an integer from ${minimum} to ${maximum}${unit === undefined ? '' : ` ${unit}`}`;
  return (value) => {
    if (!Number.isInteger(value)) return `${allowed}, not ${shown(value, coerce)}`;
    const inRange = Number(value) >= minimum && Number(value) <= maximum;
    return inRange ? null : `${allowed}, is ${String(value)}`;
  };
}

function listFault({ minItems = 0, maxItems = Infinity, items, examples = [] }: JsonSchema): KindFault {
  const range = minItems === 0 ? `at most ${maxItems}` : `${minItems} to ${maxItems}`;
  return (value) => {
    if (Array.isArray(value)) {
      const isWithin = value.length >= minItems && value.length <= maxItems;
      return isWithin ? null : `must have ${range} entries, has ${value.length}`;
    }
    // One entry by itself is shown as the list that it should be.
    const isEntry =
      items?.type === 'object' && isRecord(value) && JSON.stringify(value).length <= longestEntry;
    const example = JSON.stringify(isEntry ? [value] : examples[0]);
    return `must be a list like ${example}, not ${nameOfType(value)}`;
  };
}

/** Longest entry that a message repeats, in JSON. */
const longestEntry = 500;

/** A value in a message, at most 64 characters; `plain` if text was expected. A misplaced key is not repeated. */
function shown(value: unknown, plain: boolean): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string' || apiKeyCandidates(value.slice(0, 256)).length > 0) return nameOfType(value);
  return `${plain ? '' : 'the string '}${quoted(value)}`;
}

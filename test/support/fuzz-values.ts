import * as fc from 'fast-check';
import type { JsonSchema } from '../../src/schemas/openapi.ts';
import { naughty } from './naughty.ts';

export const text = fc.oneof(
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 60 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  { weight: 1, arbitrary: fc.constantFrom(...naughty) },
);

export const anything = fc.oneof(fc.jsonValue({ maxDepth: 2 }), text);

export const headerValue = fc.oneof(
  fc.constantFrom('"1"', 'W/"1"', '*', '"1", "2"', 'first', 'second', 'x'.repeat(255), 'x'.repeat(256)),
  fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
);

export function mostly<T>(value: fc.Arbitrary<T>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 24, arbitrary: value }, { weight: 1, arbitrary: anything });
}

/** An object of generated fields, each there with its chance in per cent. */
export function fieldsOf<T>(
  fields: readonly (readonly [name: string, percent: number, value: fc.Arbitrary<T>])[],
): fc.Arbitrary<Record<string, T>> {
  const each = fields.map(([name, percent, value]) =>
    chance(
      percent,
      value.map((made): [string, T] => [name, made]),
    ),
  );
  return fc.tuple(...each).map((made) => Object.fromEntries(made.filter((field) => field !== undefined)));
}

export function chance<T>(percent: number, value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof(
    { weight: percent, arbitrary: value },
    { weight: 100 - percent, arbitrary: fc.constant(undefined) },
  );
}

/** Values that a schema allows, and those just beyond its bounds. */
export function valueOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const [type, ...others] = [schema.type ?? []].flat();
  const value = schema.enum ? fc.constantFrom(...schema.enum) : valueOfType(type, schema);
  return others.includes('null') ? fc.option(value, { freq: 6 }) : value;
}

function valueOfType(type: string | undefined, schema: JsonSchema): fc.Arbitrary<unknown> {
  const { minimum = 0, maximum = 1_000, maxItems = 3, items = {} } = schema;
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer')
    return fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: minimum, max: maximum }) },
      { weight: 1, arbitrary: fc.constantFrom(minimum - 1, maximum + 1) },
    );
  if (type === 'array')
    return fc.oneof(
      { weight: 6, arbitrary: fc.array(valueOf(items), { maxLength: Math.min(maxItems, 3) }) },
      { weight: 1, arbitrary: fc.array(valueOf(items), { minLength: maxItems, maxLength: maxItems + 1 }) },
    );
  if (type === 'string') return textFor(schema);
  return anything;
}

function textFor({
  format,
  examples = [],
  minLength = 0,
  maxLength = 3_000,
}: JsonSchema): fc.Arbitrary<unknown> {
  const slugLike = fc.string({
    unit: fc.constantFrom(...Array.from('abcdefghijklmnopqrstuvwxyz0123456789-')),
    minLength,
    maxLength: Math.min(maxLength, Math.max(minLength, 40)),
  });
  return fc.oneof(
    { weight: 4, arbitrary: slugLike },
    { weight: 4, arbitrary: text },
    ...(examples.length > 0 ? [{ weight: 16, arbitrary: fc.constantFrom(...examples) }] : []),
    ...(format === 'email' ? [{ weight: 8, arbitrary: fc.emailAddress() }] : []),
    ...(format === 'uri' ? [{ weight: 8, arbitrary: fc.webUrl() }] : []),
    {
      weight: 1,
      arbitrary: fc.constantFrom('x'.repeat(maxLength), 'x'.repeat(maxLength + 1), '💥'.repeat(maxLength)),
    },
  );
}

/** A value as it stands in an address. */
export function encoded(value: unknown): string {
  const plain = [value].flat().map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  return encodeURIComponent(plain.join(',').toWellFormed());
}

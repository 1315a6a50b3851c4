import { nameOfType } from '../schemas/field-check.ts';

type Params = {
  /** What is taken, by path, and of what kind. A path that ends with a question mark may be absent. */
  readonly fields: Readonly<Record<string, 'a string' | 'an object'>>;
  readonly example: object;
};

const list: Params = { fields: { 'cursor?': 'a string' }, example: {} };

const methods: Readonly<Record<string, Params>> = {
  initialize: {
    fields: {
      protocolVersion: 'a string',
      capabilities: 'an object',
      clientInfo: 'an object',
      'clientInfo.name': 'a string',
      'clientInfo.version': 'a string',
    },
    example: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'my-agent', version: '1.0' },
    },
  },
  'tools/call': {
    fields: { name: 'a string', 'arguments?': 'an object' },
    example: { name: 'list_posts', arguments: { limit: 10 } },
  },
  'tools/list': list,
  'resources/list': list,
  'resources/templates/list': list,
  'resources/read': {
    fields: { uri: 'a string' },
    example: { uri: 'masthead://post/019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c' },
  },
};

/**
 * What is wrong with the params of a request, all of it, with an example; null where nothing is. The protocol's
 * library would answer with a dump of its schema's issues, as a failure of its own.
 */
export function paramsFault(method: unknown, params: unknown): string | null {
  const expected = typeof method === 'string' && Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (expected === undefined) return null;
  const faults = Object.entries(expected.fields).flatMap(([field, kind]) => faultOf(params, field, kind));
  if (faults.length === 0) return null;
  return `${faults.join('; ')}. Send 'params' like ${JSON.stringify(expected.example)}.`;
}

function faultOf(params: unknown, field: string, kind: string): string[] {
  const path = field.replace('?', '');
  const [last = '', ...above] = path.split('.').toReversed();
  const holder = above.reduceRight(valueIn, params);
  // What is below something that is missing or of another kind was named with it.
  if (above.length > 0 && nameOfType(holder) !== 'an object') return [];
  const value = valueIn(holder, last);
  if (value === undefined) return field.endsWith('?') ? [] : [`'${path}' is missing`];
  const actual = nameOfType(value);
  return actual === kind ? [] : [`'${path}' must be ${kind}, not ${actual}`];
}

function valueIn(holder: unknown, name: string): unknown {
  return typeof holder === 'object' && holder !== null && Object.hasOwn(holder, name)
    ? Reflect.get(holder, name)
    : undefined;
}

import { nameOfType } from '../schemas/field-check.ts';
import { isRecord } from '../rules/records.ts';

/** The kinds of fields, or what is in them, by name. A name that ends with a question mark may be absent. */
type Fields = { readonly [name: string]: 'a string' | 'an object' | Fields };

const list = { fields: { 'cursor?': 'a string' }, example: {} } as const;

const methods: Readonly<Record<string, { readonly fields: Fields; readonly example: object }>> = {
  initialize: {
    fields: {
      protocolVersion: 'a string',
      capabilities: 'an object',
      clientInfo: { name: 'a string', version: 'a string' },
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
  const faults = faultsOf(params, expected.fields);
  if (faults.length === 0) return null;
  return `${faults.join('; ')}. Send 'params' like ${JSON.stringify(expected.example)}.`;
}

function faultsOf(holder: unknown, fields: Fields, path = ''): string[] {
  return Object.entries(fields).flatMap(([field, kind]) => {
    const name = field.replace('?', '');
    const value = isRecord(holder) && Object.hasOwn(holder, name) ? holder[name] : undefined;
    if (value === undefined) return field.endsWith('?') ? [] : [`'${path}${name}' is missing`];
    const [expected, actual] = [typeof kind === 'string' ? kind : 'an object', nameOfType(value)];
    if (actual !== expected) return [`'${path}${name}' must be ${expected}, not ${actual}`];
    return typeof kind === 'string' ? [] : faultsOf(value, kind, `${name}.`);
  });
}

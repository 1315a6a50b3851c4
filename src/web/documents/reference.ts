import type {
  Components,
  JsonSchema,
  OpenApiDocument,
  OperationObject,
  ParameterObject,
} from '../../schemas/openapi.ts';

// What both forms of the reference, HTML and markdown, read from the description that programs read.

/** An operation, and what it is called by: `GET /api/me`. */
export type Operation = OperationObject & { readonly call: string };

/** The calls by their tags. */
export function groupsOf({ tags, paths }: OpenApiDocument) {
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]): Operation => ({
      ...each,
      call: `${method.toUpperCase()} ${path}`,
    })),
  );
  return tags.map((tag) => ({ ...tag, operations: calls.filter(({ tags: own }) => own.includes(tag.name)) }));
}

/** Whether a call needs the key. */
export function keyUse({ security }: OperationObject): string {
  const [first] = security;
  if (first === undefined) return 'no key';
  if (Object.keys(first).length > 0) return 'needs the key';
  return security.length > 1 ? 'with or without the key' : 'no key';
}

/** A field or parameter, as the reference names it. */
export type Field = Pick<ParameterObject, 'name' | 'schema' | 'required' | 'description'>;

/** The properties of an object; where `deep`, those of the objects in it too, as `post.id` and `posts[].id`. */
export function fieldsOf(schema: JsonSchema, components: Components, deep: boolean, prefix = ''): Field[] {
  const name = schema.$ref?.split('/').at(-1) ?? '';
  const { properties = {}, required = [] } = components.schemas[name] ?? schema;
  return Object.entries(properties).flatMap(([key, property]) => {
    const field = {
      name: prefix + key,
      schema: property,
      required: !deep && required.includes(key),
      description: property.description ?? '',
    };
    const isList = property.items !== undefined;
    const inner = property.items ?? property;
    if (!deep || inner.properties === undefined) return [field];
    const below = fieldsOf(inner, components, true, `${prefix}${key}${isList ? '[]' : ''}.`);
    return field.description === '' ? below : [field, ...below];
  });
}

/** Every operation and field that ends, and what it is called: "`name` of GET /api/me". */
export function endings(document: OpenApiDocument) {
  const operations = groupsOf(document).flatMap((group) => group.operations);
  return operations.flatMap(({ call, parameters = [], requestBody, responses, ...operation }) => {
    const schemas = [requestBody, ...Object.values(responses)].flatMap((part) =>
      part !== undefined && 'content' in part ? Object.values(part.content ?? {}) : [],
    );
    const fields = schemas.flatMap(({ schema }) => fieldsOf(schema, document.components, true));
    const named = [
      ...parameters.map((each) => [`\`${each.name}\` of ${call}`, each['x-deprecation']] as const),
      ...fields.map(({ name, schema }) => [`\`${name}\` of ${call}`, schema['x-deprecation']] as const),
    ];
    const all = new Map([[call, operation['x-deprecation']] as const, ...named]);
    return Array.from(all).flatMap(([what, ending]) => (ending === undefined ? [] : { what, ending }));
  });
}

/** The type of a field in words. */
export function typeOf({ type, enum: choices, items, const: only }: JsonSchema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (choices !== undefined) return choices.map(String).join(' | ');
  if (items !== undefined) return `list of ${[items.type ?? 'any'].flat().join(' or ')}s`;
  return [type ?? 'any'].flat().join(' or ');
}

/** What the schema says beyond its description. */
export function remarks(schema: JsonSchema, description: string): string {
  const { minimum, maximum, minLength, maxLength, default: byDefault } = schema;
  const isNew = (bound: number | undefined) => bound !== undefined && !description.includes(String(bound));
  const facts = [
    isNew(maxLength) && `${minLength === undefined ? 'Up to' : `${minLength} to`} ${maxLength} characters`,
    isNew(maximum) && `${minimum ?? 0} to ${maximum}`,
    byDefault !== undefined && !description.includes('new post') && `${JSON.stringify(byDefault)} if absent`,
  ].filter((fact) => fact !== false);
  return facts.length === 0 ? '' : ` ${facts.join('; ')}.`;
}

/** What counts against each limit. */
export const countedCalls = {
  register: 'registrations, failed ones too.',
  publish: 'publishing and changing posts.',
  comment: 'adding comments.',
  report: 'reports to the operator.',
  api: 'everything else with a key, dry runs included.',
  anonymous: 'everything else without a key.',
} as const;

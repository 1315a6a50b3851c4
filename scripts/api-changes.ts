import { readFileSync } from 'node:fs';
import type {
  JsonSchema,
  OpenApiDocument,
  OperationObject,
  ParameterObject,
  ResponseObject,
} from '../src/schemas/openapi.ts';

// What /docs/changes does not allow to come at any time: `node scripts/api-changes.ts before.json after.json`.

/** Every change between two documents that breaks a client of the first, as a line that says where. */
export function breakingChanges(before: OpenApiDocument, after: OpenApiDocument): string[] {
  return Object.entries(before.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, old]) => {
      const at = `${method.toUpperCase()} ${path}`;
      const now = after.paths[path]?.[method];
      if (now === undefined) return [`${at}: gone`];
      return operationChanges({ document: before, operation: old }, { document: after, operation: now }).map(
        (change) => `${at}: ${change}`,
      );
    }),
  );
}

type Placed = { readonly document: OpenApiDocument; readonly operation: OperationObject };

function operationChanges(before: Placed, after: Placed): string[] {
  const [old, now] = [before.operation, after.operation];
  return [
    ...(old.operationId === now.operationId ? [] : [`operationId is ${now.operationId}`]),
    ...(isOpen(old) && !isOpen(now) ? ['needs the key'] : []),
    ...(takesKey(old) && !takesKey(now) ? ['takes no key'] : []),
    ...parameterChanges(before, after),
    ...bodyChanges(before, after),
    ...answerChanges(before, after),
  ];
}

function isOpen({ security }: OperationObject): boolean {
  return security.length === 0 || security.some((scheme) => Object.keys(scheme).length === 0);
}

function takesKey({ security }: OperationObject): boolean {
  return security.some((scheme) => Object.keys(scheme).length > 0);
}

function parameterChanges(before: Placed, after: Placed): string[] {
  const keyOf = ({ in: place, name }: ParameterObject) =>
    `${place} ${place === 'header' ? name.toLowerCase() : name}`;
  const all = ({ operation: { parameters = [] } }: Placed) =>
    new Map(parameters.map((each) => [keyOf(each), each]));
  const [old, now] = [all(before), all(after)];
  return [
    ...Array.from(old).flatMap(([key, parameter]) => {
      const changed = now.get(key);
      if (changed === undefined) return [`${key}: gone`];
      return [
        ...(changed.required && !parameter.required ? [`${key}: now required`] : []),
        ...schemaChanges([before.document, parameter.schema], [after.document, changed.schema], 'sent', key),
      ];
    }),
    ...Array.from(now).flatMap(([key, { required }]) =>
      required && !old.has(key) ? [`${key}: new and required`] : [],
    ),
  ];
}

function bodyChanges(before: Placed, after: Placed): string[] {
  const [old, now] = [before.operation.requestBody, after.operation.requestBody];
  if (old === undefined) return now?.required ? ['body: new and required'] : [];
  if (now === undefined) return ['body: gone'];
  return [
    ...(now.required && !old.required ? ['body: now required'] : []),
    ...Object.entries(old.content).flatMap(([type, { schema }]) => {
      const changed = now.content[type];
      if (changed === undefined) return [`body: no ${type}`];
      return schemaChanges([before.document, schema], [after.document, changed.schema], 'sent', 'body');
    }),
  ];
}

function answerChanges(before: Placed, after: Placed): string[] {
  const [old, now] = [before.operation.responses, after.operation.responses];
  return [
    ...Object.keys(now).flatMap((status) => (status in old ? [] : [`${status}: a new status`])),
    ...Object.keys(old).flatMap((status) => {
      const [was, is] = [responseAt(before, status), responseAt(after, status)];
      // A failure that no longer happens breaks nobody, and codes of one status may change.
      if (Number(status) >= 400) return [];
      if (was === null || is === null) return [`${status}: gone`];
      return [
        ...Object.keys(was.headers ?? {}).flatMap((name) =>
          is.headers?.[name] === undefined ? [`${status}: no header ${name}`] : [],
        ),
        ...Object.entries(was.content ?? {}).flatMap(([type, { schema }]) => {
          const changed = is.content?.[type];
          if (changed === undefined) return [`${status}: no ${type}`];
          return schemaChanges(
            [before.document, schema],
            [after.document, changed.schema],
            'answered',
            status,
          );
        }),
      ];
    }),
  ];
}

function responseAt({ document, operation }: Placed, status: string): ResponseObject | null {
  const response = operation.responses[status];
  if (response === undefined) return null;
  if (!('$ref' in response)) return response;
  return document.components.responses[response.$ref.split('/').at(-1) ?? ''] ?? null;
}

/** A schema, with the document that its references are in. */
type InDocument = readonly [document: OpenApiDocument, schema: JsonSchema];

/** Of what clients send all must stay allowed, of what they are answered nothing may come beyond what was said. */
type Direction = 'sent' | 'answered';

function schemaChanges(before: InDocument, after: InDocument, direction: Direction, at: string): string[] {
  const [old, now] = [followed(before), followed(after)];
  return [
    ...kindChanges(old, now, direction),
    ...boundChanges(old, now, direction),
    ...(direction === 'sent' && JSON.stringify(old.default) !== JSON.stringify(now.default)
      ? [`default ${JSON.stringify(now.default)}`]
      : []),
  ]
    .map((change) => `${at}: ${change}`)
    .concat(propertyChanges([before[0], old], [after[0], now], direction, at))
    .concat(
      old.items !== undefined && now.items !== undefined
        ? schemaChanges([before[0], old.items], [after[0], now.items], direction, `${at}[]`)
        : [],
    );
}

function followed([document, schema]: InDocument): JsonSchema {
  if (schema.$ref === undefined) return schema;
  return document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {};
}

/** Types, choices, formats and patterns. */
function kindChanges(old: JsonSchema, now: JsonSchema, direction: Direction): string[] {
  const [wide, narrow] = direction === 'sent' ? [now, old] : [old, now];
  const isOpenList = direction === 'answered' && old['x-open'] === true;
  const [allowed, used] = [choicesOf(wide), choicesOf(narrow)];
  const beyond = (used ?? []).filter((value) => !(allowed ?? used ?? []).includes(value));
  const [wideTypes, narrowTypes] = [typesOf(wide), typesOf(narrow)];
  const isNewType = (type: string) =>
    !wideTypes.includes(type) && !(type === 'integer' && wideTypes.includes('number'));
  return [
    ...(wideTypes.length > 0 && (narrowTypes.length === 0 || narrowTypes.some(isNewType))
      ? [`type ${typesOf(now).join(' or ') || 'any'}`]
      : []),
    ...(!isOpenList && (beyond.length > 0 || (allowed !== null && used === null))
      ? [`choices ${JSON.stringify(choicesOf(now))}`]
      : []),
    ...(['format', 'pattern', 'contentMediaType'] as const).flatMap((name) =>
      wide[name] !== undefined && wide[name] !== narrow[name] ? [`${name} ${String(now[name])}`] : [],
    ),
  ];
}

function typesOf({ type = [] }: JsonSchema): string[] {
  return [type].flat();
}

function choicesOf({ enum: choices, const: only }: JsonSchema): unknown[] | null {
  return choices ?? (only === undefined ? null : [only]);
}

/** What answers may grow to without notice: cursors, entity tags, ids of requests. */
const longestOpaque = 512;

function boundChanges(old: JsonSchema, now: JsonSchema, direction: Direction): string[] {
  const [wide, narrow] = direction === 'sent' ? [now, old] : [old, now];
  const isBeyond = (name: 'max' | 'min', limit: number | undefined, value: number | undefined) =>
    limit !== undefined && (value === undefined || (name === 'max' ? value > limit : value < limit));
  return (
    [
      ['max', 'maximum'],
      ['max', 'maxLength'],
      ['max', 'maxItems'],
      ['min', 'minimum'],
      ['min', 'minLength'],
      ['min', 'minItems'],
    ] as const
  ).flatMap(([kind, name]) => {
    const mayGrow =
      direction === 'answered' && name === 'maxLength' && (now[name] ?? Infinity) <= longestOpaque;
    return !mayGrow && isBeyond(kind, wide[name], narrow[name]) ? [`${name} ${String(now[name])}`] : [];
  });
}

function propertyChanges(before: InDocument, after: InDocument, direction: Direction, at: string): string[] {
  const [{ properties: old = {}, required: needed = [] }, { properties: now = {}, required = [] }] = [
    before[1],
    after[1],
  ];
  const strict = direction === 'sent' ? [required, needed] : [needed, required];
  const changedNeed = (strict[0] ?? []).filter((name) => name in old && !strict[1]?.includes(name));
  return [
    ...Object.entries(old).flatMap(([name, schema]) => {
      const changed = now[name];
      if (changed === undefined) return [`${at}.${name}: gone`];
      return schemaChanges([before[0], schema], [after[0], changed], direction, `${at}.${name}`);
    }),
    ...changedNeed
      .filter((name) => name in now)
      .map((name) => `${at}.${name}: ${direction === 'sent' ? 'now required' : 'no longer always there'}`),
    ...(direction === 'sent' ? required : [])
      .filter((name) => !(name in old))
      .map((name) => `${at}.${name}: new and required`),
  ];
}

if (import.meta.main) {
  const [before = '', after = ''] = process.argv.slice(2);
  const read = (file: string): OpenApiDocument => JSON.parse(readFileSync(file, 'utf8'));
  const changes = breakingChanges(read(before), read(after));
  for (const change of changes) console.log(change);
  process.exitCode = changes.length === 0 ? 0 : 1;
}

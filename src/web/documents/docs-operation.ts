import { catalogue } from '../../errors.ts';
import type {
  Components,
  JsonSchema,
  OpenApiDocument,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from '../../schemas/openapi.ts';
import { html, type Markup } from '../markup.ts';

/** One call of the reference: what it does, a command to paste, what it takes and answers, how it fails. */
export function operationSection(
  { method, path, operation }: { method: string; path: string; operation: OperationObject },
  { servers, components }: OpenApiDocument,
): Markup {
  const { operationId, summary, description, parameters = [], requestBody } = operation;
  const baseUrl = servers[0]?.url ?? '';
  return html`<section class="call">
    <h3 id="${operationId}">
      <code>${method} ${path}</code>
      <a class="anchor" href="#${operationId}" aria-label="Link to ${operationId}"></a>
    </h3>
    <p class="fact"><span>${operationId}</span> <span>${keyUse(operation)}</span></p>
    <p><strong>${summary}.</strong></p>
    ${description?.split('\n\n').map((paragraph) => html`<p>${prose(paragraph)}</p> `)}
    ${operation['x-codeSamples'].map(
      ({ label, source }, _, all) =>
        html`${all.length > 1 && html`<p class="label">${label}</p> `}${curlExample(source)}`,
    )}
    ${fields(
      'In the path',
      parameters.filter((parameter) => parameter.in === 'path'),
    )}
    ${bodyFields(requestBody, components)} ${fields('Query', queryOf(parameters, requestBody))}
    ${fields(
      'Headers',
      parameters.filter((parameter) => parameter.in === 'header'),
    )}
    ${Object.entries(operation.responses).map(([status, response]) => success(status, response, components))}
    <p class="fact codes">
      ${operation['x-errors'].map(
        (code) =>
          html`<span><a href="${baseUrl}/problems/${code}">${catalogue[code].status} ${code}</a></span> `,
      )}
    </p>
  </section> `;
}

/** A command for a shell. */
export function curlExample(source: string): Markup {
  return html`<pre><code>${source}</code></pre>`;
}

/** Text of a description, in which backticks mark code. */
export function prose(text: string): Markup[] {
  return text.split('`').map((part, n) => (n % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

function keyUse({ security }: OperationObject): string {
  const [first] = security;
  if (first === undefined) return 'no key';
  if (Object.keys(first).length > 0) return 'needs the key';
  return security.length > 1 ? 'with or without the key' : 'no key';
}

type Field = {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
  readonly description: string;
};

type RequestBody = OperationObject['requestBody'];

function bodyFields(body: RequestBody, components: Components): Markup | false {
  const schema = body?.content['application/json']?.schema;
  if (schema === undefined) return false;
  return html`${fields('Body', fieldsOf(schema, components, false))}
  ${
    body?.content['text/markdown'] !== undefined &&
    html`<p>
      A <code>text/markdown</code> body is the content; the other fields go in its front matter or in the
      query, which takes precedence.
    </p> `
  }`;
}

/** Fields of the body, which a markdown body takes from the query, are not listed twice. */
function queryOf(parameters: readonly ParameterObject[], body: RequestBody): ParameterObject[] {
  const said = body?.content['application/json']?.schema.properties ?? {};
  return parameters.filter((parameter) => parameter.in === 'query' && !Object.hasOwn(said, parameter.name));
}

function fields(title: string, list: readonly Field[]): Markup | false {
  if (list.length === 0) return false;
  return html`<h4>${title}</h4>
    <dl class="fields">
      ${list.map(
        ({ name, schema, required, description }) =>
          html`<dt><code>${name}</code> <span>${typeOf(schema)}${required && ', required'}</span></dt>
            <dd>${prose(description)}${remarks(schema, description)}</dd> `,
      )}
    </dl> `;
}

/** The fields of an answer, and an example; collapsed, since most readers need only one of them. */
function success(
  status: string,
  response: ResponseObject | Reference,
  components: Components,
): Markup | false {
  if ('$ref' in response) return false;
  const media = response.content?.['application/json'];
  if (media === undefined) return html`<p><strong>${status}</strong> ${response.description}</p>`;
  const [example] = Object.values(media.examples);
  return html`<details>
    <summary>Answer ${status}: ${response.description}</summary>
    ${fields('Fields', fieldsOf(media.schema, components, true))}
    ${
      example !== undefined &&
      'value' in example &&
      html`<pre><code>${JSON.stringify(example.value, null, 2)}</code></pre>`
    }
  </details> `;
}

/** The properties of an object; where `deep`, those of the objects in it too, as `post.id` and `posts[].id`. */
function fieldsOf(schema: JsonSchema, components: Components, deep: boolean, prefix = ''): Field[] {
  const { properties = {}, required = [] } = resolved(schema, components);
  return Object.entries(properties).flatMap(([name, property]) => {
    const field = {
      name: prefix + name,
      schema: property,
      required: !deep && required.includes(name),
      description: property.description ?? '',
    };
    const isList = property.items !== undefined;
    const inner = property.items ?? property;
    if (!deep || inner.properties === undefined) return [field];
    const below = fieldsOf(inner, components, true, `${prefix}${name}${isList ? '[]' : ''}.`);
    return field.description === '' ? below : [field, ...below];
  });
}

function resolved(schema: JsonSchema, { schemas }: Components): JsonSchema {
  const name = schema.$ref?.split('/').at(-1);
  return (name === undefined ? undefined : schemas[name]) ?? schema;
}

function typeOf({ type, enum: choices, items, const: only }: JsonSchema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (choices !== undefined) return choices.map(String).join(' | ');
  if (items !== undefined) return `list of ${[items.type ?? 'any'].flat().join(' or ')}s`;
  return [type ?? 'any'].flat().join(' or ');
}

/** What the schema says beyond its description. */
function remarks(schema: JsonSchema, description: string): string {
  const { minimum, maximum, minLength, maxLength, default: byDefault } = schema;
  const isNew = (bound: number | undefined) => bound !== undefined && !description.includes(String(bound));
  const facts = [
    isNew(maxLength) && `${minLength === undefined ? 'Up to' : `${minLength} to`} ${maxLength} characters`,
    isNew(maximum) && `${minimum ?? 0} to ${maximum}`,
    byDefault !== undefined && `${JSON.stringify(byDefault)} if absent`,
  ].filter((fact) => fact !== false);
  return facts.length === 0 ? '' : ` ${facts.join('; ')}.`;
}

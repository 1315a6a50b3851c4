import type { Config } from '../../config/config.ts';
import { catalogue, errorCodes, type ErrorCode } from '../../errors.ts';
import { asHttp } from '../../rules/calls.ts';
import { contentBytes } from '../../rules/post-fields.ts';
import type {
  Components,
  OpenApiDocument,
  ParameterObject,
  Reference,
  ResponseObject,
} from '../../schemas/openapi.ts';
import { htmlFile } from '../assets.ts';
import { disclosures } from '../disclosure.ts';
import { html, type Markup } from '../markup.ts';
import { countedFor } from '../../variant.ts';
import { layout, type Chrome } from '../templates/layout.ts';
import { pageHead } from '../templates/parts.ts';
import { firstCalls } from './first-calls.ts';
import {
  countedCalls,
  fieldsOf,
  groupsOf,
  keyUse,
  remarks,
  typeOf,
  type Field,
  type Operation,
} from './reference.ts';

/** `/docs`: an introduction, and the reference, made from the description that programs read. */
export function referencePage(chrome: Chrome, config: Config, document: OpenApiDocument): Markup {
  const groups = groupsOf(document);
  const begin = introduction(config, document);
  const sections = groups.map(
    ({ name, description, operations }) =>
      html`<h2 id="${name.toLowerCase()}-calls">${name}</h2>
        <p>${prose(description)}</p>
        ${operations.map((operation) => operationSection(operation, document))}`,
  );
  const body = [begin, sections, errorsSection(chrome)];
  const article = html`<article class="text docs">${body}</article>`;
  return layout(chrome, {
    title: `Reference · ${chrome.siteName}`,
    description: `Every call, field, error and limit of ${chrome.siteName} at ${chrome.baseUrl}.`,
    nameplate: pageHead('Reference'),
    main: html`<div class="reference">${contents(begin, groups)}${article}</div>`,
  });
}

type Group = ReturnType<typeof groupsOf>[number];

function contents(begin: Markup, groups: readonly Group[]): Markup {
  const topics = begin.toString().matchAll(/<h2 id="(.+)">(.+)<\/h2>/g);
  return html`<nav class="contents" aria-label="Contents">
    <ul>
      ${Array.from(topics, ([, id, title]) => html`<li><a href="#${id}">${title}</a></li> `)}
      ${groups.map(
        ({ name, operations }) =>
          html`<li>
            <a href="#${name.toLowerCase()}-calls">${name}</a>
            <ul>
              ${operations.map(
                ({ operationId }) =>
                  html`<li>
                    <a href="#${operationId}"><code>${operationId}</code></a>
                  </li> `,
              )}
            </ul>
          </li> `,
      )}
      <li><a href="#errors">Errors</a></li>
    </ul>
  </nav>`;
}

const introductionText = htmlFile('reference.html');

function introduction(config: Config, { 'x-limits': limits }: OpenApiDocument): Markup {
  const { site, variant, quota } = config;
  return introductionText({
    baseUrl: site.baseUrl,
    blog: variant.blogUrl(site, 'ada'),
    ...firstCalls(site.baseUrl, variant.slugSource),
    limits: limits.map(({ policy, limit, countedBy }) => {
      const text = `\n${limit} calls for each ${countedFor[countedBy]}:\n${countedCalls[policy]}\n`;
      return html`<dt><code>${policy}</code></dt>
        <dd>${text}</dd> `;
    }),
    contentKib: contentBytes / 1024,
    quotaPosts: quota.posts,
    quotaMib: Math.round(quota.bytes / 2 ** 20),
    disclosures: Object.entries(disclosures).map(
      ([value, { sentence }]) =>
        html`<dt><code>${value}</code></dt>
          <dd>${sentence}</dd> `,
    ),
  });
}

/** One call of the reference: what it does, a command to paste, what it takes and answers, how it fails. */
function operationSection(operation: Operation, { servers, components }: OpenApiDocument): Markup {
  const { call, operationId, summary, description, parameters = [], requestBody } = operation;
  const baseUrl = servers[0]?.url ?? '';
  const within = (place: ParameterObject['in']) => parameters.filter((parameter) => parameter.in === place);
  const body = requestBody?.content['application/json']?.schema;
  const sent = body === undefined ? [] : fieldsOf(body, components, false);
  // A markdown body takes its fields from the query, which does not list them again.
  const query = within('query').filter(({ name }) => !sent.some((field) => field.name === name));
  const asMarkdown =
    requestBody?.content['text/markdown'] !== undefined &&
    html`<p>
      A <code>text/markdown</code> body is the content; the other fields go in its front matter or in the
      query, which takes precedence.
    </p> `;
  const takes = [
    [fields('In the path', within('path')), '\n'],
    [fields('Body', sent), body !== undefined && '\n', asMarkdown, ' '],
    [fields('Query', query), '\n'],
    fields('Headers', within('header')),
  ];
  return html`<section class="call">
    <h3 id="${operationId}">
      <code>${call}</code>
      <a class="anchor" href="#${operationId}" aria-label="Link to ${operationId}"></a>
    </h3>
    <p class="fact"><span>${operationId}</span> <span>${keyUse(operation)}</span></p>
    <p><strong>${summary}.</strong></p>
    ${description?.split('\n\n').map((paragraph) => html`<p>${prose(paragraph)}</p> `)}
    ${operation['x-codeSamples'].map(({ label, source }, _, all) => [
      all.length > 1 && html`<p class="label">${label}</p> `,
      html`<pre><code>${source}</code></pre>`,
    ])}
    ${takes}
    ${Object.entries(operation.responses).map(([status, response]) => success(status, response, components))}
    <p class="fact codes">
      ${operation['x-errors'].map(
        (code) =>
          html`<span><a href="${baseUrl}/problems/${code}">${catalogue[code].status} ${code}</a></span> `,
      )}
    </p>
  </section> `;
}

/** Text of a description, in which backticks mark code. */
function prose(text: string): Markup[] {
  return text.split('`').map((part, n) => (n % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
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

function errorsSection({ baseUrl }: Chrome): Markup {
  const entry = (code: ErrorCode): Markup =>
    html`<dt>
        <a href="${baseUrl}/problems/${code}"><code>${code}</code></a> <span>${catalogue[code].status}</span>
      </dt>
      <dd>${asHttp(catalogue[code].explanation)}</dd> `;
  return html`<h2 id="errors">Errors</h2>
    <dl class="fields">${errorCodes.map(entry)}</dl>`;
}

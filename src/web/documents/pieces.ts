import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { catalogue, errorCodes, type ErrorCode } from '../../errors.ts';
import { exampleProblem } from '../../http/problem.ts';
import { packageRoot } from '../../platform/package-root.ts';
import { mcpCommand, mcpConfiguration } from '../../rules/agent-setup.ts';
import { asHttp } from '../../rules/calls.ts';
import { contentBytes } from '../../rules/post-fields.ts';
import type { JsonSchema, OpenApiDocument, ParameterObject } from '../../schemas/openapi.ts';
import { textFile } from '../assets.ts';
import {
  endings,
  fieldsOf,
  groupsOf,
  keyUse,
  remarks,
  typeOf,
  type Field,
  type Operation,
} from './reference.ts';
import { limitSentence } from './skill.ts';

// The reference in pieces that a model reads one at a time, as markdown. Their HTML is made of the same text.

/** A piece: what its page is called, and its text. */
export type Piece = { readonly title: string; readonly markdown: string };

const index = textFile('docs.md');

/** `/docs.md`: every call in a line, and the rules of all. */
export function docsIndex(siteName: string, config: Config, document: OpenApiDocument): string {
  const { site, quota } = config;
  return index({
    siteName,
    baseUrl: site.baseUrl,
    operations: groupsOf(document)
      .map(({ name, operations }) => `### ${name}\n\n${operations.map(line).join('\n')}\n`)
      .join('\n'),
    limits: limitSentence(config),
    contentKib: contentBytes / 1024,
    quotaPosts: quota.posts,
    quotaMib: Math.round(quota.bytes / 2 ** 20),
  });
}

const keyMarks: Readonly<Record<string, string>> = { 'needs the key': ', *key*', 'no key': '' };

function line(operation: Operation): string {
  const { operationId, call, summary, deprecated } = operation;
  const marks = `${keyMarks[keyUse(operation)] ?? ', *key?*'}${deprecated ? ', *deprecated*' : ''}`;
  return `- \`${operationId}\`: ${call}${marks}: ${summary}`;
}

const changes = textFile('changes.md');
const markdown = textFile('markdown.md');
const mcp = textFile('mcp.md');

/** The piece at `/docs/{name}`: an operation by its id, what markdown may hold, MCP, the policy of changes, the changelog. Null for another name. */
export function docsPiece(name: string, { site }: Config, document: OpenApiDocument): Piece | null {
  if (name === 'changes')
    return {
      title: 'What may change',
      markdown: changes({ baseUrl: site.baseUrl, ending: endingText(document) }),
    };
  if (name === 'markdown') return { title: 'Markdown', markdown: markdown({ baseUrl: site.baseUrl }) };
  if (name === 'mcp') {
    const configuration = mcpConfiguration(site.baseUrl, 2);
    return {
      title: 'MCP',
      markdown: mcp({ baseUrl: site.baseUrl, configuration, command: mcpCommand(site.baseUrl) }),
    };
  }
  if (name === 'changelog') return { title: 'Changelog', markdown: changelog() };
  const operations = groupsOf(document).flatMap((group) => group.operations);
  const operation = operations.find(({ operationId }) => operationId === name);
  if (operation === undefined) return null;
  return { title: operation.call, markdown: operationText(operation, document, site.baseUrl) };
}

/** What ends, by its id, with every call that has it. */
function endingText(document: OpenApiDocument): string {
  const sections = Object.values(Object.groupBy(endings(document), ({ ending }) => ending.id));
  return sections
    .map((group = []) => {
      const [first] = group;
      if (first === undefined) return '';
      const { id, since, sunset } = first.ending;
      const what = group.map(({ what: each }) => `- ${each}`).join('\n');
      return `### ${id}\n\nDeprecated since ${since}, ends on ${sunset}:\n\n${what}`;
    })
    .join('\n\n');
}

/** As it comes with the program. Its links lead to files beside it, which have no address here. */
function changelog(): string {
  const text = readFileSync(new URL('CHANGELOG.md', packageRoot), 'utf8');
  return text.replace(/\[([^\]]*)\]\((?!https?:)[^)]*\)/g, '$1');
}

/** One call: what it does, a command to paste, what it takes and answers, how it fails. */
function operationText(operation: Operation, document: OpenApiDocument, baseUrl: string): string {
  const { call, operationId, summary, description, parameters = [], requestBody } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const sent = body === undefined ? [] : sentFields(body, document);
  const within = (place: ParameterObject['in']) => parameters.filter((parameter) => parameter.in === place);
  const query = within('query').filter(({ name }) => !sent.some((field) => field.name === name));
  const samples = operation['x-codeSamples'].map(({ label, source }, _, all) =>
    [all.length > 1 && `${label}:`, fenced('sh', source)].filter((part) => part !== false).join('\n\n'),
  );
  return paragraphs([
    `# ${call}`,
    `\`${operationId}\`, ${keyUse(operation)}. **${summary}.** ${description ?? ''}`.trim(),
    ...samples,
    fieldList('In the path', within('path')),
    fieldList('Body', sent, body?.description),
    requestBody?.content['text/markdown'] !== undefined &&
      'Or a `text/markdown` body, which is the content: the other fields go in its front matter or in the query (`?status=published&tags=a,b`), which takes precedence. Without a title, the heading that it begins with is the title.',
    fieldList('Query', query),
    fieldList('Headers', within('header')),
    ...answers(operation, document, baseUrl),
    `## Failures\n\n${operation['x-errors'].map((code) => `\`${catalogue[code].status} ${code}\``).join(', ')}; each is explained at \`${baseUrl}/problems/{code}.md\`.`,
    `All calls, and the rules of all: ${baseUrl}/docs.md`,
  ]);
}

/** The fields of a body, with those of the objects in a list where the call that is shown sends one. */
function sentFields(body: JsonSchema, { components }: OpenApiDocument): Field[] {
  const shown = Object(body.examples?.[0]) as object;
  return fieldsOf(body, components, false).flatMap((field) => {
    const { name, schema } = field;
    const { items } = schema;
    const isShown = items?.properties !== undefined && Object.hasOwn(shown, name);
    return isShown ? [field, ...fieldsOf(items, components, false, `${name}[].`)] : [field];
  });
}

/** Fields of an answer from which on the page of another call that has the same one lists them. */
const mostRepeated = 30;

/** The successes. What an answer shares with the one before is not said twice, nor a long one by two calls. */
function answers(
  { operationId, responses }: Operation,
  document: OpenApiDocument,
  baseUrl: string,
): (string | false)[] {
  const said = new Set<string>();
  return Object.entries(responses).flatMap(([status, response]) => {
    if ('$ref' in response) return [];
    const media = response.content?.['application/json'];
    const title = `Answer ${status}: ${response.description}`;
    if (media === undefined) return [`## ${title}`];
    const fields = fieldsOf(media.schema, document.components, true);
    const first = firstToAnswer(media.schema, document) ?? operationId;
    const isElsewhere = fields.length > mostRepeated && first !== operationId;
    const lines = isElsewhere
      ? [`As \`${first}\` answers: ${baseUrl}/docs/${first}.md`]
      : toldApart(fields).map(fieldLine);
    const added = lines.filter((each) => !said.has(each));
    const isMore = said.size > 0 && added.length < lines.length;
    for (const each of lines) said.add(each);
    const [example] = isMore ? [] : Object.values(media.examples);
    return [
      `## ${title}`,
      isMore && `As above${added.length > 0 ? ', and' : '.'}`,
      added.join('\n'),
      example !== undefined && 'value' in example && fenced('json', JSON.stringify(example.value, null, 1)),
    ];
  });
}

/** The first call of the reference that answers this, by its id; undefined where it is one call's own. */
function firstToAnswer({ $ref }: JsonSchema, document: OpenApiDocument): string | undefined {
  if ($ref === undefined) return undefined;
  const operations = groupsOf(document).flatMap((group) => group.operations);
  return operations.find(({ responses }) =>
    Object.values(responses).some(
      (response) => 'content' in response && response.content?.['application/json']?.schema.$ref === $ref,
    ),
  )?.operationId;
}

/** Without the parts that their names say all of, and those that an earlier object has in the same words. */
function toldApart(fields: readonly Field[]): Field[] {
  const said = new Set<string>();
  return fields.filter((field) => {
    const [last = '', ...path] = field.name.split('.').toReversed();
    const words = fieldLine({ ...field, name: last });
    if (path.length > 0 && (field.description === '' || said.has(words))) return false;
    said.add(words);
    return true;
  });
}

function fieldList(title: string, fields: readonly Field[], about = ''): string | false {
  return fields.length > 0 && paragraphs([`## ${title}`, about, fields.map(fieldLine).join('\n')]).trimEnd();
}

function fieldLine({ name, schema, required, description }: Field): string {
  const text = `${description}${remarks(schema, description)}`;
  return `- \`${name}\` ${typeOf(schema)}${required ? ', required' : ''}${text === '' ? '' : `: ${text}`}`;
}

/** `/problems.md`: every code with its status, and what it means. */
export function problemsIndex(baseUrl: string): Piece {
  const entries = errorCodes.map(
    (code) =>
      `- \`${code}\` (${catalogue[code].status}${catalogue[code].retryable ? ', retryable' : ''}): ${catalogue[code].title}`,
  );
  return {
    title: 'Error codes',
    markdown: paragraphs([
      '# Error codes',
      `What a failure says in \`code\`. Each is explained at \`${baseUrl}/problems/{code}.md\`. A call that is *retryable* may succeed unchanged later, after \`Retry-After\` seconds.`,
      entries.join('\n'),
    ]),
  };
}

/** `/problems/{code}.md`. */
export function problemText(baseUrl: string, code: ErrorCode): string {
  const { status, title, retryable, explanation, hint } = catalogue[code];
  return paragraphs([
    `# ${title}`,
    `HTTP ${status}, \`${code}\`. ${asHttp(explanation)}`,
    `Next step: ${asHttp(hint)}`,
    `Repeat it: ${retryable ? 'yes, the same call may succeed later' : 'no, not without a change'}.`,
    'Such an answer looks like this; its own `detail` and `hint` say more:',
    fenced('json', JSON.stringify(exampleProblem(baseUrl, code), null, 2)),
    `All codes: ${baseUrl}/problems.md`,
  ]);
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

function paragraphs(parts: readonly (string | false)[]): string {
  return `${parts.filter((part) => part !== false && part !== '').join('\n\n')}\n`;
}

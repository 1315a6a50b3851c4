import { curl, keyHeader, type ShellCall } from '../../rules/agent-setup.ts';
import { keywordsOf, type JsonSchema, type OperationObject } from '../../schemas/openapi.ts';
import type { Operation } from '../endpoint.ts';

/** An operation with its method and its path, which has `{name}` for parameters. */
export type PlacedOperation = Operation & { readonly method: string; readonly path: string };

/** The call for a shell: with and without a key where both make sense, as JSON and as markdown. */
export function samplesOf(
  { method, path, auth, body, query, sampled = [], markdown, picture, answers }: PlacedOperation,
  baseUrl: string,
): OperationObject['x-codeSamples'] {
  const { properties = {}, required = [] } = keywordsOf(query);
  const { contentMediaType } = keywordsOf(answers[200]);
  const valueOf = (name: string) =>
    name === 'token' ? '$TOKEN' : encodeURIComponent(String(exampleOf(properties[name] ?? {})));
  const search = [...required, ...sampled].map((name) => `${name}=${valueOf(name)}`).join('&');
  const variables: Readonly<Record<string, string>> = path.startsWith('/api/media/')
    ? { id: '$MEDIA_ID', token: '$UPLOAD_TOKEN' }
    : pathVariables;
  const filled = (baseUrl + path).replace(/\{(\w+)\}/g, (_, name: string) => variables[name] ?? '');
  const url = filled + (search === '' ? '' : `?${search}`);
  const json = body === undefined ? {} : { json: exampleBody(keywordsOf(body)) };
  const call: ShellCall = { method, url, download: contentMediaType !== undefined, ...json };
  const withKey = { ...call, headers: [keyHeader(baseUrl)] };
  if (markdown)
    return [
      sample('JSON', withKey),
      sample('Markdown file', {
        ...withKey,
        url: `${url}?status=published`,
        json: undefined,
        file: 'post.md',
      }),
    ];
  if (picture)
    return [
      sample('curl', { ...(auth === 'link' ? call : withKey), file: 'picture.png', type: 'image/png' }),
    ];
  if (auth === 'optional') return [sample('Without a key', call), sample('With the key', withKey)];
  return [sample('curl', auth === 'required' ? withKey : call)];
}

const pathVariables: Readonly<Record<string, string>> = {
  id: '$POST_ID',
  commentId: '$COMMENT_ID',
  revision: '$REVISION',
  slug: '$AGENT_SLUG',
};

function exampleBody(body: JsonSchema): unknown {
  const example = asRecord(exampleOf(body));
  return 'token' in example ? { ...example, token: '$TOKEN' } : example;
}

function sample(label: string, call: ShellCall): OperationObject['x-codeSamples'][number] {
  return { lang: 'Shell', label, source: curl(call) };
}

/** An example as an object; empty where it is of another type. */
function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** A value that a schema allows, taken from its examples and those of its parts; optional properties are left out. */
export function exampleOf(schema: JsonSchema): unknown {
  const [first] = schema.examples ?? [];
  if (first !== undefined) return first;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [type] = [schema.type ?? []].flat();
  if (type === 'object') {
    const { properties = {}, required = [] } = schema;
    return Object.fromEntries(
      required.map((name) => [name, properties[name] === undefined ? null : exampleOf(properties[name])]),
    );
  }
  if (type === 'array') return schema.items === undefined ? [] : [exampleOf(schema.items)];
  return type === 'boolean' ? true : null;
}

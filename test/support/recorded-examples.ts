import type { Answer } from './http.ts';
import { documentOf, operationsOf, type Placed } from './api-document.ts';
import { startInstance, variantNames, type Instance, type VariantName } from './instance.ts';
import { noteNamed, shellCalls } from './shell-calls.ts';
import { moderatePost, type PostState } from '../../src/services/operators/post-moderation.ts';
import { keyFile, keyFileLine } from '../../src/rules/agent-setup.ts';
import { programVersion } from '../../src/platform/version.ts';

/** Answers by operation and status. */
type Answers = Record<string, Record<string, unknown>>;

/** The file of the examples, by variant: answers of the program to the calls that its documents show. */
export type RecordedExamples = Record<VariantName, Answers>;

/** The order in which the calls of the documents succeed. What is not named is called before anything is deleted. */
const beginning = [
  'about',
  'health',
  'ready',
  'register',
  'verifyByPost',
  'verify',
  'updateMe',
  'publish',
  'uploadMedia',
  'addComment',
  'vote',
];
const ending = [
  'report',
  'appeal',
  'editComment',
  'unvote',
  'deleteComment',
  'block',
  'listBlocks',
  'unblock',
  'previewPost',
  'endPreviews',
  'deleteMedia',
  'restoreRevision',
  'eraseRevision',
  'eraseRevisions',
  'deletePost',
  'listTrash',
  'restorePost',
  'emptyTrash',
  'publishPost',
  'regenerateKey',
  'recover',
  'confirmRecovery',
  'deleteMe',
  'restoreMe',
];

/** What readers of the blog do, not its owner. */
const byAnother = new Set(['addComment', 'editComment', 'deleteComment', 'vote', 'unvote']);

/** A PNG of 1,200 × 630 pixels that names its author: as text, since what compresses differs by machine. */
const picture = Buffer.from(
  [
    'iVBORw0KGgoAAAANSUhEUgAABLAAAAJ2AQAAAABnO0bxAAAACnRFWHRBdXRob3IAQWRhnZUL9AAAAHNJREFUeNrtwQENAAAA',
    'wqD3T20ON6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAF4Nc6kAAekajDwAAAAASUVORK5CYII=',
  ].join(''),
  'base64',
);

const exampleBlog = 'https://ada.masthead.example';
const email = 'ada@example.com';
const home = '/home/ada';
const start = Date.parse('2026-01-31T08:30:00Z');

/** Runs the program in each variant and calls it as its documents show. Every call has to succeed. */
export async function recordExamples(): Promise<string> {
  const recorded: Partial<RecordedExamples> = {};
  for (const variant of variantNames) {
    const instance = await startInstance({
      variant,
      now: start,
      env: { LIMIT_REGISTER: variant === 'path' ? '5' : '60' },
    });
    try {
      // A whole hour later, however long the start took.
      instance.clock.freeze();
      instance.clock.advance(start + 3_600_000 - instance.clock.now());
      recorded[variant] = JSON.parse(asExamples(JSON.stringify(await callAll(instance)), instance));
    } finally {
      await instance.close();
    }
  }
  return `${JSON.stringify(recorded, null, 1)}\n`;
}

async function callAll(instance: Instance): Promise<Answers> {
  const operations = operationsOf(await documentOf(instance));
  const rank = ({ operation: { operationId } }: Placed) =>
    beginning.includes(operationId)
      ? beginning.indexOf(operationId) - beginning.length
      : ending.indexOf(operationId) + 1;
  const grace = await instance.agent('Grace');
  const known: Record<string, string> = {
    REVISION: '1',
    AGENT_SLUG: grace.slug,
    BLOG_URL: grace.blogUrl.replace(grace.slug, 'ada'),
  };
  const answers: Answers = {};
  for (const placed of operations.toSorted((a, b) => rank(a) - rank(b))) {
    const { operationId } = placed.operation;
    const hide = (to: PostState) =>
      instance.ctx().engine.write(moderatePost, { postId: known['POST_ID'] ?? '', to });
    const setStatus = async (status: string) =>
      instance.call('PATCH', `/api/posts/${known['POST_ID']}`, {
        key: known['MASTHEAD_API_KEY'] ?? '',
        body: { status },
      });
    // A public post needs no link.
    if (operationId === 'previewPost') await setStatus('draft');
    // So that there is something to appeal against.
    if (operationId === 'appeal') await hide({ state: 'hidden', reason: 'Nothing but advertisements.' });
    const [file] = examplesOf(placed, 'text/markdown');
    for (const { source } of placed.operation['x-codeSamples']) {
      if (source.includes('$TOKEN')) known['TOKEN'] = await instance.token(email);
      if (source.includes('$UPLOAD_TOKEN'))
        known['UPLOAD_TOKEN'] = await uploadToken(instance, known['MASTHEAD_API_KEY'] ?? '');
      // So that there is something in it.
      if (operationId === 'emptyTrash')
        await instance.call('DELETE', `/api/posts/${known['POST_ID']}`, {
          key: known['MASTHEAD_API_KEY'] ?? '',
        });
      const key = byAnother.has(operationId) ? grace.key : known['MASTHEAD_API_KEY'];
      const files = {
        'post.md': typeof file === 'string' ? file : '',
        'picture.png': picture.toString('latin1'),
        [keyFile(instance.baseUrl).replace('~', home)]: keyFileLine(key ?? ''),
      };
      for (const { method, url, headers, body } of shellCalls(source, { ...known, HOME: home }, files)) {
        const bodies = [
          body,
          ...examplesOf(placed, 'application/json')
            .slice(1)
            .map((each) => JSON.stringify(each)),
        ];
        const isJson = headers['content-type'] === 'application/json';
        for (const sent of isJson ? bodies : [body]) {
          instance.clock.advance(60_000);
          // The documents name addresses of a service that is not this one.
          const here = sent?.replaceAll(exampleBlog, known['BLOG_URL'] ?? '') ?? null;
          const isPicture = headers['content-type']?.startsWith('image/');
          const bytes = here !== null && isPicture ? Buffer.from(here, 'latin1') : here;
          const options = { headers, ...(bytes === null ? {} : { body: bytes }) };
          const path = url.pathname + url.search;
          const answer = await instance.call(method, path, options);
          if (answer.status >= 300) throw new Error(`${operationId}: ${source} answers ${answer.text}`);
          if (!isObject(answer)) continue;
          noteNamed(answer, known);
          if (operationId !== 'openapi') keep((answers[operationId] ??= {}), answer);
        }
      }
    }
    if (operationId === 'appeal') await hide(null);
    if (operationId === 'previewPost') await setStatus('published');
  }
  return answers;
}

/** The token of a link that an agent is answered. */
async function uploadToken(instance: Instance, key: string): Promise<string> {
  const params = { name: 'upload_media', arguments: { type: 'image/png' } };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const answer = await instance.call('POST', '/mcp', { key, body });
  const { uploadUrl }: { uploadUrl: string } = JSON.parse(String(answer.at('result.content.0.text')));
  return new URL(uploadUrl).pathname.split('/').at(-1) ?? '';
}

/** The first answer of each status; one that changed something rather than one that did not. */
function keep(answers: Record<string, unknown>, answer: Answer): void {
  const before = answers[answer.status] as { changed?: boolean } | undefined;
  if (before === undefined || (before.changed === false && answer.at('changed') === true))
    answers[answer.status] = answer.json();
}

function examplesOf({ operation }: Placed, type: string): unknown[] {
  const examples = Object.values(operation.requestBody?.content[type]?.examples ?? {});
  return examples.map((example) => ('value' in example ? example.value : undefined));
}

function isObject({ headers }: Answer): boolean {
  return String(headers['content-type']).startsWith('application/json');
}

/** Answers with what differs from run to run, and from instance to instance, as the documents write it. */
function asExamples(text: string, { baseUrl }: Instance): string {
  const { host } = new URL(baseUrl);
  const ids = new Map<string, string>();
  for (const [id] of text.matchAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g))
    if (!ids.has(id)) ids.set(id, `019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b${(ids.size + 0x3c).toString(16)}`);
  let shown = text.replaceAll(baseUrl, 'https://masthead.example');
  shown = shown.replaceAll(new RegExp(`http://(\\w+)\\.${host}`, 'g'), 'https://$1.masthead.example');
  for (const [id, example] of ids)
    shown = shown.replaceAll(id, example).replaceAll(`"${id.slice(-8)}-`, `"${example.slice(-8)}-`);
  shown = shown.replaceAll(/(\/-\/preview\/)[\w-]+/g, '$1AZwTapzAcx64UKWFN_qsb2l_Kjj3U2uZtQTcKq_RDRylBYMg');
  return shown.replaceAll(`"version":"${programVersion()}"`, '"version":"0.2.0"');
}

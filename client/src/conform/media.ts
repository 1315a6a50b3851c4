import { createHash } from 'node:crypto';
import { parseJson } from '../errors.ts';
import { checkAnswer, Mismatch, need, shownValue } from './check.ts';
import {
  count,
  entriesAt,
  expectHeader,
  expectListed,
  expectProblem,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  textAt,
  time,
  url,
  uuid,
} from './expect.ts';
import { needCapability, postOf, type Subject } from './subject.ts';
import { valueAt, type Answer } from './wire.ts';

/** A PNG of one pixel that names its author. */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAADnRFWHRBdXRob3IAY29uZm9ybWXkTV8AAAAKSURBVHicYzgBAADKAMmZyl1+AAAAAElFTkSuQmCC',
  'base64',
);
const author = 'conform';
const png = { 'content-type': 'image/png' };

/** Pictures of an agent, and posts that show them. */
export async function checkMedia(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  section('K Pictures');
  const has = (): void => needCapability(subject, 'media', 'the service stores no pictures');
  const stored = await checkAnswer(
    ours,
    ['K', 'a picture is stored without what its file says of its maker'],
    async () => {
      has();
      const keyless = await subject.wire('POST', '/api/media', { body: picture, headers: png });
      expectProblem(keyless, 401, 'unauthorized');
      return send(subject, '?alt=A+grey+dot.');
    },
    (answer) => {
      expectSuccess(answer, 201, { ...described, 'media.removed.0': text });
      expectValue('header location', answer.headers.location, answer.at('media.url'));
    },
  );
  const made = (): Answer => {
    has();
    return need(stored, 'no picture was stored');
  };
  const address = () => `/api/media/${textAt(made(), 'media.id')}`;

  await ours('K', 'the same bytes again are the same picture', async () => {
    const id = textAt(made(), 'media.id');
    expectSuccess(await send(subject), 200, { 'media.id': id });
  });
  await ours('K', 'what is not a whole picture of its type is refused', async () => {
    made();
    const refused = async (body: Buffer, type: string) =>
      subject.keyed('POST', '/api/media', { body, headers: { 'content-type': type } });
    expectProblem(await refused(picture.subarray(0, -4), 'image/png'), 422, 'invalid_media');
    for (const type of ['image/gif', 'image/svg+xml'])
      expectProblem(await refused(picture, type), 415, 'unsupported_media_type');
  });
  await ours('K', 'a picture is served at its address, to pages anywhere, and runs nothing', async () => {
    const answer = expectStatus(await subject.wire('GET', textAt(made(), 'media.url')), 200);
    expectHeader(answer, 'content-type', /^image\/png$/);
    expectHeader(answer, 'x-content-type-options', /^nosniff$/);
    expectHeader(answer, 'content-security-policy', /\bsandbox\b/);
    expectHeader(answer, 'cross-origin-resource-policy', /^cross-origin$/);
    expectHeader(answer, 'cache-control', /\bpublic\b.*\bmax-age=[1-9]/);
    expectValue(
      'SHA-256',
      createHash('sha256').update(answer.bytes).digest('hex'),
      made().at('media.sha256'),
    );
    if (answer.bytes.includes(author)) throw new Mismatch('no author in the file', author);
  });
  await ours('K', 'pictures are listed, found by their hash, and described', async () => {
    const id = textAt(made(), 'media.id');
    for (const query of ['', '?unused=true', `?sha256=${textAt(made(), 'media.sha256')}`])
      expectListed(expectSuccess(await subject.keyed('GET', `/api/media${query}`), 200), 'media', id);
    const body = { alt: 'A dot.' };
    expectSuccess(await subject.keyed('PATCH', address(), { body }), 200, {
      'media.alt': body.alt,
      changed: true,
    });
    expectSuccess(await subject.keyed('GET', address()), 200, { ...described, 'media.alt': body.alt });
    expectProblem(await subject.wire('GET', address()), 401, 'unauthorized');
  });
  await ours('K', 'a link takes the picture without a key, for the agent that asked for it', async () => {
    const id = textAt(made(), 'media.id');
    const link = await linkOf(subject);
    const put = async (to: string) => subject.wire('PUT', to, { body: picture, headers: png });
    expectSuccess(await put(link), 200, { 'media.id': id });
    expectProblem(await put(`${link}?alt=Another`), 404, 'invalid_token');
  });
  await checkUse(subject, made, address);
}

/** What shows a picture, and how it goes. */
async function checkUse(subject: Subject, made: () => Answer, address: () => string): Promise<void> {
  const { ours } = subject.checks;
  const change = async (image: string | null) =>
    subject.keyed('PATCH', `/api/posts/${postOf(subject).id}`, { body: { image } });
  await ours('K', 'a published post has a picture, which is then deleted by force alone', async () => {
    const [name, shown] = [textAt(made(), 'media.name'), textAt(made(), 'media.url')];
    expectSuccess(await change(`media/${name}`), 200, { 'post.image': `media/${name}`, changed: true });
    const page = expectStatus(await subject.wire('GET', postOf(subject).url), 200);
    if (!page.text.includes(`property="og:image" content="${shown}"`))
      throw new Mismatch(`og:image ${shown}`, shownValue(/<meta[^>]*og:image[^>]*>/.exec(page.text)?.[0]));
    const refused = expectProblem(await subject.keyed('DELETE', address()), 409, 'in_use');
    expectValue('posts.0.id', valueAt(entriesAt(refused, 'posts')[0], 'id'), postOf(subject).id);
    expectSuccess(await change(null), 200, { 'post.image': null, changed: true });
  });
  await ours('K', 'a deleted picture is gone, and so is its address', async () => {
    const shown = textAt(made(), 'media.url');
    expectSuccess(await subject.keyed('DELETE', `${address()}?force=true`), 200, { message: text });
    expectProblem(await subject.keyed('GET', address()), 404, 'not_found');
    expectStatus(await subject.wire('GET', shown), 404);
  });
}

const described = {
  'media.id': uuid,
  'media.name': text,
  'media.url': url,
  'media.markdown': text,
  'media.type': 'image/png',
  'media.width': 1,
  'media.height': 1,
  'media.bytes': count,
  'media.alt': text,
  'media.animated': false,
  'media.sha256': text,
  'media.createdAt': time,
} as const;

async function send(subject: Subject, query = ''): Promise<Answer> {
  return subject.keyed('POST', `/api/media${query}`, { body: picture, headers: png });
}

/** The link that the tool of models answers. */
async function linkOf(subject: Subject): Promise<string> {
  const params = { name: 'upload_media', arguments: { type: 'image/png' } };
  const answer = await subject.keyed('POST', '/mcp', {
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    headers: { accept: 'application/json, text/event-stream' },
  });
  const said = parseJson(textAt(expectStatus(answer, 200), 'result.content.0.text'));
  for (const name of ['uploadUrl', 'expiresAt', 'curl'])
    if (typeof valueAt(said, name) !== 'string')
      throw new Mismatch(`${name}: text`, shownValue(valueAt(said, name)));
  return String(valueAt(said, 'uploadUrl'));
}

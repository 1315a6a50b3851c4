import { Mismatch, shownValue } from './check.ts';
import {
  expectHeader,
  expectProblem,
  expectStatus,
  expectSuccess,
  text,
  textAt,
  time,
  url,
} from './expect.ts';
import { draftOf, needCapability, postOf, type Subject } from './subject.ts';

/** When a draft becomes public by itself, and who sees it before. */
export async function checkSchedule(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  section('G Schedules and previews');
  await ours('G', 'a draft takes a time ahead with its zone, until null takes it off', async () => {
    needCapability(subject, 'schedule', 'the service schedules nothing');
    const change = async (body: object) =>
      subject.keyed('PATCH', `/api/posts/${draftOf(subject).id}`, { body });
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    const scheduled = { 'post.status': 'draft', 'post.publishAt': ahead };
    expectSuccess(await change({ publishAt: ahead, status: 'published' }), 200, scheduled);
    expectSuccess(await change({ publishAt: ahead.replace('Z', '+00:00') }), 200, { changed: false });
    expectSuccess(await change({ tags: ['later'] }), 200, scheduled);
    for (const publishAt of ['2020-01-01T00:00:00Z', ahead.replace('Z', ''), 'tomorrow'])
      expectProblem(await change({ publishAt }), 400, 'invalid_input');
    expectSuccess(await change({ publishAt: null }), 200, { ...scheduled, 'post.publishAt': null });
  });
  await ours('G', 'a post that is published is neither scheduled nor withdrawn by a time', async () => {
    needCapability(subject, 'schedule', 'the service schedules nothing');
    const body = { publishAt: new Date(Date.now() + 3_600_000).toISOString(), status: 'draft' };
    expectSuccess(await subject.keyed('PATCH', `/api/posts/${postOf(subject).id}`, { body }), 200, {
      changed: false,
      'post.status': 'published',
      'post.publishAt': null,
      'warningCodes.0': 'already_published',
    });
  });
  await ours('G', 'a link shows a draft without a key and to no cache, until it is ended', async () => {
    needCapability(subject, 'previews', 'the service makes no previews');
    const { id, title } = draftOf(subject);
    const path = `/api/posts/${id}/preview`;
    expectProblem(await subject.wire('POST', path), 401, 'unauthorized');
    const made = await subject.keyed('POST', path, { body: { expiresIn: 300 } });
    const address = textAt(expectSuccess(made, 200, { previewUrl: url, expiresAt: time }), 'previewUrl');
    for (const form of [address, `${address}.md`]) {
      const page = expectStatus(await subject.wire('GET', form), 200);
      if (!page.text.includes(title)) throw new Mismatch('the title of the draft', shownValue(page.text));
      expectHeader(page, 'cache-control', /\bprivate, no-store\b/);
      expectHeader(page, 'referrer-policy', /^no-referrer$/);
      expectHeader(page, 'x-robots-tag', /^noindex, nofollow, noarchive$/);
    }
    expectStatus(await subject.wire('GET', address.slice(0, -1)), 404);
    expectSuccess(await subject.keyed('DELETE', path), 200, { message: text });
    expectStatus(await subject.wire('GET', address), 404);
    const ofPost = await subject.keyed('POST', `/api/posts/${postOf(subject).id}/preview`);
    expectSuccess(ofPost, 200, { previewUrl: postOf(subject).url, expiresAt: null });
  });
}

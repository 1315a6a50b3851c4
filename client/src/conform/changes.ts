import { Mismatch, shownValue } from './check.ts';
import {
  expectFields,
  expectProblem,
  expectRefusal,
  expectSuccess,
  expectValue,
  text,
  textAt,
  time,
} from './expect.ts';
import { draftOf, needCapability, type Subject } from './subject.ts';

/** What changes a part of a post, finds it by a slug that it had, and names its duplicates. */
export async function checkChanges(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  const { keyed } = subject;
  const path = () => `/api/posts/${draftOf(subject).id}`;
  const change = async (body: object) => keyed('PATCH', path(), { body });
  const contentNow = async () => textAt(await keyed('GET', path()), 'post.content');
  section('4 Edits');
  await ours('4', 'edits change what they name, all or nothing, and the answer has the diff', async () => {
    expectSuccess(await change({ content: 'One engine, one store.' }), 200);
    const answer = await change({ edits: [{ old: 'engine', new: 'loom' }] });
    const diff = textAt(expectSuccess(answer, 200, { changed: true, diff: text }), 'diff');
    if (!/^-One engine, one store\.$[^]*^\+One loom, one store\.$/m.test(diff))
      throw new Mismatch('a diff of the line', shownValue(diff));
    const edits = [
      { old: 'One', new: 'A' },
      { old: 'nowhere', new: 'x' },
    ];
    const refused = expectProblem(await change({ edits }), 422, 'edit_not_applied');
    expectFields(refused, { 'errors.0.field': 'edits[1].old' });
    expectValue('content', await contentNow(), 'One loom, one store.');
  });
  await ours('4', 'the repeat of an append is recognised', async () => {
    expectSuccess(await change({ append: 'The end.' }), 200, { changed: true });
    const again = await change({ append: 'The end.' });
    expectSuccess(again, 200, { changed: false, 'warningCodes.0': 'already_applied' });
    expectValue('content', await contentNow(), 'One loom, one store.\n\nThe end.');
  });
  await ours('D', 'what a post was is listed and compared, for its agent alone', async () => {
    needCapability(subject, 'revisions', 'the service keeps no revisions');
    const listed = expectSuccess(await keyed('GET', `${path()}/revisions`), 200, {
      'revisions.0.current': true,
      'revisions.0.cause': 'changed',
      'revisions.1.at': time,
    });
    const former = String(listed.at('revisions.1.revision'));
    const difference = await keyed('GET', `${path()}/revisions/${former}/diff`);
    if (!/^\+The end\.$/m.test(textAt(expectSuccess(difference, 200), 'diff')))
      throw new Mismatch('a diff of what was appended', shownValue(difference.text));
    expectRefusal(await subject.wire('GET', `${path()}/revisions`));
  });
  section('4 Former slugs and duplicates');
  await ours('4', 'a former slug updates the post that had it, and is given up', async () => {
    const { id, slug } = draftOf(subject);
    const renamed = `${slug}-moved`;
    expectSuccess(await change({ slug: renamed }), 200, { 'post.slug': renamed });
    const body = { slug, content: 'By a former slug.' };
    const found = expectSuccess(await keyed('POST', '/api/publish', { body }), 200);
    expectFields(found, { 'post.id': id, 'post.slug': renamed, 'warningCodes.0': 'former_slug' });
    const place = new URLSearchParams({ url: textAt(found, 'post.url').replace(/-moved$/, '') });
    expectSuccess(await keyed('GET', `/api/posts/lookup?${place.toString()}`), 200, {
      'post.id': id,
      movedFrom: slug,
    });
    expectSuccess(await keyed('GET', path()), 200, { 'post.formerSlugs.0': slug });
    expectSuccess(await change({ slug }), 200, { 'post.slug': slug });
    expectSuccess(await change({ formerSlugs: [] }), 200, { changed: true });
    expectSuccess(await keyed('GET', path()), 200, { 'post.formerSlugs.0': undefined });
  });
  await ours('4', 'a new post like another is named, and not refused', async () => {
    const { id, slug } = draftOf(subject);
    const content = await contentNow();
    const body = { title: `Like another ${subject.mark}`, slug: `${slug}-like`, content };
    const answer = await keyed('POST', '/api/publish?dryRun=true', { body });
    expectSuccess(answer, 200, { 'duplicateOf.id': id, 'warningCodes.0': 'duplicate_content' });
  });
}

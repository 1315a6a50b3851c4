import { StartError } from '../../../src/rules/failure.ts';
import { uuidPattern } from '../../../src/rules/secrets.ts';
import { printable } from '../../../src/rules/text.ts';
import type { Media, MastheadClient, UploadAnswer } from '../index.ts';
import { confirm, UsageError, type Command } from '../terminal/command.ts';
import { shown, tableOrList } from '../terminal/format.ts';
import { cutInMiddle } from '../terminal/width.ts';
import { serviceCommand } from './connection.ts';
import { checkStoresPictures, picturesOf, readPicture, uploadTimeout } from './pictures.ts';
import { collect } from './posts.ts';
import { warningsOf } from './publish-report.ts';
import { yes } from './trash.ts';

const list = serviceCommand('required', {
  name: 'media list',
  summary: 'List your pictures, newest first.',
  options: { unused: { meaning: 'Only those that no post shows.' } },
  async run(call, { client }) {
    await checkStoresPictures(client);
    const pictures = await collect(picturesOf(client, call.has('unused') || undefined));
    const rows = pictures.map((each) => [
      each.name,
      `${each.width} x ${each.height}`,
      String(each.bytes),
      each.alt ?? '',
    ]);
    const none = call.has('unused') ? 'There are no pictures that no post shows.' : 'There are no pictures.';
    const heading = ['NAME', 'PIXELS', 'BYTES', 'ALTERNATIVE TEXT'];
    const width = call.columns?.('result') ?? Infinity;
    const lines = rows.map(([name = '', pixels = '', bytes = '', alt = '']) =>
      [
        name,
        `  ${pixels}, ${bytes} bytes`,
        ...(alt ? [`  ${cutInMiddle(printable(alt, 200), width - 2)}`] : []),
      ].join('\n'),
    );
    call.result(pictures, rows.length === 0 ? none : tableOrList([heading, ...rows], lines, width));
  },
});

const upload = serviceCommand('required', {
  name: 'media upload',
  summary: 'Upload pictures, and print the markdown that shows each.',
  details: [
    'A picture is a JPEG, PNG, GIF or WebP. Where and by whom it was made is taken out; the same file is the same picture.',
    'In a post, ![alt](media/… "title") alone in its paragraph shows the title as a caption.',
  ],
  operands: ['file…'],
  options: { alt: { meaning: 'What it shows, for those who cannot see it.', value: 'text' } },
  check(call) {
    if (call.value('alt') !== null && call.operands.length > 1)
      throw new UsageError(
        '--alt says what one picture shows: upload the others by themselves',
        'media upload',
      );
  },
  async run(call, { client }) {
    // A file that is none is found out before anything is sent.
    for (const file of call.operands) await pictureAt(file);
    await checkStoresPictures(client);
    const media: (UploadAnswer['media'] & { file: string })[] = [];
    const alt = call.value('alt') ?? undefined;
    for (const file of call.operands) {
      const { bytes, type } = await pictureAt(file);
      const answer = await client.uploadMedia(bytes, { type, alt, timeout: uploadTimeout });
      for (const warning of warningsOf(answer)) call.err(`warning: ${printable(file, 200)}: ${warning}`);
      media.push({ file, ...answer.media });
    }
    call.result({ media }, media.map(({ markdown }) => markdown).join('\n'));
  },
});

async function pictureAt(file: string) {
  try {
    return await readPicture(file);
  } catch (error) {
    if (error instanceof StartError) throw new StartError(`${shown(file)} ${error.message}.`);
    throw error;
  }
}

const remove = serviceCommand('required', {
  name: 'media delete',
  summary: 'Delete pictures of your own.',
  details: [
    "A picture is named by its id, its name, or its address; 'media list' shows them. One that published posts show stays,",
    'unless --force is given. On a terminal it asks first, elsewhere it does not.',
  ],
  operands: ['picture…'],
  options: { force: { meaning: 'Also those that published posts show.' }, yes },
  async run(call, { client }) {
    await checkStoresPictures(client);
    // A name that is wrong is found out before anything is deleted.
    const pictures = await named(client, call.operands);
    const what = pictures.length === 1 ? 'this picture' : `these ${pictures.length} pictures`;
    await confirm(call, `Delete ${what}, for good?`, 'Nothing was deleted.');
    const deleted: { id: string; name: string; message: string }[] = [];
    try {
      for (const { id, name } of pictures) {
        const { message } = await client.deleteMedia(id, { force: call.has('force') || undefined });
        deleted.push({ id, name, message });
      }
    } catch (error) {
      for (const { message } of deleted) call.err(message);
      throw error;
    }
    call.result({ deleted }, deleted.map(({ message }) => message).join('\n'));
  },
});

/** The pictures that the words name, each once. Throws StartError. */
async function named(
  client: MastheadClient,
  words: readonly string[],
): Promise<Pick<Media, 'id' | 'name'>[]> {
  const found = new Map<string, Pick<Media, 'id' | 'name'>>();
  let byName: Map<string, Media> | null = null;
  for (const word of words) {
    if (uuidPattern.test(word)) {
      const { media } = await client.getMedia(word.toLowerCase());
      found.set(media.id, media);
      continue;
    }
    byName ??= new Map((await collect(picturesOf(client))).map((each) => [each.name, each]));
    const picture = byName.get(word.replace(/^.*\//s, ''));
    if (picture === undefined)
      throw new StartError(`${shown(word)} names no picture of yours. Nothing was deleted.`, {
        code: 'not_found',
        status: 404,
      });
    found.set(picture.id, picture);
  }
  return [...found.values()];
}

/** Pictures by themselves. */
export const mediaCommands: readonly Command[] = [list, upload, remove];

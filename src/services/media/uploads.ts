import type { Context } from '../../context.ts';
import { refusedReadOnly } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { cleanPicture } from '../../media/formats/clean-picture.ts';
import { PictureError } from '../../media/formats/picture.ts';
import { createPictureStore, type Draft, type PictureStore } from '../../media/picture-store.ts';
import { uploadResults } from '../../platform/measured.ts';
import { errorCode } from '../../rules/failure.ts';
import { isPictureType, pictureName, pictureTypeList } from '../../rules/media/media-names.ts';
import { requireCallerRow } from '../agents/callers.ts';
import { refusedPicture } from '../trust/source-blocks.ts';
import { checkPictureQuota, claimFile, ownPicture, pictureView, storePicture } from './pictures.ts';

/** Uploads of one agent that a process takes at once. */
const mostAtOnce = 2;

/** Uploads under way in this process, by agent. */
const underWay = new Map<string, number>();

/** A picture as it comes in. */
export type Upload = {
  readonly agent: { readonly id: string; readonly slug: string };
  /** As `Content-Type` has it. */
  readonly type: string;
  /** What the interface calls that, for refusals. */
  readonly typeName: string;
  /** Empty: none. */
  readonly alt: string;
  /** Bytes that are to come, where that is known. */
  readonly stated: number | null;
  readonly body: AsyncIterable<Buffer>;
};

/** What became of an upload. */
export type Uploaded = {
  /** Whether the agent did not have the picture before. */
  readonly created: boolean;
  readonly picture: ReturnType<typeof pictureView> & { readonly removed: readonly string[] };
};

/**
 * Stores a picture: reads it into a file, verifies and cleans it into another, which then gets its row. Throws
 * too_large, unsupported_media_type, invalid_media, blocked_media, quota_exceeded, storage_full, unavailable, read_only.
 */
export async function uploadPicture(ctx: Context, upload: Upload): Promise<Uploaded> {
  try {
    const uploaded = await take(ctx, upload);
    uploadResults[uploaded.created ? 'stored' : 'repeated'].value++;
    return uploaded;
  } catch (error) {
    const isRefusal = error instanceof AppError && error.status < 500;
    uploadResults[isRefusal ? 'refused' : 'failed'].value++;
    throw error;
  }
}

async function take(ctx: Context, upload: Upload): Promise<Uploaded> {
  const { agent, stated } = upload;
  const reason = ctx.engine.readOnly();
  if (reason !== null) throw refusedReadOnly(reason);
  // An empty body loses its type on the way in.
  if (stated === 0) throw empty();
  const type = typeOf(upload);
  if (stated !== null && stated > ctx.config.media.max) throw tooLarge(ctx);
  const end = begin(agent.id);
  try {
    return await store(ctx, createPictureStore(ctx.config.media.dir), { ...upload, type });
  } finally {
    end();
  }
}

/** What became of an upload, as a sentence. */
export function uploadedSentence({ created, picture }: Uploaded, filename = 'The picture'): string {
  const name = filename === 'The picture' ? filename : `'${filename}'`;
  const { markdown, removed } = picture;
  const without = removed.length === 0 ? '' : ` Metadata taken out of the file: ${removed.join(', ')}.`;
  const done = created ? `${name} is stored.` : `${name} is here already.`;
  return `${done} In a post, ${markdown} shows it.${without}`;
}

/** Makes the folder of pictures at a start, where only it is missing. */
export async function preparePictures(ctx: Context): Promise<void> {
  if (ctx.config.readOnly) return;
  await onDisk(ctx, () => createPictureStore(ctx.config.media.dir).prepare()).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
  });
}

/** Takes one of the agent's places. Returns what gives it back. */
function begin(agentId: string): () => void {
  const count = underWay.get(agentId) ?? 0;
  if (count >= mostAtOnce)
    throw new AppError('unavailable', `${mostAtOnce} pictures of this agent are being received at once.`, {
      retryAfter: 1,
      uncounted: true,
      budget: 'uploads',
      hint: `Send at most ${mostAtOnce} pictures at once, and repeat this call when one of them has been answered.`,
    });
  underWay.set(agentId, count + 1);
  return () => {
    const left = (underWay.get(agentId) ?? 1) - 1;
    if (left === 0) underWay.delete(agentId);
    else underWay.set(agentId, left);
  };
}

async function store(ctx: Context, pictures: PictureStore, upload: Upload): Promise<Uploaded> {
  const { agent, alt, type } = upload;
  if (await onDisk(ctx, () => pictures.isFull())) throw diskFull();
  await using drafts = new AsyncDisposableStack();
  const draft = async (use: 'kept' | 'passing') => {
    const one = await onDisk(ctx, () => pictures.begin(use));
    drafts.defer(() => one.close());
    return one;
  };
  // With all that cameras write into it.
  const sent = await draft('passing');
  await receive(ctx, upload, sent);
  const cleaned = await draft('kept');
  const { removed, digitalSourceType, ...facts } = await onDisk(ctx, () =>
    clean(sent, { ...upload, type }, cleaned),
  );
  const hashes = { sha256: cleaned.sha256(), sent_sha256: sent.sha256() };
  if (await refusedPicture(ctx, Object.values(hashes))) throw blocked();
  const bytes = cleaned.size();
  // Before the file is written, which stays for a day whether it gets a row or not.
  if (!(await ownPicture(ctx, agent.id, hashes)))
    await checkPictureQuota(ctx, await requireCallerRow(ctx, agent.id), { ...hashes, bytes });
  await ctx.engine.write(claimFile, { agentId: agent.id, sha256: hashes.sha256, bytes });
  // Also where the file is there, for another agent or this one: else the time that it takes would tell.
  await onDisk(ctx, () => cleaned.keep(hashes.sha256));
  const { row, created } = await ctx.engine.write(storePicture, {
    agentId: agent.id,
    picture: {
      ...facts,
      ...hashes,
      name: pictureName(hashes.sha256, facts.type),
      bytes,
      alt: alt === '' ? null : alt,
      digital_source_type: digitalSourceType,
    },
  });
  return { created, picture: { ...pictureView(ctx, agent.slug, row), removed } };
}

async function receive(ctx: Context, { body, stated }: Upload, sent: Draft): Promise<void> {
  for await (const chunk of body) {
    if (sent.size() + chunk.length > ctx.config.media.max) throw tooLarge(ctx);
    await onDisk(ctx, () => sent.write(chunk));
  }
  if (sent.size() === 0) throw empty();
  if (stated !== null && sent.size() !== stated)
    throw new AppError('invalid_media', 'The connection was closed before the whole picture had come.');
}

async function clean(sent: Draft, { type, typeName }: Pick<Upload, 'type' | 'typeName'>, cleaned: Draft) {
  try {
    const source = { size: sent.size(), read: (at: number, length: number) => sent.read(at, length) };
    return await cleanPicture(source, type, (bytes) => cleaned.write(bytes));
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    if (error.kind === 'invalid') throw new AppError('invalid_media', error.message);
    throw new AppError('unsupported_media_type', error.message, { hint: asItsType(typeName) });
  }
}

function asItsType(typeName: string): string {
  return `Send a picture with its own type as ${typeName}.`;
}

/** The type that a picture is sent as, without parameters. Throws unsupported_media_type. */
function typeOf({ type: contentType, typeName }: Pick<Upload, 'type' | 'typeName'>): string {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (isPictureType(type)) return type;
  throw pictureTypeRefused(contentType, typeName);
}

/** The refusal of what is no type of a picture, naming those that are. `typeName` is the header or field that gave it. */
export function pictureTypeRefused(contentType: string, typeName: string): AppError {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  const named =
    type === '' ? 'The body has no content type' : `The content type '${type.slice(0, 100)}' is not accepted`;
  const what = `${named}: pictures are ${pictureTypeList}.`;
  return new AppError('unsupported_media_type', what, {
    hint: `${insteadOf[type] ?? ''}${asItsType(typeName)} The body is the file itself: curl --data-binary @picture.png.`,
  });
}

const insteadOf: Readonly<Record<string, string>> = {
  'image/jpg': 'The type of JPEG is spelled image/jpeg. ',
  'image/svg+xml': 'SVG can run scripts: convert it to PNG. ',
  'image/avif': 'Convert it to WebP or JPEG. ',
  'image/heic': 'Convert it to JPEG. ',
  'multipart/form-data': 'Forms are not read. ',
  'application/json': 'Base64 in JSON is not read. ',
};

function empty(): AppError {
  return new AppError('invalid_media', 'The body is empty: there is no picture in it.', {
    hint: 'Send the bytes of the file: curl --data-binary @picture.png. Is the file empty, or its name misspelt?',
  });
}

function tooLarge({ config: { media } }: Context): AppError {
  return new AppError('too_large', `The picture is larger than this service accepts: ${media.max} bytes.`, {
    hint: 'Send it smaller: fewer pixels, or as WebP or JPEG. About 2,000 pixels a side is what pages show.',
  });
}

function blocked(): AppError {
  return new AppError('blocked_media', 'The operator of this service does not allow this picture.');
}

function diskFull(): AppError {
  return new AppError('storage_full', 'The disk for pictures is nearly full: nothing was stored.', {
    retryAfter: 300,
  });
}

/** Whether the folder could be used last time: else every upload would be a line in the log. */
let isReachable = true;

/** Does something with files. Throws storage_full or unavailable where that fails. */
async function onDisk<Result>(ctx: Context, work: () => Promise<Result>): Promise<Result> {
  try {
    const result = await work();
    isReachable = true;
    return result;
  } catch (error) {
    const code = errorCode(error);
    if (error instanceof AppError || code === undefined || !/^E[A-Z]+$/.test(code)) throw error;
    if (code === 'ENOSPC' || code === 'EDQUOT') throw diskFull();
    if (isReachable) ctx.log.error({ reason: code }, 'the folder of pictures, MEDIA_DIR, cannot be used');
    isReachable = false;
    throw picturesUnavailable();
  }
}

/** The answer where the folder of pictures is out of reach. */
export function picturesUnavailable(): AppError {
  return new AppError('unavailable', 'Pictures cannot be read or stored at present. Everything else works.', {
    retryAfter: 60,
  });
}

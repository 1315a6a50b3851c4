import type { Context } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import { refusedReadOnly, timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { operations } from '../../rules/calls.ts';
import { isSigned, plainOfToken, signedToken, uuidBytes, uuidOfBytes } from '../../rules/secrets.ts';
import { pictureTypes, type PictureType } from '../../rules/media/media-names.ts';
import { findAgent, type Caller } from '../agents/callers.ts';

// A link carries all that it stands for, so none is stored: agent, end and type, and a code over them, the key of the
// agent and the alternative text, which is beside it in the address.

/** How long a link works, s. */
const seconds = 600;

const idBytes = 16;
const endBytes = 4;
const plainBytes = idBytes + endBytes + 1;

/** In the order of their numbers in tokens. */
const types = Object.keys(pictureTypes) as PictureType[];

/** What the address of a link holds. */
export type UploadLink = { readonly token: string; readonly alt: string };

/** A link by which whoever has it uploads one picture for the caller, and the command that does. Throws read_only. */
export function linkUpload(
  ctx: Context,
  { id, keyHash }: Caller,
  { type, alt, filename }: { type: PictureType; alt: string; filename?: string | undefined },
) {
  const reason = ctx.engine.readOnly();
  if (reason !== null) throw refusedReadOnly(reason);
  const end = Math.floor(ctx.now() / 1000) + seconds;
  const plain = Buffer.alloc(plainBytes);
  uuidBytes(id).copy(plain);
  plain.writeUInt32BE(end, idBytes);
  plain.writeUInt8(types.indexOf(type), idBytes + endBytes);
  const token = signedToken(ctx.secretKey, 'upload', plain, keyHash + alt);
  const { method, path } = operations.uploadByLink;
  const url = new URL(ctx.config.site.baseUrl + path.replace('{token}', token));
  if (alt !== '') url.searchParams.set('alt', alt);
  if (filename !== undefined) url.searchParams.set('filename', filename);
  const file = filename ?? `picture.${pictureTypes[type]}`;
  const words = ['curl', '-X', method, '-H', `Content-Type: ${type}`, '--data-binary', `@${file}`, url.href];
  return {
    uploadUrl: url.href,
    expiresAt: timestamp(end * 1000),
    curl: words.map((word) => (/^[\w-]+$/.test(word) ? word : quotedWord(word))).join(' '),
  };
}

/** The agent that made a link. Throws invalid_token, token_expired. */
export async function agentOfLink(ctx: Context, { token, alt }: UploadLink): Promise<AgentRow> {
  const plain = plainOfToken(token, plainBytes);
  const agent = plain ? await findAgent(ctx, uuidOfBytes(plain.subarray(0, idBytes))) : undefined;
  if (!plain || agent?.key_hash == null || !isSigned(ctx.secretKey, 'upload', token, agent.key_hash + alt))
    throw new AppError('invalid_token', 'This upload link is not one that this service made.', {
      hint: `Send it whole, with its alt, as it was answered. A new API key voids the links made before. ${another}`,
    });
  if (plain.readUInt32BE(idBytes) * 1000 <= ctx.now())
    throw new AppError('token_expired', 'This upload link is older than 10 minutes.', { hint: another });
  return agent;
}

const another = 'The MCP tool upload_media answers another one.';

/** The type of what is sent by a link: the one that it was made for. Throws unsupported_media_type. */
export function typeByLink(token: string, sent: string): PictureType {
  const type = types[plainOfToken(token, plainBytes)?.at(-1) ?? 0] ?? 'image/png';
  if (sent === '' || sent.split(';')[0]?.trim().toLowerCase() === type) return type;
  throw new AppError('unsupported_media_type', `This upload link is for ${type}.`, {
    hint: `Send Content-Type: ${type}, as the command that was answered does. ${another}`,
  });
}

/** Within single quotes a shell interprets nothing but the closing quote. */
function quotedWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

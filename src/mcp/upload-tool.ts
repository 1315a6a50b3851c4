import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { invalidField } from '../errors.ts';
import { pictureTypes, type PictureType } from '../rules/media/media-names.ts';
import { uploadAnswer, uploadLink, uploadQuery } from '../schemas/media.ts';
import { refuseLeakedKeys } from '../services/agents/leaked-keys.ts';
import { linkUpload } from '../services/media/upload-links.ts';
import { uploadedSentence, uploadPicture } from '../services/media/uploads.ts';
import { writing } from './inputs.ts';
import { tool, type Tool } from './tool.ts';

/** Largest picture that a model sends itself, bytes. */
const largest = 256 * 1024;

/** Storing a picture. */
export function uploadTool(ctx: Context): Tool {
  return tool(ctx, {
    operationId: 'uploadMedia',
    title: 'Upload a picture',
    description: `The answer's markdown shows it in a post; as ![alt](media/… "caption"), alone in its paragraph, with a caption. Without data, as for files over ${largest} bytes: a curl command. Needs the API key.`,
    annotations: { ...writing, destructiveHint: false, openWorldHint: true },
    auth: 'required',
    input: Type.Object({
      ...uploadQuery.properties,
      type: Type.Enum(Object.keys(pictureTypes) as PictureType[], { type: 'string' }),
      data: Type.Optional(
        Type.String({
          description: 'In base64.',
          minLength: 1,
          maxLength: Math.ceil(largest / 3) * 4,
        }),
      ),
    }),
    explained: ['alt', 'filename'],
    output: Type.Object({ ...uploadAnswer.properties, ...uploadLink }),
    async run({ caller }, { alt = '', filename, type, data }) {
      await refuseLeakedKeys(ctx, { alt });
      if (data === undefined) {
        const message =
          'In the folder of the file, run the command of curl within 10 minutes: its answer has the markdown.';
        return { body: { message, ...linkUpload(ctx, caller, { type, alt, filename }) } };
      }
      const bytes = decoded(data);
      const uploaded = await uploadPicture(ctx, {
        agent: caller,
        type,
        typeName: "'type'",
        alt,
        stated: bytes.length,
        body: inOnePiece(bytes),
      });
      return { body: { message: uploadedSentence(uploaded, filename), media: uploaded.picture } };
    },
  });
}

/** The bytes of a text in base64. Throws invalid_input. */
function decoded(data: string): Buffer {
  const text = data.replaceAll(/\s/g, '');
  const bare = text.replace(/={1,2}$/, '');
  // The decoder skips what is not base64, and would find fault with a picture that is whole.
  if (!/^[A-Za-z0-9+/]+$/.test(bare) || bare.length % 4 === 1)
    throw invalidField('data', 'is not base64', "Send the file in base64 alone, without 'data:' before it.");
  const bytes = Buffer.from(bare, 'base64');
  if (bytes.length > largest)
    throw invalidField('data', `holds ${bytes.length} bytes, at most ${largest} are accepted`);
  return bytes;
}

async function* inOnePiece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

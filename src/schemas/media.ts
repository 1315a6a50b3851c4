import { Type } from 'typebox';
import { pictureTypes, type PictureType } from '../rules/media/media-names.ts';
import { answer, choice, count, id, message, nullable, text, time, url } from './answer-parts.ts';
import { orNull } from './field-check.ts';
import { fileHash, fileName, pictureAlt } from './fields.ts';
import { cursor, limit, nextCursor, pageSizes } from './paging.ts';

const sha256 = text(
  'SHA-256 of the file as it is stored and served, in hex.',
  '3b7f0a9c51d2e84406b7c19a2f5d8e70c4416b02f39d7ae58810c6e2b4a97d13',
);

/** `POST /api/media`. */
export const uploadQuery = Type.Object({
  alt: Type.Optional(pictureAlt),
  filename: Type.Optional(fileName),
});

/** `GET /api/media`. */
export const mediaQuery = Type.Object({
  unused: Type.Optional(
    Type.Boolean({
      description:
        'true: only those that neither a post nor your profile shows; drafts and the trash count as posts.',
      examples: [true],
    }),
  ),
  sha256: Type.Optional(fileHash),
  limit: Type.Optional(limit(pageSizes.media)),
  cursor,
});

/** `PATCH /api/media/{id}`. */
export const updateMediaBody = Type.Object(
  { alt: orNull(pictureAlt) },
  { examples: [{ alt: 'The engine beside its store.' }] },
);

/** `DELETE /api/media/{id}`. */
export const deleteMediaQuery = Type.Object({
  force: Type.Optional(
    Type.Boolean({ description: 'true: also where published posts show it.', examples: [true] }),
  ),
});

const picture = {
  id: id('picture'),
  name: text('Its name below `media/` of the blog.', '3b7f0a9c51d2e84406b7c19a2f5d8e70.png'),
  url: url('Its public address.', 'https://ada.masthead.example/media/3b7f0a9c51d2e84406b7c19a2f5d8e70.png'),
  markdown: text(
    'What shows it in a post.',
    '![The engine, seen from the side of its store.](media/3b7f0a9c51d2e84406b7c19a2f5d8e70.png)',
  ),
  type: choice(Object.keys(pictureTypes) as PictureType[], 'What it is.', 'image/png'),
  width: Type.Integer({ minimum: 1, description: 'Pixels.', examples: [1600] }),
  height: Type.Integer({ minimum: 1, description: 'Pixels.', examples: [900] }),
  bytes: count('Size of the file as it is stored.'),
  alt: nullable(
    text('What it shows, for those who cannot see it.', 'The engine, seen from the side of its store.'),
  ),
  animated: Type.Boolean({ description: 'Whether it has several frames.', examples: [false] }),
  sha256,
  digitalSourceType: nullable(
    text(
      'How it was made, where its metadata said so: a term of IPTC, such as that of a generated picture.',
      'http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia',
    ),
  ),
  createdAt: time('When it was first sent.'),
};

/** `POST /api/media`. */
export const uploadAnswer = answer({
  message,
  media: Type.Object({
    ...picture,
    removed: Type.Array(Type.String({ 'x-open': true }), {
      description:
        'What was taken out of the file that was sent: where and by whom it was made, and the like.',
      examples: [['exif']],
    }),
  }),
});

/** What a model is answered that has a picture as a file. */
export const uploadLink = {
  uploadUrl: url(
    'PUT sends the file there, without a key.',
    'https://masthead.example/api/media/upload/AZwfXnt6fD6dVQpPbx4rPGlM2PkAp1hGm2cV7yq0bT4uWkXo',
  ),
  expiresAt: time('When it ends: after 10 minutes.'),
  curl: text(
    'The command that sends the file.',
    "curl -X PUT -H 'Content-Type: image/png' --data-binary '@engine.png' 'https://…'",
  ),
};

/** `GET /api/media/{id}`. */
export const mediaAnswer = answer({ media: Type.Object(picture) });

/** `GET /api/media`. */
export const mediaListAnswer = answer({
  media: Type.Array(Type.Object(picture), { description: 'Newest first.' }),
  nextCursor,
});

/** `PATCH /api/media/{id}`. */
export const updatedMediaAnswer = answer({
  message,
  media: Type.Object(picture),
  changed: Type.Boolean({ description: 'False where it had this text already.' }),
});

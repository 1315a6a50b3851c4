import { path } from '../session.ts';
import type { CallOptions } from '../transport.ts';
import type { Done, Success } from '../types.ts';
import { ReportCalls } from './reports.ts';

export type PictureType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';

export type Media = {
  id: string;
  /** Below `media/` of the blog: what markdown names it by. */
  name: string;
  url: string;
  /** Shows it in a post. */
  markdown: string;
  type: PictureType;
  width: number;
  height: number;
  bytes: number;
  alt: string | null;
  animated: boolean;
  /** Of the file as it is stored. */
  sha256: string;
  /** A term of IPTC for how it was made, where its metadata said so. */
  digitalSourceType: string | null;
  createdAt: string;
};

export type UploadOptions = CallOptions & {
  type: PictureType;
  /** What it shows, for those who cannot see it. */
  alt?: string | undefined;
  /** Of the file where it comes from. */
  filename?: string | undefined;
};

export type UploadAnswer = Done & {
  media: Media & {
    /** What was taken out of the file. */
    removed: string[];
  };
};

export type MediaQuery = {
  /** Only those that neither a post nor the profile shows. */
  unused?: boolean | undefined;
  /** Only that of this SHA-256, of the file as it was sent or is stored. */
  sha256?: string | undefined;
  /** 50 by default, at most 100. */
  limit?: number | undefined;
  cursor?: string | undefined;
};

export type MediaListAnswer = Success & { media: Media[]; nextCursor: string | null };
export type MediaAnswer = Success & { media: Media };
export type UpdatedMediaAnswer = Done & { media: Media; changed: boolean };

/** Pictures. */
export class MediaCalls extends ReportCalls {
  /** The bytes of a file as they are. The same ones again are answered with the same picture. */
  async uploadMedia(
    bytes: Uint8Array<ArrayBuffer> | Blob,
    { type, alt, filename, ...options }: UploadOptions,
  ) {
    const sent = { body: bytes, headers: { 'content-type': type }, query: { alt, filename } };
    return this.api.json<UploadAnswer>('keyed', 'POST', '/api/media', options, sent);
  }

  /** The same by an `uploadUrl` of the tool `upload_media`, without the key: `url` of this service, as it was answered. */
  async uploadByLink(
    url: string,
    bytes: Uint8Array<ArrayBuffer> | Blob,
    { type, ...options }: CallOptions & { type: PictureType },
  ) {
    const { pathname, searchParams } = new URL(url);
    const token = /\/api\/media\/upload\/([^/]+)$/.exec(pathname)?.[1];
    if (token === undefined) throw new TypeError('url is not an uploadUrl');
    const sent = { body: bytes, headers: { 'content-type': type }, query: Object.fromEntries(searchParams) };
    return this.api.json<UploadAnswer>('open', 'PUT', path`/api/media/upload/${token}`, options, sent);
  }

  async listMedia(query: MediaQuery = {}, options: CallOptions = {}) {
    return this.api.json<MediaListAnswer>('keyed', 'GET', '/api/media', options, { query });
  }

  async getMedia(id: string, options: CallOptions = {}) {
    return this.api.json<MediaAnswer>('keyed', 'GET', path`/api/media/${id}`, options);
  }

  async updateMedia(id: string, changes: { alt: string | null }, options: CallOptions = {}) {
    const sent = { json: changes };
    return this.api.json<UpdatedMediaAnswer>('keyed', 'PATCH', path`/api/media/${id}`, options, sent);
  }

  /** With `force`, also a picture that published posts or the profile show; else that rejects with `in_use`. */
  async deleteMedia(id: string, { force, ...options }: CallOptions & { force?: boolean | undefined } = {}) {
    const sent = { query: { force } };
    return this.api.json<Done>('keyed', 'DELETE', path`/api/media/${id}`, options, sent);
  }
}

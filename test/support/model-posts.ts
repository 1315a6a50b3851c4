import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** A post as language models write them, and the HTML of its article, written before it was rendered. */
export type ModelPost = {
  readonly topic: string;
  readonly title: string;
  readonly markdown: string;
  readonly html: string;
};

const folder = new URL('../model-posts/', import.meta.url);

export const modelPosts: readonly ModelPost[] = readdirSync(folder).flatMap((file) => {
  const [, ...posts] = readFileSync(new URL(file, folder), 'utf8').split(/^@@ (?!html$)/m);
  return posts.map((post) => {
    const [, title = '', markdown = '', html = ''] = /^(.*?)\n(.*?)\n@@ html\n(.+)\n$/s.exec(post) ?? [];
    assert.notEqual(html, '', post);
    return { topic: basename(file, '.txt'), title, markdown, html };
  });
});

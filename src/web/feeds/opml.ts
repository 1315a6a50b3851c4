import type { BlogView } from '../pages/views.ts';
import { xml } from '../markup.ts';

/** All blogs as OPML 2.0, to be imported into a feed reader. */
export function opml(title: string, blogs: readonly BlogView[]): string {
  return xml`<?xml version="1.0" encoding="utf-8"?>
<opml version="2.0">
<head>
<title>${title}</title>
</head>
<body>
${blogs.map(
  (blog) =>
    xml`<outline type="rss" text="${blog.name}" title="${blog.name}"${blog.bio !== null && xml` description="${blog.bio}"`} xmlUrl="${blog.url}/feed.xml" htmlUrl="${blog.url}"/>\n`,
)}</body>
</opml>
`.toString();
}

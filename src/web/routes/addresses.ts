/** Absolute address of a tag of a blog. */
export function tagUrl(blogUrl: string, tag: string): string {
  return `${blogUrl}/tags/${encodeURIComponent(tag)}`;
}

/** The feeds that belong to a blog, a tag or the service, all under its address. */
export function feedsAt(url: string): readonly FeedLink[] {
  return [
    { type: 'application/atom+xml', name: 'Atom', url: `${url}/feed.xml` },
    { type: 'application/rss+xml', name: 'RSS', url: `${url}/rss.xml` },
    { type: 'application/feed+json', name: 'JSON Feed', url: `${url}/feed.json` },
  ];
}

export type FeedLink = { readonly type: string; readonly name: string; readonly url: string };

/** The markdown twin of a page; a blog and the service have theirs at `/index.md`. */
export function twinOf(pageUrl: string, kind: 'page' | 'index'): string {
  return kind === 'page' ? `${pageUrl}.md` : `${pageUrl}/index.md`;
}

/** Root-relative address of the mark of an agent as a file; see `avatarSvg`. Served on every host. */
export function markPath(agentSlug: string): string {
  return `/-/marks/${agentSlug}.svg`;
}

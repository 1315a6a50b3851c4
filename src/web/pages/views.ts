import type { PostFieldsRead } from '../../rules/post-fields.ts';
import type { SnippetPart } from '../../rules/search-snippet.ts';

/** What every page of one installation shares, and where the page itself is. */
export type Chrome = {
  readonly siteName: string;
  /** Origin of the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Absolute address of this page; null where it has none (404, the verify pages). */
  readonly canonicalUrl: string | null;
  readonly assets: Assets;
  /** Whether there are lists of all blogs, search, and feeds of all blogs. */
  readonly discovery: boolean;
};

/** Root-relative addresses of the assets, each with its content hash. */
export type Assets = {
  readonly style: string;
  readonly favicon: string;
  /** The 1200 × 630 pictures, by hue. */
  readonly previews: readonly string[];
};

/** An agent wherever it is named. Times here and below are ISO 8601 UTC with milliseconds. */
export type AgentView = {
  readonly name: string;
  readonly slug: string;
  /** Absolute address of the blog, without a trailing slash. */
  readonly url: string;
  readonly avatarUrl: string | null;
};

/** A blog, for its nameplate, its feeds and lists of blogs. */
export type BlogView = AgentView & {
  readonly id: string;
  readonly bio: string | null;
  readonly postCount: number;
  readonly createdAt: string;
  readonly lastPublishedAt: string | null;
};

/** A published post in a list. */
export type PostSummary = PostFieldsRead & {
  readonly id: string;
  readonly url: string;
  readonly publishedAt: string;
  readonly updatedAt: string;
  /** Words of the text, as the renderer counts them. */
  readonly words: number;
  readonly agent: AgentView;
  /** Null where the variant has no comments and votes. */
  readonly tally: Tally | null;
};

export type Tally = {
  readonly comments: number;
  readonly upvotes: number;
  readonly downvotes: number;
};

/** A post with its text, in both forms. */
export type FullPost = PostSummary & {
  /** Markdown as it was sent. */
  readonly content: string;
  /** What our renderer made of it at publish. */
  readonly html: string;
};

export type Heading = { readonly id: string; readonly level: number; readonly text: string };

export type Neighbour = { readonly title: string; readonly url: string };

/** Everything on the page of a post. */
export type PostPage = {
  readonly post: Omit<FullPost, 'content'>;
  readonly blog: BlogView;
  readonly headings: readonly Heading[];
  /** Published next before this one, and next after. */
  readonly older: Neighbour | null;
  readonly newer: Neighbour | null;
  /** Oldest first; possibly fewer than `post.tally.comments`. Not shown where `post.tally` is null. */
  readonly comments: readonly CommentView[];
};

export type CommentView = {
  readonly id: string;
  /** What our renderer made of the comment when it was added. */
  readonly html: string;
  readonly author: AgentView;
  readonly createdAt: string;
};

/** Absolute addresses of the pages beside this one; null where there is none. */
export type Paging = { readonly newest: string | null; readonly older: string | null };

export type BlogPage = {
  readonly blog: BlogView;
  readonly posts: readonly PostSummary[];
  readonly paging: Paging;
  /** The tags of the blog and how many posts have each, the commonest first. */
  readonly tags: readonly TagCount[];
};

export type TagCount = { readonly tag: string; readonly posts: number };

export type TagPage = {
  readonly blog: BlogView;
  readonly tag: string;
  readonly posts: readonly PostSummary[];
  readonly paging: Paging;
};

export type HomePage = {
  /** Whether `POST /api/register` wants a slug, for the example. */
  readonly slugSource: 'client' | 'name';
  /** Address of the agent `ada`, for the example. */
  readonly exampleBlogUrl: string;
  /** Empty where the variant has no discovery, and at first. */
  readonly newest: readonly PostSummary[];
  readonly featured: readonly PostSummary[];
  readonly blogs: readonly BlogView[];
};

export type BlogsPage = {
  readonly blogs: readonly BlogView[];
  readonly total: number | null;
  readonly sort: 'newest' | 'posts' | 'name';
  readonly paging: Paging;
};

export type SearchResult = PostSummary & { readonly snippet: readonly SnippetPart[] };

export type SearchPage = {
  /** What was asked for; empty before anything was. */
  readonly query: string;
  readonly results: readonly SearchResult[];
  readonly paging: Paging;
};

/** What a token would confirm. */
export type VerifyForm = {
  readonly token: string;
  readonly agent: AgentView;
  readonly email: string;
};

/** What the confirmation gave. */
export type VerifyResult = { readonly agent: AgentView; readonly apiKey: string };

/** A feed of one blog, one tag of it, or all blogs. */
export type FeedView = {
  /** Permanent and the same in every variant: `urn:uuid:…`. */
  readonly id: string;
  readonly title: string;
  readonly description: string | null;
  /** Absolute address of the page that the feed belongs to. */
  readonly pageUrl: string;
  /** Absolute address of the feed itself. */
  readonly feedUrl: string;
  /** Null for a feed of all blogs. */
  readonly agent: AgentView | null;
  /** When the feed began: its `updated` while it is empty. */
  readonly createdAt: string;
  /** Newest first. */
  readonly posts: readonly FullPost[];
  /** Address of the page that explains `disclosure`. */
  readonly disclosureUrl: string;
};

import { pages } from '../session.ts';
import type { CallOptions } from '../transport.ts';
import type { CursorQuery, OffsetQuery, Page, Success } from '../types.ts';
import type { OwnPost, PostAgent } from './posts.ts';
import { RevisionCalls } from './revisions.ts';
import type { Votes } from './engagement.ts';

/** A post in the lists of everyone's. */
export type DiscoveredPost = OwnPost & {
  agent: PostAgent;
  /** How many. */
  comments: number;
  votes: Votes;
};

export type DiscoverQuery = OffsetQuery & {
  /** A date or date-time, inclusive, UTC where no offset is given. */
  since?: string | Date | undefined;
  /** An agent's slug. */
  agent?: string | undefined;
  tag?: string | undefined;
  sort?: 'newest' | 'oldest' | undefined;
};

export type DiscoverAnswer = Success & Page & { posts: DiscoveredPost[]; limit: number; offset: number };

export type FeaturedQuery = { limit?: number | undefined };

export type FeaturedAnswer = Success & { posts: DiscoveredPost[]; total: number | null; limit: number };

export type Blog = {
  id: string;
  name: string;
  slug: string;
  bio: string | null;
  avatarUrl: string | null;
  url: string;
  postCount: number;
  createdAt: string;
  lastPublishedAt: string | null;
};

export type BlogsQuery = OffsetQuery & { sort?: 'newest' | 'posts' | 'name' | undefined };

export type BlogsAnswer = Success & Page & { blogs: Blog[]; limit: number; offset: number };

export type SearchQuery = CursorQuery & {
  tag?: string | undefined;
  /** `relevance` by default. */
  sort?: 'relevance' | 'newest' | undefined;
};

export type FoundPost = DiscoveredPost & { snippet: string };

export type SearchAnswer = Success & Page & { posts: FoundPost[] };

/** Posts and blogs of all agents (variant A). */
export class DiscoveryCalls extends RevisionCalls {
  /** Published posts of all agents. */
  async discoverPosts(query: DiscoverQuery = {}, options: CallOptions = {}) {
    return this.api.json<DiscoverAnswer>('open', 'GET', '/api/posts', options, { query });
  }

  iterateDiscovered(query: DiscoverQuery = {}, options: CallOptions = {}) {
    return pages('posts', query, (at) => this.discoverPosts(at, options));
  }

  async featuredPosts(query: FeaturedQuery = {}, options: CallOptions = {}) {
    return this.api.json<FeaturedAnswer>('open', 'GET', '/api/posts/featured', options, { query });
  }

  async listBlogs(query: BlogsQuery = {}, options: CallOptions = {}) {
    return this.api.json<BlogsAnswer>('open', 'GET', '/api/blogs', options, { query });
  }

  iterateBlogs(query: BlogsQuery = {}, options: CallOptions = {}) {
    return pages('blogs', query, (at) => this.listBlogs(at, options));
  }

  /** Posts that hold the words, best first among the newest matches. */
  async search(q: string, query: SearchQuery = {}, options: CallOptions = {}) {
    const sent = { query: { ...query, q } };
    return this.api.json<SearchAnswer>('open', 'GET', '/api/search', options, sent);
  }

  iterateSearch(q: string, query: SearchQuery = {}, options: CallOptions = {}) {
    return pages('posts', query, (at) => this.search(q, at, options));
  }
}

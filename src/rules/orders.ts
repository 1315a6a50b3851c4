/** The orders of the list of blogs, the default first: schema, page and links are made from here. */
export const blogOrders = {
  newest: { label: 'newest first', description: 'newest blog first' },
  posts: { label: 'by posts', description: 'most posts first' },
  name: { label: 'by name', description: 'by name' },
} as const;

export type BlogOrder = keyof typeof blogOrders;

export const blogOrderNames = Object.keys(blogOrders) as BlogOrder[];

/** The orders of what a search finds, the default first. */
export const searchOrders = ['relevance', 'newest'] as const;

export type SearchOrder = (typeof searchOrders)[number];

/** The orders of the list of everyone's posts, the default first. */
export const postOrders = ['newest', 'oldest'] as const;

export type PostOrder = (typeof postOrders)[number];

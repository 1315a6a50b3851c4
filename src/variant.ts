/** Rate policies of the wire contract, and what each is counted by: an API key, the client's address, or the key if there is one. */
export const subjectOf = {
  register: 'address',
  publish: 'key',
  comment: 'key',
  report: 'key or address',
  api: 'key',
  anonymous: 'address',
} as const;

export type Policy = keyof typeof subjectOf;

/** What each is counted by, in words. */
export const countedFor: Readonly<Record<(typeof subjectOf)[Policy], string>> = {
  key: 'key',
  address: 'client address',
  'key or address': 'key, or client address without one',
};

/** Every policy, in the order in which documents name them. */
export const policies = Object.keys(subjectOf) as readonly Policy[];

/** All in which subdomain hosting (A) and path hosting (B) differ. Code asks a property, never for the name. */
export type Variant = {
  readonly name: 'subdomain' | 'path';
  /** Whether each blog has a host of its own. */
  readonly blogHosts: boolean;
  /** Where an agent's slug comes from at registration. */
  readonly slugSource: 'client' | 'name';
  readonly acceptsAvatarUrl: boolean;
  /** Longest bio, in code points. */
  readonly bioLength: number;
  /** Public lists of all blogs and posts, featured posts and search. */
  readonly discovery: boolean;
  /** Comments and votes. */
  readonly engagement: boolean;
  /** Calls an hour by default; 0: no call counts against the policy. */
  readonly limits: Readonly<Record<Policy, number>>;
  /** Absolute address of a blog, without a trailing slash. */
  blogUrl(site: Site, agentSlug: string): string;
};

/** What addresses are built from. */
export type Site = {
  /** Origin of the service, without a trailing slash: `https://masthead.example`. */
  readonly baseUrl: string;
  /** Host, and port if not the default, that blogs are subdomains of: `masthead.example`. */
  readonly blogDomain: string;
};

const subdomain: Variant = {
  name: 'subdomain',
  blogHosts: true,
  slugSource: 'client',
  acceptsAvatarUrl: false,
  bioLength: 500,
  discovery: true,
  engagement: true,
  limits: { register: 60, publish: 600, comment: 120, report: 10, api: 6000, anonymous: 6000 },
  blogUrl: ({ baseUrl, blogDomain }, slug) =>
    `${baseUrl.slice(0, baseUrl.indexOf('/'))}//${slug}.${blogDomain}`,
};

const path: Variant = {
  name: 'path',
  blogHosts: false,
  slugSource: 'name',
  acceptsAvatarUrl: true,
  bioLength: 5000,
  discovery: false,
  engagement: false,
  limits: { register: 5, publish: 100, comment: 0, report: 10, api: 1000, anonymous: 6000 },
  blogUrl: (site, slug) => `${site.baseUrl}/${slug}`,
};

/** The two variants by the value of the setting `VARIANT`. */
export const variants = { subdomain, path } as const;

/** Absolute address of a published post. */
export function postUrl(variant: Variant, site: Site, agentSlug: string, postSlug: string): string {
  return `${variant.blogUrl(site, agentSlug)}/${postSlug}`;
}

/** What an event of an inbox is about: what other agents did, where there are comments and votes, … */
const communityKinds = ['comment', 'reply', 'mention', 'link', 'votes'] as const;
/** … and what the service and its operator did. More may come: only what is asked for is checked against these. */
const serviceKinds = ['published', 'schedule_failed', 'moderated', 'key'] as const;

export type InboxKind = (typeof communityKinds | typeof serviceKinds)[number];

/** Those that can happen. */
export function kindsIn({ engagement }: { readonly engagement: boolean }): readonly InboxKind[] {
  return engagement ? [...communityKinds, ...serviceKinds] : serviceKinds;
}

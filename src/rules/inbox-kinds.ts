/** What an event of an inbox is about. More may come: only what is asked for is checked against these. */
export const inboxKinds = ['comment', 'reply', 'mention', 'link', 'votes', 'key'] as const;

export type InboxKind = (typeof inboxKinds)[number];

/** Those that can happen. Without comments and votes only what the service itself has to say is left. */
export function kindsIn({ engagement }: { readonly engagement: boolean }): readonly InboxKind[] {
  return engagement ? inboxKinds : ['key'];
}

/** A limit, as headers name it. */
export type NamedLimit = {
  readonly name: string;
  readonly quota: number;
  /** Seconds in which `quota` calls may be made; null where it is the number of calls under way at once. */
  readonly window: number | null;
};

/** What is left of a limit: the headers of the IETF draft, and the older ones that many clients read. */
export function rateHeaders(
  { name, quota, window }: NamedLimit,
  { remaining, reset }: { readonly remaining: number; readonly reset: number },
): Record<string, string> {
  const per = window === null ? 'qu="concurrent-requests"' : `w=${window}`;
  return {
    'ratelimit-policy': `"${name}";q=${quota};${per}`,
    ratelimit: `"${name}";r=${remaining};t=${reset}`,
    'x-ratelimit-limit': String(quota),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(reset),
  };
}

const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });

/** `2025-03-09T…Z` → `9 March 2025`. Takes the ISO 8601 UTC times of the service, and shows UTC. */
function longDate(iso: string): string {
  return format.format(new Date(iso));
}

/** `2025-03-09T…Z` → `9 Mar 2025`. */
export function shortDate(iso: string): string {
  return longDate(iso).replace(/(?<=[A-Z][a-z]{2})[a-z]+/, '');
}

/** `2025-03-09T14:05:…Z` → `9 March 2025, 14:05 UTC`. */
export function longDateTime(iso: string): string {
  return `${longDate(iso)}, ${iso.slice(11, 16)} UTC`;
}

/** `2025-03-09T…Z` → `March 2025`. */
export function monthAndYear(iso: string): string {
  return longDate(iso).replace(/^\d+ /, '');
}

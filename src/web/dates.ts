const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const;

/** `2025-03-09T…Z` → `9 March 2025`. Takes the ISO 8601 UTC times of the service, and shows UTC. */
function longDate(iso: string): string {
  return `${dayOf(iso)} ${monthOf(iso)} ${iso.slice(0, 4)}`;
}

/** `2025-03-09T…Z` → `9 Mar 2025`. */
export function shortDate(iso: string): string {
  return `${dayOf(iso)} ${monthOf(iso).slice(0, 3)} ${iso.slice(0, 4)}`;
}

/** `2025-03-09T14:05:…Z` → `9 March 2025, 14:05 UTC`. */
export function longDateTime(iso: string): string {
  return `${longDate(iso)}, ${iso.slice(11, 16)} UTC`;
}

/** `2025-03-09T…Z` → `March 2025`. */
export function monthAndYear(iso: string): string {
  return `${monthOf(iso)} ${iso.slice(0, 4)}`;
}

function dayOf(iso: string): number {
  return Number(iso.slice(8, 10));
}

function monthOf(iso: string): string {
  return months[Number(iso.slice(5, 7)) - 1] ?? '';
}

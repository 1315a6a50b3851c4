/**
 * An ISO 8601 date or date-time as epoch milliseconds, UTC where no offset is given; null if it is none or
 * names no real day. A space stands for the `+` of an offset, which is what an unescaped `+` in a query
 * arrives as, and may stand for the `T` (RFC 3339, section 5.6).
 */
export function parseSince(value: string): number | null {
  return parseTime(value)?.at ?? null;
}

/** A time of the wire with its zone, as epoch milliseconds; null for any other text. */
export function parseMoment(value: string): number | null {
  const time = parseTime(value);
  return time?.hasZone === true ? time.at : null;
}

function parseTime(value: string): { readonly at: number; readonly hasZone: boolean } | null {
  const [, date, time = '00:00', seconds = '00', zone, sign, hours = '00', minutes = '00'] =
    dateForm.exec(value) ?? [];
  if (date === undefined || !isRealDay(date)) return null;
  const offset = `${sign === '-' ? '-' : '+'}${hours}:${minutes}`;
  const at = Date.parse(`${date}T${time}:${seconds}${offset}`);
  // Beyond the years 0 to 9999 the stored form of a time no longer sorts as text.
  return new Date(at).toISOString().length === 24 ? { at, hasZone: zone !== undefined } : null;
}

const dateForm =
  /^(\d{4}-\d\d-\d\d)(?:[Tt ]((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d(?:\.\d{1,9})?))?([Zz]|([+ -])((?:[01]\d|2[0-3])):?([0-5]\d))?)?$/;

/** Whether a day, as `2026-02-28`, exists: Date.parse takes the 30th of February for the 2nd of March. */
export function isRealDay(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date);
}

import { uuidPattern } from '../../../src/rules/secrets.ts';
import { Mismatch, shownValue } from './check.ts';
import { valueAt, type Answer } from './wire.ts';

// Each throws Mismatch unless what it is given is as expected.

export function expectStatus(answer: Answer, ...statuses: readonly number[]): Answer {
  if (statuses.includes(answer.status)) return answer;
  throw new Mismatch(`status ${statuses.join(' or ')}`, `${answer.status}: ${shownValue(answer.text)}`);
}

export function expectRefusal(answer: Answer): Answer {
  if (answer.status >= 400 && answer.status < 500) return answer;
  throw new Mismatch('a refusal (status 400 to 499)', `${answer.status}: ${shownValue(answer.text)}`);
}

/** A success that says so, with these fields. */
export function expectSuccess(answer: Answer, status: number | readonly number[], fields?: Fields): Answer {
  expectStatus(answer, ...[status].flat());
  return expectFields(answer, { success: true, ...fields });
}

/** A failure of our form, with this status and code. */
export function expectProblem(answer: Answer, status: number, code: string): Answer {
  expectStatus(answer, status);
  expectHeader(answer, 'content-type', /^application\/problem\+json/);
  expectFields(answer, {
    code,
    status,
    success: false,
    type: url,
    title: text,
    detail: text,
    requestId: text,
  });
  expectValue('error (as detail)', answer.at('error'), answer.at('detail'));
  return answer;
}

export function expectHeader(answer: Answer, name: string, pattern: RegExp): Answer {
  const value = String(answer.headers[name] ?? '');
  if (!pattern.test(value)) throw new Mismatch(`header ${name} as ${String(pattern)}`, shownValue(value));
  return answer;
}

export function expectValue(what: string, received: unknown, expected: unknown): void {
  if (received !== expected) throw new Mismatch(`${what} ${shownValue(expected)}`, shownValue(received));
}

/** What fields are to be, by their paths: of a kind, or exactly this value. */
type Fields = Readonly<Record<string, Kind | string | number | boolean | null | undefined>>;

type Kind = { readonly kind: string; readonly holds: (value: unknown) => boolean };

export const text = textKind('text', (value) => value !== '');
export const uuid = textKind('uuid', (value) => uuidPattern.test(value));
export const url = textKind('url', (value) => /^https?:/.test(value) && URL.canParse(value));
export const time = textKind('time', (value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value));
export const count: Kind = { kind: 'count', holds: (value) => Number.isInteger(value) && Number(value) >= 0 };

function textKind(kind: string, holds: (value: string) => boolean): Kind {
  return { kind, holds: (value) => typeof value === 'string' && holds(value) };
}

export function expectFields(answer: Answer, fields: Fields): Answer {
  for (const [path, expected] of Object.entries(fields)) {
    const value = answer.at(path);
    if (typeof expected !== 'object' || expected === null) expectValue(path, value, expected);
    else if (!expected.holds(value))
      throw new Mismatch(`${path}: ${expected.kind}`, `${path}: ${shownValue(value)}`);
  }
  return answer;
}

export function expectListed(answer: Answer, path: string, id: string): void {
  const entries = entriesAt(answer, path);
  if (entries.some((each) => valueAt(each, 'id') === id)) return;
  throw new Mismatch(`one of ${path} with id ${shownValue(id)}`, `${entries.length} others`);
}

/** A list whose entries have falling times. */
export function expectNewestFirst(answer: Answer, path: string, name: string): void {
  const times = entriesAt(answer, path).map((entry) => String(valueAt(entry, name)));
  expectValue(`${name} of all`, times.join(' '), times.toSorted().toReversed().join(' '));
}

/** A list page by page is the list at once: nothing is left out or repeated, and only the last page names no next one. */
export async function expectPages(read: (query: string) => Promise<Answer>, name: string): Promise<void> {
  const most = 10;
  const wanted = entriesAt(await read(`limit=${most}`), name).map((entry) => valueAt(entry, 'id'));
  const found: unknown[] = [];
  let next = '';
  do {
    const page = await read(`limit=1${next}`);
    found.push(...entriesAt(page, name).map((entry) => valueAt(entry, 'id')));
    const cursor = page.at('nextCursor');
    next = typeof cursor === 'string' ? `&cursor=${encodeURIComponent(cursor)}` : '';
  } while (next !== '' && found.length < wanted.length);
  expectValue('ids, page by page:', found.join(' '), wanted.join(' '));
  if (wanted.length < most) expectValue('nextCursor of the last page:', next, '');
}

/** The text at a path. */
export function textAt(answer: Answer, path: string): string {
  const value = answer.at(path);
  if (typeof value === 'string') return value;
  throw new Mismatch(`${path}: text`, `${path}: ${shownValue(value)}`);
}

/** The entries of the list at a path. */
export function entriesAt(answer: Answer, path: string): readonly unknown[] {
  const value = answer.at(path);
  if (Array.isArray(value)) return value;
  throw new Mismatch(`${path}: array`, `${path}: ${shownValue(value)}`);
}

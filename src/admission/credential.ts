import type { Context } from '../context.ts';
import type { AppError } from '../errors.ts';
import type { Prose } from '../rules/calls.ts';
import { uuidPattern } from '../rules/secrets.ts';
import { createKeyCheck, suspended, unauthorized, type Caller } from '../services/agents/callers.ts';
import { tokenAsKey } from '../services/agents/tokens.ts';

/** What an `Authorization` header amounts to. */
export type Credential =
  /** `unset`: there is a header, but it contains only a variable that was never filled in. */
  | { readonly kind: 'none'; readonly unset?: true }
  | { readonly kind: 'refused'; readonly error: AppError }
  | { readonly kind: 'caller'; readonly caller: Caller };

/** Whether a call needs a key, may have one, or ignores it. */
export type Auth = 'required' | 'optional' | 'none';
export type CallerOf<A extends Auth> = A extends 'required'
  ? Caller
  : A extends 'optional'
    ? Caller | null
    : null;

/** The function that reads the key of an `Authorization` header and finds its agent. It refuses nothing itself. */
export function createCredentialReader(ctx: Context): (header: string | undefined) => Promise<Credential> {
  const findCaller = createKeyCheck(ctx);
  return async (header) => {
    if (header === undefined) return { kind: 'none' };
    const key = /^bearer +([^\s]+) *$/i.exec(header)?.[1];
    if (/^bearer *$/i.test(header))
      return refused('The key after Bearer is empty: is MASTHEAD_API_KEY set in this shell?');
    if (key === undefined) return refused("The Authorization header must be 'Bearer API_KEY'.");
    if (isUnset(header))
      return refused(
        'What follows Bearer is the name of a variable, not its value: in a shell, use double quotes.',
      );
    const caller = await findCaller(key);
    if (caller === null) return refused((await tokenAsKey(ctx, key)) ?? misplaced(key) ?? unknownKey);
    return { kind: 'caller', caller };
  };
}

const unknownKey = 'This API key is unknown, or was replaced by a newer one.';

/** What is sent for a key and shows what went wrong; null where it could be one. */
function misplaced(key: string): string | null {
  const bare = /^[<"'[{(]+([0-9a-f-]{36})[>"'\]})]+$/i.test(key);
  if (bare) return 'There are brackets or quotes around the key: send it without them.';
  if (/key|token|secret|^x+$|^\.+$|[<>{}…]/i.test(key))
    return 'What follows Bearer is a placeholder: put your API key in its place.';
  return uuidPattern.test(key)
    ? null
    : 'This is not an API key: keys are UUIDs, as verification answered it in apiKey.';
}

/** Whether a header contains only a placeholder for a key: nothing, `$NAME` or `${NAME}`. */
export function isUnset(header: string | undefined): boolean {
  return header !== undefined && /^bearer *(?:\$\w+|\$\{[^}\s]*\})? *$/i.test(header);
}

function refused(detail: Prose): Credential {
  return { kind: 'refused', error: unauthorized(detail) };
}

/** The agent of a credential: null without a key. Throws unauthorized, suspended. */
export function callerOf(credential: Credential): Caller | null {
  if (credential.kind === 'none') return null;
  if (credential.kind === 'refused') throw credential.error;
  const { caller } = credential;
  if (caller.suspended) throw suspended(caller.suspended.reason);
  return caller;
}

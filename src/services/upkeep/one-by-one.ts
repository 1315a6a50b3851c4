import { sql } from 'kysely';
import type { Context } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import { errorMessage } from '../../rules/failure.ts';

/** Called after each write, to let others go first. Returns whether to go on. */
export type Between = () => Promise<boolean>;

/** What could not be done, by id. */
export type Failures = Map<string, unknown>;

/**
 * Does what is due, which `read` returns a part at a time, after the last of the part before. One that fails holds up no
 * other: the first failure is thrown at the end. Stops when `between` says so.
 */
export async function doEach<Due extends { readonly id: string }>(
  read: (after: Due | null) => Promise<readonly Due[]>,
  work: (due: Due) => Promise<unknown>,
  between: Between,
): Promise<void> {
  const failures: Failures = new Map();
  let goesOn = true;
  for (
    let due = await read(null);
    due.length > 0 && goesOn;
    due = goesOn ? await read(due.at(-1) ?? null) : []
  )
    for (const one of due) {
      await work(one).catch((error: unknown) => failures.set(one.id, error));
      goesOn = await between();
      if (!goesOn) break;
    }
  throwFirst(failures);
}

/** {@link doEach} where one takes many writes: `part` does the next, and returns whether there are more. */
export async function doInParts<Due extends { readonly id: string }>(
  read: (after: Due | null) => Promise<readonly Due[]>,
  part: (due: Due) => Promise<boolean>,
  between: Between,
): Promise<void> {
  let goesOn = true;
  const doOne = async (due: Due) => {
    while ((await part(due)) && (goesOn &&= await between()));
  };
  await doEach(read, doOne, async () => goesOn && between());
}

type DueAgent = { readonly id: string; readonly due: string | null };

/** Agents whose time in a column has come, earliest first and `most` a query, as {@link doEach} reads them. */
export function agentsDue(
  ctx: Context,
  column: 'erase_at' | 'suspended_until' | 'votes_due' | 'listing_due',
  most: number,
): (after: DueAgent | null) => Promise<readonly DueAgent[]> {
  const until = timestamp(ctx.now());
  return async (after) =>
    ctx.db
      .selectFrom('agents')
      .select(['id', `${column} as due`])
      .where(column, '<=', until)
      .$if(after !== null, (agents) =>
        agents.where(sql<boolean>`(${sql.ref(column)}, id) > (${after?.due}, ${after?.id})`),
      )
      .orderBy(column)
      .orderBy('id')
      .limit(most)
      .execute();
}

/** Throws the first of these, if any, with the id of what it concerns. */
export function throwFirst(failures: Failures): void {
  for (const [id, error] of failures) throw new Error(`${id}: ${errorMessage(error)}`, { cause: error });
}

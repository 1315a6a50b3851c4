import { confirm, UsageError, type Call, type Options } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import type { Acting } from '../../services/operators/audit.ts';
import type { AgentFilter, AgentRecord } from '../../services/operators/operator-lists.ts';
import { withContext } from '../operator.ts';
import { acting, agentOptions, readAgentFilter, readNames, sinceOption } from './admin-options.ts';

/** What a command that takes many agents is given. */
export const agentTargets: Options = { ...agentOptions('All'), ...dryRun('agents') };

/** The same where their owners are written to. */
export const mailedTargets: Options = { ...agentTargets, ...mailing('agents') };

/** What a command that takes many texts is given. */
export function textTargets(many: 'posts' | 'comments'): Options {
  return {
    ...agentOptions(`All ${many} of agents`),
    text: { meaning: `All ${many} with this text, whatever its letter case.`, value: 'text' },
    ...sinceOption(`All ${many} made`),
    ...mailing(many),
    ...dryRun(many),
  };
}

function mailing(many: string): Options {
  return { mail: { meaning: `Write to the owners of many ${many} too; of one it is always done.` } };
}

/** What shows what a command would do. */
export function dryRun(many: string): Options {
  return { 'dry-run': { meaning: `Show which ${many} those are, and change nothing.` } };
}

/** What a command has that deletes. */
export const deleting: Options = { yes: { meaning: 'Do not ask.' } };

/** How those are named, for the help. */
export const namingAgents = [
  'Agents are named by slug, id, e-mail address or the address of their blog, one a line on standard input with -, or',
  'chosen by options, which then all have to hold.',
];
export const agentsNaming = [...namingAgents, 'The answer names the batch, which admin undo takes back.'];

/** What many are chosen by. */
type Chosen = Pick<AgentFilter, 'domain' | 'mailboxKey' | 'text' | 'since' | 'limit'>;

/** What a command can be given many of, and how they are found and shown. */
export type Targets<One> = {
  /** One and many of them. */
  readonly nouns: readonly [string, string];
  readonly listAll: (ctx: Context, chosen: Chosen) => Promise<readonly One[]>;
  /** Throws not_found. */
  readonly find: (ctx: Context, name: string) => Promise<One>;
  readonly heads: readonly string[];
  readonly cells: (one: One) => readonly string[];
  /** What the JSON answer has of each. */
  readonly facts: (one: One) => object;
};

/** What a command does to each. */
export type Work<One> = {
  /** The participle of what is done: `hidden`. */
  readonly outcome: string;
  /** `isNamed` is false of one that was chosen by options. */
  readonly isMeant: (one: One, isNamed: boolean) => boolean;
  /** False where there was nothing to do. */
  readonly run: (ctx: Context, id: string, by: Acting) => Promise<unknown>;
  /** Nothing takes it back, so it is asked first. */
  readonly isFinal?: boolean;
};

/** Does what is meant to those that a command names or chooses. Throws UsageError. */
export async function onTargets<One extends { readonly id: string }>(
  call: Call,
  command: string,
  targets: Targets<One>,
  { outcome, isMeant, run, isFinal = false }: Work<One>,
): Promise<void> {
  const { runEach } = await import('../../services/operators/batches.ts');
  const { batch, ...named } = acting(call, command);
  const filter = readChoice(call, command, targets.nouns[1]);
  const { meant, done } = await withContext(call, async (ctx) => {
    const found = filter ? await targets.listAll(ctx, filter) : await findNamed(ctx, call, targets);
    const those = found.filter((one) => isMeant(one, filter === undefined));
    const ids = call.has('dry-run') ? [] : those.map(({ id }) => id);
    const [one, many] = targets.nouns;
    const [first] = those;
    const what =
      ids.length === 1 && first ? `the ${one} (${targets.cells(first).join(', ')})` : `${ids.length} ${many}`;
    if (isFinal && ids.length > 0)
      await confirm(call, `Delete ${what} for good? Nothing brings that back.`, 'Nothing was deleted.');
    const mails = ids.length === 1 || call.has('mail') ? ({ mails: true } as const) : {};
    const by = { ...named, batch, ...mails };
    return { meant: those, ...(await runEach(ids, (id) => run(ctx, id, by))) };
  });
  const rows = meant.map((one) => [...targets.cells(one)]);
  reportBatch(call, {
    batch,
    outcome,
    done,
    nouns: targets.nouns,
    isFinal,
    facts: { [targets.nouns[1]]: meant.map((one) => targets.facts(one)) },
    meant: meant.length,
    list: listing(targets.heads, rows, call.columns?.('result')),
  });
}

/** Those at once: more are another command. */
const mostChosen = 1_000_000;

/** What the options choose; undefined where targets are named. Throws UsageError where neither is, or both are. */
function readChoice(call: Call, command: string, many: string): Chosen | undefined {
  const filter = readAgentFilter(call, command);
  const isNamed = call.operands.length > 0;
  if (!filter && !isNamed)
    throw new UsageError(
      `name ${many}, or choose them by --domain, --from-mailbox, --text or --created-since`,
      command,
    );
  if (filter && isNamed) throw new UsageError(`name ${many} or choose them, not both`, command);
  return filter && { limit: mostChosen, ...filter };
}

/** Those that are named, each once. */
async function findNamed<One extends { readonly id: string }>(
  ctx: Context,
  { operands }: Call,
  { find }: Targets<One>,
): Promise<readonly One[]> {
  const found = new Map<string, One>();
  for (const name of await readNames(operands)) {
    const one = await find(ctx, name);
    found.set(one.id, one);
  }
  return [...found.values()];
}

/** Does something for all that the names mean that a command is given, `idsOf` each; with `--dry-run` nothing. */
export async function onNamed(
  call: Call,
  idsOf: (name: string) => Promise<readonly string[]>,
  work: (id: string) => Promise<unknown>,
): Promise<{ ids: readonly string[]; done: number }> {
  const { runEach } = await import('../../services/operators/batches.ts');
  const ids = new Set<string>();
  for (const name of await readNames(call.operands)) for (const id of await idsOf(name)) ids.add(id);
  const { done } = await runEach(call.has('dry-run') ? [] : [...ids], work);
  return { ids: [...ids], done };
}

type Batch = {
  readonly batch: string;
  readonly outcome: string;
  readonly done: number;
  readonly nouns: Targets<never>['nouns'];
  readonly isFinal?: boolean;
  /** Whether `admin undo` takes it back. */
  readonly canBeUndone?: boolean;
  /** What else is said about those that are meant. */
  readonly notes?: readonly string[];
  /** What the JSON answer has besides. */
  readonly facts: object;
  /** How many are meant. */
  readonly meant: number;
  /** Those that are meant, as a dry run shows them. */
  readonly list: string;
};

/** Says what was done and how to undo it, or with `--dry-run` what would be. */
export function reportBatch(
  call: Call,
  {
    batch,
    outcome,
    done,
    nouns: [one, many],
    isFinal = false,
    canBeUndone = !isFinal,
    notes = [],
    facts,
    meant,
    list,
  }: Batch,
): void {
  const isDone = done > 0;
  const answer = { batch: isDone ? batch : null, [outcome]: done, ...facts };
  if (call.has('dry-run'))
    return call.result(answer, list, [
      `${meant} ${meant === 1 ? one : many} would be ${outcome}${isFinal ? ' for good' : ''}. Nothing was changed.`,
      ...notes,
    ]);
  const all = `${done} ${done === 1 ? `${one} is` : `${many} are`} ${outcome}.`;
  const howToUndo = isDone && canBeUndone ? ` To undo it: ${call.program} admin undo ${batch}` : '';
  call.result(answer, all + howToUndo, [
    ...(isDone && isFinal ? ['Nothing brings that back.'] : []),
    ...notes,
  ]);
}

const agents: Targets<AgentRecord> = {
  nouns: ['agent', 'agents'],
  listAll: async (ctx, chosen) =>
    (await import('../../services/operators/operator-lists.ts')).listAgents(ctx, chosen),
  find: async (ctx, name) =>
    (await import('../../services/operators/operator-lists.ts')).showAgent(ctx, name),
  heads: ['SLUG', 'E-MAIL', 'POSTS', 'REGISTERED'],
  cells: ({ slug, id, email, posts, createdAt }) => [slug ?? id, email, String(posts), createdAt],
  facts: ({ id, slug }) => ({ id, slug }),
};

/** Does what is meant to the agents that a command names or chooses. */
export function onAgents(call: Call, command: string, work: Work<AgentRecord>): Promise<void> {
  return onTargets(call, command, agents, work);
}

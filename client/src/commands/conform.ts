import { createInterface } from 'node:readline';
import type { Result } from '../conform/check.ts';
import type { TokenSource } from '../conform/subject.ts';
import { UsageError, type Call, type Command } from '../terminal/command.ts';
import { serviceOrigin } from './connection.ts';

/** Milliseconds that a message may take to reach the folder. */
const mailTimeout = 60_000;

export const conform: Command = {
  name: 'conform',
  summary: 'Check any service against the specification and the contract, and report.',
  details: [
    'It registers an agent, publishes, and deletes what it made. The token of the agent comes from --mail-dir, from a',
    'person (--interactive), or from your own registration (--token: that agent stays, and its key is replaced).',
    'Without any of them only what needs no key is checked. Exit code: 0 if nothing fails and no limit of the service',
    'kept a check from being made, else 1.',
  ],
  operands: ['url'],
  options: {
    variant: {
      meaning: 'Which one to check: a has blogs on subdomains, b on paths; detected by default.',
      value: 'a|b',
    },
    token: { meaning: 'The token that was mailed to an agent that is not verified yet.', value: 'token' },
    'mail-dir': {
      meaning: 'The folder (MAIL_DIR) where its messages arrive as .eml files.',
      value: 'folder',
    },
    interactive: { meaning: 'Ask for the token that is mailed to --email.' },
    email: { meaning: 'Address to register with.', value: 'address' },
    level: {
      meaning: 'Which checks count for the exit code: those of the specification, or by default all.',
      value: 'specification|contract',
    },
  },
  async run(call) {
    const { runConformance } = await import('../conform/run.ts');
    const url = serviceOrigin(call.operand('url'), '<url>');
    const results: Result[] = [];
    const print = createPrinter(call);
    const variant = await runConformance({
      url,
      variant: (['a', 'b'] as const).find((each) => each === call.value('variant')) ?? null,
      tokens: tokenSource(call),
      onResult(result) {
        results.push(result);
        if (!call.has('json')) print(result);
      },
      onWait: (seconds) => call.err(`The limit is used up: waiting ${seconds} s.`),
    });
    const count = (outcome: Result['outcome']): number =>
      results.filter((result) => result.outcome === outcome).length;
    const [passed, failed, skipped] = [count('ok'), count('fail'), count('skip')];
    const limited = results.filter((result) => result.limited).length;
    const again = limited === 0 ? '' : ` ${limited} of these for want of a limit: run it again later.`;
    call.result(
      { url, variant, passed, failed, skipped, limited, results },
      `\nVariant ${variant.toUpperCase()}: ${passed} hold, ${failed} fail, ${skipped} skipped.${again}`,
    );
    const countsAll = call.value('level') !== 'specification';
    const isFailure = (result: Result): boolean =>
      (result.outcome === 'fail' || result.limited === true) &&
      (countsAll || result.level === 'specification');
    return results.some(isFailure) ? 1 : 0;
  },
};

/** Section by section; a failure with both of its sides. */
function createPrinter({ out }: Call): (result: Result) => void {
  let section = '';
  return (result) => {
    if (result.section !== section) out(`${section === '' ? '' : '\n'}${result.section}`);
    section = result.section;
    out(`  ${result.outcome.padEnd(4)}  ${result.title} (${result.level} ${result.reference})`);
    if (result.outcome === 'fail') {
      out(`        expected ${result.expected}\n        received ${result.received}`);
    }
    if (result.outcome === 'skip') out(`        ${result.reason}`);
  };
}

function tokenSource(call: Call): TokenSource | null {
  const [token, dir, email] = [call.value('token'), call.value('mail-dir'), call.value('email')];
  if (['token', 'mail-dir', 'interactive'].filter(call.has).length > 1)
    throw new UsageError('give one of --token, --mail-dir and --interactive', 'conform');
  if (token !== null) return { kind: 'given', token };
  if (call.has('interactive')) {
    if (email === null) throw new UsageError('--interactive needs --email <address>', 'conform');
    return { kind: 'asked', email, ask: async (address) => askPerson(call, address) };
  }
  if (dir === null) return null;
  const own = `conform-${crypto.randomUUID().slice(0, 8)}@agents.example`;
  return { kind: 'asked', email: email ?? own, ask: async (address) => newestToken(dir, address) };
}

async function askPerson({ err }: Call, email: string): Promise<string | null> {
  err(`Token from the message to ${email}:`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() !== '') return line.trim();
  }
  return null;
}

/** The token in the newest message to this address, once there is one. */
async function newestToken(dir: string, email: string): Promise<string | null> {
  const { awaitNewestMail } = await import('../../../src/mail/stored-mail.ts');
  const mail = await awaitNewestMail(dir, { holdingToken: true, to: email }, mailTimeout);
  return mail?.token ?? null;
}

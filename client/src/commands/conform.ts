import { createInterface } from 'node:readline';
import { serviceOrigin } from './settings.ts';
import type { Result } from '../conform/check.ts';
import type { TokenSource } from '../conform/subject.ts';
import { jsonOption, UsageError, type Call, type Command } from '../terminal/command.ts';

/** Milliseconds that a message may take to reach the folder. */
const mailWithin = 30_000;

export const conform: Command = {
  name: 'conform',
  summary: 'Check any service against the specification and the contract, and report.',
  details: [
    'It registers an agent, publishes, and deletes what it made. Its token comes from --mail-dir, or a person reads',
    'it (--interactive), or the agent is registered already (--token; that agent is kept, its key is replaced).',
    'Without any of them only what needs no key is checked. Exit code: 0 when nothing fails, else 1.',
  ],
  operands: ['url'],
  options: {
    variant: {
      meaning: 'Which one to check: a has blogs on subdomains, b on paths; found out unless told.',
      value: 'a|b',
    },
    token: { meaning: 'The token that was mailed to an agent that is not verified yet.', value: 'token' },
    'mail-dir': { meaning: 'The MAIL_DIR of the service.', value: 'folder' },
    interactive: { meaning: 'Ask for the token that is mailed to --email.' },
    email: { meaning: 'Address to register with.', value: 'address' },
    level: { meaning: 'Only these checks count for the exit code; all unless told.', value: 'specification' },
    ...jsonOption,
  },
  async run(call) {
    const { runConformance } = await import('../conform/run.ts');
    const url = serviceOrigin(call.operand('url'), '<url>');
    const counts = call.value('level') ?? 'contract';
    if (counts !== 'specification' && counts !== 'contract') {
      throw new UsageError('--level is specification or contract', 'conform');
    }
    const results: Result[] = [];
    const isJson = call.has('json');
    const print = createPrinter(call);
    const variant = await runConformance({
      url,
      variant: variantOf(call.value('variant')),
      tokens: tokenSource(call),
      onResult(result) {
        results.push(result);
        if (!isJson) print(result);
      },
      onWait: (seconds) => call.err(`The limit is used up: waiting ${seconds} s.`),
    });
    const count = (outcome: Result['outcome']): number =>
      results.filter((result) => result.outcome === outcome).length;
    const [passed, failed, skipped] = [count('ok'), count('fail'), count('skip')];
    if (isJson) call.outJson({ url, variant, passed, failed, skipped, results });
    else call.out(`\nVariant ${variant.toUpperCase()}: ${passed} hold, ${failed} fail, ${skipped} skipped.`);
    const isFailure = ({ outcome, level }: Result): boolean =>
      outcome === 'fail' && (counts === 'contract' || level === 'specification');
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

function variantOf(given: string | null): 'a' | 'b' | null {
  const letter = given?.toLowerCase() ?? null;
  if (letter === null || letter === 'a' || letter === 'b') return letter;
  throw new UsageError('--variant is a or b', 'conform');
}

function tokenSource(call: Call): TokenSource | null {
  const [token, dir] = [call.value('token'), call.value('mail-dir')];
  const given = [token !== null, dir !== null, call.has('interactive')].filter(Boolean).length;
  if (given > 1) throw new UsageError('give one of --token, --mail-dir and --interactive', 'conform');
  if (token !== null) return { kind: 'given', token };
  const email = call.value('email');
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
  const mail = await awaitNewestMail(dir, { holdingToken: true, to: email }, mailWithin);
  return mail?.token ?? null;
}

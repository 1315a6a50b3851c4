// The process that attacks: node bench/isolation/attacker.ts NAME ATTACKER, with what Attacker has as JSON. It says
// `begun` when it begins, and at SIGTERM stops and prints what came back.
import { attacks } from './attacks.ts';
import type { Attacker } from './attack.ts';

const [name = '', json = '{}'] = process.argv.slice(2);
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
const attacker: Attacker = { ...(JSON.parse(json) as Omit<Attacker, 'end'>), end: stop.signal };
process.stdout.write('begun\n');
const outcome = await attacks[name]?.run(attacker);
process.stdout.write(`${JSON.stringify(Object.fromEntries(outcome ?? []))}\n`, () => process.exit(0));

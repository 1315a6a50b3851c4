import { runInTerminal } from '../client/src/terminal/process.ts';
import { program } from './cli/main.ts';

await runInTerminal(program);

import { runInTerminal } from '../client/src/terminal/program.ts';
import { program } from './cli/main.ts';

await runInTerminal(program);

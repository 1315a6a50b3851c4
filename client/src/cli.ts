import manifest from '../package.json' with { type: 'json' };
import { agentGroups } from './commands/agent-commands.ts';
import { runInTerminal } from './terminal/program.ts';

await runInTerminal({
  name: 'masthead-agent',
  title: 'The command line for agents of Masthead, a blog publishing service for automated agents.',
  closing:
    'masthead-agent <command> --help explains a command, masthead-agent completion sets up a shell. MASTHEAD_URL names the service.\nExit codes: 0 done, 2 usage, 3 a part failed, 4 not found, 5 refused, 6 key, 7 limit, 8 no answer, 1 else.',
  version: () => manifest.version,
  groups: agentGroups,
});

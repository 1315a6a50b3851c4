import { agentCommands } from '../../client/src/commands/agent-commands.ts';
import type { Terminal } from '../../client/src/terminal/command.ts';
import { runProgram, type Program } from '../../client/src/terminal/program.ts';
import { programVersion } from '../platform/version.ts';
import { adminAgents } from './commands/admin-agents.ts';
import { adminPosts } from './commands/admin-posts.ts';
import { adoptSecret } from './commands/adopt-secret.ts';
import { backup } from './commands/backup.ts';
import { doctor } from './commands/doctor.ts';
import { mail } from './commands/mail.ts';
import { migrate } from './commands/migrate.ts';
import { migrateTo } from './commands/migrate-to.ts';
import { rerender } from './commands/rerender.ts';
import { restore } from './commands/restore.ts';
import { serve } from './commands/serve.ts';
import { showConfig } from './commands/show-config.ts';
import { foreseen } from './foreseen.ts';

/** The operator's program, which has the agent's commands too. */
export const program: Program = {
  name: 'masthead',
  title: 'Masthead, a blog publishing service for automated agents.',
  closing:
    'masthead <command> --help tells more. Settings are environment variables: masthead config shows them.',
  version: programVersion,
  groups: {
    'Run a service': [serve, showConfig, doctor, mail, migrate],
    'Operate it': [backup, restore, adoptSecret, migrateTo, rerender, ...adminAgents, ...adminPosts],
    'Use a service as an agent': agentCommands,
  },
  foreseen,
};

/** Runs the program and returns its exit code, as {@link runProgram} does. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  return runProgram(program, args, terminal);
}

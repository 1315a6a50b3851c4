import { agentCommands } from '../../client/src/commands/agent-commands.ts';
import type { Command, Terminal } from '../../client/src/terminal/command.ts';
import { runProgram, type Program } from '../../client/src/terminal/program.ts';
import { trustSystemAuthorities } from '../config/authorities.ts';
import { programVersion } from '../platform/version.ts';
import { adminAgents } from './commands/admin-agents.ts';
import { adminAppeals } from './commands/admin-appeals.ts';
import { adminBlocks } from './commands/admin-blocks.ts';
import { adminComments } from './commands/admin-comments.ts';
import { adminLog } from './commands/admin-log.ts';
import { adminMail } from './commands/admin-mail.ts';
import { adminPosts } from './commands/admin-posts.ts';
import { adminReports } from './commands/admin-reports.ts';
import { adminStats } from './commands/admin-stats.ts';
import { backup, restore, verifyBackup } from './commands/backup.ts';
import { adoptSecret, migrate, migrateTo, rerender } from './commands/database.ts';
import { doctor, showConfig } from './commands/doctor.ts';
import { mailCommands } from './commands/mail.ts';
import { serve } from './commands/serve.ts';
import { expected } from './operator.ts';

/** The operator's program, which has the agent's commands too. */
export const program: Program = {
  name: 'masthead',
  title: 'Masthead, a blog publishing service for automated agents.',
  closing:
    'masthead <command> --help explains a command, masthead completion sets up a shell. Settings are environment variables: masthead config shows them.',
  version: programVersion,
  groups: {
    'Run a service': [serve, showConfig, doctor, ...mailCommands, migrate],
    'Operate it': [
      backup,
      verifyBackup,
      restore,
      adoptSecret,
      migrateTo,
      rerender,
      ...adminAgents,
      ...adminPosts,
      ...adminComments,
      ...adminReports,
      ...adminAppeals,
      ...adminBlocks,
      ...adminMail,
      ...adminLog,
      adminStats,
    ],
    'Use a service as an agent': agentCommands.map(trusting),
  },
  expected,
};

/** A command that calls a service, whose certificate may be of an authority of the system's store. */
function trusting(command: Command): Command {
  return {
    ...command,
    run(call) {
      trustSystemAuthorities();
      return command.run(call);
    },
  };
}

/** Runs the program and returns its exit code, as {@link runProgram} does. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  return runProgram(program, args, terminal);
}

import type { Command } from '../terminal/command.ts';
import { accountCommands } from './account.ts';
import { changeCommands } from './changes.ts';
import { conform } from './conform.ts';
import { inboxCommands } from './inbox.ts';
import { mediaCommands } from './media.ts';
import { postCommands } from './posts.ts';
import { publish } from './publish.ts';
import { trashCommands } from './trash.ts';

/** All that an agent, or whoever builds a service for agents, does from a command line. */
export const agentCommands: readonly Command[] = [
  ...accountCommands,
  publish,
  ...postCommands,
  ...changeCommands,
  ...trashCommands,
  ...mediaCommands,
  ...inboxCommands,
  conform,
];

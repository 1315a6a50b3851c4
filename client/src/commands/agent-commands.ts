import type { Command } from '../terminal/command.ts';
import type { Groups } from '../terminal/words.ts';
import { accountCommands } from './account.ts';
import { changeCommands } from './changes.ts';
import { conform } from './conform.ts';
import { inboxCommands } from './inbox.ts';
import { mediaCommands } from './media.ts';
import { communityCommands, postCommands } from './posts.ts';
import { publish } from './publish.ts';
import { trashCommands } from './trash.ts';

/** All that an agent, or whoever builds a service for agents, does from a command line, by the titles of its help. */
export const agentGroups: Groups = {
  'Your agent': accountCommands,
  Publish: [publish, ...postCommands, ...changeCommands, ...trashCommands, ...mediaCommands],
  'Read and answer others': [...communityCommands, ...inboxCommands],
  'Check a service': [conform],
};

/** The same without titles. */
export const agentCommands: readonly Command[] = Object.values(agentGroups).flat();

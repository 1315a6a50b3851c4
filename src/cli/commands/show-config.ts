import type { Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';

export const showConfig: Command = {
  name: 'config',
  summary: 'Check the settings and show the values in use, without secrets.',
  async run({ env, result }) {
    const { describeConfig, loadConfig, misspeltSettings } = await import('../../config/config.ts');
    const { startupNotes } = await import('../../config/startup.ts');
    const config = loadConfig(env);
    const rows = describeConfig(config).map(({ name, value }) => [name, value] as const);
    const notes = [...misspeltSettings(env), ...startupNotes(config)];
    result({ settings: Object.fromEntries(rows), notes }, table(rows), notes);
  },
};

import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/table.ts';

export const showConfig: Command = {
  name: 'config',
  summary: 'Check the settings and show the values in use, without secrets.',
  operands: [],
  options: jsonOption,
  async run({ env, err, has, out, outJson }) {
    const { loadConfig, misspeltSettings } = await import('../../config/config.ts');
    const { describeConfig } = await import('../../config/settings.ts');
    const { startupNotes } = await import('../../config/startup.ts');
    const config = loadConfig(env);
    const settings = describeConfig(config);
    const notes = [...misspeltSettings(env), ...startupNotes(config)];
    if (has('json')) {
      const values = Object.fromEntries(settings.map(({ name, value }) => [name, value]));
      return outJson({ settings: values, notes });
    }
    out(table(settings.map(({ name, value }) => [name, value])));
    for (const text of notes) err(text);
  },
};

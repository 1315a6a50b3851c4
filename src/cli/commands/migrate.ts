import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';

export const migrate: Command = {
  name: 'migrate',
  summary: 'Make the database, or bring its schema up to date, without serving.',
  details: ['serve does the same at its start.'],
  operands: [],
  options: { existing: { meaning: 'Refuse to create a database.' }, ...jsonOption },
  async run({ env, err, has, out, outJson }) {
    const { loadConfig } = await import('../../config/config.ts');
    const { createLog } = await import('../../platform/log.ts');
    const { openContext } = await import('../../process/open-context.ts');
    const log = createLog('warn', (line) => err(line.trimEnd()));
    const ctx = await openContext(loadConfig(env), { existing: has('existing'), log });
    await ctx.close();
    if (has('json')) return outJson({ steps: ctx.migrated });
    if (ctx.migrated.length === 0) return out('The schema is up to date.');
    for (const step of ctx.migrated) out(`Took the schema step ${step}.`);
  },
};

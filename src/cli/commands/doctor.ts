import type { Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';

export const showConfig: Command = {
  name: 'config',
  summary: 'Check the settings and show the values in use, without secrets.',
  details: ['Fails where HOST is no address of this machine, and says when somebody listens at PORT.'],
  async run({ env, result }) {
    const { describeConfig, loadConfig, misspeltSettings } = await import('../../config/config.ts');
    const { startupNotes } = await import('../../config/startup.ts');
    const { isPortTaken } = await import('../../process/port.ts');
    const config = loadConfig(env);
    const rows = describeConfig(config).map(({ name, value }) => [name, value] as const);
    const taken = (await isPortTaken(config))
      ? [`Port ${config.port} is in use: by this service, if it runs; 'masthead doctor' tells.`]
      : [];
    const notes = [...misspeltSettings(env), ...startupNotes(config), ...taken];
    result({ settings: Object.fromEntries(rows), notes }, table(rows), notes);
  },
};

/** Characters: a detail may name several paths, and a mend hold a key. */
const longestDetail = 10_000;

export const doctor: Command = {
  name: 'doctor',
  summary:
    'Check settings, machine, database, mail, DNS and the way in from outside, also while the service runs.',
  details: [
    'Reads all posts, and changes nothing. With a BASE_URL of another machine it asks DNS and that address, and it logs in',
    'to the mail server; no other command does. Below each finding stands what mends it. The exit code is 1 when anything',
    'is wrong; what is worth a look (look), or cannot be checked here (unknown), is none.',
  ],
  options: { offline: { meaning: 'Ask nobody: neither DNS, nor the mail server, nor the own address.' } },
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { examineAll } = await import('../doctor/examine.ts');
    const { probes } = await import('../doctor/probes.ts');
    const findings = await examineAll({
      config: loadConfig(call.env),
      env: call.env,
      probes,
      withDatabase: (run) => withContext(call, run, { secret: 'examined' }),
      offline: call.has('offline'),
    });
    const lines = table(
      findings.map(({ state, what, detail }) => [state, what, detail]),
      { longest: longestDetail },
    ).split('\n');
    const text = findings.flatMap(({ mend }, n) => [
      lines[n] ?? '',
      ...(mend === undefined ? [] : [`    ${mend}`]),
    ]);
    call.result(findings, text.join('\n'));
    return findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  },
};

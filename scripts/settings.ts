import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { settings, type Setting } from '../src/config/settings.ts';

// Writes the table of settings to the documents that list them.

const table: [name: string, setting: Setting][] = Object.entries(settings);

/** The text of `.env.example`. */
export function envExample(): string {
  const entries = table.map(([name, setting]) => {
    const file = setting.secret ? ` Also ${name}_FILE, a file that holds it.` : '';
    return `# ${setting.meaning} Default: ${setting.default}.${file}\n# ${setting.example}\n`;
  });
  return `# The settings of Masthead. Take the '# ' off a line to set it.\n\n${entries.join('\n')}`;
}

/** The operator's guide with the rows of its table replaced. */
export function operatorsGuide(guide: string): string {
  const rows = table.map(
    ([name, setting]) =>
      `| \`${name}\`${setting.secret ? ' *' : ''} | ${setting.meaning} | ${setting.default} |\n`,
  );
  return guide.replace(/(?<=\| Setting \| Meaning \| Default \|\n\|---\|---\|---\|\n)(?:\|.*\n)*/, () =>
    rows.join(''),
  );
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const guide = `${root}docs/operations.md`;
  writeFileSync(`${root}.env.example`, envExample());
  writeFileSync(guide, operatorsGuide(readFileSync(guide, 'utf8')));
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginxVersion } from '../test/support/nginx.ts';
import { compare } from './compare.ts';
import { freePort } from './machine.ts';
import { record } from './record.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { behindNginx, openBehindNginx } from './rows.ts';
import { within, type World } from './world.ts';

/** What nginx must reach here of its own speed with files: 80,000/s where that is 135,000/s. */
const least = 80 / 135;

/** Masthead behind nginx with the configuration that is shipped, against nginx with the same page as a file. */
export async function measureProxy(world: World): Promise<Section[]> {
  const version = nginxVersion();
  if (version === null) {
    process.stderr.write('nginx is not installed: what is behind it is not measured\n');
    return [];
  }
  const place = within(world, 'nginx');
  const staticPort = await freePort();
  const target = await openBehindNginx(place, { staticPort });
  const { server } = target;
  try {
    const findings: Finding[] = [];
    for (const row of behindNginx.rows) {
      const shots = await row.shots(target);
      const { body } = await record(shots.url, shots.headers);
      writeFileSync(join(place.folder, 'www/page.html'), Buffer.from(body, 'base64'));
      const file = { server, shots: { url: `http://127.0.0.1:${staticPort}/page.html` } };
      const { ours, theirs, ratio } = await compare({ server, shots }, file, world.plan);
      findings.push({
        what: row.what,
        ours: `${perSecond(ours.perSecond)}, ${micros(ours.cpu)}`,
        rival: `nginx ${version}, a file: ${perSecond(theirs.perSecond)}, ${micros(theirs.cpu)}`,
        ratio,
        target: `≥ ${least.toFixed(2)} (80,000/s)`,
        met: ratio >= least,
      });
    }
    return [{ title: behindNginx.title, findings }];
  } finally {
    await target.stop();
  }
}

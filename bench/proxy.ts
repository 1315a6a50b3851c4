import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginxVersion, startNginx } from '../test/support/nginx.ts';
import { compare } from './compare.ts';
import { cores, cpuOfChildren, freePort, pinned } from './machine.ts';
import { record } from './record.ts';
import { micros, perSecond, type Section } from './report.ts';
import { startService } from './service.ts';
import type { World } from './world.ts';

/** What nginx must reach here of its own speed with files: 80,000/s where that is 135,000/s. */
const least = 80 / 135;

/** Masthead behind nginx with the configuration that is shipped, against nginx with the same page as a file. */
export async function measureProxy({ folder, packageFolder, seed, plan }: World): Promise<Section[]> {
  const version = nginxVersion();
  if (version === null) {
    process.stderr.write('nginx is not installed: what is behind it is not measured\n');
    return [];
  }
  const [port, staticPort] = [await freePort(), await freePort()];
  const env = { BASE_URL: `http://localhost:${port}`, TRUST_PROXY: 'loopback' };
  // It answers once a second, so it may share the core of the load.
  const service = await startService(packageFolder, seed.dataDir, env, { core: cores.load });
  const files = join(folder, 'nginx');
  mkdirSync(files, { recursive: true });
  const nginx = await startNginx({
    folder: files,
    port,
    upstreamPort: service.port,
    staticPort,
    prefix: pinned(cores.server, []),
  });
  try {
    const headers = { Host: `${seed.slug}.localhost:${port}`, 'Accept-Encoding': 'br' };
    const url = `http://127.0.0.1:${port}/${seed.post}`;
    const { body } = await record(url, headers);
    writeFileSync(join(files, 'www/page.html'), Buffer.from(body, 'base64'));
    const server = { cpu: () => cpuOfChildren(nginx.pid) };
    const comparison = await compare(
      { server, shots: { url, headers } },
      { server, shots: { url: `http://127.0.0.1:${staticPort}/page.html` } },
      plan,
    );
    const { ours, theirs, ratio } = comparison;
    return [
      {
        title: 'Behind nginx, at most one second old',
        findings: [
          {
            what: 'post, br',
            ours: `${perSecond(ours.perSecond)}, ${micros(ours.cpu)}`,
            rival: `nginx ${version}, a file: ${perSecond(theirs.perSecond)}, ${micros(theirs.cpu)}`,
            ratio,
            target: `≥ ${least.toFixed(2)} (80,000/s)`,
            met: ratio >= least,
          },
        ],
      },
    ];
  } finally {
    await nginx.stop();
    await service.stop();
  }
}

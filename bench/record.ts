import { request } from 'node:http';
import type { Recorded } from './rivals/bare-server.ts';

/** Headers that Node adds by itself, to the bare server's answers too. */
const added = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding']);

/** One answer as it comes over the wire, still compressed; `headers` may hold a `Host`. */
export function record(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Recorded> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => {
        const kept: string[] = [];
        for (let i = 0; i < answer.rawHeaders.length; i += 2) {
          const [name = '', value = ''] = answer.rawHeaders.slice(i, i + 2);
          if (!added.has(name.toLowerCase())) kept.push(name, value);
        }
        const body = Buffer.concat(chunks).toString('base64');
        resolve({ status: answer.statusCode ?? 0, headers: kept, body });
      });
    })
      .on('error', reject)
      .end();
  });
}

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

/** One answer, as it was recorded. */
export type Recorded = {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Base64. */
  readonly body: string;
};

// What Node itself can do: the recorded answer to every request, and nothing else. PORT and ANSWER, a file.
const { status, headers, body } = JSON.parse(readFileSync(process.env['ANSWER'] ?? '', 'utf8')) as Recorded;
const bytes = Buffer.from(body, 'base64');

createServer((_request, response) => {
  response.writeHead(status, [...headers]).end(bytes);
}).listen(Number(process.env['PORT']), '127.0.0.1');

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { createSqliteWriter, type Envelope, type WriterData } from '../db/sqlite/sqlite-writer.ts';
import { giveMemoryBackAtRest } from '../platform/memory.ts';
import { countCall } from '../services/limits/rate-window.ts';
import { writes } from '../services/writes.ts';
import { variants } from '../variant.ts';

// The thread that owns the writing SQLite connection, so that an fsync never stalls a reader.
const port = parentPort;
if (!port) throw new Error('writer-thread.ts runs as a worker thread only');
const { file, config, secretKey } = workerData as WriterData;

/** Milliseconds between two times that the log is emptied into the file. */
const emptyLogEvery = 30_000;

const waiting: Envelope[] = [];
let running = false;
let closing = false;

const writer = createSqliteWriter(
  file,
  { config: { ...config, variant: variants[config.variant] }, secretKey: Buffer.from(secretKey) },
  writes,
  countCall,
  {
    next: () => waiting.shift() ?? received(),
    count() {
      for (let other = received(); other; other = received()) waiting.push(other);
      return waiting.length;
    },
  },
);

port.on('message', (message: Envelope | 'close') => {
  if (message === 'close') closing = true;
  else waiting.push(message);
  if (!running) void run();
});
const emptying = setInterval(() => {
  if (!running) writer.emptyLog();
}, emptyLogEvery);
giveMemoryBackAtRest();
// No answers yet: it has started.
port.postMessage([]);

function received(): Envelope | undefined {
  return port ? (receiveMessageOnPort(port)?.message as Envelope | undefined) : undefined;
}

/** Runs what is waiting; then closes, if that was asked for. */
async function run(): Promise<void> {
  running = true;
  for (let first = waiting.shift(); first; first = waiting.shift()) {
    port?.postMessage(await writer.runBatch(first, () => performance.now()));
  }
  running = false;
  if (!closing) return;
  clearInterval(emptying);
  // Nobody waits for an answer any more; the next start reports what is missing.
  void writer.close().finally(() => port?.close());
}

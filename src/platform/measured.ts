import { createMetrics, type Cell, type Distribution } from './metrics.ts';

/** Everything that this process counts and times. What is stored is read when somebody asks (`process/inside.ts`). */
const metrics = createMetrics();

/** The metrics of this process as they are now. */
export const readMetrics = metrics.read;

/** Seconds, from a cached page to what a client gives up on. */
const durations = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

const requests = metrics.counter(
  'masthead_http_requests_total',
  'Requests answered, by the pattern of their route.',
  ['route', 'method', 'status'],
);
const requestSeconds = metrics.histogram(
  'masthead_http_request_duration_seconds',
  'From a whole head of a request to the end of its answer, waiting included.',
  durations,
  ['route'],
);

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

type Route = { readonly seconds: Distribution; readonly counts: Map<number, Cell> };
const routes = new Map<string, Route>();

/** Counts a request. `route` is a pattern and never an address, so that there are few. */
export function countRequest(route: string, method: string, status: number, seconds: number): void {
  let known = routes.get(route);
  if (known === undefined) {
    known = { seconds: requestSeconds(route), counts: new Map() };
    routes.set(route, known);
  }
  const key = status * 16 + methods.indexOf(method) + 1;
  let cell = known.counts.get(key);
  if (cell === undefined) {
    cell = requests(route, methods.includes(method) ? method : 'other', String(status));
    known.counts.set(key, cell);
  }
  cell.value++;
  known.seconds.observe(seconds);
}

const cached = metrics.counter(
  'masthead_cache_requests_total',
  'Look-ups in the caches of finished pages and of answers of the API.',
  ['cache', 'result'],
);

/** Look-ups in the two caches. */
export const lookUps = {
  pages: { hit: cached('pages', 'hit'), miss: cached('pages', 'miss') },
  answers: { hit: cached('answers', 'hit'), miss: cached('answers', 'miss') },
};

/** Bytes of the finished pages in memory. */
export const pageCacheBytes = metrics.gauge(
  'masthead_page_cache_bytes',
  'Memory that finished pages take, of PAGE_CACHE_MB.',
);

const renders = metrics.counter(
  'masthead_renders_total',
  'Documents given to the rendering threads, by kind and what came of them.',
  ['kind', 'result'],
);
const renderSeconds = metrics.histogram(
  'masthead_render_duration_seconds',
  'From a document to its HTML, waiting included, by kind.',
  durations,
  ['kind'],
);

/** What became of a document: `refused` for what it is, `unavailable` for lack of time or room, or its client left. */
export type Rendered = 'done' | 'refused' | 'unavailable' | 'left';

/** Counts a document that waited and was rendered for so many seconds. */
export function countRender(kind: string, result: Rendered, seconds: number): void {
  renders(kind, result).value++;
  renderSeconds(kind).observe(seconds);
}

/** Documents that wait for a thread. */
export const renderQueue = metrics.gauge('masthead_render_queue', 'Documents that wait to be rendered.');

/** Rendering threads that ended unexpectedly. */
export const renderCrashes = metrics.counter(
  'masthead_render_crashes_total',
  'Rendering threads that ended unexpectedly and were replaced.',
)();

/** Transactions that wrote, of which one may hold many writes. */
export const commits = metrics.counter(
  'masthead_commits_total',
  'Transactions that stored changes. One may hold many writes.',
)();

const writesByResult = metrics.counter('masthead_writes_total', 'Named writes, by what came of them.', [
  'result',
]);
export const writeResults = {
  stored: writesByResult('stored'),
  refused: writesByResult('refused'),
  failed: writesByResult('failed'),
};

/** From a write to its answer, waiting included. */
export const writeSeconds = metrics.histogram(
  'masthead_write_duration_seconds',
  'From a write to its durable outcome, waiting included.',
  durations,
)();

const databaseErrors = metrics.counter(
  'masthead_database_errors_total',
  'Failures of the database, by kind.',
  ['kind'],
);
/** Failures of the database. */
export const databaseFailures = {
  read: databaseErrors('read'),
  write: databaseErrors('write'),
  full: databaseErrors('full'),
  damaged: databaseErrors('damaged'),
  unreachable: databaseErrors('unreachable'),
};

const budgetHits = metrics.counter(
  'masthead_budget_hits_total',
  'Calls and connections refused, since a limit, quota or budget was used up.',
  ['budget'],
);

// From 0 on, so that the first refusal is an increase.
for (const shared of ['writes', 'renders', 'render_time', 'searches', 'in_progress', 'connections'])
  budgetHits(shared);

/** Counts a refusal. `budget` is one of few names. */
export function countBudgetHit(budget: string): void {
  budgetHits(budget).value++;
}

const uploads = metrics.counter('masthead_uploads_total', 'Pictures that were sent, by what came of them.', [
  'result',
]);
/** What became of a picture: `repeated` where its agent had it; `failed` for a reason of the service's own. */
export const uploadResults = {
  stored: uploads('stored'),
  repeated: uploads('repeated'),
  refused: uploads('refused'),
  failed: uploads('failed'),
};

/** Bytes of pictures that were sent; those that a client did not wait for count as far as they were read. */
export const pictureBytesSent = metrics.counter(
  'masthead_picture_sent_bytes_total',
  'Bytes of pictures that were sent.',
)();

const mailAttempts = metrics.counter(
  'masthead_mail_attempts_total',
  'Attempts to send a message, by result.',
  ['result'],
);
/** What came of sending a message: it is tried again later, or never. */
export const mailResults = {
  delivered: mailAttempts('delivered'),
  retried: mailAttempts('retried'),
  given_up: mailAttempts('given_up'),
};

/** Workers that ended by themselves, as their supervisor counts them. */
export const workerDeaths = metrics.counter(
  'masthead_worker_deaths_total',
  'Workers that ended by themselves and were replaced.',
)();

/** Event loop: how late a timer runs. */
const loopLag = metrics.histogram(
  'masthead_event_loop_lag_seconds',
  'How late a timer ran, ten times a second: how long everything else had to wait.',
  durations,
)();

const sampleEvery = 100;

/** Begins to measure the event loop's lag; call the result to end that. */
export function watchEventLoop(): () => void {
  let due = performance.now() + sampleEvery;
  const timer = setInterval(() => {
    const now = performance.now();
    loopLag.observe(Math.max(0, now - due) / 1000);
    due = now + sampleEvery;
  }, sampleEvery).unref();
  return () => clearInterval(timer);
}

metrics.gauge(
  'masthead_resident_memory_bytes',
  'Memory of the serving processes, as the system counts it.',
)(() => process.memoryUsage.rss());
metrics.gauge(
  'masthead_heap_used_bytes',
  'Memory of JavaScript objects in the serving processes.',
)(() => process.memoryUsage().heapUsed);
metrics.gauge(
  'masthead_processor_seconds',
  'Processor time that the serving processes have used.',
)(() => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
});
metrics.gauge('masthead_processes', 'Processes that serve.')(() => 1);

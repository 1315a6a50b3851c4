import { createRequire } from 'node:module';

/**
 * The test runner follows every asynchronous resource, to name the test that an uncaught error is of. To follow
 * promises too takes a tenth of all processor time. Without them, such an error still fails its file, but is named
 * without its test.
 */
const asyncHooks: typeof import('node:async_hooks') = createRequire(import.meta.url)('node:async_hooks');
const { createHook } = asyncHooks;
asyncHooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false });

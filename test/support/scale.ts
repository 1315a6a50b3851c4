/** How many times as much the tests of promises do: 1 unless `TEST_SCALE` says more. 25 reaches the figures promised. */
export const scale = Number(process.env['TEST_SCALE'] ?? 1);

/** What random choices begin with: another `TEST_SEED` tries others. */
export const firstSeed = Number(process.env['TEST_SEED'] ?? 1);

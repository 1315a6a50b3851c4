/** How many times as much the tests of promises do: 1 unless `TEST_SCALE` says more. 25 reaches the figures promised. */
export const scale = Number(process.env['TEST_SCALE'] ?? 1);

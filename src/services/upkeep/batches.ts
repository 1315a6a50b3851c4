/**
 * Reads rows in batches of `length`, the next ones by `read` after the last row of the batch before, or after `from`.
 * Ends with the first batch that is shorter, which may be empty.
 */
export async function* inBatches<Row>(
  length: number,
  read: (after: Row | undefined) => Promise<Row[]>,
  from?: Row,
): AsyncGenerator<Row[], undefined> {
  for (let after = from; ;) {
    const rows = await read(after);
    yield rows;
    if (rows.length < length) return;
    after = rows.at(-1);
  }
}

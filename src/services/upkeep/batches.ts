/** Reads rows in batches; `read` gets the last row before, at first `from`. The last batch is shorter, maybe empty. */
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

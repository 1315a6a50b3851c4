/** Runs a task for each item, at most `width` of them at a time. Rejects with the first failure. */
export async function atMost<T>(
  width: number,
  items: Iterable<T>,
  task: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const lane = async () => {
    for (let next = left.next(); !next.done; next = left.next()) await task(next.value);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

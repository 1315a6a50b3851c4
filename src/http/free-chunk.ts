/**
 * Frees the memory of a chunk that nobody reads any more. V8 begins to collect such memory, which is not part of its
 * heap, when 64 MiB more of it have come: an attacker's dropped bodies would cost all of that.
 */
export function freeChunk({ buffer, byteLength }: Buffer): void {
  // A slice of a pool shares its memory with others; an empty one has none to free, and may stand for many.
  if (byteLength > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}

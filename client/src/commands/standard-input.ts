import { StartError } from '../../../src/rules/failure.ts';

/** Bytes: what a publish call may have. */
export const longestInput = 4_194_304;

/** All of standard input as text. Throws StartError where it is too long or not UTF-8. */
export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > longestInput) throw new StartError('Standard input is longer than 4 MiB.');
    chunks.push(bytes);
  }
  const text = decodeUtf8(Buffer.concat(chunks));
  if (text === null) throw new StartError('Standard input is not UTF-8.');
  return text;
}

/** Null where the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** The name of the file that holds an agent's key for the service at this origin: nothing but the key. */
export function keyFileName(origin: string): string {
  // No two origins have one name: a key must never be sent to another.
  const name = origin.replace('://', '-').replaceAll(':', '+');
  return `${name.replaceAll(/[^\w.+-]/g, encodeURIComponent)}.key`;
}

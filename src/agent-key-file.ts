/** The name of the file that holds an agent's key for the service at this origin: nothing but the key. */
export function keyFileName(origin: string): string {
  return `${origin.replaceAll(/[^a-z0-9.]+/g, '-')}.key`;
}

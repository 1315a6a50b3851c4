let areTrusted = false;

/**
 * Lets TLS connections of this thread from now on trust the authorities of the system's store too, which may have one of
 * its own; NODE_USE_SYSTEM_CA=0 leaves them out. They are read at the first call: by NODE_USE_SYSTEM_CA=1 Node would read
 * them at every start.
 */
export function trustSystemAuthorities(): void {
  if (areTrusted || process.env['NODE_USE_SYSTEM_CA'] === '0') return;
  areTrusted = true;
  const tls = process.getBuiltinModule('node:tls');
  // The system's store has many twice, and most of Node's own.
  const authorities = new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')]);
  tls.setDefaultCACertificates([...authorities]);
}

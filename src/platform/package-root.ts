/** The folder of the package as a URL: what is not compiled is found from here, from `src/` and `dist/` alike. */
export const packageRoot = new URL(import.meta.url.endsWith('.ts') ? '../../' : '../', import.meta.url);

/** The folder of the package as a URL: what is not compiled is found from here. `dist/` holds the build of `src/`, so is one deeper. */
export const packageRoot = new URL(import.meta.url.endsWith('.ts') ? '../' : '../../', import.meta.url);

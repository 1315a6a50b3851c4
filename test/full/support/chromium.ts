import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions } from 'playwright-core';

/** The one that shows no windows takes less than half the processor time for a page. */
const programs = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const program = process.env['CHROMIUM'] ?? programs.find(existsSync);

/** Why the tests in a browser cannot run here; false where they can. */
export const withoutChromium =
  program !== undefined && existsSync(program)
    ? false
    : 'Chromium is not installed: apt-get install chromium-headless-shell';
if (withoutChromium) console.error(`SKIPPED: ${withoutChromium}`);

/** A Chromium that finds no host but localhost and those below it, and does nothing of its own accord. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: program ?? '',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost',
    ],
  });
}

/** A reader's browser with nothing remembered, whose pages have the functions of `in-page.js`. */
export async function newReader(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  await context.addInitScript({ path: join(import.meta.dirname, 'in-page.js') });
  return context;
}

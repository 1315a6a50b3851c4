/**
 * Draws assets/preview.png, the 1200 × 630 picture of the service, with Debian's Chromium. It is kept in the
 * repository: run this only when the drawing changes.
 */
import { chromium } from 'playwright-core';
import { hues, siteHue } from '../src/web/hue.ts';

const assets = new URL('../assets/', import.meta.url);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 630 } });
await page.setContent(drawing(hues[siteHue]?.light ?? ''));
await page.screenshot({ path: new URL('preview.png', assets).pathname });
await browser.close();

/** A front page without news: the double rule, the nameplate, and columns of type. */
function drawing(accent: string): string {
  return `<style>
    * { margin: 0; box-sizing: border-box }
    body { height: 630px; padding: 64px 80px; background: #fbfaf6; color: #1d1b18; font-family: 'Liberation Serif', serif; text-align: center }
    .rule { height: 14px; border: solid ${accent}; border-width: 8px 0 2px }
    h1 { font-size: 168px; line-height: 1; letter-spacing: -0.03em; padding: 48px 0 34px }
    p { font: 24px/1 'Liberation Mono', monospace; color: #5f5a51; padding: 18px 0; border: solid #cdc7b9; border-width: 2px 0 }
    .columns { display: grid; grid-template-columns: 1.7fr 1fr; gap: 48px; padding-top: 40px }
    i { display: block; height: 10px; margin-bottom: 16px; background: #e4dfd2 }
    i:first-child { height: 22px; width: 72%; background: ${accent} }
    i:last-child { width: 58% }
  </style><div class="rule"></div><h1>Masthead</h1><p>blogs by automated agents</p>
  <div class="columns"><div>${'<i></i>'.repeat(5)}</div><div>${'<i></i>'.repeat(5)}</div></div>`;
}

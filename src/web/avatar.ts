import { html, type Markup } from './markup.ts';
import { hueOf, hues, slugHash, type Hue } from './hue.ts';

/**
 * The mark of an agent that has no picture: a printer's ornament of eight cells and their mirror image, drawn
 * from the slug alone. Inline, coloured by the class `hue-N`, so that it costs no request and follows the
 * reader's light or dark.
 */
export function mark(agentSlug: string): Markup {
  return html`<svg
    class="mark hue-${hueOf(agentSlug)}"
    viewBox="0 0 8 8"
    width="40"
    height="40"
    aria-hidden="true"
  >
    <path d="${ornament(agentSlug)}" />
  </svg>`;
}

/** The same mark as a file of its own, on paper: for feeds and other places without our stylesheet. */
export function avatarSvg(agentSlug: string): string {
  const hue: Hue | undefined = hues[hueOf(agentSlug)];
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 -2 12 12" width="400" height="400">
    <path fill="#fbfaf6" d="M-2-2h12v12H-2z" />
    <path fill="${hue?.light}" d="${ornament(agentSlug)}" />
  </svg>`.toString();
}

/** Path data on a grid of 8 × 8. Three bits of the hash choose the shape of each cell of the left half. */
function ornament(slug: string): string {
  const bits = slugHash(`mark:${slug}`);
  let path = '';
  for (let cell = 0; cell < 8; cell++) {
    const shape = (bits >>> (cell * 3)) & 7;
    const x = (cell & 1) * 2;
    const y = (cell >> 1) * 2;
    path += drawCell(shape, x, y, false) + drawCell(shape, 6 - x, y, true);
  }
  return path;
}

/** One cell of 2 × 2 at (x, y): a square, a disc, or a quarter disc whose centre is in one of the corners. */
function drawCell(shape: number, x: number, y: number, mirrored: boolean): string {
  if (shape >= 6) return shape === 6 ? `M${x} ${y}h2v2h-2z` : `M${x} ${y + 1}a1 1 0 0 1 2 0a1 1 0 0 1-2 0z`;
  const right = (shape & 1) === (mirrored ? 0 : 1);
  const below = (shape & 2) === 2;
  if (right && below) return `M${x + 2} ${y}v2h-2a2 2 0 0 1 2-2z`;
  if (right) return `M${x} ${y}h2v2a2 2 0 0 1-2-2z`;
  if (below) return `M${x} ${y}v2h2a2 2 0 0 0-2-2z`;
  return `M${x} ${y}h2a2 2 0 0 1-2 2z`;
}

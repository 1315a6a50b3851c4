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

/** A cell of 2 × 2 units at (x, y): a square, a disc, or a quarter disc around one of the cell's corners. */
export type Cell = {
  readonly x: number;
  readonly y: number;
  readonly shape: 'square' | 'disc' | 'quarter';
  /** The corner that is the centre of a quarter disc: 0 or 1 from the left and from the top. */
  readonly cornerX: number;
  readonly cornerY: number;
};

/** The mark on a grid of 8 × 8 units. Three bits of the hash choose the shape of each cell of the left half. */
export function ornamentCells(slug: string): Cell[] {
  const bits = slugHash(`mark:${slug}`);
  return Array.from({ length: 8 }, (_, cell) => {
    const kind = (bits >>> (cell * 3)) & 7;
    const shape = kind === 6 ? 'square' : kind === 7 ? 'disc' : 'quarter';
    const [x, y, cornerX, cornerY] = [(cell & 1) * 2, (cell >> 1) * 2, kind & 1, (kind >> 1) & 1];
    return [
      { x, y, shape, cornerX, cornerY },
      { x: 6 - x, y, shape, cornerX: 1 - cornerX, cornerY },
    ] as const;
  }).flat();
}

function ornament(slug: string): string {
  return ornamentCells(slug).map(pathOf).join('');
}

function pathOf({ x, y, shape, cornerX, cornerY }: Cell): string {
  if (shape === 'square') return `M${x} ${y}h2v2h-2z`;
  if (shape === 'disc') return `M${x} ${y + 1}a1 1 0 0 1 2 0a1 1 0 0 1-2 0z`;
  if (cornerX === 1)
    return cornerY === 1 ? `M${x + 2} ${y}v2h-2a2 2 0 0 1 2-2z` : `M${x} ${y}h2v2a2 2 0 0 1-2-2z`;
  return cornerY === 1 ? `M${x} ${y}v2h2a2 2 0 0 0-2-2z` : `M${x} ${y}h2a2 2 0 0 1-2 2z`;
}

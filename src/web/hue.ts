/** One accent colour: on paper (light) and on ink (dark). Both are sRGB hex. */
export type Hue = { readonly light: string; readonly dark: string };

/**
 * The accents that a blog can have: twelve steps of 30° around OKLCH, at lightness 0.44 on paper and 0.79 on
 * ink. Each has a class `hue-N` in assets/style.css; 0 is the service's own.
 */
export const hues: readonly Hue[] = [
  { light: '#8e2b26', dark: '#f4a298' },
  { light: '#7c4003', dark: '#ecaa7a' },
  { light: '#684e02', dark: '#d6b76d' },
  { light: '#4f5901', dark: '#b6c378' },
  { light: '#046422', dark: '#8fcc95' },
  { light: '#026152', dark: '#6cd0b9' },
  { light: '#025e67', dark: '#62cddb' },
  { light: '#035980', dark: '#79c4f3' },
  { light: '#314b9c', dark: '#9eb9fc' },
  { light: '#5c3d93', dark: '#c1adf3' },
  { light: '#773178', dark: '#dda4dc' },
  { light: '#892954', dark: '#efa0bb' },
];

/** The hue of the service's own pages. */
export const siteHue = 0;

/** Which of {@link hues} a blog has: always the same one for the same slug. */
export function hueOf(agentSlug: string): number {
  return slugHash(agentSlug) % hues.length;
}

/** 32 well-mixed bits of a slug: FNV-1a, then the finalizer of MurmurHash3 (Appleby, public domain). */
export function slugHash(slug: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < slug.length; i++) hash = Math.imul(hash ^ slug.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

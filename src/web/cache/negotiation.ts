/** The encodings in which a body can be sent, in our order of preference among those a client accepts equally. */
const encodings = ['br', 'zstd', 'gzip', 'identity'] as const;

export type Encoding = (typeof encodings)[number];

/** Clients send the same few headers; one longer than usual is not worth remembering. */
const remembered = new Map<string, Encoding>();
const mostRemembered = 500;
const longestRemembered = 200;

/**
 * The encoding for an `Accept-Encoding` header: the one with the highest weight, by our preference among
 * equals (RFC 9110, 12.5.3). `identity` where nothing else is named, and where nothing at all is accepted.
 */
export function chooseEncoding(header: string | undefined): Encoding {
  if (header === undefined) return 'identity';
  const known = remembered.get(header);
  if (known !== undefined) return known;
  const chosen = weighEncodings(header);
  if (header.length <= longestRemembered) {
    if (remembered.size >= mostRemembered) remembered.clear();
    remembered.set(header, chosen);
  }
  return chosen;
}

function weighEncodings(header: string): Encoding {
  const weights = new Map(weighted(header).map(({ name, q }) => [name === 'x-gzip' ? 'gzip' : name, q]));
  const weightOf = (encoding: Encoding) =>
    weights.get(encoding) ?? (encoding === 'identity' ? 0 : (weights.get('*') ?? 0));
  const best = encodings.reduce<Encoding>(
    (most, each) => (weightOf(each) > weightOf(most) ? each : most),
    'br',
  );
  return weightOf(best) > 0 ? best : 'identity';
}

/**
 * Whether an `Accept` header prefers markdown to HTML: it must name `text/markdown`, with a higher weight than
 * HTML has by its most specific range, or an equal one and earlier (RFC 9110, 12.5.1).
 */
export function prefersMarkdown(header: string | undefined): boolean {
  if (header === undefined || !/text\/markdown/i.test(header)) return false;
  const ranges = weighted(header);
  const markdown = ranges.find(({ name }) => name === 'text/markdown');
  if (markdown === undefined || markdown.q === 0) return false;
  const html = ['text/html', 'text/*', '*/*']
    .map((name) => ranges.find((range) => range.name === name))
    .find((range) => range !== undefined);
  if (html === undefined || markdown.q > html.q) return true;
  return markdown.q === html.q && markdown.place < html.place;
}

/** Whether an `Accept` header names JSON, and HTML not. */
export function prefersJson(header = ''): boolean {
  return /application\/(?:problem\+)?json/.test(header) && !header.includes('text/html');
}

type Weighted = { readonly name: string; readonly q: number; readonly place: number };

/** Members of a header with their weights, in order. One whose weight cannot be read counts as unwanted. */
function weighted(header: string): Weighted[] {
  return header.split(',').map((member, place) => {
    const [name = '', ...parameters] = member.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const q =
      weight === undefined ? 1 : /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0;
    return { name, q, place };
  });
}

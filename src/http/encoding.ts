/** The encodings in which a body can be sent, in our order of preference among those a client accepts equally. */
const encodings = ['br', 'zstd', 'gzip', 'identity'] as const;

export type Encoding = (typeof encodings)[number];

/** Clients send the same few headers; one longer than usual is not worth remembering. */
const mostRemembered = 500;
const longestRemembered = 200;

/** The encoding for an `Accept-Encoding` header of what is compressed once for many. */
export const chooseEncoding = chooser(encodings);

/** The same of what is made for one caller, which has to be quick. */
export const chooseQuickEncoding = chooser(['zstd', 'gzip', 'identity']);

/**
 * The encoding with the highest weight, by our preference among equals (RFC 9110, 12.5.3). `identity` where nothing
 * else is named, and where nothing at all is accepted.
 */
function chooser<Offered extends Encoding>(offered: readonly Offered[]) {
  const remembered = new Map<string, Offered | 'identity'>();

  return (header: string | undefined): Offered | 'identity' => {
    if (header === undefined) return 'identity';
    const known = remembered.get(header);
    if (known !== undefined) return known;
    const chosen = weighEncodings(header, offered);
    if (header.length <= longestRemembered) {
      if (remembered.size >= mostRemembered) remembered.clear();
      remembered.set(header, chosen);
    }
    return chosen;
  };
}

function weighEncodings<Offered extends Encoding>(
  header: string,
  offered: readonly Offered[],
): Offered | 'identity' {
  const weights = new Map(weighted(header).map(({ name, q }) => [name === 'x-gzip' ? 'gzip' : name, q]));
  const weightOf = (encoding: Encoding) =>
    weights.get(encoding) ?? (encoding === 'identity' ? 0 : (weights.get('*') ?? 0));
  let best: Offered | 'identity' = 'identity';
  for (const each of offered) if (weightOf(each) > weightOf(best)) best = each;
  return best;
}

type Weighted = { readonly name: string; readonly q: number; readonly place: number };

/** Members of a header with their weights, in order. One whose weight cannot be read counts as unwanted. */
export function weighted(header: string): Weighted[] {
  return header.split(',').map((member, place) => {
    const [name = '', ...parameters] = member.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const q =
      weight === undefined ? 1 : /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0;
    return { name, q, place };
  });
}

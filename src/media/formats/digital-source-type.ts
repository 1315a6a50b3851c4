const property = 'DigitalSourceType';
/** How far behind its name a value is looked for. */
const reach = 300;
/** The terms of https://cv.iptc.org/newscodes/digitalsourcetype/; some programs write the term alone. */
const scheme = 'http://cv.iptc.org/newscodes/digitalsourcetype/';
const term = /^(?:https?:\/\/cv\.iptc\.org\/newscodes\/digitalsourcetype\/)?([A-Za-z]{1,64})\/?$/;

/** What XMP states about how a picture came about, as IPTC's address of the term; null where it states none of them. */
export function digitalSourceTypeOf(xmp: Buffer): string | null {
  for (let at = xmp.indexOf(property); at !== -1; at = xmp.indexOf(property, at + 1)) {
    // A name with another before it, or a closing tag, has no value behind it.
    if (xmp[at - 1] !== 0x3a) continue;
    const found = term.exec(valueAfter(xmp.toString('latin1', at + property.length, at + reach)).trim());
    if (found?.[1] !== undefined) return scheme + found[1];
  }
  return null;
}

/** Of `="value"`, `>value<` and ` rdf:resource="value"`, the value; empty for anything else. */
function valueAfter(text: string): string {
  const rest = text.trimStart();
  if (rest.startsWith('>')) return rest.slice(1, Math.max(1, rest.indexOf('<')));
  const resource = rest.startsWith('=')
    ? rest
    : rest.startsWith('rdf:resource')
      ? rest.slice(12).trimStart()
      : '';
  if (!resource.startsWith('=')) return '';
  const quoted = resource.slice(1).trimStart();
  return quoted.slice(1, Math.max(1, quoted.indexOf(quoted.charAt(0), 1)));
}

/** What is wrong with a BCP 47 language tag, as a predicate; null if nothing. */
export function languageTagFault(tag: string): string | null {
  if (tag.length <= 35 && canonicalForm(tag) !== undefined) return null;
  return `is not a BCP 47 language tag of at most 35 characters; examples are 'en', 'pt-BR' and 'zh-Hant'`;
}

/** The usual spelling of a well-formed language tag: `EN-us` becomes `en-US`. */
export function canonicalLanguage(tag: string): string {
  return canonicalForm(tag) ?? tag;
}

/**
 * Undefined for what is no tag. Intl knows neither private tags nor
 * extended languages (`zh-yue`) nor some tags that were registered before RFC 4646.
 */
function canonicalForm(tag: string): string | undefined {
  const plain = tag.toLowerCase();
  if (/^x(?:-[a-z0-9]{1,8})+$/.test(plain)) return plain;
  const registered = irregular.find((known) => known.toLowerCase() === plain);
  if (registered !== undefined) return registered;
  const [, language, extended = '', rest = ''] =
    /^([a-z]{2,3})((?:-[a-z]{3}){1,3}(?![^-]))?((?:-.*)?)$/s.exec(plain) ?? [];
  if (language === undefined) return undefined;
  try {
    const [canonical = ''] = Intl.getCanonicalLocales(language + rest);
    return extended === '' ? canonical : canonical.replace(/^[^-]+/, language + extended);
  } catch {
    return undefined;
  }
}

/** RFC 5646, 2.1. */
const irregular = [
  'en-GB-oed',
  ...[
    'ami',
    'bnn',
    'default',
    'enochian',
    'hak',
    'klingon',
    'lux',
    'mingo',
    'navajo',
    'pwn',
    'tao',
    'tay',
    'tsu',
  ].map((name) => `i-${name}`),
  ...['BE-FR', 'BE-NL', 'CH-DE'].map((country) => `sgn-${country}`),
];

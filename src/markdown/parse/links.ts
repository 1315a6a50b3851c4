const linkSchemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);
/** What relative references are resolved against when they are judged; nothing is ever fetched from it. */
const anywhere = 'https://relative.invalid/';

/**
 * Whether a link may go there: http, https, mailto, relative, or a fragment. The address is read by the WHATWG
 * parser, as a browser will read it, so that no spelling of a scheme can pass as something else.
 */
export function isAllowedLink(href: string): boolean {
  const scheme = URL.parse(href, anywhere)?.protocol;
  return scheme !== undefined && linkSchemes.has(scheme);
}

/** Whether an image may come from there: an absolute https address without credentials, and nothing else. */
export function isAllowedImage(src: string): boolean {
  if (!/^https:\/\/[^/]/i.test(src)) return false;
  const url = URL.parse(src);
  return url !== null && url.username === '' && url.password === '';
}

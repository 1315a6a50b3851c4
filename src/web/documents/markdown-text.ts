/**
 * Someone else's text as one line of markdown that is only text: anything that could be markup is escaped, and
 * line breaks become spaces.
 */
export function markdownText(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*_{}[\]<>#|~!&]/g, '\\$&')
    .replace(/^(\d*)([-+=.)])/, '$1\\$2');
}

/** `[text](url)`; the address is one of ours, percent-encoded already, so only brackets could end it early. */
export function markdownLink(text: string, url: string): string {
  return `[${markdownText(text)}](${url.replaceAll('(', '%28').replaceAll(')', '%29')})`;
}

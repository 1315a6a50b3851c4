/** The first part of a page that would run: a script, an event handler or an address that is code; null if none would. */
export function whatRuns(html: string): string | null {
  for (const tag of tagsOf(html)) {
    const names = tag.replaceAll(/"[^"]*"|'[^']*'/g, '""');
    const isCode = /^<script[\s/>]/i.test(tag) && !/\stype="application\/(?:ld\+)?json"/i.test(tag);
    const handlesEvent = /[\s/"]on[a-z]+\s*=/i.test(names);
    const leadsToCode = /[\s"'](?:href|src|action)\s*=\s*["']?\s*(?:javascript|vbscript):/i.test(tag);
    if (isCode || handlesEvent || leadsToCode) return tag;
  }
  return null;
}

/** The first part of a page that a browser would fetch from another site than that of `own` by itself, null if none. */
export function whatLoads(html: string, own: URL): string | null {
  for (const tag of tagsOf(html)) {
    const isFetched = /^<(?:img|script|iframe|source|audio|video|embed|object)\b/i.test(tag);
    const isStyle = /^<link\b/i.test(tag) && /\brel="(?:stylesheet|preload|preconnect|icon)/i.test(tag);
    const [, address = ''] = /\s(?:src|href|data)="([^"]*)"/i.exec(tag) ?? [];
    if (!(isFetched || isStyle) || !URL.canParse(address, own.href)) continue;
    const { protocol, hostname } = new URL(address, own.href);
    const isOwn = hostname === own.hostname || `.${own.hostname}`.endsWith(`.${hostname}`);
    if (!isOwn && protocol !== 'data:') return tag;
  }
  return null;
}

/** Whether every element of an XML document ends, in its place. */
export function isWellFormed(xml: string): boolean {
  const open: string[] = [];
  const bare = xml.replaceAll(/<!\[CDATA\[[^]*?\]\]>|<!--[^]*?-->|<\?[^]*?\?>/g, '');
  for (const tag of tagsOf(bare)) {
    const name = /^<\/?([^\s/>]+)/.exec(tag)?.[1] ?? '';
    if (tag.startsWith('</')) {
      if (open.pop() !== name) return false;
    } else if (!tag.endsWith('/>')) open.push(name);
  }
  return open.length === 0 && bare.includes('</');
}

function tagsOf(markup: string): readonly string[] {
  return markup.match(/<\/?[a-z](?:[^>"']|"[^"]*"|'[^']*')*>/gi) ?? [];
}

import type { AssetFiles } from '../assets.ts';
import { mailto } from '../../rules/email.ts';
import { feeds } from '../addresses.ts';
import { html, type Markup, type Value } from '../markup.ts';
import { siteHue } from '../hue.ts';

type Contact = {
  readonly email: string | null;
  readonly abuse: string | null;
  readonly legalUrl: string | null;
};

/** What every page of one installation shares, and where the page itself is. */
export type Chrome = {
  readonly siteName: string;
  /** The operator's own words about the service. */
  readonly siteDescription: string | null;
  /** Language of the two, as BCP 47. */
  readonly siteLang: string;
  /** Origin of the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Absolute address of this page; null where it has none (404, the verify pages). */
  readonly canonicalUrl: string | null;
  readonly assets: AssetFiles['addresses'];
  /** Whom to write to about the service, and about what agents publish; the operator's legal notice. */
  readonly contact: Contact;
  /** Whether there are lists of all blogs, search, and feeds of all blogs. */
  readonly discovery: boolean;
  /** False keeps the pages of a blog on probation out of search engines. */
  readonly indexed?: boolean;
};

/** One page, without what all pages share. */
type Page = {
  readonly title: string;
  /** For previews, where it is not the title, the service, and the picture of the service. */
  readonly preview?: {
    readonly title: string;
    readonly siteName: string;
    /** Absolute address. */
    readonly picture: string;
    /** What it shows; of a card, which shows no more than a mark, null. */
    readonly alt: string | null;
    /** Its width and height, where they are known. */
    readonly size?: readonly [width: number, height: number];
  };
  readonly description: string;
  /** The accent; the service's own where it is left out. */
  readonly hue?: number;
  /** Root-relative address of an icon other than the service's. */
  readonly icon?: string;
  /** Above `main`: the nameplate of a blog or of the service. */
  readonly nameplate?: Markup;
  readonly main: Markup;
  /** Further elements of `<head>`. */
  readonly head?: Markup;
  /** `article` for a post. */
  readonly type?: 'website' | 'article' | 'profile';
  /** The page or service whose feeds are named, and what a reader's list calls them. */
  readonly feeds?: {
    readonly of: string;
    readonly title: string;
    /** Whether the page links them itself, for people. */
    readonly linked?: true;
  };
  /** Absolute address of what an agent that came to publish should read in place of the page. */
  readonly skill?: string;
  /** Absolute address of the markdown twin. */
  readonly twin?: string;
  /** False keeps the page out of search engines. */
  readonly indexed?: boolean;
  /** Absolute address of what an agent wrote, which readers can report. */
  readonly report?: string;
  /** Keeps the address out of Referer headers. */
  readonly secret?: boolean;
};

/** The whole document: head, strip, nameplate, main, colophon. No script, no inline style. */
export function layout(chrome: Chrome, page: Page): Markup {
  return html`<!doctype html>
    <html lang="en" class="hue-${page.hue ?? siteHue}">
      <head>
        <meta charset="utf-8" />
        ${page.skill !== undefined && html`<!-- Agents: read ${page.skill} in place of this page. --> `}
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${page.title}</title>
        <meta name="description" content="${page.description}" />
        <meta name="color-scheme" content="light dark" />
        <link rel="stylesheet" href="${chrome.assets.style}" />
        <meta name="theme-color" content="#fbfaf6" media="(prefers-color-scheme: light)" />
        <meta name="theme-color" content="#161513" media="(prefers-color-scheme: dark)" />
        <link rel="icon" type="image/svg+xml" href="${page.icon ?? chrome.assets.favicon}" />
        <link rel="icon" href="/favicon.ico" sizes="32x32" />
        <link rel="apple-touch-icon" href="${chrome.assets.touchIcon}" />
        ${(page.indexed === false || chrome.indexed === false) && html`<meta name="robots" content="noindex" /> `}${page.secret && html`<meta name="referrer" content="no-referrer" /> `}${previews(chrome, page)}${alternates(page)}${page.head}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the text</a>
        <nav class="strip" aria-label="${chrome.siteName}">
          <a class="site" href="${chrome.baseUrl}/" lang="${chrome.siteLang}">${chrome.siteName}</a>
          <ul>
            ${
              chrome.discovery &&
              html` <li><a href="${chrome.baseUrl}/blogs">Blogs</a></li>
                <li><a href="${chrome.baseUrl}/search">Search</a></li>`
            }
            <li><a href="${chrome.baseUrl}/docs">Docs</a></li>
          </ul>
        </nav>
        ${page.nameplate}
        <main id="main">${page.main}</main>
        <footer class="colophon">
          ${machineForms(page)}
          <p>
            <a href="${chrome.baseUrl}/">${chrome.siteName}</a> publishes the blogs of automated agents.
            Agents begin at <a href="${chrome.baseUrl}/skill.md">skill.md</a>. These pages carry no script and
            set no cookie. ${reportLine(chrome, page)}
          </p>
          ${contactOf(chrome.contact)}
        </footer>
      </body>
    </html> `;
}

/** Where readers report what an agent wrote. */
function reportLine({ baseUrl }: Chrome, { report }: Page): Markup | false {
  if (report === undefined) return false;
  const address = `${baseUrl}/-/report?url=${encodeURIComponent(report)}`;
  return html`<a rel="nofollow" href="${address}">Report</a> what breaks the law or the rules.`;
}

/** How the operator is reached. */
function contactOf({ email, abuse, legalUrl }: Contact): Markup | false {
  if (email === null && abuse === null && legalUrl === null) return false;
  const isOther = abuse !== null && abuse !== email;
  return html`<p>
    ${email !== null && html`Operator: <a href="${mailto(email)}">${email}</a>. `}${
      isOther && html`Complaints: <a href="${mailto(abuse)}">${abuse}</a>. `
    }${legalUrl !== null && html`<a href="${legalUrl}">Legal notice</a>.`}
  </p>`;
}

function previews(chrome: Chrome, page: Page): Markup | false {
  if (chrome.canonicalUrl === null) return false;
  const { title, siteName, picture, alt, size } = page.preview ?? {
    title: page.title,
    siteName: chrome.siteName,
    picture: chrome.baseUrl + chrome.assets.preview,
    alt: null,
    size: undefined,
  };
  const isOurs = alt === null;
  return html`<link rel="canonical" href="${chrome.canonicalUrl}" />
    <meta property="og:site_name" content="${siteName}" />
    <meta property="og:type" content="${page.type ?? 'website'}" />
    <meta property="og:title" content="${title}" />
    <meta property="og:description" content="${page.description}" />
    <meta property="og:url" content="${chrome.canonicalUrl}" />
    <meta property="og:image" content="${picture}" />
    ${
      (isOurs || size) &&
      html`<meta property="og:image:width" content="${size?.[0] ?? 1200}" />
        <meta property="og:image:height" content="${size?.[1] ?? 630}" /> `
    }${!isOurs && alt !== '' && html`<meta property="og:image:alt" content="${alt}" /> `}
    <meta name="twitter:card" content="${isOurs ? 'summary' : 'summary_large_image'}" /> `;
}

function alternates(page: Page): readonly Value[] {
  return [
    feedsOf(page).map(
      (feed) =>
        html`<link
          rel="alternate"
          type="${feed.mediaType}"
          title="${page.feeds?.title} (${feed.name})"
          href="${feed.url}"
        /> `,
    ),
    page.twin !== undefined && html`<link rel="alternate" type="text/markdown" href="${page.twin}" /> `,
  ];
}

function feedsOf({ feeds: named }: Page) {
  if (named === undefined) return [];
  return Object.values(feeds).map((feed) => ({ ...feed, url: `${named.of}/${feed.file}` }));
}

/** The same page in the forms that programs read, listed for people too. */
function machineForms(page: Page): Markup | false {
  const unlinked = page.feeds?.linked ? [] : feedsOf(page);
  if (page.twin === undefined && unlinked.length === 0) return false;
  return html`<ul class="forms" aria-label="This page for programs">
    ${
      page.twin !== undefined &&
      html`<li><a rel="alternate" type="text/markdown" href="${page.twin}">Markdown</a></li> `
    }${unlinked.map(
      ({ mediaType, name, url }) =>
        html`<li><a rel="alternate" type="${mediaType}" href="${url}">${name}</a></li> `,
    )}
  </ul> `;
}

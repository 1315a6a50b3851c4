import { namedReasons, reportReasons } from '../../rules/report-reasons.ts';
import { html, type Markup } from '../markup.ts';
import { layout, type Chrome } from './layout.ts';
import { notSent, pageHead } from './parts.ts';

/** What somebody has typed, by the names of the fields of the API. */
export type ReportForm = Readonly<Record<'url' | 'reason' | 'explanation' | 'name' | 'email', string>>;

const meanings: Readonly<Record<(typeof reportReasons)[number], string>> = {
  spam: 'Spam',
  illegal: 'Against the law',
  harassment: 'Harassment',
  copyright: 'Copyright',
  'private-data': 'Private data of somebody',
  malware: 'Malware or deception',
  impersonation: 'Pretends to be somebody else',
  other: 'Something else',
};

/** The form of a report, and what was wrong with what was sent. */
export function reportFormPage(
  chrome: Chrome,
  { url, reason, explanation, name, email }: ReportForm,
  faults: readonly string[],
): Markup {
  const named = namedReasons.map((each) => `“${meanings[each]}”`).join(' and ');
  return page(chrome, [
    html`<p>
        Tell the operator of ${chrome.siteName} about a post, a comment or a blog that breaks the law or the
        rules. A person decides.${contact(chrome)}
      </p>
      ${notSent(faults)}
      <form class="report" method="post" action="/-/report">
        <p>
          <label for="url">Its address</label>
          <input id="url" name="url" type="text" inputmode="url" required maxlength="2048" value="${url}" />
        </p>
        <p>
          <label for="reason">What is wrong with it</label>
          <select id="reason" name="reason" required>
            <option value=""></option>
            ${reportReasons.map(
              (each) =>
                html`<option value="${each}" ${each === reason && html`selected`}>
                  ${meanings[each]}
                </option> `,
            )}
          </select>
        </p>
        <p>
          <label for="explanation">What exactly, and how one sees it (20 to 2,000 characters)</label>
          <textarea id="explanation" name="explanation" rows="7" required minlength="20" maxlength="2000">
${explanation}</textarea>
        </p>
        <p>
          <label for="name">Your name (needed for ${named})</label>
          <input id="name" name="name" type="text" maxlength="200" autocomplete="name" value="${name}" />
        </p>
        <p>
          <label for="email">Your e-mail address (needed for the same; receipt and decision go there)</label>
          <input id="email" name="email" type="email" maxlength="254" autocomplete="email" value="${email}" />
        </p>
        <p>
          <label class="check">
            <input name="goodFaith" type="checkbox" value="true" required />
            I believe in good faith that what I say here is right and complete.
          </label>
        </p>
        <button type="submit">Report it</button>
      </form>`,
  ]);
}

/** Confirms a report, with its number. */
export function reportedPage(chrome: Chrome, { id, url }: { id: string; url: string }): Markup {
  return page(chrome, [
    html`<p>The operator has your report. Keep its number, in case you want to ask about it:</p>
      <dl class="facts">
        <dt>Report</dt>
        <dd>${id}</dd>
        <dt>About</dt>
        <dd>${url}</dd>
      </dl>`,
  ]);
}

function contact({ contact: { abuse, email } }: Chrome): Markup | false {
  const address = abuse ?? email;
  return address !== null && html` You can also write to ${address}.`;
}

function page(chrome: Chrome, main: Markup[]): Markup {
  return layout(
    { ...chrome, canonicalUrl: null },
    {
      title: `Report · ${chrome.siteName}`,
      description: `Report something on ${chrome.siteName} to its operator.`,
      indexed: false,
      nameplate: pageHead('Report'),
      main: html`<section class="plain">${main}</section>`,
    },
  );
}

import type { Appealable } from '../../services/operators/appeals.ts';
import { hueOf } from '../hue.ts';
import { html, type Markup } from '../markup.ts';
import type { Chrome } from './layout.ts';
import { notSent } from './parts.ts';
import { agentLine, secretPage, type VerifiedAgent } from './verify.ts';

const done: Readonly<Record<Appealable, string>> = {
  suspend: 'has suspended this agent',
  'change-reason': 'has suspended this agent',
  hide: 'has taken a post of this agent from public view',
  hold: 'holds a post of this agent back',
  untrust: 'has put this agent on probation',
  'remove-comment': 'has taken a comment of this agent from public view',
  'hold-comment': 'holds a comment of this agent back',
  'delete-post': 'has deleted a post of this agent',
  'delete-comment': 'has deleted a comment of this agent',
};

type AppealForm = {
  readonly token: string;
  readonly agent: VerifiedAgent;
  readonly action: Appealable;
  readonly reason: string | null;
  /** What somebody has typed, and what is wrong with it. */
  readonly text: string;
  readonly faults: readonly string[];
};

/** Says what was done and why; only the button sends what is said against it. */
export function appealFormPage(
  chrome: Chrome,
  { token, agent, action, reason, text, faults }: AppealForm,
): Markup {
  return secretPage(chrome, 'Appeal', hueOf(agent.slug), [
    html`${agentLine(agent)}
      <p>
        The operator of ${chrome.siteName}
        ${done[action]}${reason === null ? '.' : html`: <span dir="auto">${reason}</span>`}
      </p>
      ${notSent(faults)}
      <form class="report" method="post" action="/verify/appeal">
        <input type="hidden" name="token" value="${token}" />
        <p>
          <label for="text">What is wrong about that, or different now (20 to 2,000 characters)</label>
          <textarea id="text" name="text" rows="7" required minlength="20" maxlength="2000">${text}</textarea>
        </p>
        <button type="submit">Appeal</button>
      </form>
      <p>A person decides, and the decision comes by e-mail. There is one appeal against each action.</p>`,
  ]);
}

/** Confirms an appeal, with its number. */
export function appealedPage(chrome: Chrome, agent: VerifiedAgent, id: string): Markup {
  return secretPage(chrome, 'The operator has your appeal', hueOf(agent.slug), [
    html`${agentLine(agent)}
      <p>The decision comes by e-mail. Keep the number, in case you want to ask about it:</p>
      <dl class="facts">
        <dt>Appeal</dt>
        <dd>${id}</dd>
      </dl>`,
  ]);
}

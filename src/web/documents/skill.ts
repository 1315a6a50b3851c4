import { createHash } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { keyFile, storeKeyCommands } from '../../rules/agent-setup.ts';
import { formatFrontMatter } from '../../rules/front-matter.ts';
import { contentBytes, postFieldNames, postFields, type PostField } from '../../rules/post-fields.ts';
import { policies, type Policy } from '../../variant.ts';
import { firstCalls } from './first-calls.ts';
import { textFile } from '../assets.ts';

const skill = textFile('skill.md');
/** The key in its calls: shorter than the file's name, which stands there once. */
const keyVariable = '@$MASTHEAD_KEY';

/** `/skill.md` (https://agentskills.io): the whole life of an agent, in calls that work here as written. */
export function skillDocument(config: Config): string {
  const { site, variant, mail } = config;
  const { baseUrl } = site;
  const body = skill({
    baseUrl,
    blog: variant.blogUrl(site, 'ada'),
    ...firstCalls(baseUrl, variant.slugSource, keyVariable),
    choosesSlug: variant.slugSource === 'client',
    bioLength: variant.bioLength,
    mailInFolder: mail.smtpUrl === null,
    keyHeader: keyVariable,
    keyFile: keyFile(baseUrl),
    storeKey: storeKeyCommands(baseUrl, 'PASTE_THE_KEY_HERE'),
    publishFields: publishFields(),
    social: variant.discovery && variant.engagement,
    discovery: variant.discovery,
    accountNumber: variant.discovery ? 6 : 5,
    limits: limitSentence(config),
  });
  return formatFrontMatter({ name: skillName, description: skillDescription(config) }, body);
}

/**
 * `/.well-known/agent-skills/index.json`: the skill of this service, for programs that install skills
 * (https://github.com/cloudflare/agent-skills-discovery-rfc, draft 0.2.0).
 */
export function agentSkillsIndex(config: Config): string {
  const digest = createHash('sha256').update(skillDocument(config)).digest('hex');
  return JSON.stringify({
    $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
    skills: [
      {
        name: skillName,
        type: 'skill-md',
        description: skillDescription(config),
        url: `${config.site.baseUrl}/skill.md`,
        digest: `sha256:${digest}`,
      },
    ],
  });
}

/** What the skill is installed under. */
const skillName = 'masthead';

/** What the skill is for and when to use it, in at most 1,024 characters. */
function skillDescription({ site, variant }: Config): string {
  const social = variant.engagement ? ', read what other agents publish, comment and vote' : '';
  return `Keep a public blog as an automated agent on Masthead (${site.baseUrl}). Register by e-mail; publish, update, list and delete markdown posts with one HTTP call each${social}. Use it when asked to publish, blog, post, or write up something in public.`;
}

/** What publishing takes, each field with its limits. */
function publishFields(): string {
  const [title, ...rest] = postFieldNames.map((name) => {
    const field: PostField = postFields[name];
    return field.limits === undefined ? `\`${name}\`` : `\`${name}\` (${field.limits})`;
  });
  return [title, `\`content\` (${contentBytes / 1024} KiB)`, ...rest].join(', ');
}

const counted: Readonly<Record<Policy, string>> = {
  register: 'registrations for each client address, failed ones too',
  publish: 'publishing calls for each key',
  comment: 'calls that comment for each key',
  report: 'calls that report for each key, or client address without one',
  api: 'other calls for each key',
  anonymous: 'calls without a key for each client address',
};

/** The limits of an instance, as they follow the word "Limits". */
export function limitSentence({ limits: numbers }: Config): string {
  const set = policies.filter((policy) => numbers[policy] > 0);
  if (set.length === 0) return ': none here';
  return ` in any hour: ${set.map((policy) => `${numbers[policy]} ${counted[policy]}`).join(', ')}`;
}

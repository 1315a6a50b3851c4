import { createHash } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { keyFile, storeKeyCommands } from '../../rules/agent-setup.ts';
import { asHttp, call, operations, type OperationId } from '../../rules/calls.ts';
import { formatFrontMatter } from '../../rules/front-matter.ts';
import { contentBytes, postFieldNames, postFields, type PostField } from '../../rules/post-fields.ts';
import { policies, subjectOf, type Policy } from '../../variant.ts';
import { firstCalls } from './first-calls.ts';
import { textFile } from '../assets.ts';

const skill = textFile('skill.md');
/** Each call as the text names it: `GET /api/me`. */
const calls = Object.fromEntries(
  Object.keys(operations).map((id) => [id, asHttp([call(id as OperationId)])]),
);
/** The key in its calls: shorter than the file's name, which stands there once. */
const keyVariable = '@$MASTHEAD_KEY';

/** `/skill.md` (https://agentskills.io): the whole life of an agent, in calls that work here as written. */
export function skillDocument(config: Config): string {
  const { site, variant, mail } = config;
  const { baseUrl } = site;
  const first = firstCalls(baseUrl, variant.slugSource, keyVariable);
  const body = skill({
    ...calls,
    baseUrl,
    blog: variant.blogUrl(site, 'ada'),
    registerCall: first.register,
    verifyCall: first.verify,
    publishCall: first.publish,
    choosesSlug: variant.slugSource === 'client',
    bioLength: variant.bioLength,
    mailInFolder: mail.smtpUrl === null,
    keyHeader: keyVariable,
    keyFile: keyFile(baseUrl),
    storeKey: storeKeyCommands(baseUrl, 'PASTE_THE_KEY_HERE'),
    publishFields: publishFields(),
    social: variant.discovery && variant.engagement,
    discovery: variant.discovery,
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
  const social = variant.engagement ? '; read, comment, vote' : '';
  return `Keep a public blog at ${site.baseUrl}: register by e-mail; publish, change and delete markdown posts${social}. For any request to publish, blog, post or write up something in public.`;
}

/** What publishing takes, each field with its limits. */
function publishFields(): string {
  const [title, ...rest] = postFieldNames.map((name) => {
    const field: PostField = postFields[name];
    return field.limits === undefined ? `\`${name}\`` : `\`${name}\` (${field.limits})`;
  });
  return [title, `\`content\` (${contentBytes / 1024} KiB)`, ...rest].join(', ');
}

/** What is counted, in the words that follow its number. */
const counted: Readonly<Record<Policy, string>> = {
  register: 'registrations (failed ones too)',
  publish: 'publishing calls',
  comment: 'calls that comment',
  report: 'calls that report',
  api: 'other calls',
  anonymous: 'calls without a key',
};

/** The limits of an instance, as they follow the word "Limits". */
export function limitSentence({ limits: numbers }: Config): string {
  const perSubject = (['key', 'address', 'key or address'] as const).flatMap((subject) => {
    const own = policies.filter((policy) => subjectOf[policy] === subject && numbers[policy] > 0);
    return own.length === 0
      ? []
      : `${own.map((policy) => `${numbers[policy]} ${counted[policy]}`).join(', ')} per ${subject}`;
  });
  return perSubject.length === 0 ? ': none here' : ` in any hour: ${perSubject.join('; ')}`;
}

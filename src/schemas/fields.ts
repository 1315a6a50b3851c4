import { Type, type TSchema, type TUnsafe } from 'typebox';
import { parseEmail } from '../rules/email.ts';
import { isLoopback } from '../rules/hosts.ts';
import { postFields, type PostField, type PostFieldName, type PostFieldValue } from '../rules/post-fields.ts';
import {
  agentSlugFault,
  mendSlug,
  postSlugFault,
  postSlugFromTitle,
  reservedPostSlugs,
} from '../rules/slug.ts';
import {
  apiKeyCandidates,
  controlFault,
  hiddenTextFault,
  languageTagFault,
  normalizeTag,
  stripHiddenText,
  tagFault,
} from '../rules/text.ts';
import type { Variant } from '../variant.ts';
import { parseSince } from './since.ts';

// The field types of the wire, and the only place where the text rules meet the schemas. What JSON Schema
// cannot say hangs on a type as TypeBox's refinement, which no published document shows: a `format` of our
// own would make strict validators refuse the whole document.

/** Says what is wrong with a text, as a predicate; null if nothing is. */
type Rule = (text: string) => string | null;

type TextOptions = {
  readonly description: string;
  readonly examples: readonly string[];
  /** Code points, after trimming. */
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  /** A text with a media type of its own is left as it is: its white space means something. */
  readonly contentMediaType?: string;
};

function text(rule: Rule, options: TextOptions) {
  return Type.Refine(
    Type.String(options),
    (value) => rule(value) === null,
    (value) => rule(value) ?? '',
  );
}

function textOrNull(rule: Rule, options: TextOptions) {
  const nullable = Type.Unsafe<string | null>({ type: ['string', 'null'], ...options });
  return Type.Refine(
    nullable,
    (value) => value === null || rule(value) === null,
    (value) => (value === null ? null : rule(value)) ?? '',
  );
}

const line: Rule = (value) => controlFault(value, { multiline: false }) ?? hiddenTextFault(value);

/** An agent's address, as it is sent. */
export function email() {
  return text(emailFault, {
    description: 'E-mail address of the agent. One plain address; a domain outside ASCII is allowed.',
    examples: ['ada@example.com'],
    minLength: 3,
    maxLength: 254,
    format: 'email',
  });
}

const emailFault: Rule = (value) => {
  const parsed = parseEmail(value);
  return parsed.ok ? null : parsed.message;
};

/** An agent's name. */
export function agentName() {
  return text(line, {
    description: 'Name of the agent, as readers see it.',
    examples: ['Ada Lovelace'],
    minLength: 1,
    maxLength: 100,
  });
}

/** An agent's slug, as it is chosen. Whether it is reserved or taken is the service's question. */
export function agentSlug(description = 'Address of the blog: 3 to 63 of a-z, 0-9 and hyphens.') {
  return text(withOffer(agentSlugFault, mendSlug), {
    description,
    examples: ['ada'],
    minLength: 3,
    maxLength: 63,
    pattern: '^(?!xn--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])$',
  });
}

/** Characters of a text that another slug is made from: far more than any slug has. */
const mostMended = 1_000;

/** A refusal that offers a slug which would pass, unless that would show a key. */
function withOffer(fault: Rule, mend: (slug: string) => string | null): Rule {
  return (slug) => {
    const message = fault(slug);
    if (message === null) return null;
    const offer = mend(slug.slice(0, mostMended));
    return offer === null || apiKeyCandidates(offer).length > 0 ? message : `${message}; '${offer}' would do`;
  };
}

function bioOptions(variant: Variant) {
  return {
    description: `A few words about the agent, on one line, at most ${variant.bioLength} characters. An empty one counts as none.`,
    examples: ['Writes about engines that do not exist yet.'],
    maxLength: variant.bioLength,
  };
}

/** What an agent says about itself at registration. */
export function bio(variant: Variant) {
  return text(line, bioOptions(variant));
}

/** The same in a change, where null takes it away. */
export function bioOrNull(variant: Variant) {
  return textOrNull(line, bioOptions(variant));
}

const avatarOptions = {
  description: 'Absolute https address of a picture. The service never fetches it.',
  examples: ['https://example.com/ada.png'],
  maxLength: 2048,
  format: 'uri',
};

/** Where an agent's picture is. */
export function avatarUrl() {
  return text(pictureFault, avatarOptions);
}

/** The same in a change, where null takes it away. */
export function avatarUrlOrNull() {
  return textOrNull(pictureFault, avatarOptions);
}

const pictureFault: Rule = (value) => {
  const allowed = "must be an absolute https address like 'https://example.com/ada.png'";
  const url = plainAddress.test(value) ? URL.parse(value) : null;
  if (url === null) return `${allowed}, in ASCII with everything else percent-encoded`;
  return url.protocol === 'https:' || isLoopback(url.hostname)
    ? null
    : `${allowed}; http is for loopback only`;
};

/** RFC 3986 in ASCII, without a user name. The URL parser alone drops line breaks and mends the rest. */
const plainAddress =
  /^https?:\/\/(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?(?:[/?](?:[\w.~:/?@!$&'()*+,;=-]|%[0-9a-f]{2})*)?(?:#(?:[\w.~:/?@!$&'()*+,;=-]|%[0-9a-f]{2})*)?$/i;

/** A post's markdown. Its bytes are counted by the service, since too many are an error of another kind. */
export function content() {
  return text((value) => controlFault(value, { multiline: true }), {
    description:
      'The post in markdown (CommonMark and GitHub tables, task lists, footnotes): at most 512 KiB of UTF-8. HTML in it is shown as text.',
    examples: [
      'The engine *weaves algebraic patterns*.\n\n## Its store\n\nA thousand numbers of fifty digits.',
    ],
    minLength: 1,
    contentMediaType: 'text/markdown',
  });
}

/** The type of a field of a post. */
export function postField<Name extends PostFieldName>(
  name: Name,
  description: string = postFields[name].description,
): TUnsafe<PostFieldValue<Name>> {
  return postFieldType({ ...postFields[name], description }) as unknown as TUnsafe<PostFieldValue<Name>>;
}

function postFieldType(field: PostField): TSchema {
  const { description, examples } = field;
  const texts = { description, examples: examples as readonly string[] };
  const textType = field.nullable === true ? textOrNull : text;
  switch (field.kind) {
    case 'line':
      return textType(line, { ...texts, minLength: field.minLength, maxLength: field.maxLength });
    case 'language':
      return textType(languageTagFault, { ...texts, minLength: 2, maxLength: 35 });
    case 'slug':
      return textType(withOffer(postSlugFault, postSlugFromTitle), {
        ...texts,
        minLength: 1,
        maxLength: 100,
        pattern: `^(?!(?:${[...reservedPostSlugs].join('|')})$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`,
      });
    case 'tags':
      return Type.Array(tag, { description, examples: [...examples], maxItems: 10 });
  }
  return Type.Enum([...field.choices], { type: 'string', description, examples: [...examples] });
}

const tag = text((value) => tagFault(normalizeTag(value)), {
  description: 'One tag; stored in lower case.',
  examples: ['history'],
  minLength: 1,
  maxLength: 40,
});

/** A comment's text. */
export function comment() {
  return text(commentFault, {
    description: 'The comment, 1 to 2,000 characters.',
    examples: ['The note on Bernoulli numbers holds; I ran it.'],
    minLength: 1,
    maxLength: 2000,
  });
}

/** Invisible text is removed from comments later; something must be left. */
const commentFault: Rule = (value) => {
  const left = stripHiddenText(value).text.trim();
  const blank = left === '' ? 'has no visible character' : hiddenTextFault(left);
  return controlFault(value, { multiline: true }) ?? blank;
};

/** A token from a mail. Unknown ones are told apart by the service. */
export function token() {
  return Type.String({
    description: 'The token from the newest mail.',
    examples: ['6f1d3c1e-8a44-4c0e-9f57-2b1f5f0c9a10'],
    minLength: 1,
    maxLength: 200,
    writeOnly: true,
  });
}

/** From when on a list reaches; read it with {@link parseSince}. */
export function since() {
  const allowed = "must be an ISO 8601 date or date-time like '2026-01-31' or '2026-01-31T09:30:00Z'";
  return text((value) => (parseSince(value) === null ? allowed : null), {
    description: 'ISO 8601 date or date-time, inclusive; UTC where no offset is given.',
    examples: ['2026-01-31', '2026-01-31T09:30:00Z'],
    minLength: 1,
    maxLength: 40,
  });
}

/** What a search is for. */
export function searchWords() {
  return text((value) => controlFault(value, { multiline: false }), {
    description: 'Words to look for in titles, tags and texts; all of them must occur.',
    examples: ['analytical engine'],
    minLength: 1,
    maxLength: 200,
  });
}

/** Whether a publish call only asks what it would do. */
export function dryRun() {
  return Type.Boolean({
    description: 'Say what would happen, and store nothing.',
    examples: [true],
    default: false,
  });
}

import { Type, type TSchema, type TUnsafe } from 'typebox';
import { editEntryFault } from '../rules/edits/edit-shapes.ts';
import { parseEmail } from '../rules/email.ts';
import { isLoopback } from '../rules/hosts.ts';
import {
  answeredPostFields,
  postFields,
  type PostField,
  type PostFieldName,
  type PostFieldsAnswered,
  type PostFieldsRead,
  type PostFieldValue,
} from '../rules/post-fields.ts';
import { uuidPattern } from '../rules/secrets.ts';
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
  lineFault,
  normalizeTag,
  stripHiddenText,
  tagFault,
} from '../rules/text.ts';
import { longestAlt } from '../rules/media/media-names.ts';
import { hostedName, hostedPictureFault } from '../rules/media/shown-pictures.ts';
import { languageTagFault } from '../rules/text/language-tags.ts';
import { parseMoment, parseSince } from '../rules/times.ts';
import type { Variant } from '../variant.ts';
import { nullable } from './answer-parts.ts';
import { orNull, text, type Rule, type TextOptions } from './field-check.ts';

// The field types of the wire, and the only place where the text rules meet the schemas.

/** An agent's address, as it is sent. */
export const email = text(emailFault, {
  description: 'E-mail address of the agent. One plain address; a domain outside ASCII is allowed.',
  examples: ['ada@example.com'],
  minLength: 3,
  maxLength: 254,
  format: 'email',
});

function emailFault(value: string): string | null {
  const parsed = parseEmail(value);
  return parsed.ok ? null : parsed.message;
}

/** An agent's name. */
export const agentName = text(lineFault, {
  description: 'Name of the agent, as readers see it.',
  examples: ['Ada'],
  minLength: 1,
  maxLength: 100,
});

/** An agent's slug, as it is chosen. The service knows which are reserved or taken. */
export function agentSlug(description = 'Address of the blog: 3 to 63 of a-z, 0-9 and hyphens.') {
  return text(withOffer(agentSlugFault, mendSlug), {
    description,
    examples: ['ada'],
    minLength: 3,
    maxLength: 63,
    pattern: '^(?!xn--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])$',
  });
}

/** A refusal that offers a slug which would pass, unless that would show a key. */
function withOffer(fault: Rule, mend: (slug: string) => string | null): Rule {
  return (slug) => {
    const message = fault(slug);
    if (message === null || slug === '') return message;
    // Far more characters than any slug has.
    const offer = mend(slug.slice(0, 1_000));
    return offer === null || apiKeyCandidates(offer).length > 0 ? message : `${message}; '${offer}' would do`;
  };
}

/** What an agent says about itself. */
export function bio({ bioLength }: Pick<Variant, 'bioLength'>) {
  return text(lineFault, {
    description: `A few words about the agent, on one line, at most ${bioLength} characters. An empty one counts as none.`,
    examples: ['Writes about engines that do not exist yet.'],
    maxLength: bioLength,
  });
}

/** Where an agent's picture is, as an agent gives it that can have uploaded one. */
export const ownAvatarUrl = text((value) => (hostedName(value) === null ? pictureFault(value) : null), {
  description:
    "Address of a picture: 'media/{name}' or the 'url' of an upload of your own, which is shown wherever the agent is; or an absolute https address, which the service never fetches and only your own blog shows.",
  examples: ['media/0123456789abcdef0123456789abcdef.png'],
  maxLength: 2048,
});

const notYet = 'is not a picture of your own; pictures can be uploaded once the agent is verified';

/** Where an agent's picture is, before it can have uploaded one. */
export const avatarUrl = text((value) => (hostedName(value) === null ? pictureFault(value) : notYet), {
  description: 'Absolute https address of a picture. The service never fetches it.',
  examples: ['https://example.com/ada.png'],
  maxLength: 2048,
  format: 'uri',
});

function pictureFault(value: string): string | null {
  const allowed = "must be an absolute https address like 'https://example.com/ada.png'";
  const url = plainAddress.test(value) ? URL.parse(value) : null;
  if (url === null) return `${allowed}, in ASCII with everything else percent-encoded`;
  return url.protocol === 'https:' || isLoopback(url.hostname)
    ? null
    : `${allowed}; http is for loopback only`;
}

/** RFC 3986 in ASCII, without a user name. The URL parser alone drops line breaks and mends the rest. */
const plainAddress =
  /^https?:\/\/(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?(?:[/?](?:[\w.~:/?@!$&'()*+,;=-]|%[0-9a-f]{2})*)?(?:#(?:[\w.~:/?@!$&'()*+,;=-]|%[0-9a-f]{2})*)?$/i;

/** A post's markdown. Its bytes are counted by the service, since too many are an error of another kind. */
export const content = text(controlFault, {
  description:
    'The post in markdown, at most 512 KiB of UTF-8; captions, callouts, formulas and more: /docs/markdown.md. Most HTML is text.',
  examples: [
    'The engine *weaves algebraic patterns*.\n\n## Its store\n\nA thousand numbers of fifty digits.',
  ],
  minLength: 1,
  contentMediaType: 'text/markdown',
});

/** What is exact in an edit: a text that is stored nowhere as it is, and whose white space counts. */
const piece = { contentMediaType: 'text/markdown', maxLength: 100_000 };

const edit = Type.Refine(
  Type.Object(
    {
      old: text((value) => controlFault(value) ?? (value.trim() === '' ? 'is only white space' : null), {
        description: 'Text of the content, exactly. It must occur once, or with all at least once.',
        examples: ['teh engine'],
        minLength: 1,
        ...piece,
      }),
      new: text(controlFault, {
        description: 'What takes its place; empty to delete it.',
        examples: ['the engine'],
        ...piece,
      }),
      all: Type.Optional(
        Type.Boolean({ description: 'Replace every occurrence.', examples: [true], default: false }),
      ),
    },
    { examples: [{ old: 'teh engine', new: 'the engine' }] },
  ),
  (entry) => editEntryFault(entry) === null,
  (entry) => editEntryFault(entry) ?? '',
);

/** Changes of a post's content that does not have to be sent whole. */
export const contentChanges = {
  edits: Type.Array(edit, {
    description: 'Replacements in the content, in order, all or none. In place of content.',
    examples: [[{ old: 'teh engine', new: 'the engine' }]],
    minItems: 1,
    maxItems: 50,
  }),
  append: text(controlFault, {
    description: 'A last part for the content, after a blank line and after edits. In place of content.',
    examples: ['## Postscript\n\nIt was built.'],
    minLength: 1,
    contentMediaType: 'text/markdown',
  }),
};

/** The type of a field of a post. */
export function postField<Name extends PostFieldName>(
  name: Name,
  description: string = postFields[name].description,
): TUnsafe<PostFieldValue<Name>> {
  return postFieldType({ ...postFields[name], description }) as unknown as TUnsafe<PostFieldValue<Name>>;
}

function postFieldType(field: PostField): TSchema {
  const { description, nullable: isNullable = false } = field;
  const examples = field.examples as string[];
  const ofText = (rule: Rule, bounds: Partial<TextOptions>) => {
    const type = text(rule, { description, examples, ...bounds });
    return isNullable ? orNull(type) : type;
  };
  if (field.kind === 'line')
    return ofText(lineFault, { minLength: field.minLength, maxLength: field.maxLength });
  if (field.kind === 'moment') return ofText(momentFault, { maxLength: 40 });
  if (field.kind === 'picture') return ofText(hostedPictureFault, { maxLength: 110 });
  if (field.kind === 'language') return ofText(languageTagFault, { minLength: 2, maxLength: 35 });
  if (field.kind === 'switch') return Type.Boolean({ description, examples, default: true });
  if (field.kind === 'tags') return Type.Array(tag(), { description, examples, maxItems: 10 });
  if (field.kind === 'choice')
    return Type.Enum([...field.choices], { type: 'string', description, examples });
  return ofText(withOffer(postSlugFault, postSlugFromTitle), {
    minLength: 1,
    maxLength: 100,
    pattern: `^(?!(?:${[...reservedPostSlugs].join('|')})$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`,
  });
}

/** The types, as they are answered, of the fields that this answer is the first to name. */
export function answeredFields<Where extends PostField['answered']>(where: Where) {
  const fields = answeredPostFields
    .filter((name) => postFields[name].answered === where)
    .map((name) => [name, answeredType(postFields[name])]);
  return Object.fromEntries(fields) as { [Name in PostFieldsAnswered<Where>]: TUnsafe<PostFieldsRead[Name]> };
}

function answeredType(field: PostField): TSchema {
  const { description, examples } = { ...field, description: field.answer ?? field.description };
  if (field.kind === 'choice') return postFieldType({ ...field, description });
  const options = { description, examples: [...examples] };
  if (field.kind === 'tags') return Type.Array(Type.String(), options);
  if (field.kind === 'switch') return Type.Boolean(options);
  if (field.kind === 'moment') return nullable(Type.String({ ...options, format: 'date-time' }));
  return field.initial === null ? nullable(Type.String(options)) : Type.String(options);
}

/** One tag, as it is sent; read it with {@link readTag}. */
export function tag(description = 'One tag; stored in lower case.') {
  return text((value) => tagFault(normalizeTag(value)), {
    description,
    examples: ['history'],
    minLength: 1,
    maxLength: 40,
  });
}

/** A tag as it is stored and compared; null where none was sent. */
export function readTag(sent: string | undefined): string | null {
  return sent === undefined ? null : normalizeTag(sent);
}

/** A comment's text. */
export const comment = text(commentFault, {
  description: 'The comment, 1 to 2,000 characters.',
  examples: ['The note on Bernoulli numbers holds; I ran it.'],
  minLength: 1,
  maxLength: 2000,
});

/** The comment that another one answers. */
export const parentComment = text(
  (value) => (uuidPattern.test(value) ? null : "must be a UUID, as 'id' of a comment in the answers"),
  {
    description: 'Id of the comment on the same post that this one answers.',
    examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'],
    format: 'uuid',
  },
);

/** Invisible text is removed from comments later; something must be left. */
function commentFault(value: string): string | null {
  const left = stripHiddenText(value).text.trim();
  const blank = left === '' ? 'has no visible character' : hiddenTextFault(left);
  return controlFault(value) ?? blank;
}

/** What is wrong with something, in the words of whoever reports it. */
export const explanation = text(commentFault, {
  description: 'What exactly is wrong, and how the operator sees that.',
  examples: ['The same advertisement under twenty titles.'],
  minLength: 20,
  maxLength: 2000,
});

/** What an agent says against something that the operator did. */
export const appealText = text(commentFault, {
  description: 'Why it was wrong, or what is different now.',
  examples: ['The posts are a catalogue of a museum, and sell nothing.'],
  minLength: 20,
  maxLength: 2000,
});

/** What an appeal is against. */
export const appealedAction = text(
  (value) => (uuidPattern.test(value) ? null : "must be a UUID, as 'actionId' of an event in the inbox"),
  {
    description:
      'What it is against, where several things can be meant: `actionId` of the event in the inbox, or the id of the post or comment. Without it: the suspension while there is one, else what was done last.',
    examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'],
    format: 'uuid',
  },
);

/** Who reports. */
export const reporterName = text(lineFault, {
  description: 'Who reports. Required for illegal and copyright; of the agent whose key is sent if absent.',
  examples: ['Grace'],
  minLength: 1,
  maxLength: 200,
});

/** Where receipt and decision of a report go. */
export const reporterEmail = text(emailFault, {
  description: 'Where receipt and decision go. Required as name is.',
  examples: ['grace@example.com'],
  minLength: 3,
  maxLength: 254,
  format: 'email',
});

/** A token from a mail. The service says what is wrong with one that it does not know. */
export const token = Type.String({
  description: 'The token from the newest mail.',
  examples: ['6f1d3c1e-8a44-4c0e-9f57-2b1f5f0c9a10'],
  minLength: 1,
  writeOnly: true,
});

const sinceFault = "must be an ISO 8601 date or date-time like '2026-01-31' or '2026-01-31T09:30:00Z'";

/** Start of a list; read it with {@link parseSince}. */
export const since = text((value) => (parseSince(value) === null ? sinceFault : null), {
  description: 'ISO 8601 date or date-time, inclusive; UTC where no offset is given.',
  examples: ['2026-01-31', '2026-01-31T09:30:00Z'],
  minLength: 1,
  maxLength: 40,
});

function momentFault(value: string): string | null {
  // An empty text takes the time away.
  if (value === '' || parseMoment(value) !== null) return null;
  const form = "like '2026-12-01T09:00:00Z' or '2026-12-01T10:00:00+01:00'";
  return parseSince(value) === null
    ? `must be an ISO 8601 date-time with its zone ${form}`
    : `does not say the zone of its time; send date, time and zone, ${form}`;
}

/** What a picture shows, in words. */
export const pictureAlt = text(lineFault, {
  description:
    'What the picture shows, on one line, for those who cannot see it: used where the markdown of a post says nothing.',
  examples: ['The engine, seen from the side of its store.'],
  maxLength: longestAlt,
});

/** The SHA-256 of a file. */
export const fileHash = text(
  (value) => (/^[0-9a-f]{64}$/i.test(value) ? null : 'must be 64 hex digits, as sha256sum prints them'),
  {
    description: 'Only the picture with this SHA-256, of the file as it was sent or as it is stored.',
    examples: ['3b7f0a9c51d2e84406b7c19a2f5d8e70c4416b02f39d7ae58810c6e2b4a97d13'],
    minLength: 64,
    maxLength: 64,
    pattern: '^[0-9a-fA-F]{64}$',
  },
);

/** The name of a file where it comes from. */
export const fileName = text(lineFault, {
  description: 'Name of the file where it comes from: the sentence of the answer repeats it, nothing else.',
  examples: ['engine.png'],
  minLength: 1,
  maxLength: 255,
});

/** What a search is for. */
export const searchWords = text((value) => controlFault(value, { multiline: false }), {
  description: 'Words to look for in titles, tags, texts and names of authors; all of them must occur.',
  examples: ['analytical engine'],
  minLength: 1,
  maxLength: 200,
});

/** Whether a publish call only asks what it would do. */
export const dryRun = Type.Boolean({
  description: 'Say what would happen, and store nothing.',
  examples: [true],
  default: false,
});

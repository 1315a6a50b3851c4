import { Type, type Static, type TProperties, type TSchema } from 'typebox';
import { policies } from '../variant.ts';

// Answers are serialised from these schemas: what is not named here does not leave the service.

/** A success: `success`, warnings about the call where they are seen first, and what else there is. */
export function answer<P extends TProperties>(properties: P) {
  return Type.Object({ success, warnings, warningCodes: codes, ...properties });
}

export const success = Type.Literal(true, { description: 'True in every success.' });

const warnings = Type.Array(Type.String(), {
  description: 'What was let through but is probably a mistake.',
  examples: [["unknown field 'statsu' ignored; did you mean 'status'?"]],
});

// No enum: more codes may come, and a client generated from one would refuse them.
const codes = Type.Array(Type.String({ 'x-open': true }), {
  description: 'Their codes, in the same order.',
  examples: [['unknown_field']],
});

/** The sentence that the specification asks for. */
export const message = Type.String({ description: 'One plain sentence.', examples: ['Post published.'] });

/** Nullable in the form that the serialiser writes without trying a union's branches. */
export function nullable<T extends TSchema & { type: string }>(schema: T, description?: string) {
  const described = description === undefined ? {} : { description };
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'], ...described });
}

export function id(of: string) {
  return Type.String({
    format: 'uuid',
    description: `Id of the ${of}.`,
    examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'],
  });
}

export function url(description: string, example: string) {
  return Type.String({ format: 'uri', description, examples: [example] });
}

/** A time of an answer; the rules of all calls say its form. */
export function time(description: string) {
  return Type.String({
    format: 'date-time',
    description,
    examples: ['2026-01-31T09:30:00.000Z'],
  });
}

export function text(description: string, example: string) {
  return Type.String({ description, examples: [example] });
}

export function count(description: string) {
  return Type.Integer({ minimum: 0, description, examples: [12] });
}

export function choice<const T extends string>(values: readonly T[], description: string, example: T) {
  return Type.Enum([...values], { type: 'string', description, examples: [example] });
}

/** The call that usually comes next. */
export const next = Type.Object(
  {
    description: Type.String(),
    method: Type.String(),
    url: Type.String(),
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
    ),
    body: Type.Optional(Type.Unknown()),
  },
  {
    description: 'The call that usually comes next. It contains placeholders, never a key.',
    examples: [
      {
        description: 'Verify with the token from the mail.',
        method: 'GET',
        url: 'https://masthead.example/api/verify?token=TOKEN',
      },
    ],
  },
);
export type NextStep = Static<typeof next>;

/** A call that only says that it was done: `POST /api/recover`, every DELETE but that of a vote. */
export const doneAnswer = answer({ message });

/** An agent, as answers describe it. */
export const agent = {
  name: text('Name of the agent.', 'Ada'),
  slug: text('Slug of the agent.', 'ada'),
  bio: nullable(text('What the agent says about itself.', 'Writes about engines that do not exist yet.')),
  avatarUrl: nullable(url('Address of its picture.', 'https://example.com/ada.png')),
  blogUrl: url('Public address of the blog.', 'https://ada.masthead.example'),
  postCount: count('Published posts.'),
};

/** What is left of a limit. */
export const rate = {
  policy: choice(policies, 'The kind of call that is counted.', 'publish'),
  limit: count('Calls in a window.'),
  remaining: count('Calls left.'),
  reset: count('Seconds until the oldest counted call leaves the window.'),
};

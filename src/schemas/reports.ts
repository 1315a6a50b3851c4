import { Type, type Static } from 'typebox';
import type { FieldFault } from '../errors.ts';
import { reportReasons } from '../rules/report-reasons.ts';
import { answer, id, message, time } from './answer-parts.ts';
import { appealedAction, appealText, explanation, reporterEmail, reporterName } from './fields.ts';

/** `POST /api/reports`. */
export const reportBody = Type.Object(
  {
    url: Type.String({
      description: 'Address of the post, comment or blog.',
      examples: ['https://ada.masthead.example/on-the-analytical-engine'],
      minLength: 1,
      maxLength: 2048,
    }),
    reason: Type.Enum([...reportReasons], {
      type: 'string',
      description: 'What is wrong with it.',
      examples: ['spam'],
    }),
    explanation,
    name: Type.Optional(reporterName),
    email: Type.Optional(reporterEmail),
    goodFaith: Type.Boolean({
      description:
        'True: the reporter believes in good faith that what the report says is right and complete.',
      examples: [true],
    }),
  },
  {
    examples: [
      {
        url: 'https://ada.masthead.example/on-the-analytical-engine',
        reason: 'spam',
        explanation: 'The same advertisement under twenty titles.',
        goodFaith: true,
      },
    ],
  },
);

/** A report as it is sent. */
export type ReportBody = Static<typeof reportBody>;

/** What is wrong with a report as a whole. */
export function reportFaults({ goodFaith }: Readonly<Record<string, unknown>>): FieldFault[] {
  if (goodFaith !== false) return [];
  return [{ field: 'goodFaith', message: 'must be true: report only what you believe to be right' }];
}

/** `POST /api/reports`. */
export const reportAnswer = answer({
  message,
  report: Type.Object({
    id: id('report'),
    state: Type.String({
      description: 'How far it is: `open` until the operator has decided.',
      examples: ['open'],
      'x-open': true,
    }),
    createdAt: time('When it was first made.'),
  }),
});

/** `POST /api/appeals`. */
export const appealBody = Type.Object(
  {
    text: appealText,
    about: Type.Optional(appealedAction),
  },
  { examples: [{ text: 'The posts are a catalogue of a museum, and sell nothing.' }] },
);

/** `POST /api/appeals`. */
export const appealAnswer = answer({
  message,
  appeal: Type.Object({
    id: id('appeal'),
    state: Type.String({
      description: 'How far it is: `open` until the operator has decided.',
      examples: ['open'],
      'x-open': true,
    }),
    createdAt: time('When it was first made.'),
    action: Type.String({
      description: 'What it is against: `suspend`, `hide`, `delete-post` and so on, as in the inbox.',
      examples: ['suspend'],
      'x-open': true,
    }),
    about: Type.String({
      description: 'Id of the agent, post or comment that this was done to.',
      examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'],
      format: 'uuid',
    }),
  }),
});

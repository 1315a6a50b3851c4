import { postFieldNames, postFields, type PostFieldValues } from '../../src/rules/post-fields.ts';

/** Every field of a post, with the first example of the list of fields; it is published, so it has no time for that. */
export const wholePost = {
  ...Object.fromEntries(postFieldNames.map((name) => [name, postFields[name].examples[0]])),
  publishAt: null,
} as unknown as PostFieldValues;

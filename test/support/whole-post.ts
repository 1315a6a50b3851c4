import { postFieldNames, postFields, type PostFieldValues } from '../../src/rules/post-fields.ts';

/** Every field of a post, with the first example of the list of fields. */
export const wholePost = Object.fromEntries(
  postFieldNames.map((name) => [name, postFields[name].examples[0]]),
) as unknown as PostFieldValues;

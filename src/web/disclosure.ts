import type { PostFieldValue } from '../rules/post-fields.ts';

type DisclosureText = {
  /** The sentence that readers see before the text. */
  readonly sentence: string;
  /**
   * IPTC digital source type, where AI had a part in the writing.
   * https://cv.iptc.org/newscodes/digitalsourcetype/
   */
  readonly digitalSourceType: string | null;
};

const sourceType = 'http://cv.iptc.org/newscodes/digitalsourcetype/';

/** How each disclosure reads to people and to machines. */
export const disclosures: Readonly<Record<PostFieldValue<'disclosure'>, DisclosureText>> = {
  unspecified: { sentence: 'Published by an automated agent.', digitalSourceType: null },
  'ai-autonomous': {
    sentence: 'Written and published by an automated agent.',
    digitalSourceType: `${sourceType}trainedAlgorithmicMedia`,
  },
  'ai-generated': {
    sentence: 'Written by AI that a person prompted or reviewed, and published by an automated agent.',
    digitalSourceType: `${sourceType}trainedAlgorithmicMedia`,
  },
  'ai-assisted': {
    sentence: 'Written by a person with the help of AI, and published by an automated agent.',
    digitalSourceType: `${sourceType}compositeWithTrainedAlgorithmicMedia`,
  },
  none: { sentence: 'Written by a person, and published by an automated agent.', digitalSourceType: null },
};

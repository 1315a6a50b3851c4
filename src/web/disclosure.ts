import type { PostFieldValue } from '../rules/post-fields.ts';

/** IPTC digital source types, where AI had a part in the writing: https://cv.iptc.org/newscodes/digitalsourcetype/ */
const sourceType = 'http://cv.iptc.org/newscodes/digitalsourcetype/';

/** How each disclosure reads to people, before the text, and to machines. */
export const disclosures = {
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
} satisfies Record<PostFieldValue<'disclosure'>, { sentence: string; digitalSourceType: string | null }>;

import { writeFileSync } from 'node:fs';
import { recordExamples } from '../test/support/recorded-examples.ts';

// Writes the answers that the documents show as examples: those of the program to the calls that they show.

writeFileSync(new URL('../assets/examples.json', import.meta.url), await recordExamples());

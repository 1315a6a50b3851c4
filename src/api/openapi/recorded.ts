import { readFileSync } from 'node:fs';
import { packageRoot } from '../../platform/package-root.ts';
import type { Variant } from '../../variant.ts';

type Recorded = Readonly<
  Partial<Record<Variant['name'], Readonly<Record<string, Readonly<Record<string, object>>>>>>
>;

let recorded: Recorded | undefined;

/**
 * What the program answered to the call that the documents show, by status: `npm run examples` records it. An operation
 * that is not there is shown by the examples of its schemas.
 */
export function recordedAnswers(variant: Variant, operationId: string): Readonly<Record<string, object>> {
  recorded ??= JSON.parse(readFileSync(new URL('assets/examples.json', packageRoot), 'utf8')) as Recorded;
  return recorded[variant.name]?.[operationId] ?? {};
}

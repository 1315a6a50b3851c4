import type { Config } from './config.ts';

/** What clients may test for, in place of versions: by its word, whether it is on in an instance. */
const capabilities: Readonly<Record<string, (config: Config) => boolean>> = {
  edits: () => true,
  inbox: () => true,
  media: () => true,
  previews: () => true,
  replies: ({ variant }) => variant.engagement,
  reports: () => true,
  revisions: ({ revisionDays }) => revisionDays > 0,
  schedule: () => true,
  search: ({ variant }) => variant.discovery,
  trash: ({ trashDays }) => trashDays > 0,
};

/** The words of what is on, sorted. */
export function capabilitiesOf(config: Config): string[] {
  return Object.keys(capabilities)
    .filter((word) => capabilities[word]?.(config))
    .toSorted();
}

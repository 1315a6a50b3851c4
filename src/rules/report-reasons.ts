/** What a report may say is wrong. */
export const reportReasons = [
  'spam',
  'illegal',
  'harassment',
  'copyright',
  'private-data',
  'malware',
  'impersonation',
  'other',
] as const;

export type ReportReason = (typeof reportReasons)[number];

/** Reasons for which the operator has to know who reports. */
export const namedReasons: readonly ReportReason[] = ['illegal', 'copyright'];

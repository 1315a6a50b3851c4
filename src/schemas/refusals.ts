/**
 * What gives the message of the fault of a name that must not be sent; null where this value of it may pass, and
 * is an unknown name like any other.
 */
export type Refusal = (value: unknown, sent: Readonly<Record<string, unknown>>) => string | null;

const noDryRun =
  'asks for a dry run, which this call does not have, so nothing was done; POST /api/publish has one, also for a post that exists';

/** Of every call that changes something and has no dry run: who asks for one wants nothing done. */
export const dryRunRefusals: Readonly<Record<string, Refusal>> = Object.fromEntries(
  ['dryRun', 'dry_run', 'dry-run', 'dryrun'].map((name) => [name, () => noDryRun]),
);

const toPreview = "is not a field, and nothing was stored; to see what would happen, send 'dryRun': true";
const toKeepBack =
  "is not a field, and nothing was stored; to keep the post from the public, send 'status': 'draft'";
const noScheduling =
  'is not a field, and nothing was stored: there is no scheduling; leave it out, and publish when it is time';

/** Of calls that may publish: other names by which an author says "not" or "not yet". */
export const publishRefusals: Readonly<Record<string, Refusal>> = Object.fromEntries([
  ...['preview', 'simulate', 'validate', 'validateOnly', 'validate_only'].map((name) => [
    name,
    (value: unknown) => (isNo(value) ? null : toPreview),
  ]),
  ...['draft', 'isDraft', 'is_draft', 'private'].map((name) => [
    name,
    (value: unknown, { status }: Readonly<Record<string, unknown>>) =>
      isNo(value) || status === 'draft' ? null : toKeepBack,
  ]),
  ...['published', 'isPublished', 'is_published', 'publish', 'public'].map((name) => [
    name,
    (value: unknown, { status }: Readonly<Record<string, unknown>>) =>
      isNo(value) && status !== 'draft' ? toKeepBack : null,
  ]),
  ...['publishAt', 'publish_at', 'scheduledAt', 'scheduled_at'].map((name) => [name, () => noScheduling]),
]);

/** Whether a value says no, as JSON or as text. */
function isNo(value: unknown): boolean {
  return typeof value === 'string' ? /^(?:false|no|0|)$/i.test(value) : !value;
}

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

/**
 * Of calls that may publish: other names by which an author says "not" or "not yet". They are refused only where
 * they contradict the status `published`, and are unknown names like any other beside another status.
 */
export const publishRefusals: Readonly<Record<string, Refusal>> = Object.fromEntries([
  ...['preview', 'simulate', 'validate', 'validateOnly', 'validate_only'].map((name) => [
    name,
    contradicting((value) => !isNo(value), toPreview),
  ]),
  ...['draft', 'isDraft', 'is_draft', 'private'].map((name) => [
    name,
    contradicting((value) => !isNo(value), toKeepBack),
  ]),
  ...['published', 'isPublished', 'is_published', 'publish', 'public'].map((name) => [
    name,
    contradicting(isNo, toKeepBack),
  ]),
  ...['publishAt', 'publish_at', 'scheduledAt', 'scheduled_at'].map((name) => [
    name,
    contradicting(() => true, noScheduling),
  ]),
]);

/** Refuses a value that means "do not publish" beside a status that says to. */
function contradicting(isMeant: (value: unknown) => boolean, message: string): Refusal {
  return (value, { status }) => (status === 'published' && isMeant(value) ? message : null);
}

/** Whether a value says no, as JSON or as text. */
function isNo(value: unknown): boolean {
  return typeof value === 'string' ? /^(?:false|no|0|)$/i.test(value) : !value;
}

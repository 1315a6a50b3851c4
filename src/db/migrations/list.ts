import { initial } from './released/0001-initial.ts';
import { search } from './released/0002-search.ts';
import { mailRoute } from './released/0003-mail-route.ts';
import { erasure } from './released/0004-erasure.ts';
import { exports } from './released/0005-exports.ts';
import { unseen } from './0006-unseen.ts';
import { registration } from './0007-registration.ts';
import { community } from './0008-community.ts';
import { tags } from './0009-tags.ts';
import { revisions } from './0010-revisions.ts';
import { replies } from './0011-replies.ts';
import { inbox } from './0012-inbox.ts';
import { duplicates } from './0013-duplicates.ts';
import { blogOrders } from './0014-blog-orders.ts';
import { trash } from './0015-trash.ts';
import { grace } from './0016-grace.ts';
import { audit } from './0017-audit.ts';
import { mailRefused } from './0018-mail-refused.ts';
import { certificates } from './0019-certificates.ts';
import { moderation } from './0020-moderation.ts';
import { probation } from './0021-probation.ts';
import { sourceBlocks } from './0022-source-blocks.ts';
import { reports } from './0023-reports.ts';
import { heldComments } from './0024-held-comments.ts';
import { inboxData } from './0025-inbox-data.ts';
import { appeals } from './0026-appeals.ts';
import { schedule } from './0027-schedule.ts';
import { suspensionEnd } from './0028-suspension-end.ts';
import { removedComments } from './0029-removed-comments.ts';
import { media } from './0030-media.ts';
import { postImage } from './0031-post-image.ts';
import { hiddenPosts } from './0032-hidden-posts.ts';
import { compression } from './0033-compression.ts';
import { unlistedPosts } from './0034-unlisted-posts.ts';
import { pictureNames } from './0035-picture-names.ts';
import { nameOrder } from './0036-name-order.ts';
import { keptSchedules } from './0037-kept-schedules.ts';
import { trashByAge } from './0038-trash-by-age.ts';
import { sealedKeys } from './0039-sealed-keys.ts';
import { promisedErasure } from './0040-promised-erasure.ts';
import { listingInParts } from './0041-listing-in-parts.ts';
import { furtherPositions } from './0042-further-positions.ts';
import { commentsInParts } from './0043-comments-in-parts.ts';
import { unreadAndUndelivered } from './0044-unread-and-undelivered.ts';
import { fewerRows } from './0045-fewer-rows.ts';
import { verifiedMailboxes } from './0046-verified-mailboxes.ts';
import type { Migration } from './types.ts';

/** All steps of the schema, in the order in which they run. */
export const migrations: readonly Migration[] = [
  initial,
  search,
  mailRoute,
  erasure,
  exports,
  unseen,
  registration,
  community,
  tags,
  revisions,
  replies,
  inbox,
  duplicates,
  blogOrders,
  trash,
  grace,
  audit,
  mailRefused,
  certificates,
  moderation,
  probation,
  sourceBlocks,
  reports,
  heldComments,
  inboxData,
  appeals,
  schedule,
  suspensionEnd,
  removedComments,
  media,
  postImage,
  hiddenPosts,
  compression,
  unlistedPosts,
  pictureNames,
  nameOrder,
  keptSchedules,
  trashByAge,
  sealedKeys,
  promisedErasure,
  listingInParts,
  furtherPositions,
  commentsInParts,
  unreadAndUndelivered,
  fewerRows,
  verifiedMailboxes,
];

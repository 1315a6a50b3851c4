/** What each kind of warning means, by its code. A code may be added, and is never renamed. */
export const warningCodes = {
  unknown_field: 'a field or query parameter that the call does not know was ignored',
  ignored_field: 'a field that cannot be set by this call, or not in this way, was ignored',
  repeated_field: 'a field was sent more than once, and the last one counts',
  other_name: 'a field was sent under another name and taken as meant',
  hidden_text: 'invisible text was taken out',
  unseen_text: 'part of the markdown shows nothing to readers, and other agents do not get it',
  escaped_twice: 'line breaks arrived as the two characters \\n',
  raw_html: 'HTML is shown as text',
  refused_link: 'an address was not made a link or an image',
  unset_formula: 'a formula is shown as code',
  dead_link: 'a link leads to no heading of the post',
  missing_alt: 'an image has no alternative text',
  unknown_media: 'the agent has no picture of that name, so only its text is shown until it has',
  unused_footnote: 'a footnote to which nothing refers is not shown',
  front_matter_as_text: 'the content begins with front matter, which readers see as text',
  missing_lang: 'the post is not in Latin letters and names no language, so pages name its script alone',
  repeated_title: 'the first heading repeats the title',
  generated_slug: 'no address could be made of the title or name, so a slug was generated',
  already_applied: "the post's newest change was made by these same edits, so they were not applied again",
  already_published:
    'the post is published already, so the time of publication was ignored, and the status beside it',
  former_slug: 'the slug is a former one of a post, which was changed; its present slug stays',
  duplicate_content: 'the new post has the content of another post of the agent',
  duplicate_title: 'the new post has the title of another post of the agent',
  held: 'the post or comment is held back until the operator has looked at it',
  redirect_ended: 'the address redirected to another post until now',
  no_own_posts: "the list is of one's own posts, and there are none",
  fixed_order: 'the list has one order only',
  shortened_search: 'the search was not done as written',
  nothing_found: 'the search found no post',
  widened_search: 'no post contains all of the words as they are, so something near was looked for',
  other_words: 'other words than those searched for may have been meant',
} as const;

export type WarningCode = keyof typeof warningCodes;

/** What was let through but is probably a mistake: a code for programs, and a sentence with the details. */
export type Warning = { readonly code: WarningCode; readonly text: string };

export function warning(code: WarningCode, text: string): Warning {
  return { code, text };
}

/** Warnings as every success has them: sentences, and beside them their codes in the same order. */
export function warningFields(warnings: readonly Warning[]) {
  return {
    warnings: warnings.map(({ text }) => text),
    warningCodes: warnings.map(({ code }) => code),
  };
}

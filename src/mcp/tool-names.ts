import { nearest } from '../rules/suggest.ts';

/** Words of other services' tools, and from models' memory, for the words that ours are named by. */
const synonyms: Readonly<Record<string, string>> = {
  publish: 'create add new write save submit upload',
  update: 'edit change modify patch replace set append',
  delete: 'remove destroy erase trash unpublish',
  get: 'read fetch show view open retrieve',
  list: 'browse all feed',
  search: 'find query lookup',
  my: 'mine own drafts',
  me: 'whoami profile account limits quota agent self',
  register: 'signup join',
  verify: 'confirm activate login',
  recover: 'reset lost restore key',
  vote: 'upvote downvote like rate',
  unvote: 'unlike',
  report: 'flag complain abuse',
  post: 'posts article articles entry document page',
  comment: 'comments reply replies',
  blogs: 'blog authors users agents',
};

/** The tools, three at most, that a name was probably meant to be: one that is spelled alike, else those of the same words. */
export function toolsLike(name: string, tools: readonly string[]): string[] {
  const near = nearest(name, tools);
  if (near !== null) return [near];
  const words = meanings(name.slice(0, 100));
  if (words.size === 0) return [];
  const scored = tools.map((tool) => {
    const own = meanings(tool);
    const common = [...own].filter((word) => words.has(word)).length;
    return { tool, score: common / new Set([...own, ...words]).size };
  });
  const best = Math.max(...scored.map(({ score }) => score));
  return best === 0
    ? []
    : scored
        .filter(({ score }) => score === best)
        .map(({ tool }) => tool)
        .slice(0, 3);
}

/** The words of a name, each as the one that our tools use. */
function meanings(name: string): Set<string> {
  const words = name
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter(Boolean);
  return new Set(
    words.map(
      (word) => Object.keys(synonyms).find((known) => synonyms[known]?.split(' ').includes(word)) ?? word,
    ),
  );
}

/** Seconds by which a post must be younger to outrank one with ten times its score. */
const decade = 45_000;

/**
 * Rank of a post among featured ones: the logarithm of its score plus its publication time, so that it can be
 * kept in an indexed column and never ages. The formula is Reddit's "hot" (published in its open source, 2008).
 * `score` leaves out the author's own vote.
 */
export function hotRank(score: number, publishedAt: string): number {
  return (
    Math.sign(score) * Math.log10(Math.max(1, Math.abs(score))) + Date.parse(publishedAt) / 1000 / decade
  );
}

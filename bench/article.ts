const words =
  `agent archive answer between branch buffer carry change clear commit count draft early engine every
field figure follow given header index keep letter machine margin measure memory message method moment number
order other page paper pattern people plain process proof public question reader reason record release result
return review search second section server session signal simple source stable state stored stream string
table text thread title token under update value version watch without word write`.split(/\s+/);

/** About 5 KB of markdown: paragraphs, links, a list, a table and code, the same for the same number. */
export function article(n: number): string {
  const next = sequence(n + 1);
  const word = () => words[next() % words.length] ?? '';
  const sentence = (length: number) => {
    const text = Array.from({ length }, word).join(' ');
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  };
  const paragraph = () => Array.from({ length: 5 }, () => sentence(8 + (next() % 9))).join(' ');
  return [
    paragraph(),
    `## ${sentence(4)}`,
    `${paragraph()} See [the ${word()}](https://example.org/${word()}) and *${word()}*, then \`${word()}\`.`,
    Array.from({ length: 6 }, () => `- **${word()}**: ${sentence(9)}`).join('\n'),
    `## ${sentence(3)}`,
    paragraph(),
    [
      `| ${word()} | ${word()} | ${word()} |`,
      '|---|---|---|',
      ...Array.from({ length: 5 }, () => `| ${word()} | ${next() % 1000} | ${sentence(4)} |`),
    ].join('\n'),
    paragraph(),
    [
      '```python',
      'def settle(calls, now):',
      ...Array.from(
        { length: 8 },
        () => `    ${word()}_${next() % 10} = calls.get("${word()}", ${next() % 100})  # ${word()} ${word()}`,
      ),
      '    return sum(calls.values()) if now else None',
      '```',
    ].join('\n'),
    `> ${sentence(14)}`,
    `## ${sentence(5)}`,
    ...Array.from({ length: 4 }, paragraph),
  ].join('\n\n');
}

/** Numbers that look random: the generator of Park and Miller (1988). */
function sequence(seed: number): () => number {
  let state = (seed * 7919) % 2_147_483_647;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state;
  };
}

/**
 * What people and agents type, judged: the post that must come first, or the words that must be suggested. The
 * queries were written before the ranking, and are changed only where a judgement was wrong.
 */

type Target = readonly [agent: string, title: string, tags: readonly string[], text: string];

/** Agents by slug. */
export const judgedAgents = {
  tidewatch: 'Tidewatch',
  'night-ledger': 'Night Market Ledger',
  quokkabot: 'Quokka Bot',
  zuse: 'Konrad Zuse Jr.',
  palimpsest: 'Palimpsest',
} as const;

export const judgedPosts: readonly Target[] = [
  [
    'tidewatch',
    'The night the sea stood still',
    ['oceanography'],
    'The gauge at Lauwersoog fell eleven centimetres.',
  ],
  [
    'tidewatch',
    'Harmonic constants for small harbours',
    ['tides'],
    'Forty constituents are enough for a harbour.',
  ],
  [
    'tidewatch',
    'Salt marshes and storm surges',
    ['oceanography', 'storms'],
    'Marshes take the edge off a surge.',
  ],
  [
    'night-ledger',
    'Rate limits that agents respect',
    ['rate-limits'],
    'A limit is kept where the answer says when to come back. Limits, limits.',
  ],
  [
    'night-ledger',
    'Queues, backpressure and patience',
    ['queues'],
    'Queues hide overload until they do not.',
  ],
  [
    'night-ledger',
    'What a stall costs on a rainy Tuesday',
    ['markets'],
    'Forty cents an hour, and one umbrella.',
  ],
  [
    'quokkabot',
    'Rotating API keys without downtime',
    ['security'],
    'Issue the second key, move callers, revoke the first key.',
  ],
  [
    'quokkabot',
    'How to deploy a Kubernetes operator',
    ['kubernetes', 'devops'],
    'Operators reconcile what is with what should be.',
  ],
  ['quokkabot', 'Reading a flame graph', ['performance'], 'Width is time. Colour is nothing.'],
  ['zuse', 'Move semantics in C++', ['c++'], 'In C++ a moved-from object is valid but unspecified.'],
  ['zuse', 'Async streams in C#', ['c#'], 'C# awaits each element of an IAsyncEnumerable.'],
  ['zuse', 'Undefined behaviour in C', ['c'], 'Signed overflow in C is undefined.'],
  ['zuse', 'Moving a service to .NET', ['dotnet'], 'The runtime of .NET collects garbage in generations.'],
  [
    'zuse',
    'Files without callbacks: node:fs',
    ['javascript'],
    'Import node:fs for files, and node:path for their names.',
  ],
  ['zuse', 'Nets for fishing in the Wadden Sea', ['fishing'], 'A net of four centimetres lets the young go.'],
  [
    'palimpsest',
    'Vector databases compared',
    ['databases', 'embeddings'],
    'Approximate neighbours, measured by recall.',
  ],
  ['palimpsest', 'A cache is a promise', ['caching'], 'Invalidation is the hard half of caching.'],
  ['palimpsest', 'Fermenting cabbage at sea', ['cooking'], 'Sauerkraut keeps sailors from scurvy.'],
  ['palimpsest', '東京の猫', ['猫'], '東京タワーの下に猫がいる。'],
  ['palimpsest', 'Crème brûlée for cold kitchens', ['cooking'], 'Burnt sugar over a set custard.'],
  ['palimpsest', 'The policies of a small library', ['libraries'], 'Each policy fits on a card.'],
  ['palimpsest', 'Running a marathon on rye bread', ['running'], 'Runners ate it at every fifth mile.'],
  ['palimpsest', 'Zero knowledge, explained to a cat', ['cryptography'], 'A proof that says nothing else.'],
  [
    'palimpsest',
    'Prompt injection in the wild',
    ['security', 'llm'],
    'Instructions hide in what a model reads.',
  ],
  ['palimpsest', 'Postmortem: the day DNS forgot us', ['postmortem'], 'A zone file lost its last line.'],
  [
    'palimpsest',
    'Measuring latency honestly',
    ['performance', 'latency'],
    'Coordinated omission flatters everybody.',
  ],
];

export type Judgement = string | readonly string[] | { readonly words: string };

/** What must come first (a title, or one of several), or what must be suggested. */
export const judgedQueries: readonly (readonly [q: string, expected: Judgement])[] = [
  ['The night the sea stood still', 'The night the sea stood still'],
  ['sea stood still', 'The night the sea stood still'],
  ['gauge lauwersoog', 'The night the sea stood still'],
  [
    'tidewatch',
    [
      'The night the sea stood still',
      'Harmonic constants for small harbours',
      'Salt marshes and storm surges',
    ],
  ],
  ['tidewatch marshes', 'Salt marshes and storm surges'],
  [
    'night market',
    [
      'Rate limits that agents respect',
      'Queues, backpressure and patience',
      'What a stall costs on a rainy Tuesday',
    ],
  ],
  ['ledger queues', 'Queues, backpressure and patience'],
  ['konrad zuse fishing', 'Nets for fishing in the Wadden Sea'],
  [
    'quokka',
    ['Rotating API keys without downtime', 'How to deploy a Kubernetes operator', 'Reading a flame graph'],
  ],
  ['rate limit', 'Rate limits that agents respect'],
  ['rate-limits', 'Rate limits that agents respect'],
  ['queue', 'Queues, backpressure and patience'],
  ['backpres', 'Queues, backpressure and patience'],
  ['harbour constant', 'Harmonic constants for small harbours'],
  ['c++', 'Move semantics in C++'],
  ['C#', 'Async streams in C#'],
  ['c', 'Undefined behaviour in C'],
  ['.net', 'Moving a service to .NET'],
  ['node:fs', 'Files without callbacks: node:fs'],
  ['fishing net', 'Nets for fishing in the Wadden Sea'],
  ['rotate api keys', 'Rotating API keys without downtime'],
  ['how do I rotate an api key?', 'Rotating API keys without downtime'],
  ['kubernetes operators', 'How to deploy a Kubernetes operator'],
  ['deploying kubernetes operator', 'How to deploy a Kubernetes operator'],
  ['kuberntes operator', { words: 'kubernetes operator' }],
  ['embedings', { words: 'embeddings' }],
  ['latncy', { words: 'latency' }],
  ['flame graphs', 'Reading a flame graph'],
  ['vector database', 'Vector databases compared'],
  ['policy library', 'The policies of a small library'],
  ['run marathon', 'Running a marathon on rye bread'],
  ['creme brulee', 'Crème brûlée for cold kitchens'],
  ['東京タワー', '東京の猫'],
  ['猫', '東京の猫'],
  ['"prompt injection" -kitchen', 'Prompt injection in the wild'],
  ['zero-knowledge proofs', 'Zero knowledge, explained to a cat'],
  ['dns outage postmortem', 'Postmortem: the day DNS forgot us'],
  ['cache invalidation', 'A cache is a promise'],
  ['sauerkraut recipe xylophone', 'Fermenting cabbage at sea'],
  ['measure latency', 'Measuring latency honestly'],
];

const plainWords =
  'a the of in on for to how sea net key rate night market service small data model agent time day cost file city river stone letter paper bread library path answer run move read keep measure proof still water light word table bird cloud field winter summer road garden number story'.split(
    ' ',
  );

/** A post about nothing in particular, of words that the judged ones have too. */
export function fillerPost(below: (limit: number) => number) {
  const some = (count: number) =>
    Array.from({ length: count }, () => plainWords[below(plainWords.length)] ?? '').join(' ');
  return { title: some(5), content: `${some(60)}.`, tags: [some(1)] };
}

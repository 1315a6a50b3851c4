import assert from 'node:assert/strict';

/** The values of a text for Prometheus, each with its name and labels. */
export type Samples = readonly {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}[];

const line = /^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+)\})? (-?[\d.e+-]+)$/;

/** Reads the text, strictly: each metric is described once, before its values, and no value stands twice. */
export function readMetricsText(text: string): Samples {
  const described = new Set<string>();
  const seen = new Set<string>();
  assert.ok(text.endsWith('\n'));
  return text
    .trimEnd()
    .split('\n')
    .flatMap((given) => {
      const [, kind, name = ''] = /^# (HELP|TYPE) ([a-z_]+) \S/.exec(given) ?? [];
      if (kind !== undefined) {
        assert.ok(!described.has(`${kind} ${name}`), `described twice: ${given}`);
        described.add(`${kind} ${name}`);
        return [];
      }
      const sample = line.exec(given);
      assert.ok(sample, `not a line of the format: ${given}`);
      const [, full = '', labels = '', value] = sample;
      const family = described.has(`TYPE ${full}`) ? full : full.replace(/_(?:bucket|sum|count)$/, '');
      assert.ok(
        described.has(`TYPE ${family}`) && described.has(`HELP ${family}`),
        `not described: ${given}`,
      );
      assert.ok(!seen.has(`${full}{${labels}}`), `twice: ${given}`);
      seen.add(`${full}{${labels}}`);
      const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)];
      return [
        {
          name: full,
          labels: Object.fromEntries(pairs.map(([, key = '', of = '']) => [key, of])),
          value: Number(value),
        },
      ];
    });
}

/** The sum of the values that have this name and all of these labels. */
export function sumOf(samples: Samples, name: string, labels: Readonly<Record<string, string>> = {}): number {
  return samples
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

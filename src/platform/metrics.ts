/**
 * What a process measures, in the forms of Prometheus. Cells are looked up once and then only added to, so that
 * counting costs next to nothing where most calls pass.
 */

/** A metric with its values, by what stands behind its name: `{route="/api/posts"}`, `_sum`. */
export type Family = {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** How the values of several processes become one. */
  readonly merge: 'sum' | 'max';
  readonly values: Readonly<Record<string, number>>;
};

/** A number that only grows. */
export type Cell = { value: number };

/** A set of metrics, empty at first. */
export function createMetrics() {
  const collect: (() => Family)[] = [];

  /** Returns the cell of a combination of labels, whose values must be of a bounded number. */
  function counter(name: string, help: string, labels: readonly string[] = []) {
    const cells = labelled(labels, (): Cell => ({ value: 0 }));
    collect.push(() => {
      const values = cells.all().map(([key, cell]) => [braced(key), cell.value]);
      return { name, help, type: 'counter', merge: 'sum', values: Object.fromEntries(values) };
    });
    return cells.at;
  }

  /** Of seconds, or of what `bounds` are in. */
  function histogram(name: string, help: string, bounds: readonly number[], labels: readonly string[] = []) {
    const cells = labelled(labels, () => new Distribution(bounds));
    collect.push(() => {
      const values = Object.fromEntries(cells.all().flatMap(([key, cell]) => cell.entries(key)));
      return { name, help, type: 'histogram', merge: 'sum', values };
    });
    return cells.at;
  }

  /** Returns what adds a reading to those that are made when the metrics are read; call its result to end that. */
  function gauge(name: string, help: string) {
    const readings = new Set<() => number>();
    collect.push(() => {
      const value = [...readings].reduce((sum, read) => sum + read(), 0);
      return { name, help, type: 'gauge', merge: 'sum', values: { '': value } };
    });
    return (read: () => number): (() => void) => {
      const reading = () => read();
      readings.add(reading);
      return () => void readings.delete(reading);
    };
  }

  return { counter, histogram, gauge, read: (): Family[] => collect.map((one) => one()) };
}

/** A gauge that was read just now; `max` where each process would read the same. */
export function gaugeOf(name: string, help: string, value: number, merge: Family['merge'] = 'max'): Family {
  return { name, help, type: 'gauge', merge, values: { '': value } };
}

function labelled<Item>(labels: readonly string[], make: () => Item) {
  const items = new Map<string, Item>();
  return {
    at: (...values: readonly string[]): Item => {
      const key = labels.map((label, at) => `${label}="${escaped(values[at] ?? '')}"`).join(',');
      let item = items.get(key);
      if (item === undefined) items.set(key, (item = make()));
      return item;
    },
    all: () => [...items],
  };
}

/** How often a value was at most each of some bounds. */
export class Distribution {
  private readonly bounds: readonly number[];
  private readonly counts: number[];
  private sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] ?? 0)) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += value;
  }

  /** As Prometheus reads it: counts up to each bound, their sum and number. */
  entries(key: string): [string, number][] {
    let count = 0;
    const buckets = this.counts.map((own, at): [string, number] => {
      count += own;
      const bound = `le="${this.bounds[at] ?? '+Inf'}"`;
      return [`_bucket{${key === '' ? bound : `${key},${bound}`}}`, count];
    });
    return [...buckets, [`_sum${braced(key)}`, this.sum], [`_count${braced(key)}`, count]];
  }
}

function braced(key: string): string {
  return key === '' ? '' : `{${key}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** The metrics of several processes as those of one. */
export function merged(all: readonly (readonly Family[])[]): Family[] {
  const families = new Map<string, Family>();
  for (const family of all.flat()) {
    const before = families.get(family.name)?.values ?? {};
    const values: Record<string, number> = { ...before };
    for (const [key, value] of Object.entries(family.values)) {
      const other = values[key];
      values[key] =
        other === undefined ? value : family.merge === 'sum' ? other + value : Math.max(other, value);
    }
    families.set(family.name, { ...family, values });
  }
  return [...families.values()];
}

/** What stays of a process that has ended: a total that went back would be taken for a new beginning. */
export function totalsOf(families: readonly Family[]): Family[] {
  return families.filter(({ type }) => type !== 'gauge');
}

/** Prometheus' text format, version 0.0.4. */
export function metricsText(families: readonly Family[]): string {
  return families
    .map(({ name, help, type, values }) =>
      [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...Object.entries(values).map(([key, value]) => `${name}${key} ${value}`),
        '',
      ].join('\n'),
    )
    .join('');
}

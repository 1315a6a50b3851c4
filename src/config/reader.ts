import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorCode, errorMessage } from '../rules/failure.ts';
import { settingValue } from '../rules/text.ts';

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where settings are read from, and the faults found so far. */
export type Source = {
  readonly env: Environment;
  /** Folder that relative paths start from. */
  readonly cwd: string;
  readonly settings: Readonly<Record<string, { readonly example: string; readonly secret?: true }>>;
  /** A setting may be read for another's sake too: its fault is still one. */
  readonly faults: Set<string>;
};

/** One setting as it was given. A value that cannot be used is a fault, and reading goes on with a default. */
export class Given {
  readonly name: string;
  private readonly source: Source;

  constructor(source: Source, name: string) {
    this.source = source;
    this.name = name;
  }

  /** Another setting of the same environment. */
  of(name: string): Given {
    return new Given(this.source, name);
  }

  /** @param problem predicate of the setting, without its secret. */
  refuse(problem: string): void {
    this.source.faults.add(`${this.name} ${problem}. Example: ${this.source.settings[this.name]?.example}`);
  }

  /** Refuses a value that a parser throws at: the error's message is what is wrong with it. */
  refuseUnparsed(parse: () => unknown): void {
    try {
      parse();
    } catch (error) {
      this.refuse(errorMessage(error));
    }
  }

  text(): string | null {
    const value = this.variable(this.name);
    const file = this.file();
    if (file === null) return value;
    if (value !== null) this.refuse(`is given twice, by ${this.name} and by ${this.name}_FILE: keep one`);
    return value ?? this.readSecret(file);
  }

  isGiven(): boolean {
    return this.variable(this.name) !== null || this.file() !== null;
  }

  /** The items of a comma-separated value. */
  items(): string[] {
    return (this.text() ?? '').split(',').flatMap((item) => item.trim() || []);
  }

  /** The path made absolute. */
  resolve(path: string): string {
    return resolve(this.source.cwd, path);
  }

  integer(preset: number, min = 0, max = Number.MAX_SAFE_INTEGER): number {
    const value = this.text();
    if (value === null) return preset;
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    this.refuse(`is ${settingValue(value)}, not a whole number ${range}`);
    return preset;
  }

  flag(preset: 'on' | 'off' = 'off'): boolean {
    const value = this.text()?.toLowerCase() ?? preset;
    if (['1', 'true', 'yes', 'on'].includes(value)) return true;
    if (!['0', 'false', 'no', 'off'].includes(value))
      this.refuse(`is ${settingValue(value)}, neither on nor off`);
    return false;
  }

  oneOf<Value extends string>(values: readonly Value[], preset: Value): Value {
    const given = this.text();
    const value = given === null ? preset : values.find((known) => known === given);
    if (value === undefined) this.refuse(`is ${settingValue(given ?? '')}, not one of ${values.join(', ')}`);
    return value ?? preset;
  }

  private variable(name: string): string | null {
    return this.source.env[name]?.trim() || null;
  }

  private file(): string | null {
    return this.source.settings[this.name]?.secret ? this.variable(`${this.name}_FILE`) : null;
  }

  private readSecret(file: string): string | null {
    try {
      const value = readFileSync(this.resolve(file), 'utf8').trim();
      if (value === '') this.refuse(`is empty in the file that ${this.name}_FILE names`);
      return value || null;
    } catch (error) {
      const code = errorCode(error) ?? 'unknown error';
      this.refuse(
        `cannot be read from ${settingValue(file)}, the file that ${this.name}_FILE names (${code})`,
      );
      return null;
    }
  }
}

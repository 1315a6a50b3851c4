import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { quoted } from '../rules/text.ts';
import { settings, type Setting, type SettingName } from './settings.ts';
import { errorMessage } from '../rules/failure.ts';

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

export type Reader = ReturnType<typeof createReader>;

/** Reads single settings and collects every fault, so that the caller can go on with a default. */
export function createReader(env: Environment, cwd: string) {
  const faults: string[] = [];

  const refuse = (name: SettingName, problem: string): void => {
    faults.push(`${name} ${problem}. Example: ${settings[name].example}`);
  };

  /** Refuses a value that a parser throws at: the error's message is what is wrong with it. */
  const refuseUnread = (name: SettingName, parse: () => unknown): void => {
    try {
      parse();
    } catch (error) {
      refuse(name, errorMessage(error));
    }
  };

  const fileOf = (name: SettingName): string | null => {
    const setting: Setting = settings[name];
    return (setting.secret && env[`${name}_FILE`]?.trim()) || null;
  };

  const text = (name: SettingName): string | null => {
    const value = env[name]?.trim() || null;
    const file = fileOf(name);
    if (file === null) return value;
    if (value !== null) refuse(name, `is given twice, by ${name} and by ${name}_FILE: keep one`);
    return value ?? secretFile(name, file);
  };

  const secretFile = (name: SettingName, file: string): string | null => {
    try {
      const value = readFileSync(resolve(cwd, file), 'utf8').trim();
      if (value === '') refuse(name, `is empty in the file that ${name}_FILE names`);
      return value || null;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
      refuse(name, `cannot be read from ${quoted(file)}, the file that ${name}_FILE names (${code})`);
      return null;
    }
  };

  const isGiven = (name: SettingName): boolean => Boolean(env[name]?.trim() || fileOf(name));

  const items = (name: SettingName): string[] => split(text(name));

  const integer = (name: SettingName, preset: number, min = 0, max = Number.MAX_SAFE_INTEGER): number => {
    const value = text(name);
    if (value === null) return preset;
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    refuse(name, `is ${quoted(value)}, not a whole number ${range}`);
    return preset;
  };

  const flag = (name: SettingName): boolean => {
    const value = text(name)?.toLowerCase() ?? 'off';
    if (['1', 'true', 'yes', 'on'].includes(value)) return true;
    if (!['0', 'false', 'no', 'off'].includes(value)) refuse(name, `is ${quoted(value)}, neither on nor off`);
    return false;
  };

  const oneOf = <Value extends string>(name: SettingName, values: readonly Value[], preset: Value): Value => {
    const given = text(name);
    if (given === null) return preset;
    const value = values.find((known) => known === given);
    if (value === undefined) refuse(name, `is ${quoted(given)}, not one of ${values.join(', ')}`);
    return value ?? preset;
  };

  return { faults, refuse, refuseUnread, text, isGiven, items, integer, flag, oneOf };
}

/** The items of a comma-separated value. */
export function split(value: string | null): string[] {
  return (value ?? '').split(',').flatMap((item) => item.trim() || []);
}

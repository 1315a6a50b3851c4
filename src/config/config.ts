import { StartError } from '../rules/failure.ts';
import { editDistance } from '../rules/suggest.ts';
import { Given, type Environment, type Source } from './reader.ts';
import { settingNames, settings, type Setting, type SettingName } from './settings.ts';

export type { DatabaseConfig, ListenAddress } from './values.ts';

type Settings = typeof settings;
/** What the settings are read as, by where it stands: `port`, `mail.from`. */
type Values = {
  [
    Name in SettingName as Settings[Name] extends { read: unknown } ? Settings[Name]['at'] : never
  ]: Settings[Name] extends { read: (given: Given) => infer Value } ? Value : never;
};
type Group<At> = At extends `${infer Name}.${string}` ? Name : never;

/** Everything that an operator decides, validated, frozen and complete; the table of settings says what it means. */
export type Config = {
  readonly [At in keyof Values as At extends `${string}.${string}` ? never : At]: Values[At];
} & {
  readonly [Name in Group<keyof Values>]: {
    readonly [At in keyof Values as At extends `${Name}.${infer Key}` ? Key : never]: Values[At];
  };
};

/** The settings cannot be used. `faults` has a line for each one, with an example; none holds a secret. */
export class ConfigError extends StartError {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/**
 * The settings of an environment; relative paths are taken from `cwd`. An empty variable counts as unset.
 * Reads the files that `NAME_FILE` variables name and nothing else; throws {@link ConfigError}.
 */
export function loadConfig(env: Environment = process.env, { cwd = process.cwd() } = {}): Config {
  const source: Source = { env, cwd, settings, faults: new Set() };
  const config: Record<string, Record<string, unknown>> = {};
  for (const name of settingNames) {
    const { at, read }: Setting = settings[name];
    if (read === undefined) continue;
    const value = read(new Given(source, name));
    const [group = '', key] = at.split('.');
    if (key === undefined) Object.assign(config, { [group]: value });
    else (config[group] ??= {})[key] = value;
  }
  if (source.faults.size > 0) throw new ConfigError([...source.faults]);
  // TypeScript cannot follow the places through the loop.
  return frozen(config as unknown as Config);
}

/**
 * The descriptor of the listening socket that systemd passes to a process (sd_listen_fds(3)), or null where it passes none.
 * A worker has it from its supervisor, behind the channel between them. Throws StartError where there are several.
 */
export function passedSocket(
  { isWorker }: { readonly isWorker: boolean },
  env: Environment = process.env,
): number | null {
  const { LISTEN_PID: receiver, LISTEN_FDS: count = '' } = env;
  if (receiver !== String(isWorker ? process.ppid : process.pid) || !/^[1-9]\d*$/.test(count)) return null;
  if (count !== '1')
    throw new StartError(`systemd passes ${count} sockets: masthead.socket is to have one ListenStream.`);
  return isWorker ? firstPassed + 1 : firstPassed;
}

/** Of sd_listen_fds(3); the first that is not standard input, output or error. */
const firstPassed = 3;

/** The configuration of a server that listens on `port`: puts it where an address was left at port 0. */
export function withPort(config: Config, port: number): Config {
  const put = (address: string): string => address.replace(/:0$/, `:${port}`);
  const { baseUrl, blogDomain } = config.site;
  const site = { ...config.site, baseUrl: put(baseUrl), blogDomain: put(blogDomain) };
  return frozen({ ...config, port, site });
}

/** Every setting with its value in words, secrets masked, in the order of the table. */
export function describeConfig(config: Config): { name: SettingName; value: string }[] {
  return settingNames.map((name) => {
    const { at, show = inWords }: Setting = settings[name];
    const value = at.split('.').reduce<unknown>((part, key) => Reflect.get(Object(part), key), config);
    return { name, value: show(value as never, config) };
  });
}

function inWords(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return Array.isArray(value) ? value.join(', ') || 'none' : String(value);
}

/**
 * Warnings about variables that look like a misspelt setting (`BASEURL`, `PROT`); their values are not read. One letter
 * may be wrong, in a long name two.
 */
export function misspeltSettings(env: Environment = process.env): string[] {
  const files = settingNames
    .filter((name) => (settings[name] as Setting).secret)
    .map((name) => `${name}_FILE`);
  const names = [...settingNames, ...files];
  const known = new Map(names.map((name) => [bare(name), name]));
  return Object.keys(env).flatMap((name) => {
    if (names.some((each) => each === name)) return [];
    const most = name.length > 8 ? 2 : 1;
    const isNear = (each: string) => each.length > 3 && editDistance(name, each, most) <= most;
    const meant = known.get(bare(name)) ?? names.find(isNear);
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`];
  });
}

function bare(name: string): string {
  return name.toUpperCase().replace(/^MASTHEAD_|[^A-Z0-9]/g, '');
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) frozen(part);
  return Object.freeze(value);
}

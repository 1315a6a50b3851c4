/** Levels in the order of weight; a log writes its own level and what is heavier. */
const levels = { debug: 20, info: 30, warn: 40, error: 50, fatal: 60, silent: 100 } as const;

export type LogLevel = keyof typeof levels;

/** All levels, from the most lines to none. */
export const logLevels = Object.keys(levels) as readonly LogLevel[];

/** Structured facts of one line. Never a key, token, mail body or address. */
export type LogFields = Readonly<Record<string, unknown>>;

/** One JSON object a line. `err` fields are written with message and stack. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (fields: LogFields, message: string) => void>;

/** A log that hands finished lines to `write` (default: standard output), each with the fields `always`. */
export function createLog(
  level: LogLevel,
  write: (line: string) => void = (line) => process.stdout.write(line),
  always: LogFields = {},
): Log {
  const line = (name: LogLevel) =>
    levels[name] < levels[level]
      ? () => undefined
      : (fields: LogFields, message: string) =>
          write(
            `${JSON.stringify({ time: new Date().toISOString(), level: name, message, ...always, ...fields }, errorFields)}\n`,
          );
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    fatal: line('fatal'),
  };
}

function errorFields(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const code = 'code' in value ? value.code : undefined;
  return { name: value.name, message: value.message, code, stack: value.stack };
}

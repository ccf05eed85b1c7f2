/**
 * Structured lines on standard output, and the only importer of pino. Secrets are kept out where they are known: no
 * caller logs a key block, token or private key; nothing here tries to find one afterwards.
 */
import pino from 'pino';
import { DriverError } from '../../drivers/contract/driver.ts';
import { withSources } from './source-lines.ts';

/** The least severe first. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type Level = (typeof LEVELS)[number];

/** The same shape drivers have (drivers/contract/driver.ts), with a child for fixed fields. */
export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
  child(fields: Record<string, unknown>): Log;
}

/** journald reads `<N>` at the start of a line as its priority (sd-daemon(3)). */
const JOURNAL_PRIORITY: Record<string, number> = { debug: 7, info: 6, warn: 4, error: 3 };

export interface LogOptions {
  level: Level;
  /** Standard output is connected to the journal, which keeps the time itself. */
  journal: boolean;
  /** Standard output is a terminal: a line is for a person and not for a program. */
  terminal?: boolean;
  write: (line: string) => void;
}

export interface LogControl {
  level(): Level;
  /** At once, for all that writes to this log. */
  setLevel(level: Level): void;
  /** The last lines, with their times, the oldest first. */
  recent(): readonly string[];
}

/** Of what is kept for a support bundle, in characters: about a thousand lines. */
const RECENT_MAX = 262_144;
const TIME = /"time":"[^"]*",/;

export function openLog(options: LogOptions): { log: Log; control: LogControl } {
  const { level: first, journal, terminal = false, write } = options;
  const recent: string[] = [];
  let kept = 0;
  let least = LEVELS.indexOf(first);
  const destination = {
    write(line: string) {
      recent.push(line);
      kept += line.length;
      while (kept > RECENT_MAX) kept -= recent.shift()?.length ?? 0;
      if (terminal) return write(forPeople(line));
      if (!journal) return write(line);
      const name = /"level":"([a-z]+)"/.exec(line)?.[1] ?? 'info';
      write(`<${JOURNAL_PRIORITY[name] ?? 6}>${line.replace(TIME, '')}`);
    },
  };
  const logger = pino(
    {
      // What is less severe is left out below: a child keeps the level that it began with.
      level: 'debug',
      base: null,
      messageKey: 'message',
      // Else an error would be logged as {}.
      serializers: { err: errorFields, error: errorFields },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    destination,
  );
  const isOn = (level: Level) => LEVELS.indexOf(level) >= least;
  return {
    log: filtered(logger, isOn),
    control: {
      level: () => LEVELS[least] ?? first,
      setLevel(level) {
        least = LEVELS.indexOf(level);
      },
      recent: () => recent,
    },
  };
}

function filtered(logger: pino.Logger, isOn: (level: Level) => boolean): Log {
  const at = (level: Level) => (fields: Record<string, unknown>, message: string) => {
    if (isOn(level)) logger[level](fields, message);
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => filtered(logger.child(fields), isOn),
  };
}

/** Characters that move the cursor of a terminal, or end a line. */
const CONTROLS = /[\p{Cc}\u2028\u2029]+/gu;

/** The time of the day here, the level, what happened, and of what. */
function forPeople(line: string): string {
  const { level, time, message, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const { message: reason } = (err ?? {}) as { message?: unknown };
  const what = reason === undefined ? message : `${message}: ${reason}`;
  const facts = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const clock = new Date(String(time)).toTimeString().slice(0, '00:00:00'.length);
  const parts = [clock, String(level).padEnd('error'.length), what, ...facts];
  return `${parts.join('  ').replaceAll(CONTROLS, ' ')}\n`;
}

/** A DriverError is about a device or its link: a stack trace of this program would only hide the rest. */
function errorFields(error: unknown): unknown {
  if (error instanceof DriverError) return { type: error.name, code: error.code, message: error.message };
  const fields = pino.stdSerializers.err(error as Error);
  return error instanceof Error ? Object.assign(fields, { stack: withSources(fields.stack) }) : fields;
}

/** A log that writes nothing, for tests. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

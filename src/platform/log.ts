/**
 * Structured lines on standard output, and the only importer of pino. Secrets are kept out where they are known: no
 * caller logs a key block, token or private key; nothing here tries to find one afterwards.
 */
import pino from 'pino';
import { DriverError } from '../../drivers/contract/driver.ts';

export type Level = 'debug' | 'info' | 'warn' | 'error';

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
  write: (line: string) => void;
}

export function openLog({ level, journal, write }: LogOptions): Log {
  const destination = {
    write(line: string) {
      if (!journal) return write(line);
      const name = /"level":"([a-z]+)"/.exec(line)?.[1] ?? 'info';
      write(`<${JOURNAL_PRIORITY[name] ?? 6}>${line}`);
    },
  };
  return pino(
    {
      level,
      base: null,
      messageKey: 'message',
      // Else an error would be logged as {}.
      serializers: { err: errorFields, error: errorFields },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: journal ? false : pino.stdTimeFunctions.isoTime,
    },
    destination,
  );
}

/** A DriverError is about a device or its link: a stack trace of this program would only hide the rest. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof DriverError)) return pino.stdSerializers.err(error as Error);
  return { type: error.name, code: error.code, message: error.message };
}

/** A log that writes nothing, for tests. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

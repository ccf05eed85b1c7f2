/** The log of a host: lines go to the daemon, which writes them. Bounded: what the daemon does not take is counted. */
import { DriverError, type Plain } from '../../../../drivers/contract/driver.ts';
import type { Level, Log } from '../../log.ts';
import { type HostMessage, isPlain, TEXT_MAX } from '../ipc.ts';

/** Lines handed over and not yet taken; a driver that logs in a loop meets it. */
const LINES_UNSENT_MAX = 256;

export function openHostLog(send: (message: HostMessage) => Promise<void>): Log {
  let unsent = 0;
  let dropped = 0;

  function write(level: Level, fields: Record<string, unknown>, message: string): void {
    if (unsent >= LINES_UNSENT_MAX) {
      dropped += 1;
      return;
    }
    const lost = dropped > 0 ? { droppedLines: dropped } : {};
    dropped = 0;
    unsent += 1;
    const line = { ...plainFields(fields), ...lost };
    void send({ type: 'log', level, fields: line, message: message.slice(0, TEXT_MAX) }).then(() => {
      unsent -= 1;
    });
  }

  function child(fixed: Record<string, unknown>): Log {
    const at = (level: Level) => (fields: Record<string, unknown>, message: string) =>
      write(level, { ...fixed, ...fields }, message);
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (more) => child({ ...fixed, ...more }),
    };
  }

  return child({});
}

/**
 * An error becomes its code and stack, a DriverError its code and message (log.ts says why); anything else that cannot
 * travel becomes text.
 */
function plainFields(fields: Record<string, unknown>): Record<string, Plain> {
  const plain: Record<string, Plain> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || key.length > 64 || key === '__proto__') continue;
    if (isPlain(value)) plain[key] = value;
    else plain[key] = (value instanceof Error ? describe(value) : String(value)).slice(0, TEXT_MAX);
  }
  return plain;
}

function describe(error: Error & { code?: unknown }): string {
  const text = error instanceof DriverError ? error.message : (error.stack ?? error.message);
  return `${error.code === undefined ? '' : `${error.code} `}${text}`;
}

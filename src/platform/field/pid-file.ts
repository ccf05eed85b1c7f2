/**
 * Which process last ran a group of links, on disk, so that a daemon that starts after a crash does not start a second
 * master beside it. A pid alone does not say: it is recycled. The kernel's start time and the command line, from
 * proc(5), show whether it is still the same process.
 */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { z } from 'zod';
import type { DriverLog } from '../../../drivers/contract/driver.ts';
import type { Clock } from '../clock.ts';
import { HEARTBEAT_MS, HOST_BEATS_MISSED_MAX, ORPHAN_CLOSING_DEADLINE_MS } from './ipc.ts';

/**
 * An orphan that is held up no longer than a host may be notices that its channel is closed, closes its links and exits;
 * then half a second for a busy machine.
 */
export const ORPHAN_EXIT_MS = HEARTBEAT_MS * (HOST_BEATS_MISSED_MAX + 1) + ORPHAN_CLOSING_DEADLINE_MS + 500;
const POLL_MS = 50;
/** Filled up with blanks: a shorter record leaves nothing of a longer one. */
const RECORD_BYTES = 4_096;

const recordSchema = z.strictObject({
  pid: z.int().min(2),
  parent: z.int(),
  /** Clock ticks from the start of the machine, and the command line. */
  identity: z.string(),
});
type RecordedProcess = z.output<typeof recordSchema>;

/** The process as proc(5) shows it; undefined when there is none. A zombie has no command line and is no match. */
function inspect(pid: number): RecordedProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    // After the name, which may itself contain blanks and brackets: state, ppid, …, starttime (field 22).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { pid, parent: Number(fields[1]), identity: `${fields[19]} ${command.replaceAll('\0', ' ')}` };
  } catch {
    return undefined;
  }
}

/** Written before the host receives any link. The next daemon needs it only while the machine runs, so it is not synced to the disk. */
export function recordProcess(file: string, pid: number): void {
  const recorded = inspect(pid);
  if (!recorded) throw new Error(`process ${pid} ended at once`);
  overwrite(file, JSON.stringify(recorded));
}

/** Never throws: the record of a process that has ended is of no one else. */
export function forgetProcess(file: string): void {
  try {
    overwrite(file, '');
  } catch {
    // It cannot be written now.
  }
}

/** In the room that the file has: without it no host could be started on a full disk, and no door be locked. */
function overwrite(file: string, text: string): void {
  const descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    const whole = Buffer.from(text.padEnd(RECORD_BYTES));
    const written = writeSync(descriptor, whole, 0, whole.length, 0);
    if (written < whole.length)
      throw new Error(`the disk took ${written} of ${whole.length} bytes of ${file}`);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Resolves when the recorded process is gone: an orphan ends by itself, and is killed when it does not. Rejects when it
 * is no orphan, for then another daemon runs on these links. `kill`: ends a process that is not a child of this one, with SIGKILL.
 */
export async function predecessorGone(
  file: string,
  clock: Clock,
  log: DriverLog,
  kill: (pid: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const recorded = readRecord(file);
  if (!recorded) return;
  const { pid } = recorded;
  const killAt = clock.monotonic() + ORPHAN_EXIT_MS;
  let killed = false;
  for (let waiting = false; ; waiting = true) {
    const now = inspect(pid);
    if (now?.identity !== recorded.identity) return;
    if (now.parent === recorded.parent) {
      throw new Error(`another Gatehouse (process ${now.parent}) runs these links: stop it first`);
    }
    if (!waiting) log.info({ pid }, `waiting for process ${pid} of an earlier run to end`);
    if (!killed && clock.monotonic() >= killAt) {
      log.warn({ pid }, `process ${pid} of an earlier run does not end by itself: killing it`);
      kill(pid);
      killed = true;
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** A file that cannot be read as a record was cut short before its process had received any link, or by a loss of power. */
function readRecord(file: string): RecordedProcess | undefined {
  try {
    const recorded: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return recordSchema.safeParse(recorded).data;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The archives that the daemon makes by itself. A process of its own does it (cli/backup.ts, make-backup), with low
 * priority and a connection of its own, so that no one at the desk waits for it. A failure is shown in the status, the
 * metrics, the log, the audit and an event, and is tried again in an hour.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config/config.ts';
import { durationMs } from '../../platform/config/duration.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { LiveEvents } from '../events/events.ts';
import { archiveTime } from './names.ts';

const LOOK_EVERY_MS = 60_000;
const RETRY_AFTER_MS = 3_600_000;
/** A gigabyte takes some minutes on a slow processor. */
const DEADLINE_MS = 3_600_000;
const NODE_FLAGS = ['--max-semi-space-size=1', '--max-old-space-size=128'];
const START = join(import.meta.dirname, '../../start.js');

/** What the process prints. */
const result = z.object({ file: z.string(), bytes: z.number(), removed: z.array(z.string()) });

export interface BackupState {
  /** When one is made: HH:MM, or an interval. */
  schedule: string;
  folder: string;
  /** Epoch milliseconds of the newest archive in the folder; undefined: there is none, or it cannot be read. */
  newestAt: number | undefined;
  /** Why the last attempt failed; null: it did not. */
  error: string | null;
}

export interface Backups {
  /** Undefined where the daemon makes none. */
  state(): BackupState | undefined;
  /** An archive that a command has made, for the audit. */
  made(archive: { file: string; bytes: number }, caller: Caller): Promise<void>;
  /** Makes one whenever it is due; for supervise. */
  keep(signal: AbortSignal): Promise<never>;
}

export interface BackupsOptions {
  config: Pick<Config, 'backup' | 'dataDirectory'>;
  /** Of the configuration, which the process reads itself. */
  source: { file: string };
  database: Pick<Database, 'commit'>;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  time: Pick<KnownTime, 'now'>;
  log: Log;
  /** The node to run: process.execPath. */
  execPath: string;
  environment?: Readonly<Record<string, string>> | undefined;
}

export function openBackups(options: BackupsOptions): Backups {
  const { config, database, audit, events, clock, time, log } = options;
  const { backup } = config;
  const folder = backup?.folder ?? join(config.dataDirectory, 'backups');
  let error: string | null = null;
  let triedAt = Number.NEGATIVE_INFINITY;

  function record(outcome: 'done' | 'failed', detail: Record<string, unknown>, caller: Caller): void {
    audit.record({ ...caller, action: 'backup.make', object: 'backup', outcome, detail });
  }
  const self = (): Caller => ({ principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() });

  async function make(signal: AbortSignal): Promise<void> {
    const hasFailed = error !== null;
    const made = await run(options, signal).catch((cause: Error) => cause);
    signal.throwIfAborted();
    triedAt = clock.monotonic();
    if (!(made instanceof Error)) {
      error = null;
      log.info({ ...made }, 'a backup was made');
      return database.commit(() => record('done', made, self()));
    }
    error = made.message;
    log.error({ reason: error, folder }, 'the backup was not made; it is tried again in an hour');
    // Reported once, until a backup succeeds again.
    if (hasFailed) return;
    await database.commit(() => {
      record('failed', { reason: error }, self());
      events.publish(failure(made.message, newestIn(folder)));
    });
    events.wake();
  }

  return {
    state: () => backup && { schedule: backup.schedule, folder, newestAt: newestIn(folder), error },
    made: (archive, caller) => database.commit(() => record('done', archive, caller)),
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        const mayTry = error === null || clock.monotonic() - triedAt >= RETRY_AFTER_MS;
        if (backup && mayTry && isDue(backup.schedule, time.now(), newestIn(folder))) await make(signal);
      }
    },
  };
}

function failure(reason: string, newestAt: number | undefined) {
  return {
    type: 'gatehouse.backup.failed.v1',
    source: 'backup',
    subject: 'backup',
    data: { reason, newestAt: newestAt === undefined ? null : new Date(newestAt).toISOString() },
  };
}

/** Of the archives there, by their names. */
function newestIn(folder: string): number | undefined {
  try {
    const times = readdirSync(folder).flatMap((name) => archiveTime(name) ?? []);
    return times.length === 0 ? undefined : times.reduce((a, b) => Math.max(a, b));
  } catch {
    // Not there yet, or it cannot be read: then making one says so.
    return undefined;
  }
}

/** Exported for its test. An archive of the future was made by a wrong clock and holds nothing up. */
export function isDue(schedule: string, now: number, newestAt: number | undefined): boolean {
  if (newestAt === undefined || newestAt > now + LOOK_EVERY_MS) return true;
  const at = /^(\d\d):(\d\d)$/.exec(schedule);
  if (!at) return now - newestAt >= durationMs(schedule);
  const [, hour, minute] = at;
  const last = new Date(now);
  last.setHours(Number(hour), Number(minute), 0, 0);
  if (last.getTime() > now) last.setDate(last.getDate() - 1);
  return newestAt < last.getTime();
}

type Order = Pick<BackupsOptions, 'source' | 'time' | 'execPath' | 'environment'>;

/** Rejects with the reason, in words. */
function run({ source, time, execPath, environment = {} }: Order, signal: AbortSignal) {
  const { promise, resolve, reject } = Promise.withResolvers<z.infer<typeof result>>();
  const at = new Date(time.now()).toISOString();
  const command = [...NODE_FLAGS, START, 'make-backup', source.file, at];
  const options = { timeout: DEADLINE_MS, killSignal: 'SIGKILL', env: { ...environment }, signal } as const;
  execFile(execPath, command, options, (error, stdout, stderr) => {
    if (!error) return resolve(result.parse(JSON.parse(stdout)));
    const reason = error.killed ? `it took more than ${DEADLINE_MS / 60_000} minutes` : stderr.trim();
    reject(new Error(reason || error.message));
  });
  return promise;
}

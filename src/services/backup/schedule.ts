/**
 * The archives that the daemon makes, by itself and when a person orders one. A process of its own does it (src/cli/backup.ts,
 * make-backup), with low priority and a connection of its own, so that no one at the desk waits for it. A failure is shown in
 * the status, the metrics, the log, the audit and an event; one that is due is tried again in an hour.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config/config.ts';
import type { ConfigurationSource } from '../../platform/config/config-file.ts';
import { durationMs } from '../../platform/config/duration.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import { type Caller, type Role, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { LiveEvents } from '../events/events.ts';
import type { ReportProgress, StartJob } from '../jobs/job-order.ts';
import { archiveTime } from './names.ts';

const LOOK_EVERY_MS = 60_000;
const RETRY_AFTER_MS = 3_600_000;
/** A gigabyte takes some minutes on a slow processor. */
const DEADLINE_MS = 3_600_000;
const NODE_FLAGS = ['--max-semi-space-size=1', '--max-old-space-size=128'];
const ACTION = 'backup.make';
const OBJECT = 'backup';
const NO_KEY =
  'No backup is configured, so there is no key to encrypt one with: draw a key (gatehouse backup key), and put its public half into backup.recipients of the configuration.';
const EARLIER =
  'the configuration has mistakes (gatehouse config check): the backup has it as it was before them';
const START = join(import.meta.dirname, '../../start.js');

export const BACKUP_MAKERS: readonly [Role, ...Role[]] = ['service-tool'];

/** What the process prints, a line each: how far it is, and at last what it made. */
const progressLine = z.object({ done: z.number(), total: z.number() });
const resultLine = z.object({
  file: z.string(),
  bytes: z.number(),
  leftOut: z.array(z.string()),
  removed: z.array(z.string()),
  /** The file has mistakes: the archive has it as it was when it was last read without one. */
  isEarlierConfiguration: z.boolean(),
});
type Made = z.infer<typeof resultLine>;

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
  /** Makes one now. Resolves with the job. Throws NOT_SUPPORTED or IN_PROGRESS. */
  order(caller: Caller): Promise<unknown>;
  /** Makes one whenever it is due; for supervise. */
  keep(signal: AbortSignal): Promise<never>;
}

export interface BackupsOptions {
  config: Pick<Config, 'backup' | 'dataDirectory'>;
  /** Of the configuration, which the process reads itself; while that has mistakes it takes the text. */
  source: Pick<ConfigurationSource, 'file' | 'text'>;
  database: Pick<Database, 'commit'>;
  audit: Audit;
  jobs: { start: StartJob };
  events: LiveEvents;
  clock: Clock;
  time: Pick<KnownTime, 'now'>;
  log: Log;
  /** The node to run: process.execPath. */
  execPath: string;
  environment?: Readonly<Record<string, string>> | undefined;
}

export function openBackups(options: BackupsOptions): Backups {
  const { config, database, audit, jobs, events, clock, time, log } = options;
  const { backup } = config;
  const folder = backup?.folder ?? join(config.dataDirectory, 'backups');
  let error: string | null = null;
  let triedAt = Number.NEGATIVE_INFINITY;
  /** One at a time: each removes what another one that was killed has left. */
  let isMaking = false;

  function record(outcome: 'done' | 'failed', detail: Record<string, unknown>, caller: Caller): void {
    audit.record({ ...caller, action: ACTION, object: OBJECT, outcome, detail });
  }
  const self = (): Caller => ({ principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() });

  /** `failed` runs in the commit that reports a failure, once until a backup succeeds again. Rejects with the reason, in words. */
  async function make(report: ReportProgress, signal: AbortSignal, failed?: (reason: string) => void) {
    const hasFailed = error !== null;
    isMaking = true;
    const made = await run(options, report, signal)
      .catch((cause: Error) => cause)
      .finally(() => {
        isMaking = false;
      });
    signal.throwIfAborted();
    triedAt = clock.monotonic();
    if (!(made instanceof Error)) {
      error = null;
      log.info({ ...made }, 'a backup was made');
      if (made.isEarlierConfiguration) log.warn({ file: options.source.file }, EARLIER);
      return made;
    }
    const reason = made.message;
    error = reason;
    log.error({ reason, folder }, 'the backup was not made; one that is due is tried again in an hour');
    if (!hasFailed) {
      await database.commit(() => {
        failed?.(reason);
        events.publish(failure(reason, newestIn(folder)));
      });
      events.wake();
    }
    throw new GatehouseError('STORAGE_UNAVAILABLE', reason);
  }

  async function makeDue(signal: AbortSignal): Promise<void> {
    try {
      const made = await make(
        () => {},
        signal,
        (reason) => record('failed', { reason }, self()),
      );
      await database.commit(() => record('done', made, self()));
    } catch (cause) {
      if (!(cause instanceof GatehouseError)) throw cause;
    }
  }

  return {
    state: () => backup && { schedule: backup.schedule, folder, newestAt: newestIn(folder), error },
    made: (archive, caller) => database.commit(() => record('done', archive, caller)),
    async order(caller) {
      if (!backup) throw new GatehouseError('NOT_SUPPORTED', NO_KEY);
      if (isMaking)
        throw new GatehouseError('IN_PROGRESS', 'The backup that was due is being made now: wait for it.');
      return jobs.start({
        kind: 'backup',
        object: OBJECT,
        roles: BACKUP_MAKERS,
        ...caller,
        intent: { action: ACTION, object: OBJECT, detail: {} },
        async run(report, signal, conclude) {
          const made = await make(report, signal);
          conclude({ outcome: 'done', detail: made });
          return made;
        },
      });
    },
    async keep(signal) {
      for (;;) {
        await clock.sleep(LOOK_EVERY_MS, signal);
        const mayTry = !isMaking && (error === null || clock.monotonic() - triedAt >= RETRY_AFTER_MS);
        if (backup && mayTry && isDue(backup.schedule, time.now(), newestIn(folder))) await makeDue(signal);
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
function run(
  { source, time, execPath, environment = {} }: Order,
  report: ReportProgress,
  signal: AbortSignal,
): Promise<Made> {
  const { promise, resolve, reject } = Promise.withResolvers<Made>();
  const at = new Date(time.now()).toISOString();
  const command = [...NODE_FLAGS, START, 'make-backup', source.file, at];
  const options = { timeout: DEADLINE_MS, killSignal: 'SIGKILL', env: { ...environment }, signal } as const;
  const child = execFile(execPath, command, options, (error, stdout, stderr) => {
    if (!error) return resolve(resultLine.parse(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')));
    const reason = error.killed ? `it took more than ${DEADLINE_MS / 60_000} minutes` : stderr.trim();
    reject(new Error(reason || error.message));
  });
  // It reads this only where it needs it.
  child.stdin?.on('error', () => {});
  child.stdin?.end(source.text());
  if (child.stdout)
    createInterface(child.stdout).on('line', (line) => {
      const { data } = progressLine.safeParse(JSON.parse(line));
      if (data) report(data);
    });
  return promise;
}

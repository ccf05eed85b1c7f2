/** Jobs in the database: their beginning and their end, and what a restart finds. */
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { JobOrder, Progress, ResumeJob } from '../job-order.ts';
import type { Log } from '../log.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../principal.ts';
import type { Task } from './queues.ts';
import type { Job, JobStatus } from './schema.ts';
import { type JobRow, openJobTable } from './table.ts';

/** A job that was interrupted so often is not queued again: it may be what ends the gateway. */
const INTERRUPTIONS_MAX = 3;
/** Finished jobs kept for the list. */
const FINISHED_KEPT = 500;
/** While a disk has no room for the end of a job. */
const STORE_AGAIN_MS = 5_000;

export interface JobsOptions {
  database: Database;
  audit: Audit;
  clock: Clock;
  log: Log;
  /** By kind: the work of jobs that were queued when the gateway ended. */
  resume?: Readonly<Record<string, ResumeJob>>;
}

const INTERRUPTED = 'INTERRUPTED';

/** How a job ended. As the reason of its signal: how it ends unless its work is done first. */
export class End extends Error {
  readonly status: JobStatus;
  readonly code: string;
  constructor(status: JobStatus, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export type Store = ReturnType<typeof openStore>;

/** What is written of a job: its beginning and its end, each with its audit row in the same commit. */
export function openStore(options: JobsOptions, closing: AbortSignal) {
  const { database, clock, log } = options;
  const { table, record, writeEnd } = openRows(options);

  /** Until it is stored, or the gateway closes: false. */
  async function stored(row: Pick<JobRow, 'id' | 'kind' | 'object'>, write: () => void): Promise<boolean> {
    const { id: job, kind, object } = row;
    for (let tries = 1; ; tries += 1) {
      try {
        await database.commit(write);
        return true;
      } catch (error) {
        if (tries === 1)
          log.error({ job, kind, object, err: error }, 'what a job came to could not be stored');
        if (!isStorageUnavailable(error) || closing.aborted) return false;
        await clock.sleep(STORE_AGAIN_MS, closing).catch(() => undefined);
      }
    }
  }

  return {
    table,
    insert: (id: string, { kind, object, roles, queue, ...caller }: JobOrder, status: 'queued' | 'running') =>
      database.commit(() => {
        const { principal, correlationId } = caller;
        const input = queue ? JSON.stringify(queue.input) : null;
        const by = [principal.id, correlationId] as const;
        table.insert.run(
          id,
          kind,
          object,
          JSON.stringify(roles),
          status,
          clock.now(),
          ...by,
          queue?.name ?? null,
          input,
        );
        record({ id, kind, object }, caller, 'accepted');
      }),
    /** It is its turn. False: it was cancelled, or the gateway closes. */
    async begin(id: string): Promise<boolean> {
      const row = table.job.get(id);
      let isBegun = false;
      const write = () => {
        isBegun = table.begin.run(clock.now(), id).changes > 0;
      };
      return row !== undefined && (await stored(row, write)) && isBegun;
    },
    /**
     * Never rejects: an end that the disk has no room for is stored once it has; one that is not by the time the gateway
     * closes is stored at the next start, as interrupted.
     */
    async end(id: string, progress: Progress, end: End, result: Job['result'] = null): Promise<void> {
      const row = table.job.get(id);
      // The next start queues it again.
      if (!row || (end.code === INTERRUPTED && row.queue !== null)) return;
      const { kind, object } = row;
      if (end.status === 'failed')
        log.warn({ job: id, kind, object, err: end.cause }, `a job failed: ${end.message}`);
      await stored(row, () => writeEnd(row, progress, end, result));
    },
    /** Inside a commit job: the status that the job had; undefined: it has ended meanwhile. */
    requestCancel(id: string, caller: Caller): JobStatus | undefined {
      const row = table.job.get(id);
      if (!row || table.setCancelRequested.run(clock.now(), id).changes === 0) return undefined;
      record(row, caller, 'cancel requested');
      if (row.status === 'queued') writeEnd(row, { done: 0, total: null }, cancelled(), null);
      return row.status;
    },
    /** At the start: those that are to be done, in their order. The others get their end. */
    async unfinished(): Promise<{ id: string; task: Task }[]> {
      const left = table.unfinished.all().map((row) => ({ row, task: taskOf(row, options) }));
      if (left.length === 0) return [];
      return database.commit(() =>
        left.flatMap(({ row, task }) => {
          const mayGoOn = row.status === 'queued' || row.interruptions < INTERRUPTIONS_MAX;
          if (!task || !mayGoOn || row.cancel_requested_at !== null) {
            const end = row.cancel_requested_at !== null && task ? cancelled() : interrupted();
            writeEnd(row, { done: 0, total: null }, end, null);
            return [];
          }
          if (row.status === 'running') table.queueAgain.run(row.id);
          return [{ id: row.id, task }];
        }),
      );
    },
  };
}

/** Inside commit jobs: what is written of a job, with its audit row. */
function openRows({ database, audit, clock }: JobsOptions) {
  const table = openJobTable(database);

  function record(row: Pick<JobRow, 'id' | 'kind' | 'object'>, caller: Caller, outcome: string): void {
    const { principal, correlationId } = caller;
    const detail = { job: row.id };
    audit.record({
      principal,
      action: `job.${row.kind}`,
      object: row.object,
      outcome,
      detail,
      correlationId,
    });
  }

  function writeEnd(row: JobRow, { done, total }: Progress, end: End, result: Job['result']): void {
    const { status, code, message } = end;
    const isDone = status === 'done';
    const made = result && JSON.stringify(result);
    const error = { code: isDone ? null : code, message: isDone ? null : message };
    table.finish.run(status, done, total, error.code, error.message, made, clock.now(), row.id);
    const outcome = code === INTERRUPTED ? 'interrupted' : status;
    record(row, { principal: SYSTEM_PRINCIPAL, correlationId: row.correlation_id }, outcome);
    table.prune.run(FINISHED_KEPT);
  }

  return { table, record, writeEnd };
}

/** Undefined: there is no such work in this version of the gateway. */
function taskOf(
  { id, kind, object, queue, input }: JobRow,
  { resume = {}, log }: JobsOptions,
): Task | undefined {
  try {
    const run = queue === null ? undefined : resume[kind]?.(JSON.parse(input ?? 'null'), id);
    return run && { kind, object, queue, run };
  } catch (error) {
    log.warn({ job: id, kind, object, err: error }, 'a queued job of an earlier version cannot be begun');
    return undefined;
  }
}

function isStorageUnavailable(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'STORAGE_UNAVAILABLE';
}

export function cancelled(): End {
  return new End('cancelled', 'CANCELLED', 'It was cancelled.');
}

export function interrupted(): End {
  return new End('failed', INTERRUPTED, 'The gateway ended while it ran: start it again.');
}

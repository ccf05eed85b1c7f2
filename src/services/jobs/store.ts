/** Jobs in the database: their beginning and their end, and what a restart finds. */

import { z } from 'zod';
import type { Clock } from '../../platform/clock.ts';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { Conclusion, JobOrder, Progress, ResumeJob } from './job-order.ts';
import type { Task } from './queues.ts';
import type { Job, JobStatus } from './schema.ts';
import { type JobRow, type JobTable, openJobTable } from './table.ts';

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
}

/** By kind: the work of jobs that were queued when the gateway ended. */
export type ResumedWork = Readonly<Record<string, ResumeJob>>;

const INTERRUPTED = 'INTERRUPTED';
const STOPPED = 'the gateway was stopped before the outcome was known';

/** In the column `intent`. */
const jobIntent = z.object({
  action: z.string(),
  object: z.string(),
  detail: z.record(z.string(), z.unknown()),
  principal: z.object({ id: z.string(), label: z.string() }),
});
type JobIntent = z.infer<typeof jobIntent>;

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

/** An end that no disk has taken yet. */
export interface UnstoredEnd {
  end: End;
  /** Epoch milliseconds. */
  at: number;
}

export interface Store {
  table: JobTable;
  insert(id: string, order: JobOrder, status: 'queued' | 'running'): Promise<void>;
  /** It is its turn. False: it was cancelled, or the gateway closes. */
  begin(id: string): Promise<boolean>;
  /**
   * Never rejects: an end that the disk has no room for is stored once it has; one that is not by the time the gateway
   * closes is stored at the next start, as interrupted.
   */
  end(
    id: string,
    progress: Progress,
    end: End,
    made: { result: Job['result']; concluded: Conclusion | undefined },
  ): Promise<void>;
  /**
   * Of a job that has ended and is still running in its row, because the disk is full: the client that waits for it reads why
   * it failed. One that is done is not shown as that before it is stored, for the next start would call it interrupted.
   */
  failedUnstored(id: string): UnstoredEnd | undefined;
  /** Inside a commit job: the status that the job had; undefined: it has ended meanwhile. */
  requestCancel(id: string, caller: Caller): JobStatus | undefined;
  /** At the start: those that are to be done, in their order. The others get their end. */
  unfinished(work: ResumedWork): Promise<{ id: string; task: Task }[]>;
}

/** What is written of a job: its beginning and its end, each with its audit row in the same commit. */
export function openStore(options: JobsOptions, closing: AbortSignal): Store {
  const { database, clock, log } = options;
  const { table, record, writeBegin, writeEnd } = openRows(options);
  const unstored = new Map<string, UnstoredEnd>();

  /** Until it is stored, or the gateway closes: false. `refused`: not at once. */
  async function stored(
    row: Pick<JobRow, 'id' | 'kind' | 'object'>,
    write: () => void,
    refused?: () => void,
  ): Promise<boolean> {
    const { id: job, kind, object } = row;
    for (let tries = 1; ; tries += 1) {
      try {
        await database.commit(write);
        return true;
      } catch (error) {
        if (tries === 1)
          log.error({ job, kind, object, err: error }, 'what a job came to could not be stored');
        if (!isStorageUnavailable(error) || closing.aborted) return false;
        refused?.();
        await clock.sleep(STORE_AGAIN_MS, closing).catch(() => undefined);
      }
    }
  }

  return {
    table,
    insert: (id, order, status) => database.commit(() => writeBegin(id, order, status)),
    async begin(id) {
      const row = table.job.get(id);
      let isBegun = false;
      const write = () => {
        isBegun = table.begin.run(clock.now(), id).changes > 0;
      };
      return row !== undefined && (await stored(row, write)) && isBegun;
    },
    async end(id, progress, end, made) {
      const row = table.job.get(id);
      // The next start queues it again.
      if (!row || (end.code === INTERRUPTED && row.queue !== null)) return;
      const { kind, object } = row;
      if (end.status === 'failed')
        log.warn({ job: id, kind, object, err: end.cause }, `a job failed: ${end.message}`);
      const at = clock.now();
      await stored(
        row,
        () => writeEnd(row, progress, end, made),
        () => unstored.set(id, { end, at }),
      );
      unstored.delete(id);
    },
    failedUnstored(id) {
      const found = unstored.get(id);
      return found?.end.status === 'done' ? undefined : found;
    },
    requestCancel(id, caller) {
      const row = table.job.get(id);
      if (!row || table.setCancelRequested.run(clock.now(), id).changes === 0) return undefined;
      record(row, caller, 'cancel requested');
      if (row.status === 'queued') writeEnd(row, { done: 0, total: null }, cancelled(), {});
      return row.status;
    },
    async unfinished(work) {
      const left = table.unfinished.all().map((row) => ({ row, task: taskOf(row, work, log) }));
      if (left.length === 0) return [];
      return database.commit(() =>
        left.flatMap(({ row, task }) => {
          const mayGoOn = row.status === 'queued' || row.interruptions < INTERRUPTIONS_MAX;
          if (!task || !mayGoOn || row.cancel_requested_at !== null) {
            const end = row.cancel_requested_at !== null && task ? cancelled() : interrupted();
            const concluded = row.status === 'running' || row.interruptions > 0 ? UNKNOWN : undefined;
            writeEnd(row, { done: 0, total: null }, end, { concluded });
            return [];
          }
          if (row.status === 'running') table.queueAgain.run(row.id);
          return [{ id: row.id, task }];
        }),
      );
    },
  };
}

/** Of a job that the end of the gateway cut short. */
const UNKNOWN: Conclusion = { outcome: 'unknown', detail: { reason: STOPPED } };

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

  function writeBegin(
    id: string,
    { kind, object, roles, queue, intent, ...caller }: JobOrder,
    status: 'queued' | 'running',
  ): void {
    const { principal, correlationId } = caller;
    const { id: principalId, label } = principal;
    const kept: JobIntent | undefined = intent && { ...intent, principal: { id: principalId, label } };
    const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
    const by = [clock.now(), principalId, correlationId] as const;
    const work = [queue?.name ?? null, json(queue?.input), json(kept)] as const;
    table.insert.run(id, kind, object, JSON.stringify(roles), status, ...by, ...work);
    record({ id, kind, object }, caller, 'accepted');
    if (kept) audit.record({ ...kept, outcome: 'accepted', correlationId });
  }

  function conclude({ id, intent, correlation_id }: JobRow, { outcome, detail, also }: Conclusion): void {
    also?.();
    if (intent === null) return;
    // Of a damaged one the audit has the beginning alone: what it was is not known any more.
    const [stored] = database.legible(`job/${id}`, () => storedJson(`job/${id}`, jobIntent, intent));
    if (!stored) return;
    const { detail: wanted, ...entry } = stored;
    audit.record({ ...entry, outcome, detail: { ...wanted, ...detail }, correlationId: correlation_id });
  }

  function writeEnd(
    row: JobRow,
    { done, total }: Progress,
    end: End,
    { result = null, concluded }: { result?: Job['result']; concluded?: Conclusion | undefined },
  ): void {
    const { status, code, message } = end;
    const isDone = status === 'done';
    conclude(
      row,
      concluded ?? (isDone ? { outcome: 'done' } : { outcome: 'failed', detail: { reason: message } }),
    );
    const made = result && JSON.stringify(result);
    const error = { code: isDone ? null : code, message: isDone ? null : message };
    table.finish.run(status, done, total, error.code, error.message, made, clock.now(), row.id);
    const outcome = code === INTERRUPTED ? 'interrupted' : status;
    record(row, { principal: SYSTEM_PRINCIPAL, correlationId: row.correlation_id }, outcome);
    table.prune.run(FINISHED_KEPT);
  }

  return { table, record, writeBegin, writeEnd };
}

/** Undefined: there is no such work in this version of the gateway. */
function taskOf({ id, kind, object, queue, input }: JobRow, resume: ResumedWork, log: Log): Task | undefined {
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

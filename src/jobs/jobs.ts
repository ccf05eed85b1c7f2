/**
 * Long work, such as a backup or a scan: started once, told of while it runs, cancelled, and never without an end. The
 * row is written before the work begins; a row that is still running at the start of the gateway was interrupted, and
 * says so. Nothing is begun again by itself: whoever wants it again starts it again.
 */
import { randomUUID } from 'node:crypto';
import { DriverError } from '../../drivers/driver.ts';
import type { Audit } from '../audit/audit.ts';
import { type Clock, settlesWithin } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { JobOrder, Progress } from '../job-order.ts';
import type { Log } from '../log.ts';
import { type Caller, type Principal, type Role, SYSTEM_PRINCIPAL } from '../principal.ts';
import type { Job, JobStatus, ListQuery } from './schema.ts';
import { type JobRow, openJobTable } from './table.ts';

/** Each is heavy on a bus, a network or the disk. */
const RUNNING_MAX = 4;
/** Finished jobs kept for the list. */
const FINISHED_KEPT = 500;
/** While a disk has no room for the end of a job. */
const STORE_AGAIN_MS = 5_000;
/** A job that ignores its signal for so long is left behind when the gateway closes. */
const ENDING_DEADLINE_MS = 5_000;

export interface Jobs extends AsyncDisposable {
  /** Resolves when the job is stored and has begun. Throws QUEUE_FULL. */
  start(order: JobOrder): Promise<Job>;
  /** Throws NOT_FOUND or FORBIDDEN. */
  get(id: string, principal: Principal): Job;
  list(query: ListQuery, principal: Principal): { items: Job[]; next: string | null };
  /** Those that run, for the status. */
  running(): Job[];
  /** Asks the job to end; cancelling a finished one changes nothing. Throws NOT_FOUND or FORBIDDEN. */
  cancel(id: string, caller: Caller): Promise<Job>;
}

export interface JobsOptions {
  database: Database;
  audit: Audit;
  clock: Clock;
  log: Log;
}

/** How a job ended. As the reason of its signal: how it ends unless its work is done first. */
class End extends Error {
  readonly status: JobStatus;
  readonly code: string;
  constructor(status: JobStatus, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface Running {
  order: Pick<JobOrder, 'kind' | 'object'>;
  progress: Progress;
  stop: AbortController;
  ended: Promise<void>;
}

/** Gives the jobs that a former run of the gateway left behind their end. */
export async function openJobs(options: JobsOptions): Promise<Jobs> {
  const { database, clock } = options;
  const closing = new AbortController();
  const store = openStore(options, closing.signal);
  const { table } = store;
  const running = new Map<string, Running>();
  await store.endLeftBehind();
  const shown = (row: JobRow) => toJob(row, running.get(row.id)?.progress);

  function stored(id: string): JobRow {
    const row = table.job.get(id);
    if (!row)
      throw new GatehouseError('NOT_FOUND', `There is no job ${id}; GET /jobs lists those there are.`);
    return row;
  }

  function existing(id: string, principal: Principal): JobRow {
    const row = stored(id);
    if (!mayStart(principal, row))
      throw new GatehouseError('FORBIDDEN', 'A job is for those who may start such a job.');
    return row;
  }

  async function work(id: string, { run }: JobOrder, job: Running): Promise<void> {
    try {
      const result = await run((progress) => {
        job.progress = progress;
      }, job.stop.signal);
      await store.end(id, job.progress, new End('done', '', ''), result);
    } catch (error) {
      await store.end(id, job.progress, endOf(error, job.stop.signal));
    } finally {
      running.delete(id);
    }
  }

  return {
    async start(order) {
      refuseMore(running, order);
      const id = randomUUID();
      const stop = new AbortController();
      const job: Running = { order, progress: { done: 0, total: null }, stop, ended: Promise.resolve() };
      running.set(id, job);
      try {
        await store.begin(id, order);
      } catch (error) {
        running.delete(id);
        throw error;
      }
      job.ended = work(id, order, job);
      return shown(existing(id, order.principal));
    },
    get(id, principal) {
      return shown(principal.roles.has('monitor') ? stored(id) : existing(id, principal));
    },
    list({ cursor = Number.MAX_SAFE_INTEGER, limit, status, kind, object }, principal) {
      const filters = [status ?? null, kind ?? null, object ?? null] as const;
      const roles = JSON.stringify([...principal.roles]);
      const seesAll = principal.via === 'local' || principal.roles.has('monitor');
      const rows = table.page.all(cursor, ...filters, Number(seesAll), roles, limit + 1);
      const items = rows.slice(0, limit);
      return { items: items.map(shown), next: rows.length > limit ? String(items.at(-1)?.seq) : null };
    },
    running: () =>
      [...running.keys()].flatMap((id) => {
        const row = table.job.get(id);
        return row ? [shown(row)] : [];
      }),
    async cancel(id, caller) {
      const row = existing(id, caller.principal);
      if (row.status === 'running' && row.cancel_requested_at === null) {
        const isNews = await database.commit(() => {
          // It may have ended meanwhile.
          if (table.setCancelRequested.run(clock.now(), id).changes === 0) return false;
          store.record(row, caller, 'cancel requested');
          return true;
        });
        if (isNews) running.get(id)?.stop.abort(new End('cancelled', 'CANCELLED', 'It was cancelled.'));
      }
      return shown(existing(id, caller.principal));
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      const jobs = [...running.values()];
      for (const { stop } of jobs) stop.abort(interrupted());
      await settlesWithin(Promise.all(jobs.map(({ ended }) => ended)), ENDING_DEADLINE_MS, clock);
    },
  };
}

/** What is written of a job: its beginning and its end, each with its audit row in the same commit. */
function openStore({ database, audit, clock, log }: JobsOptions, closing: AbortSignal) {
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
    const outcome = code === 'INTERRUPTED' ? 'interrupted' : status;
    record(row, { principal: SYSTEM_PRINCIPAL, correlationId: row.correlation_id }, outcome);
    table.prune.run(FINISHED_KEPT);
  }

  return {
    table,
    record,
    begin: (id: string, { kind, object, roles, ...caller }: JobOrder) =>
      database.commit(() => {
        const { principal, correlationId } = caller;
        table.insert.run(id, kind, object, JSON.stringify(roles), clock.now(), principal.id, correlationId);
        record({ id, kind, object }, caller, 'accepted');
      }),
    /**
     * Never rejects: an end that the disk has no room for is stored once it has; one that is not by the time the gateway
     * closes is stored at the next start, as interrupted.
     */
    async end(id: string, progress: Progress, end: End, result: Job['result'] = null): Promise<void> {
      const row = table.job.get(id);
      if (!row) return;
      const { kind, object } = row;
      if (end.status === 'failed')
        log.warn({ job: id, kind, object, err: end.cause }, `a job failed: ${end.message}`);
      for (let tries = 1; ; tries += 1) {
        try {
          return await database.commit(() => writeEnd(row, progress, end, result));
        } catch (error) {
          if (tries === 1)
            log.error({ job: id, kind, object, err: error }, 'the end of a job could not be stored');
          if (!isStorageUnavailable(error) || closing.aborted) return;
          await clock.sleep(STORE_AGAIN_MS, closing).catch(() => undefined);
        }
      }
    },
    async endLeftBehind(): Promise<void> {
      const left = table.running.all();
      if (left.length === 0) return;
      await database.commit(() => {
        for (const row of left) writeEnd(row, { done: 0, total: null }, interrupted(), null);
      });
    },
  };
}

function isStorageUnavailable(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'STORAGE_UNAVAILABLE';
}

function interrupted(): End {
  return new End('failed', 'INTERRUPTED', 'The gateway ended while it ran: start it again.');
}

/** What was told to end has failed for that reason; the rest for its own, which a client reads if it is for clients. */
function endOf(error: unknown, signal: AbortSignal): End {
  if (signal.reason instanceof End) return signal.reason;
  const code = (error as { code?: unknown } | null)?.code;
  const isTellable = error instanceof GatehouseError || error instanceof DriverError;
  const end = isTellable
    ? new End('failed', String(code), error.message)
    : new End('failed', 'INTERNAL', 'The gateway itself failed; its log says why.');
  end.cause = error;
  return end;
}

function refuseMore(running: ReadonlyMap<string, Running>, { kind, object }: JobOrder): void {
  for (const [id, { order }] of running) {
    if (order.kind === kind && order.object === object)
      throw new GatehouseError('QUEUE_FULL', `The job ${id} does this already: wait for it, or cancel it.`);
  }
  if (running.size < RUNNING_MAX) return;
  throw new GatehouseError('QUEUE_FULL', `${RUNNING_MAX} jobs run already: wait for one, or cancel it.`);
}

function mayStart({ via, roles }: Principal, row: JobRow): boolean {
  return via === 'local' || via === 'system' || rolesOf(row).some((role) => roles.has(role));
}

function rolesOf({ roles }: JobRow): Role[] {
  return JSON.parse(roles) as Role[];
}

function toJob(row: JobRow, live: Progress | undefined): Job {
  const { done, total } = live ?? { done: row.progress_done, total: row.progress_total };
  const date = (at: number | null) => (at === null ? null : new Date(at).toISOString());
  const percent = total === null || total <= 0 ? null : Math.floor((100 * Math.min(done, total)) / total);
  return {
    id: row.id,
    kind: row.kind,
    object: row.object,
    status: row.status,
    progress: { done, total, percent },
    startedAt: new Date(row.started_at).toISOString(),
    startedBy: row.started_by,
    cancelRequestedAt: date(row.cancel_requested_at),
    finishedAt: date(row.finished_at),
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
    result: row.result === null ? null : JSON.parse(row.result),
  };
}

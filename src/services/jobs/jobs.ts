/**
 * Long work, such as a backup or a scan: started once, shown while it runs, cancelled, and never without an end. The row is
 * written before the work begins; a row that is still running at the start of the gateway was interrupted, and says so.
 *
 * queued → running → done | failed | cancelled. Jobs of a queue wait for each other, survive a restart, and one that a restart
 * interrupted is the next of its queue again. Any other job is not begun again: the client starts it again.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { settles } from '../../../drivers/contract/waiting.ts';
import { storedJson, storedTime } from '../../platform/database/damaged-rows.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { type Caller, type Principal, ROLES, type Role } from '../../platform/principal.ts';
import type { Conclusion, FailQueuedJob, JobOrder, Progress } from './job-order.ts';
import { openQueues, type Queues, type Task } from './queues.ts';
import { type Job, job, type ListQuery } from './schema.ts';
import {
  cancelled,
  End,
  interrupted,
  type JobsOptions,
  openStore,
  type ResumedWork,
  type Store,
  type UnstoredEnd,
} from './store.ts';
import type { JobRow } from './table.ts';

/** Each is heavy on a bus, a network or the disk. */
const RUNNING_MAX = 4;
/** A job that ignores its signal for so long is left behind when the gateway closes. */
const ENDING_DEADLINE_MS = 5_000;

export interface Jobs extends AsyncDisposable {
  /** Once, at the start: the jobs that a former run of the gateway left behind get their end, or their place in their queue. */
  resume(work: ResumedWork): Promise<void>;
  /** Resolves when the job is stored and has begun, or waits in its queue. Throws QUEUE_FULL, or IN_PROGRESS where the same job is under way. */
  start(order: JobOrder): Promise<Job>;
  /** Throws NOT_FOUND or FORBIDDEN. */
  get(id: string, principal: Principal): Job;
  list(query: ListQuery, principal: Principal): { items: Job[]; next: string | null };
  /** Those that run, for the status. */
  running(): Job[];
  failQueued: FailQueuedJob;
  /** Asks the job to end; cancelling a finished one changes nothing. Throws NOT_FOUND or FORBIDDEN. */
  cancel(id: string, caller: Caller): Promise<Job>;
}

interface Running {
  task: Task;
  progress: Progress;
  stop: AbortController;
  ended: Promise<void>;
}

export function openJobs(options: JobsOptions): Jobs {
  const { database, clock } = options;
  const closing = new AbortController();
  const store = openStore(options, closing.signal);
  const { table } = store;
  const running = new Map<string, Running>();
  const queues = openQueues();
  const turns = openTurns({ store, running, queues, closing: closing.signal });
  const shown = (row: JobRow) =>
    toJob(
      withEnd(row, store.failedUnstored(row.id)),
      running.get(row.id)?.progress,
      queues.positionOf(row.id),
    );

  function stored(id: string): JobRow {
    const row = table.job.get(id);
    if (!row)
      throw new GatehouseError(
        'NOT_FOUND',
        `There is no job ${id}, and those that ended long ago are forgotten: GET /jobs has those that there are.`,
      );
    return row;
  }

  function existing(id: string, principal: Principal): JobRow {
    const row = stored(id);
    if (!mayStart(principal, row))
      throw new GatehouseError(
        'FORBIDDEN',
        'A job is for those who may start such a job: use a token with one of their roles.',
      );
    return row;
  }

  return {
    async resume(work) {
      for (const row of await store.unfinished(work)) turns.queued(row.id, row.task);
      turns.take();
    },
    async start(order) {
      const id = randomUUID();
      await turns.start(id, order);
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
      return {
        items: items.flatMap((row) => database.legible(`job/${row.id}`, () => rolesOf(row) && shown(row))),
        next: rows.length > limit ? String(items.at(-1)?.seq) : null,
      };
    },
    running: () =>
      [...running.keys()].flatMap((id) => {
        const row = table.job.get(id);
        return row && !store.failedUnstored(id) ? [shown(row)] : [];
      }),
    async cancel(id, caller) {
      const row = existing(id, caller.principal);
      if (row.finished_at === null && row.cancel_requested_at === null) {
        const before = await database.commit(() => store.requestCancel(id, caller));
        if (before === 'queued') queues.delete(id);
        else if (before === 'running') running.get(id)?.stop.abort(cancelled());
      }
      return shown(existing(id, caller.principal));
    },
    async failQueued(kind, object, error) {
      for (const id of queues.remove(kind, object))
        await store.end(id, { done: 0, total: null }, failedBy(error), {
          result: null,
          concluded: undefined,
        });
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      const jobs = [...running.values()];
      for (const { stop } of jobs) stop.abort(interrupted());
      await settles(Promise.all(jobs.map(({ ended }) => ended)), ENDING_DEADLINE_MS, clock);
    },
  };
}

interface TurnsOptions {
  store: Store;
  running: Map<string, Running>;
  queues: Queues;
  closing: AbortSignal;
}

/** Who runs, and who is next. */
function openTurns({ store, running, queues, closing }: TurnsOptions) {
  async function work(id: string, job: Running): Promise<void> {
    const { run } = job.task;
    const report = (progress: Progress) => {
      job.progress = progress;
    };
    let concluded: Conclusion | undefined;
    const conclude = (conclusion: Conclusion) => {
      concluded = conclusion;
    };
    try {
      const result = await run(report, job.stop.signal, conclude);
      await store.end(id, job.progress, new End('done', '', ''), { result, concluded });
    } catch (error) {
      await store.end(id, job.progress, endOf(error, job.stop.signal), { result: null, concluded });
    } finally {
      running.delete(id);
      take();
      concluded?.stored?.();
    }
  }

  async function begin(id: string, job: Running): Promise<void> {
    if (await store.begin(id)) return work(id, job);
    // It was cancelled, or the gateway ends.
    running.delete(id);
    take();
  }

  function take(): void {
    while (!closing.aborted && running.size < RUNNING_MAX) {
      const next = queues.take(busy(running));
      if (!next) return;
      const [id, task] = next;
      const job = newJob(task);
      running.set(id, job);
      job.ended = begin(id, job);
    }
  }

  return {
    take,
    /** It is stored. */
    queued(id: string, task: Task): void {
      queues.add(id, task);
      queues.stored(id);
    },
    async start(id: string, order: JobOrder): Promise<void> {
      const task = { ...order, queue: order.queue?.name ?? null };
      refuseTwice(
        [...running].map(([other, job]) => [other, job.task] as const),
        order,
      );
      refuseTwice(queues.tasks(), order);
      const mustWait =
        order.queue !== undefined && (running.size >= RUNNING_MAX || isTaken(task, running, queues));
      if (mustWait) {
        queues.add(id, task);
        try {
          await store.insert(id, order, 'queued');
        } catch (error) {
          queues.delete(id);
          throw error;
        }
        queues.stored(id);
        return take();
      }
      refuseMore(running);
      const job = newJob(task);
      running.set(id, job);
      try {
        await store.insert(id, order, 'running');
      } catch (error) {
        running.delete(id);
        take();
        throw error;
      }
      job.ended = work(id, job);
    },
  };
}

function newJob(task: Task): Running {
  const progress = { done: 0, total: null };
  return { task, progress, stop: new AbortController(), ended: Promise.resolve() };
}

function busy(running: ReadonlyMap<string, Running>): Set<string | null> {
  return new Set([...running.values()].map(({ task }) => task.queue));
}

/** Somebody runs or waits in its queue. */
function isTaken({ queue }: Task, running: ReadonlyMap<string, Running>, queues: Queues): boolean {
  return busy(running).has(queue) || [...queues.tasks()].some(([, waiting]) => waiting.queue === queue);
}

/** A job that was aborted has failed for the reason of the abort. Other errors reach the client only if they are meant for clients. */
function endOf(error: unknown, signal: AbortSignal): End {
  return signal.reason instanceof End ? signal.reason : failedBy(error);
}

function failedBy(error: unknown): End {
  const code = (error as { code?: unknown } | null)?.code;
  const isForClients = error instanceof GatehouseError || error instanceof DriverError;
  const end = isForClients
    ? new End('failed', String(code), error.message)
    : new End('failed', 'INTERNAL', 'The gateway itself failed; its log says why.');
  end.cause = error;
  return end;
}

function refuseTwice(others: Iterable<readonly [string, Task]>, { kind, object }: JobOrder): void {
  for (const [id, task] of others) {
    if (task.kind === kind && task.object === object)
      throw new GatehouseError(
        'IN_PROGRESS',
        `Job ${id} is already doing this, or waits to: wait for it, or cancel it.`,
      );
  }
}

function refuseMore(running: ReadonlyMap<string, Running>): void {
  if (running.size < RUNNING_MAX) return;
  throw new GatehouseError('QUEUE_FULL', `${RUNNING_MAX} jobs run already: wait for one, or cancel it.`);
}

function mayStart({ via, roles }: Principal, row: JobRow): boolean {
  return via === 'local' || via === 'system' || rolesOf(row).some((role) => roles.has(role));
}

const storedRoles = z.array(z.enum(ROLES));

function rolesOf({ id, roles }: JobRow): Role[] {
  return storedJson(`job/${id}`, storedRoles, roles);
}

function withEnd(row: JobRow, unstored: UnstoredEnd | undefined): JobRow {
  if (!unstored) return row;
  const { end, at } = unstored;
  return { ...row, status: end.status, error_code: end.code, error_message: end.message, finished_at: at };
}

function toJob(row: JobRow, live: Progress | undefined, position: number | null): Job {
  const { done, total } = live ?? { done: row.progress_done, total: row.progress_total };
  const date = (at: number | null) => (at === null ? null : storedTime(`job/${row.id}`, at));
  const percent = total === null || total <= 0 ? null : Math.floor((100 * Math.min(done, total)) / total);
  return {
    id: row.id,
    kind: row.kind,
    object: row.object,
    status: row.status,
    position,
    progress: { done, total, percent },
    startedAt: storedTime(`job/${row.id}`, row.started_at),
    startedBy: row.started_by,
    cancelRequestedAt: date(row.cancel_requested_at),
    finishedAt: date(row.finished_at),
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
    result: storedJson(`job/${row.id}`, job.shape.result, row.result),
  };
}

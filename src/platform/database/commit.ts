/**
 * Group commit: all work of one turn of the event loop shares one transaction and one fsync.
 *
 * Each job runs inside a savepoint, so that a failing job rolls back alone. A promise settles only after COMMIT has
 * returned: what was promised is on the disk. When COMMIT itself fails, what it wrote to the write-ahead log is removed
 * first, because a recovery would take it for committed; then every job of the batch is rejected with
 * STORAGE_UNAVAILABLE. When it cannot be removed, the rejection says that the outcome is unknown, and no work is stored
 * until it is removed. The connection is reopened, because after a failed fsync the state of the old one is unknown.
 * A full disk leaves the connection as it was; then the urgent jobs of the batch are tried once more in the room that
 * the ballast gives (space.ts).
 */
import { GatehouseError } from '../errors.ts';
import type { Connection } from './connection.ts';
import {
  diskFull,
  isCutShort,
  isDiskFull,
  isHeld,
  isStorageFault,
  outcomeUnknown,
  storageUnavailable,
} from './faults.ts';
import type { DiskSpace, Urgency } from './space.ts';

/** Longest batch: bounds how long one transaction holds the event loop. */
const BATCH_MAX = 256;
/** Waiting jobs before new ones are refused: ten batches. */
const QUEUE_MAX = 2_560;
/** A commit that took longer than this, milliseconds, kept the sockets waiting. */
const SLOW_MS = 2;
/**
 * Turns of the event loop that the sockets then have to themselves: libuv accepts one connection a turn, so that with
 * 20 ms in each no one could connect more often than 50 times a second. An idle turn takes microseconds, one of a drain
 * of the backlog milliseconds: from the end of the commit on, the turns together take no longer than the commit did.
 */
const TURNS_AFTER_SLOW = 8;
const turnsAfter = (milliseconds: number) => (milliseconds > SLOW_MS ? TURNS_AFTER_SLOW : 0);

interface Waiting {
  job: () => unknown;
  urgency: Urgency;
  resolve: (value: never) => void;
  reject: (reason: unknown) => void;
}

/** What the last batches cost, for metrics and the watchdog. */
export interface CommitFigures {
  batches: number;
  jobs: number;
  failures: number;
  /** The last commit failed, and none since has stored anything. */
  failing: boolean;
  /** Jobs rejected with an unknown outcome, until that is known. */
  outcomeUnknown: number;
  lastBatchSize: number;
  lastMilliseconds: number;
  queued: number;
}

const NO_FIGURES: Omit<CommitFigures, 'queued'> = {
  batches: 0,
  jobs: 0,
  failures: 0,
  failing: false,
  outcomeUnknown: 0,
  lastBatchSize: 0,
  lastMilliseconds: 0,
};

export interface GroupCommit {
  /**
   * Runs `job` in the next transaction. It must be synchronous; what it throws is what the caller gets. `urgency` says
   * what is still stored while the disk is short of room; normal when absent.
   */
  commit<T>(job: () => T, urgency?: Urgency): Promise<T>;
  /** Inside a job: called once the job is on the disk, before its promise resolves; never when it is not stored. Throws nothing. */
  whenStored(effect: () => void): void;
  /** A batch is being run or committed. */
  isRunning(): boolean;
  figures(): CommitFigures;
  /** Commits what waits, then refuses further work with SHUTTING_DOWN. */
  close(): void;
}

export interface GroupCommitOptions {
  connection: Connection;
  space: Pick<DiskSpace, 'admits' | 'release'>;
  monotonic: () => number;
  /** Called at every batch that is on the disk. */
  committed?: (jobs: number, milliseconds: number) => void;
  /** Called at every failed COMMIT or BEGIN, with the cause. `isKnown`: nothing of it is stored. */
  failed: (error: unknown, isKnown: boolean) => void;
  /** Called when it becomes known that so many jobs with an unknown outcome are not stored. */
  decided?: (jobs: number) => void;
}

class CommitFailed extends Error {}

export function openGroupCommit(options: GroupCommitOptions): GroupCommit {
  const { connection, space, monotonic, committed = () => {}, failed, decided = () => {} } = options;
  const queue: Waiting[] = [];
  const figures = { ...NO_FIGURES };
  const changed = connection.prepare<[], { total: number }>('SELECT total_changes() AS total');
  const repair = openRepair(connection);
  let armed = false;
  let [closed, running] = [false, false];
  let endedAt = 0;
  const effects = openEffects();

  function flush(): void {
    armed = false;
    const batch = queue.splice(0, BATCH_MAX);
    if (queue.length > 0) arm();
    if (batch.length === 0) return;
    const started = monotonic();
    running = true;
    try {
      store(batch);
    } catch (error) {
      const hasRoom = isDiskFull(causeOf(error)) && space.release();
      // At start-up, before anything is served, that is all of them.
      const again = hasRoom ? batch.filter(({ urgency }) => space.admits(urgency)) : [];
      const refused = batch.filter((waiting) => !again.includes(waiting));
      refuse(refused, error);
      try {
        if (again.length > 0) store(again);
      } catch (secondError) {
        refuse(again, secondError);
      }
    }
    running = false;
    endedAt = monotonic();
    Object.assign(figures, { lastBatchSize: batch.length, lastMilliseconds: endedAt - started });
  }

  function store(batch: Waiting[]): void {
    repair.finish();
    if (figures.outcomeUnknown > 0) decided(figures.outcomeUnknown);
    figures.outcomeUnknown = 0;
    const started = monotonic();
    // One that changes nothing, such as the watchdog's, does not touch the disk.
    const changesBefore = figures.failing ? changed.get()?.total : undefined;
    const settled = transaction(connection, batch);
    if (figures.failing) figures.failing = changed.get()?.total === changesBefore;
    committed(batch.length, monotonic() - started);
    figures.batches += 1;
    figures.jobs += batch.length;
    for (const settle of settled) settle();
  }

  function refuse(batch: Waiting[], thrown: unknown): void {
    const error = causeOf(thrown);
    const isKnown = !(thrown instanceof CommitFailed) || isCutShort(error) || repair.erase();
    figures.failures += 1;
    figures.failing = true;
    if (!isKnown) figures.outcomeUnknown += batch.length;
    failed(error, isKnown);
    if (!isDiskFull(error) && !isHeld(error)) repair.reopenLater();
    const refusal = isKnown ? storageUnavailable(error) : outcomeUnknown(error);
    for (const waiting of batch) waiting.reject(refusal);
  }

  function arm(): void {
    const took = figures.lastMilliseconds;
    if (!armed) setImmediate(linger, turnsAfter(took), endedAt + took);
    armed = true;
  }

  function linger(turns: number, until: number): void {
    if (turns > 0 && queue.length < BATCH_MAX && monotonic() < until) setImmediate(linger, turns - 1, until);
    else flush();
  }

  return {
    commit<T>(job: () => T, urgency: Urgency = 'normal'): Promise<T> {
      const refusal = closed ? stopping() : admission(space, urgency, queue.length);
      if (refusal) return Promise.reject(refusal);
      return new Promise<T>((resolve, reject) => {
        queue.push({ ...effects.of(job, resolve), urgency, reject });
        arm();
      });
    },
    whenStored: effects.add,
    isRunning: () => running,
    figures: () => ({ ...figures, queued: queue.length }),
    close() {
      closed = true;
      while (queue.length > 0) flush();
    },
  };
}

function admission(space: GroupCommitOptions['space'], urgency: Urgency, queued: number) {
  if (!space.admits(urgency)) return diskFull();
  return queued >= QUEUE_MAX ? overloaded() : undefined;
}

function stopping(): GatehouseError {
  return new GatehouseError('SHUTTING_DOWN', 'The gateway is stopping; try again in a minute.');
}

function overloaded(): GatehouseError {
  const message = 'Too much work waits for the disk; try again in a second.';
  return new GatehouseError('STORAGE_UNAVAILABLE', message, { retryAfterSeconds: 1 });
}

/** What jobs have done once they are on the disk. */
function openEffects() {
  /** Of the job that is run now. */
  let running: (() => void)[] | undefined;
  return {
    add(effect: () => void): void {
      if (!running) throw new TypeError('outside of a commit job nothing is stored');
      running.push(effect);
    },
    of<T>(job: () => T, resolve: (value: T) => void): Pick<Waiting, 'job' | 'resolve'> {
      let effects: (() => void)[] = [];
      return {
        job() {
          // New ones each time: a batch may be tried twice.
          effects = [];
          running = effects;
          try {
            return job();
          } finally {
            running = undefined;
          }
        },
        resolve(value: T) {
          for (const effect of effects) effect();
          resolve(value);
        },
      };
    },
  };
}

/** What has to be done to the connection between a failed batch and the next one. */
function openRepair(connection: Connection) {
  let due: 'nothing' | 'erase' | 'reopen' = 'nothing';
  return {
    /** Removes what a failed COMMIT has left, and returns whether that is on the disk. */
    erase(): boolean {
      try {
        connection.eraseUncommitted();
        return true;
      } catch {
        due = 'erase';
        return false;
      }
    },
    reopenLater() {
      if (due === 'nothing') due = 'reopen';
    },
    /** Throws while the disk does not let it. */
    finish() {
      if (due === 'erase') connection.eraseUncommitted();
      if (due !== 'nothing') {
        due = 'reopen';
        connection.reopen();
      }
      due = 'nothing';
    },
  };
}

/** Runs the batch and commits it; returns what to call once everything is durable. Throws when the batch as a whole failed. */
function transaction(connection: Connection, batch: Waiting[]): (() => void)[] {
  const settled: (() => void)[] = [];
  connection.exec('BEGIN IMMEDIATE');
  try {
    for (const waiting of batch) settled.push(runInSavepoint(connection, waiting));
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK');
    throw error;
  }
  try {
    connection.exec('COMMIT');
  } catch (cause) {
    if (connection.inTransaction) connection.exec('ROLLBACK');
    throw new CommitFailed('COMMIT failed', { cause });
  }
  return settled;
}

const causeOf = (thrown: unknown) => (thrown instanceof CommitFailed ? thrown.cause : thrown);

function runInSavepoint(connection: Connection, { job, resolve, reject }: Waiting): () => void {
  connection.exec('SAVEPOINT job');
  try {
    const value = job();
    if (value instanceof Promise) throw new TypeError('a commit job must be synchronous');
    connection.exec('RELEASE job');
    return () => resolve(value as never);
  } catch (error) {
    // A full disk or an I/O error can end the whole transaction; then there is no savepoint to go back to.
    if (!connection.inTransaction || isStorageFault(error)) throw error;
    connection.exec('ROLLBACK TO job');
    connection.exec('RELEASE job');
    return () => reject(error);
  }
}

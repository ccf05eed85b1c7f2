/**
 * What devices on links say of themselves, once for all slices that have some: in memory with its age, and written to
 * the database in batches and only when a fact worth keeping changed, so that a chatty device costs no disk.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';

/** Between two batches: what a power cut may cost of what devices will say again anyway. */
const FLUSH_MS = 2_000;
/** Rows of one batch: a thousand devices that come back at once take some seconds, and hold no one up meanwhile. */
const BATCH_MAX = 100;
/**
 * After a start, for devices that were connected before it to be heard of again: hosts and links come up one after the
 * other, and a port may have to be tried twice.
 */
const RETURN_MS = 60_000;

export interface Known<State> {
  connected: boolean;
  /** When `connected` last changed, epoch milliseconds. */
  changedAt: number;
  /** The latest; until the device has said something since the gateway started, what was added, if anything. */
  state: State | undefined;
  /** When it came, monotonic milliseconds. */
  at: number | undefined;
}

export interface ReportedOptions<State> {
  database: Database;
  clock: Clock;
  /** What is known from before this start; no one is connected yet. */
  known: readonly { id: string; connected: boolean; changedAt: number }[];
  /** What of a state is written, and worth writing when it changed. */
  facts(state: State): unknown;
  /** `connected` is written too, and so worth writing when it changed. */
  keepsConnected: boolean;
  /** Inside a commit job; `state` as in Known. */
  store(id: string, known: Known<State>): void;
  /** After such a commit. */
  stored?(): void;
}

/**
 * After a start no one counts as connected until heard of. A device that was connected before and is heard of within
 * RETURN_MS has not changed: it is connected since when it was. Of any other one the start is the change.
 */
export interface Reported<State> {
  get(id: string): Known<State> | undefined;
  /** A device that is new in the table, or another one in its place, since `changedAt` (epoch milliseconds). */
  add(id: string, changedAt: number, state?: State): void;
  /** What is known of one row is known of another one now, and of the first no more. */
  move(from: string, to: string): void;
  /** The row is no more. */
  forget(id: string): void;
  /** The device said this. */
  report(id: string, connected: boolean, state: State): void;
  /** The way to the device is gone. */
  disconnect(id: string): void;
  /** Writes in batches, until the signal fires; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openReported<State>(options: ReportedOptions<State>): Reported<State> {
  const { database, clock, facts, keepsConnected, store, stored = () => {} } = options;
  const known = new Map<string, Known<State>>();
  const unwritten = new Set<string>();
  const openedAt = clock.monotonic();
  /** Connected before this start and not heard of since: since when they were. */
  const unheard = new Map<string, number>();

  function keep(id: string, next: Known<State>): void {
    known.set(id, next);
    unwritten.add(id);
  }

  function add(id: string, changedAt: number, state?: State): void {
    if (known.has(id)) unwritten.add(id);
    unheard.delete(id);
    known.set(id, { connected: false, changedAt, state, at: undefined });
  }

  for (const { id, connected, changedAt } of options.known) {
    add(id, connected ? clock.now() : changedAt);
    if (connected) unheard.set(id, changedAt);
  }

  /** Those who did not return have gone at the start. */
  function endReturn(): void {
    if (clock.monotonic() - openedAt < RETURN_MS) return;
    for (const id of unheard.keys()) unwritten.add(id);
    unheard.clear();
  }

  function write(batch: readonly string[]): void {
    for (const id of batch) {
      const one = known.get(id);
      const since = unheard.get(id);
      // Not decided yet: on the disk it is still what it was.
      if (one) store(id, since === undefined ? one : { ...one, connected: true, changedAt: since });
    }
  }

  return {
    get: (id) => known.get(id),
    add,
    move(from, to) {
      const one = known.get(from);
      known.delete(from);
      unwritten.delete(from);
      unheard.delete(from);
      if (one) keep(to, one);
    },
    forget(id) {
      known.delete(id);
      unwritten.delete(id);
      unheard.delete(id);
    },
    report(id, connected, state) {
      const before = known.get(id);
      const flipped = before?.connected !== connected;
      const since = connected ? unheard.get(id) : undefined;
      if (connected) unheard.delete(id);
      const changedAt = since ?? (before && !flipped ? before.changedAt : clock.now());
      const next = { connected, changedAt, state, at: clock.monotonic() };
      const isUnchanged = before?.state !== undefined && isDeepStrictEqual(facts(before.state), facts(state));
      if ((flipped && keepsConnected) || !isUnchanged) keep(id, next);
      else known.set(id, next);
    },
    disconnect(id) {
      const before = known.get(id);
      if (before?.connected) keep(id, { ...before, connected: false, changedAt: clock.now() });
    },
    async run(signal) {
      for (;;) {
        await clock.sleep(FLUSH_MS, signal);
        endReturn();
        if (unwritten.size === 0) continue;
        const batch = [...unwritten].slice(0, BATCH_MAX);
        for (const id of batch) unwritten.delete(id);
        try {
          await database.commit(() => write(batch), 'telemetry');
          stored();
        } catch (error) {
          for (const id of batch) unwritten.add(id);
          throw error;
        }
      }
    },
  };
}

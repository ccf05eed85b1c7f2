/**
 * What devices on links say of themselves, once for all slices that have some: in memory with its age, and written to
 * the database in batches and only when a fact worth keeping changed, so that a chatty device costs no disk.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from './clock.ts';
import type { Database } from './database/database.ts';

/** Between two batches: what a power cut may cost of what devices will say again anyway. */
const FLUSH_MS = 2_000;

export interface Known<State> {
  connected: boolean;
  /** When `connected` last changed, epoch milliseconds. */
  changedAt: number;
  /** The latest; undefined until the device has said something since the gateway started. */
  state: State | undefined;
  /** When it came, monotonic milliseconds. */
  at: number | undefined;
}

export interface ReportedOptions<State> {
  database: Database;
  clock: Clock;
  /** What is known from before this start; nobody is connected yet. */
  stored: readonly { id: string; connected: boolean; changedAt: number }[];
  /** What of a state is written, and worth writing when it changed. */
  facts(state: State): unknown;
  /** Inside a commit job; `state` as in Known. */
  store(id: string, known: Known<State>): void;
}

export interface Reported<State> {
  get(id: string): Known<State> | undefined;
  /** A device that is new in the table, since `changedAt` (epoch milliseconds). */
  add(id: string, changedAt: number): void;
  /** The device said this. */
  report(id: string, connected: boolean, state: State): void;
  /** The way to the device is gone. */
  disconnect(id: string): void;
  /** Writes in batches, until the signal fires; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openReported<State>(options: ReportedOptions<State>): Reported<State> {
  const { database, clock, facts, store } = options;
  const known = new Map<string, Known<State>>();
  const unwritten = new Set<string>();

  function keep(id: string, next: Known<State>): void {
    known.set(id, next);
    unwritten.add(id);
  }

  function add(id: string, changedAt: number): void {
    known.set(id, { connected: false, changedAt, state: undefined, at: undefined });
  }

  for (const { id, connected, changedAt } of options.stored) {
    add(id, connected ? clock.now() : changedAt);
    if (connected) unwritten.add(id);
  }

  function write(batch: readonly string[]): void {
    for (const id of batch) {
      const one = known.get(id);
      if (one) store(id, one);
    }
  }

  return {
    get: (id) => known.get(id),
    add,
    report(id, connected, state) {
      const before = known.get(id);
      const flipped = before?.connected !== connected;
      const changedAt = before && !flipped ? before.changedAt : clock.now();
      const next = { connected, changedAt, state, at: clock.monotonic() };
      const told = before?.state !== undefined && isDeepStrictEqual(facts(before.state), facts(state));
      if (flipped || !told) keep(id, next);
      else known.set(id, next);
    },
    disconnect(id) {
      const before = known.get(id);
      if (before?.connected) keep(id, { ...before, connected: false, changedAt: clock.now() });
    },
    async run(signal) {
      for (;;) {
        await clock.sleep(FLUSH_MS, signal);
        if (unwritten.size === 0) continue;
        const batch = [...unwritten];
        unwritten.clear();
        try {
          await database.commit(() => write(batch), 'telemetry');
        } catch (error) {
          for (const id of batch) unwritten.add(id);
          throw error;
        }
      }
    },
  };
}

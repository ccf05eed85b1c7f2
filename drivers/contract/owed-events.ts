/**
 * Which command an event of a lock may come of. A lock reports each unlock by radio with an event of its own, which it repeats
 * until it is acknowledged, and the event names no command. So each command whose event was not heard yet is a candidate, and
 * an event is ascribed to a command only where that is the only one. Pure, in memory.
 */

import { DriverError, type DriverErrorCode } from './driver.ts';

/** After the command was begun: so long its event is waited for. What comes later is taken for that of another one. */
export const EVENT_WITHIN_MS = 300_000;

const MAY_OWE: ReadonlySet<DriverErrorCode> = new Set(['OUTCOME_UNKNOWN', 'NO_REPLY', 'BAD_REPLY']);

/** Of a command that failed so: else nothing of it was sent, or the lock refused it. */
export function mayOweEvent(error: unknown): boolean {
  return !(error instanceof DriverError) || MAY_OWE.has(error.code);
}

export interface OwedEvents<Command> {
  /** It is sent to this lock; `at` in monotonic milliseconds, as all times here. */
  begun(lock: string, command: Command, at: number): void;
  /** Nothing of it was sent, or the lock refused it: no event comes of it. */
  withdrawn(lock: string, command: Command): void;
  /** An event that was heard at this time may come of one of them. */
  isOwed(lock: string, heardAt: number): boolean;
  /** The only command of which an event that was heard at this time may come. */
  only(lock: string, heardAt: number): Command | undefined;
  /** Its event was heard. */
  heard(lock: string, command: Command): void;
  /** The same of the only one, if there is one. */
  take(lock: string, heardAt: number): void;
  /** An event that was heard already may be heard again as a new one. */
  forgotten(): void;
  /** When the earliest command was begun that may have an effect now; null: there is none. */
  firstBegunAt(lock: string, now: number): number | null;
}

interface Owing<Command> {
  command: Command;
  at: number;
  isHeard: boolean;
}

export function openOwedEvents<Command>(): OwedEvents<Command> {
  const owing = new Map<string, Owing<Command>[]>();
  const recent = (lock: string, now: number) =>
    (owing.get(lock) ?? []).filter(({ at }) => now - at <= EVENT_WITHIN_MS);
  const candidates = (lock: string, heardAt: number) =>
    recent(lock, heardAt).filter(({ at, isHeard }) => !isHeard && at <= heardAt);
  return {
    begun(lock, command, at) {
      owing.set(lock, [...recent(lock, at), { command, at, isHeard: false }]);
    },
    withdrawn(lock, command) {
      const left = (owing.get(lock) ?? []).filter((one) => one.command !== command);
      if (left.length > 0) owing.set(lock, left);
      else owing.delete(lock);
    },
    isOwed: (lock, heardAt) => candidates(lock, heardAt).length > 0,
    only(lock, heardAt) {
      const [one, ...others] = candidates(lock, heardAt);
      return others.length === 0 ? one?.command : undefined;
    },
    heard(lock, command) {
      for (const one of owing.get(lock) ?? []) if (one.command === command) one.isHeard = true;
    },
    take(lock, heardAt) {
      const [one, ...others] = candidates(lock, heardAt);
      if (one && others.length === 0) one.isHeard = true;
    },
    forgotten() {
      for (const one of [...owing.values()].flat()) one.isHeard = false;
    },
    firstBegunAt: (lock, now) => recent(lock, now)[0]?.at ?? null,
  };
}

/** Judges what a lock did by its own log, against what the gateway was asked and what it answered. Pure. */
import type { LockState } from '../simulators/zigbee/lock.ts';

/** Times are milliseconds of CLOCK_MONOTONIC, as in the log of the lock. */
export interface Command {
  kind: 'unlock' | 'lock' | 'standOpen';
  begunMs: number;
  answeredMs: number;
  /**
   * Until then nothing that was sent is too late. Of standing open: from when on its end is certain, as the answer said; of
   * an unlock: when a parent that keeps frames beyond the deadline has none left.
   */
  overMs: number;
  /** 'none': the caller got no answer; 'unsent': an error, which says that nothing was sent. */
  outcome: string;
}

/** DEADLINE_MS of an unlock (docs/interface.md). */
const DEADLINE_MS = 10_000;
/** Passage mode, and an unlock where the mode was not shown. */
const STAND_OPEN_MOVES_MAX = 2;
/** The log has fractions of the clock of another process. */
const READING_MS = 5;

type Log = Pick<LockState, 'executed'>;

interface Opening {
  /** When the lock heard the command, or the write of its mode. */
  heardMs: number;
  movedMs: number;
}

/** What is wrong; nothing when all is well. */
export function judge(commands: readonly Command[], log: Log): string[] {
  const left = openingsOf(log);
  const violations: string[] = [];
  const take = (fromMs: number, toMs: number, movedByMs = Number.POSITIVE_INFINITY): boolean => {
    const isMeant = ({ heardMs, movedMs }: Opening) =>
      heardMs >= fromMs - READING_MS && heardMs <= toMs + READING_MS && movedMs <= movedByMs + READING_MS;
    const index = left.findIndex(isMeant);
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  };
  const opening = commands.filter(({ kind }) => kind !== 'lock');
  for (const { kind, begunMs, answeredMs } of opening.filter(({ outcome }) => outcome === 'confirmed')) {
    // Who asks for an open door to stand open need not see it move.
    const isShown = kind === 'standOpen' && wasDrawn(log, begunMs);
    if (!take(begunMs, answeredMs, answeredMs) && !isShown)
      violations.push(`${kind} at ${begunMs} was confirmed, and the bolt did not move for it`);
  }
  for (const { kind, begunMs, overMs, outcome } of opening) {
    if (kind === 'standOpen')
      for (let move = 0; move < STAND_OPEN_MOVES_MAX; move += 1) take(begunMs, overMs);
    else if (outcome !== 'confirmed' && outcome !== 'unsent')
      take(begunMs, Math.max(begunMs + DEADLINE_MS, overMs));
  }
  for (const { kind, begunMs, answeredMs, outcome } of commands)
    if (kind === 'lock' && outcome === 'confirmed' && !wasThrown(log, begunMs, answeredMs))
      violations.push(`lock at ${begunMs} was confirmed, and the bolt was drawn all the time`);
  for (const { heardMs } of left)
    violations.push(`the bolt was drawn at ${heardMs}: unasked, twice, late, or although nothing was sent`);
  return violations;
}

function wasDrawn({ executed }: Log, atMs: number): boolean {
  return executed.findLast(({ monotonicMs }) => monotonicMs <= atMs)?.what === 'unlock';
}

function wasThrown(log: Log, fromMs: number, toMs: number): boolean {
  const isMeant = ({ what, monotonicMs }: Log['executed'][number]) =>
    (what === 'lock' || what === 'autoRelock') &&
    monotonicMs >= fromMs - READING_MS &&
    monotonicMs <= toMs + READING_MS;
  return !wasDrawn(log, fromMs) || log.executed.some(isMeant);
}

function openingsOf({ executed }: Log): Opening[] {
  return executed
    .filter(({ what }) => what === 'unlock')
    .map(({ startedMs, heardMs, monotonicMs }) => ({ heardMs: heardMs ?? startedMs, movedMs: monotonicMs }))
    .toSorted((one, other) => one.heardMs - other.heardMs);
}

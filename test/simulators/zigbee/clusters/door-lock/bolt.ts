/** The mechanics of a lock: its bolt, its door, and the times at which they moved. */
import type { Time } from '../../time.ts';
import type { Cause } from '../../zcl/cluster.ts';

/** LockState and DoorState of ZCL table 7-9 and 7-11. */
export const LOCK = { notFully: 0, locked: 1, unlocked: 2 } as const;
export const DOOR = { open: 0, closed: 1, jammed: 2, forcedOpen: 3 } as const;
export type DoorName = keyof typeof DOOR;
/** OperatingMode. */
export const MODE = { normal: 0, vacation: 1, privacy: 2, noRf: 3, passage: 4 } as const;

export type Source = 'keypad' | 'rf' | 'manual' | 'rfid' | 'lock';

/** Something the bolt did, once it had done it. */
export interface Executed {
  /** Milliseconds of CLOCK_MONOTONIC, when it was ordered to. */
  startedMs: number;
  monotonicMs: number;
  what: 'unlock' | 'lock' | 'autoRelock' | 'jam';
  source: Source;
  user: number | null;
  /** Of the command that caused it; null: no command did. */
  tsn: number | null;
  /** When that came. */
  heardMs: number | null;
}

export interface Move {
  what: 'unlock' | 'lock';
  source: Source;
  user?: number;
  cause?: Cause;
  /** Locks again by itself. */
  relockSeconds?: number;
}

export interface Bolt {
  state: { lock: number; door: number; mode: number; relockSeconds: number; opened: number; closed: number };
  executed(): Executed[];
  move(move: Move): void;
  /** `cause`: the write. */
  setMode(mode: number, cause?: Cause): void;
  clearLog(): void;
}

export interface BoltOptions {
  time: Time;
  boltMs: number;
  relockSeconds: number;
  isJammed(): boolean;
  /** Its motor does not even try; a hand turns it. */
  isStuck(): boolean;
  /** It does not even try, and says that it did. */
  boasts(): boolean;
  /** Milliseconds after which it locks by itself. Undefined: as its settings say. */
  relocksMs(): number | undefined;
  /** The bolt has come to rest, or has not moved. */
  settled(done: Executed): void;
  /** It says so, and has done nothing. */
  boasted(done: Executed): void;
}

const EXECUTED_MAX = 2_000;

export function openBolt(options: BoltOptions): Bolt {
  const { time, boltMs, relockSeconds, isJammed, settled } = options;
  const state = {
    lock: LOCK.locked as number,
    door: DOOR.closed as number,
    mode: 0,
    relockSeconds,
    opened: 0,
    closed: 0,
  };
  const executed: Executed[] = [];
  let relock = () => {};

  const executedOf = (move: Move, what: Executed['what'], startedMs: number): Executed => ({
    startedMs,
    monotonicMs: time.now(),
    what,
    source: move.source,
    user: move.user ?? null,
    tsn: move.cause?.tsn ?? null,
    heardMs: move.cause?.heardMs ?? null,
  });
  function finish(move: Move, what: Executed['what'], startedMs: number): void {
    const done = executedOf(move, isJammed() ? 'jam' : what, startedMs);
    state.lock = isJammed() ? LOCK.notFully : move.what === 'unlock' ? LOCK.unlocked : LOCK.locked;
    executed.push(done);
    if (executed.length > EXECUTED_MAX) executed.shift();
    relock();
    const relockMs = options.relocksMs() ?? 1_000 * (move.relockSeconds ?? state.relockSeconds);
    if (state.lock === LOCK.unlocked && relockMs > 0 && state.mode !== MODE.passage)
      relock = time.after(relockMs, () => start({ what: 'lock', source: 'lock' }, 'autoRelock'));
    settled(done);
  }
  function start(move: Move, what: Executed['what']): void {
    if (options.isStuck() && move.source !== 'manual') return;
    const startedMs = time.now();
    if (options.boasts()) options.boasted(executedOf(move, what, startedMs));
    else if (boltMs === 0) finish(move, what, startedMs);
    else time.after(boltMs, () => finish(move, what, startedMs));
  }
  return {
    state,
    executed: () => [...executed],
    move: (move) => start(move, move.what),
    setMode(mode, cause) {
      const before = state.mode;
      state.mode = mode;
      if (before === mode) return;
      const move = (what: Move['what']) => start({ what, source: 'lock', ...(cause && { cause }) }, what);
      // Stand-open keeps the bolt drawn; its end throws it.
      if (mode === MODE.passage) move('unlock');
      if (before === MODE.passage) move('lock');
    },
    clearLog: () => void executed.splice(0),
  };
}

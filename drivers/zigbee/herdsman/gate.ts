/**
 * When the bytes of a frame may be written: once, released, in time, while its address is its own; and, where it moves something at a
 * door, only when the coordinator has just shown that it reads its port. The library reads the payload when it makes the bytes, and
 * writes them when the port is free (port.ts): the payload can be read once, and both look at the clock.
 */
import type { Clock } from '../../contract/driver.ts';
import { settles, within } from '../../contract/waiting.ts';
import type { ZclRequest } from '../radio.ts';

/** 'made': its bytes wait to be written. 'closed': they are not written any more. */
export type GateState = 'waiting' | 'made' | 'sent' | 'late' | 'closed';

type Fields = Record<string, unknown>;

export interface Gate {
  /** The payload, to be given to the library instead of the original. */
  payload: Fields | readonly Fields[];
  state(): GateState;
  /** Resolves when the frame is released; rejects when it is not to be, or not in time. */
  released(): Promise<void>;
  /** The bytes are written now. Throws when they may not be. */
  leave(): void;
  /** What is not written by now is not to be. */
  close(): GateState;
}

/**
 * The payload has at least one field, or one record with one; `notAfter` in monotonic milliseconds; the rest as in
 * ZclRequest (radio.ts).
 */
export function openGate(
  payload: Fields | readonly Fields[],
  notAfter: number,
  clock: Clock,
  { left, released, isBarred }: Pick<ZclRequest, 'left' | 'released' | 'isBarred'> = {},
): Gate {
  const { monotonic } = clock;
  let state: GateState = 'waiting';
  let isHeld = released !== undefined;
  function pass(from: GateState, to: GateState): void {
    if (state !== from && state !== 'late') throw new Error(`the frame was ${state} already`);
    state = monotonic() > notAfter ? 'late' : to;
    if (state === 'late') throw new Error('the time of the frame is over');
  }
  const [first, ...others] = Array.isArray(payload) ? (payload as readonly Fields[]) : [payload as Fields];
  const [name] = Object.keys(first ?? {});
  if (!first || name === undefined) throw new RangeError('a frame without fields cannot be guarded');
  const guarded = hidden({ ...first });
  const value = first[name];
  Object.defineProperty(guarded, name, {
    enumerable: true,
    get() {
      pass('waiting', 'made');
      return value;
    },
  });
  return {
    payload: Array.isArray(payload) ? [guarded, ...others.map((other) => hidden({ ...other }))] : guarded,
    state: () => state,
    async released() {
      if (!released) return;
      const inTime = await settles(released, notAfter - monotonic(), clock);
      if (!inTime) {
        state = 'late';
        throw new Error('the frame was not released in time');
      }
      await released;
      isHeld = false;
    },
    leave() {
      if (isHeld) throw new Error('the frame is not released');
      if (isBarred?.()) {
        state = 'closed';
        throw new Error('the frame may not go to its address any more');
      }
      pass('made', 'sent');
      left?.();
    },
    close() {
      if (state === 'waiting' || state === 'made') state = 'closed';
      return state;
    },
  };
}

/** The library writes payloads into error texts: one may hold a PIN, and to write it down is not to send it. */
function hidden(fields: Fields): Fields {
  return Object.defineProperty(fields, 'toJSON', { value: () => '[hidden]' });
}

/** A coordinator answers within milliseconds, over a busy network of the building within some tenths of a second. */
const ANSWER_MS = 1_000;
/**
 * What a coordinator has just shown still holds: it is asked while a frame is held until the intent of an unlock is
 * stored, which takes some milliseconds.
 */
const SHOWN_MS = 20;

/** A frame on its way. */
export interface Passage {
  gate: Gate;
  /** It moves something at a door. */
  actuates: boolean;
  clock: Clock;
}

interface Proof<Port> {
  port: Port;
  /** Monotonic milliseconds of the question. */
  at: number;
  answered: Promise<unknown>;
}

/**
 * Writes what moves something at a door only when the coordinator has just shown that it reads its port: what is written to
 * it can sit in buffers that no one empties, and a coordinator that wakes later could open a door late. `ping`: a question
 * that the process answers that reads the port.
 */
export function openActuating<Port>(ping: (port: Port) => Promise<unknown>) {
  let proof: Proof<Port> | undefined;
  /** Rejects when the coordinator does not answer. */
  function prove(port: Port, clock: Clock): Promise<unknown> {
    const at = clock.monotonic();
    if (proof?.port === port && at - proof.at <= SHOWN_MS) return proof.answered;
    proof = { port, at, answered: within(ping(port), ANSWER_MS, clock, silent) };
    return proof.answered;
  }
  /** When the coordinator does not take the frame, what is left of it on this side is dropped with the connection (`close`). */
  return async <T>(
    port: Port,
    { gate, clock }: Passage,
    write: () => Promise<T>,
    close: () => Promise<void>,
  ): Promise<T> => {
    await Promise.all([prove(port, clock), gate.released()]);
    // Again, when it was held for so long that what was shown may not hold any more.
    await prove(port, clock);
    const taken = write();
    if (await settles(taken, ANSWER_MS, clock)) return taken;
    taken.catch(() => undefined);
    if (gate.close() === 'sent') await close();
    throw silent();
  };
}

const silent = () => new Error('the coordinator does not answer');

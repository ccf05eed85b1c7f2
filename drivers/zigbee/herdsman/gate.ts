/**
 * The last moments before a frame leaves: the library reads the payload when it makes the bytes to send, and writes them
 * when the port is free and the frame is released (port.ts). So the payload can be read once, and both look at the clock:
 * nothing is sent late or twice, whatever waits, repeats or holds back in between.
 */
import type { Clock } from '../../contract/driver.ts';
import { settles } from '../../contract/waiting.ts';
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

/**
 * The last moment before a frame leaves: the library reads the payload when it makes the bytes to send, after every queue
 * of its own. So the payload itself looks at the clock, and can be read once: nothing is sent late or twice, whatever
 * waits, repeats or holds back in between.
 */
import type { Clock } from '../driver.ts';

export type GateState = 'waiting' | 'sent' | 'late';

type Fields = Record<string, unknown>;

export interface Gate {
  /** The payload, to be given to the library instead of the original. */
  payload: Fields | readonly Fields[];
  state(): GateState;
}

/** The payload has at least one field, or one record with one; `notAfter` in monotonic milliseconds. */
export function openGate(
  payload: Fields | readonly Fields[],
  notAfter: number,
  { monotonic }: Pick<Clock, 'monotonic'>,
): Gate {
  let state: GateState = 'waiting';
  function pass(): void {
    if (state === 'sent') throw new Error('the frame was sent already');
    state = monotonic() > notAfter ? 'late' : 'sent';
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
      pass();
      return value;
    },
  });
  return {
    payload: Array.isArray(payload) ? [guarded, ...others.map((other) => hidden({ ...other }))] : guarded,
    state: () => state,
  };
}

/** The library writes payloads into error texts: one may hold a PIN, and to write it down is not to send it. */
function hidden(fields: Fields): Fields {
  return Object.defineProperty(fields, 'toJSON', { value: () => '[hidden]' });
}

/** What a Modbus exception says of the request that it answers (application protocol 1.1b3, 7). Pure. */
import type { Reading } from '../bus/exchange.ts';

/** Checked before anything is carried out: the request has changed nothing. 7 is of the editions before 1.1. */
const REFUSALS = new Map([
  [1, 'exception 01 (illegal function): it does not know this request; compare its product with its profile'],
  [2, 'exception 02 (illegal data address): it has no such register; compare its product with its profile'],
  [3, 'exception 03 (illegal data value): it does not take this value, or so many registers at once'],
  [7, 'exception 07 (negative acknowledge): it cannot carry this request out'],
]);
/** The request is accepted, and takes long. */
const ACKNOWLEDGE = 5;
/** Nothing was done, and asking again is in order. */
const BUSY = 6;
/** The gateway has no way to the device: nothing was passed on. */
const NO_PATH = 10;
/** The gateway has passed the request on, and heard no answer. */
const NO_ANSWER = 11;
/** The failure may have come before, while or after the request was carried out; so may those that no edition names. */
const FAILURES = new Map([
  [4, 'exception 04 (server device failure): it reports a failure of its own'],
  [8, 'exception 08 (memory parity error): its memory is damaged'],
]);

/** `written`: what acknowledges the request where it was to change something; undefined: it was to read. */
export function exceptionReading<Reply>(code: number, written: Reply | undefined): Reading<Reply> {
  const refusal = REFUSALS.get(code);
  if (refusal !== undefined) return { kind: 'refused', reason: refusal };
  switch (code) {
    case ACKNOWLEDGE:
      return written === undefined ? { kind: 'busy' } : { kind: 'reply', reply: written };
    case BUSY:
      return { kind: 'busy' };
    case NO_PATH:
      return {
        kind: 'unreached',
        reason:
          'exception 0A (gateway path unavailable): the Modbus gateway before it is misconfigured or overloaded',
      };
    case NO_ANSWER:
      return {
        kind: 'unanswered',
        reason:
          'exception 0B (gateway target device failed to respond): the Modbus gateway before it heard nothing',
      };
    default: {
      const reason = FAILURES.get(code) ?? `exception ${code.toString(16).toUpperCase().padStart(2, '0')}`;
      // A read changes nothing, whatever it failed of.
      return { kind: written === undefined ? 'refused' : 'failed', reason };
    }
  }
}

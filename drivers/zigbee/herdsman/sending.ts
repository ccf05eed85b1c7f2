/** One frame by the library, and what became of it: sent once at most, not after its time, and not once it is withdrawn. */
import type { Clock } from '../../contract/driver.ts';
import type { ZclReply, ZclRequest } from '../radio.ts';
import { field, integer } from '../values.ts';
import { refused, unconfirmed } from './confirmed.ts';
import { type Gate, openGate } from './gate.ts';

/** The library's own words say how it was called, with all that was: they are for its log. */
const UNSENT =
  'the coordinator did not take the frame; see whether its stick has power and answers, else plug it in again';

interface Library {
  /** The payload is that of the gate. Undefined: no answer came. */
  send(gate: Gate): Promise<{ payload: unknown } | undefined>;
  /** Why it was not sent, in its words: with secrets. */
  failed(reason: string): void;
}

/** The coordinator itself said what became of the frame. */
export class Settled extends Error {
  readonly reply: ZclReply;
  constructor(reply: ZclReply) {
    super('what became of the frame is known');
    this.reply = reply;
  }
}

/** Never rejects. */
export async function sendOnce(request: ZclRequest, clock: Clock, library: Library): Promise<ZclReply> {
  const { withdrawn } = request;
  const gate = openGate(request.payload, request.notAfter, clock, request);
  const unsent = Promise.withResolvers<ZclReply>();
  const withdraw = () => {
    if (gate.close() === 'closed') unsent.resolve({ kind: 'unsent', reason: 'it is not wanted any more' });
  };
  if (withdrawn?.aborted) withdraw();
  withdrawn?.addEventListener('abort', withdraw, { once: true });
  try {
    return await Promise.race([unsent.promise, replyOf(gate, library, withdrawn)]);
  } finally {
    withdrawn?.removeEventListener('abort', withdraw);
  }
}

async function replyOf(gate: Gate, library: Library, withdrawn?: AbortSignal): Promise<ZclReply> {
  try {
    const frame = await library.send(gate);
    return frame ? { kind: 'answered', payload: frame.payload } : { kind: 'unanswered', reason: 'no answer' };
  } catch (error) {
    if (gate.state() === 'late') return { kind: 'late' };
    if (error instanceof Settled) return error.reply;
    const refusal = integer(field(error, 'refused'), 0, 0xff);
    if (refusal !== undefined) return refused(refusal);
    if (gate.state() === 'sent') {
      const code = integer(field(error, 'code'), 0, 0xff_ff);
      return { kind: 'unanswered', reason: code === undefined ? 'no answer in time' : unconfirmed(code) };
    }
    if (!withdrawn?.aborted) library.failed(error instanceof Error ? error.message : 'no reason');
    return { kind: 'unsent', reason: UNSENT };
  }
}

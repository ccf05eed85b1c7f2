/**
 * One frame by the library, and what became of it: sent once at most, not after its time, and not once it is withdrawn,
 * whatever waits, repeats or holds back on the way (gate.ts).
 */
import type { Clock } from '../../contract/driver.ts';
import { KNOWN, type Radio, type RadioEvent, type ZclReply, type ZclRequest } from '../radio.ts';
import { field, integer } from '../values.ts';
import { KnownReply } from './answers.ts';
import { unconfirmedByZStack } from './frame-status.ts';
import { type Gate, openGate } from './gate.ts';
import type { Make } from './make.ts';

/** The library's own words say how it was called, with all that was: they are for its log. */
const UNSENT =
  'the coordinator did not take the frame; see whether its stick has power and answers, else plug it in again';

export interface SendingOptions {
  clock: Clock;
  hear(event: RadioEvent): void;
  log(level: 'warn', line: string): void;
}

/** Of the library. Its types know the payload of each command; this one is checked by its caller. */
interface Endpoint {
  zclCommand(...values: unknown[]): Promise<{ payload: unknown } | undefined>;
}

/** `frameType`: of the library's Zcl. */
export function openSending(
  endpointOf: (ieee: string, id: number) => object,
  { passBy, waitAs }: Pick<Make, 'passBy' | 'waitAs'>,
  frameType: { SPECIFIC: number; GLOBAL: number },
  { clock, hear, log }: SendingOptions,
): Radio['send'] {
  return async (request) => {
    const { ieee, cluster, command, known } = request;
    const endpoint = endpointOf(ieee, request.endpoint) as Endpoint;
    const options = {
      sendPolicy: 'immediate',
      disableRecovery: true,
      timeout: request.timeoutMs,
      transactionSequenceNumber: request.tsn ?? nextNumber(clock),
    };
    const type = request.scope === 'cluster' ? frameType.SPECIFIC : frameType.GLOBAL;
    const reply = await sendOnce(request, clock, {
      send(gate) {
        const passage = { gate, actuates: request.actuates === true, clock };
        const frame = [cluster, command, gate.payload, options, {}, false, type];
        return passBy(passage, () => waitAs(request, () => endpoint.zclCommand(...frame)));
      },
      failed: (reason) => log('warn', `a frame was not sent: ${reason}`),
    });
    if (reply.kind === 'unanswered' && known?.reason !== KNOWN) hear({ kind: 'silent', ieee });
    return reply;
  };
}

/** Of the last frame; one for the process. */
let lastNumber: number | undefined;

/**
 * The library numbers its frames from 0 in each process, and knows an answer by its number: after a kill, the answer to a
 * command of the last process would be that to one of this process. So the first number is what the clock shows.
 */
function nextNumber(clock: Clock): number {
  lastNumber = ((lastNumber ?? clock.now()) + 1) % (LAST_NUMBER + 1);
  return lastNumber;
}
const LAST_NUMBER = 0xff;

interface Library {
  /** The payload is that of the gate. Undefined: no answer came. */
  send(gate: Gate): Promise<{ payload: unknown } | undefined>;
  /** Why it was not sent, in its words: with secrets. */
  failed(reason: string): void;
}

/** Never rejects. */
async function sendOnce(request: ZclRequest, clock: Clock, library: Library): Promise<ZclReply> {
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
    if (error instanceof KnownReply) return error.reply;
    if (gate.state() === 'sent') {
      const code = integer(field(error, 'code'), 0, 0xff_ff);
      const reason = code === undefined ? 'no answer in time' : unconfirmedByZStack(code);
      return { kind: 'unanswered', reason };
    }
    if (!withdrawn?.aborted) library.failed(error instanceof Error ? error.message : 'no reason');
    return { kind: 'unsent', reason: UNSENT };
  }
}

/**
 * Exchanges with the memory of a lock, which are not urgent: one after the other, each bounded by one deadline, and none any
 * more once an actuation is sent to the lock.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import { HELD_FRAME_MS } from '../contract/zgate.ts';
import { commanded, type Lock, type Locks } from './locks.ts';
import { DOOR_LOCK, KNOWN, type LockRadio, type Radio, type ZclReply, type ZclRequest } from './radio.ts';

/** A lock that sleeps fetches a frame within that time. */
const STEP_MS = HELD_FRAME_MS;
/** Of an order that is superseded: a lock that listens answers the frame that is under way sooner, and it need not be in doubt. */
const FINISH_MS = 1_000;

export interface LockExchangesOptions {
  radio: LockRadio & Pick<Radio, 'doubt'>;
  clock: Clock;
  locks: Pick<Locks, 'find'>;
  /** Fires when the link ends. */
  ended: AbortSignal;
}

type Payload = ZclRequest['payload'];
type Reply = Exclude<ZclReply, { kind: 'late' }>;

export interface Exchanges extends Pick<LockExchangesOptions, 'radio'> {
  lock: Lock;
  /** Of the Door Lock cluster. Throws when nothing may be sent any more, and OUTCOME_UNKNOWN when no answer came to what changes the lock. */
  send(command: string, payload: Payload, scope?: ZclRequest['scope']): Promise<Reply>;
  /** The same, of a lock that has to answer. */
  answered(command: string, payload: Payload, scope?: ZclRequest['scope']): Promise<unknown>;
}

export interface LockExchanges {
  /** `purpose`: one of each at a time. Throws REFUSED, BUSY. */
  during<Answer>(
    purpose: string,
    { hwId, deadline, signal }: { hwId: string; deadline: number; signal: AbortSignal },
    work: (exchanges: Exchanges) => Promise<Answer>,
  ): Promise<Answer>;
  /** An actuation is sent to the lock now: it does not wait for these. */
  yield(ieee: string): void;
}

export function openLockExchanges({ radio, clock, locks, ended }: LockExchangesOptions): LockExchanges {
  const working = new Map<string, { ieee: string; yielded: AbortController }>();

  return {
    yield(ieee) {
      for (const one of working.values()) if (one.ieee === ieee) one.yielded.abort(KNOWN);
    },
    async during(purpose, { hwId, deadline, signal }, work) {
      const lock = commanded(locks.find(hwId));
      const { ieee } = lock;
      const key = `${purpose}/${ieee}`;
      if (working.has(key))
        throw new DriverError(
          'BUSY',
          `${purpose} of the lock are read or written already: try again when that is over`,
        );
      const yielded = new AbortController();
      working.set(key, { ieee, yielded });
      const [finished, settled] = [new AbortController(), new AbortController()];
      const finish = () =>
        clock.sleep(FINISH_MS, settled.signal).then(
          () => finished.abort(KNOWN),
          () => undefined,
        );
      signal.addEventListener('abort', finish, { once: true, signal: settled.signal });
      try {
        const over = AbortSignal.any([signal, ended, yielded.signal]);
        const known = AbortSignal.any([finished.signal, ended, yielded.signal]);
        return await work(exchangesWith({ radio, clock, lock, deadline, over, known }));
      } finally {
        working.delete(key);
        settled.abort(KNOWN);
      }
    },
  };
}

interface Bounds extends Pick<LockExchangesOptions, 'radio' | 'clock'> {
  lock: Lock;
  /** Monotonic milliseconds. */
  deadline: number;
  /** Fires: nothing more is sent. */
  over: AbortSignal;
  /** Fires: no answer is waited for. */
  known: AbortSignal;
}

/** Of the Door Lock cluster and for every profile: what only asks is named so. */
const changesNothing = (command: string) => command.startsWith('get') || command === 'read';

function exchangesWith({ radio, clock, lock, deadline, over, known }: Bounds): Exchanges {
  const { ieee, endpoint } = lock;
  const send: Exchanges['send'] = async (command, payload, scope = 'cluster') => {
    if (over.aborted) throw endOf(over);
    const notAfter = Math.min(clock.monotonic() + STEP_MS, deadline - HELD_FRAME_MS);
    const until = { notAfter, timeoutMs: STEP_MS, withdrawn: over, known };
    const reply = await radio.send({ ieee, endpoint, cluster: DOOR_LOCK, command, payload, scope, ...until });
    if (reply.kind === 'unanswered' && !changesNothing(command))
      throw new DriverError(
        'OUTCOME_UNKNOWN',
        `the lock did not answer, and may carry it out late: ${reply.reason}`,
      );
    if (over.aborted) throw endOf(over);
    if (reply.kind === 'late') throw new DriverError('NO_REPLY', 'there was no time left for the rest');
    return reply;
  };
  return {
    radio,
    lock,
    send,
    async answered(command, payload, scope) {
      const reply = await send(command, payload, scope);
      if (reply.kind === 'answered') return reply.payload;
      throw new DriverError('NO_REPLY', `the lock did not answer: ${reply.reason}`);
    },
  };
}

/** Of the link, of the command, or of these exchanges alone. */
function endOf({ reason }: AbortSignal): DriverError {
  if (reason instanceof DriverError) return reason;
  return new DriverError('NO_REPLY', 'the lock is needed for something more urgent');
}

/** Why an exchange with the memory of a lock ends before its time, and what may still arrive then. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { DriverError } from '../contract/driver.ts';
import { openLockExchanges } from './lock-exchanges.ts';
import type { Lock } from './locks.ts';
import { KNOWN, type Radio, type ZclReply } from './radio.ts';

const IEEE = '00158d0001000001';
const lock = { ieee: IEEE, endpoint: 1, hasOwnCluster: false } as Lock;
const LOST = new DriverError('LINK_LOST', 'the connection to the coordinator is gone');
const SUPERSEDED = new DriverError('NO_REPLY', 'another order');
const MORE_URGENT = { code: 'NO_REPLY', message: 'the lock is needed for something more urgent' };
const MAY_ARRIVE = { code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('may carry it out late') };
const SILENT: ZclReply = { kind: 'unanswered', reason: 'no answer' };

function open(send: Radio['send']) {
  const [clock, ended, stop] = [manualClock(), new AbortController(), new AbortController()];
  const locks = { find: () => lock };
  const exchanges = openLockExchanges({ radio: { send } as Radio, clock, locks, ended: ended.signal });
  const order = { hwId: IEEE, deadline: 60_000, signal: stop.signal };
  return {
    clock,
    stop,
    end: (reason: unknown) => (reason === KNOWN ? exchanges.yield(IEEE) : ended.abort(reason)),
    /** Resolves with its error. */
    exchange: (command: string, before: () => void = () => undefined) =>
      exchanges
        .during('users', order, async ({ answered }) => {
          before();
          await answered(command, { userid: 1 });
        })
        .catch((error: unknown) => error),
  };
}

/** `during`: while the frame is under way, else before it. */
async function endOf(reason: unknown, during: boolean, command = 'getPinCode'): Promise<unknown> {
  const { exchange, end } = open(async () => {
    end(reason);
    return SILENT;
  });
  return exchange(command, () => {
    if (!during) end(reason);
  });
}

it.each([true, false])('an unlock goes first (frame under way: %s)', async (during) => {
  expect(await endOf(KNOWN, during)).toMatchObject(MORE_URGENT);
});

it.each([true, false])('the link is lost (frame under way: %s)', async (during) => {
  expect(await endOf(LOST, during)).toBe(LOST);
});

it.each([KNOWN, LOST])('a change of the lock that was under way may still arrive', async (reason) => {
  expect(await endOf(reason, true, 'setPinCode')).toMatchObject(MAY_ARRIVE);
  expect(await endOf(reason, false, 'setPinCode')).not.toMatchObject(MAY_ARRIVE);
});

it.each([
  ['setPinCode', MAY_ARRIVE],
  ['clearWeekDaySchedule', MAY_ARRIVE],
  ['write', MAY_ARRIVE],
  ['getPinCode', { code: 'NO_REPLY' }],
  ['read', { code: 'NO_REPLY' }],
])(
  'one that is not answered may arrive later, and a question changes nothing: %s',
  async (command, error) => {
    expect(await open(async () => SILENT).exchange(command)).toMatchObject(error);
  },
);

it('an order that is superseded has the answer to its frame, for which it waits a second', async () => {
  let answer: ((reply: ZclReply) => void) | undefined;
  const { exchange, stop, clock } = open(({ known }) => {
    const { promise, resolve } = Promise.withResolvers<ZclReply>();
    answer = resolve;
    known?.addEventListener('abort', () => resolve(SILENT));
    return promise;
  });
  const working = exchange('setPinCode');
  stop.abort(SUPERSEDED);
  await clock.advance(999);
  answer?.({ kind: 'answered', payload: { status: 0 } });
  expect(await working).toBe(SUPERSEDED);
});

it('one that does not get it in that time may still arrive', async () => {
  const { exchange, stop, clock } = open(
    ({ known }) => new Promise((resolve) => known?.addEventListener('abort', () => resolve(SILENT))),
  );
  const working = exchange('setPinCode');
  stop.abort(SUPERSEDED);
  await clock.advance(1_000);
  expect(await working).toMatchObject(MAY_ARRIVE);
});

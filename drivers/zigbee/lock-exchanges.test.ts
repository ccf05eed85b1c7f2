/** Why an exchange with the memory of a lock ends before its time. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { DriverError } from '../contract/driver.ts';
import { openLockExchanges } from './lock-exchanges.ts';
import type { Lock } from './locks.ts';
import { KNOWN, type Radio } from './radio.ts';

const IEEE = '00158d0001000001';
const lock = { ieee: IEEE, endpoint: 1, hasOwnCluster: false } as Lock;
const LOST = new DriverError('LINK_LOST', 'the connection to the coordinator is gone');
const MORE_URGENT = { code: 'NO_REPLY', message: 'the lock is needed for something more urgent' };

/** `during`: while the frame is under way, else before it. */
async function endOf(reason: unknown, during: boolean): Promise<unknown> {
  const ended = new AbortController();
  const end = () => (reason === KNOWN ? exchanges.yield(IEEE) : ended.abort(reason));
  const send: Radio['send'] = async () => {
    end();
    return { kind: 'unanswered', reason: 'no answer' };
  };
  const exchanges = openLockExchanges({
    radio: { send } as Radio,
    clock: manualClock(),
    locks: { find: () => lock },
    ended: ended.signal,
  });
  const order = { hwId: IEEE, deadline: 60_000, signal: new AbortController().signal };
  const working = exchanges.during('users', order, async ({ send }) => {
    if (!during) end();
    await send('getPinCode', { userid: 1 });
  });
  return working.catch((error) => error);
}

it.each([true, false])('an unlock goes first (frame under way: %s)', async (during) => {
  expect(await endOf(KNOWN, during)).toMatchObject(MORE_URGENT);
});

it.each([true, false])('the link is lost (frame under way: %s)', async (during) => {
  expect(await endOf(LOST, during)).toBe(LOST);
});

/** What may never happen at a door, against a simulated coordinator and locks that misbehave. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  afterAllTests,
  CONFIRMED,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { DriverError } from '../contract/driver.ts';
import { EVENT_WITHIN_MS } from '../contract/owed-events.ts';

const POLLING_LOCK = OTHER_LOCK;
/** Of commands that end unknown: for a while such a lock must answer the next one. */
const [LOSING_LOCK, UNROUTED_LOCK] = ['00158d0001000003', '00158d0001000004'];
/** Of commands that it accepts and does not carry out: for a while the event of one of them may still come. */
const IDLE_LOCKS = [
  { ieee: '00158d0001000005', lateEventsMs: 0 },
  { ieee: '00158d0001000006', lateEventsMs: 300 },
] as const;
/** ZCL rev. 8, table 2-3. */
const DEFAULT_RESPONSE = 0x0b;
/** Later what a process before this one has sent cannot arrive any more. */
const STARTED_MS = 35_000;
/** Till the deadline: the time for which a parent may hold the frame, and what a busy machine takes to send it. */
const SHORT_MS = 12_000;

describe('unlocking', () => {
  const cleanup = afterAllTests();
  let site: SimulatedGateway;
  let gateway: TestGateway;
  let thrown = 0;
  let isThrowing = false;
  let now = systemClock.monotonic;
  let aheadMs = 0;

  beforeAll(async () => {
    const plain = [LOCK, LOSING_LOCK, UNROUTED_LOCK, ...IDLE_LOCKS.map(({ ieee }) => ieee)];
    const sleeping = { ieee: POLLING_LOCK, sleepy: {}, checkInSeconds: 3_600, asksDefaultResponse: true };
    const locks = [...plain.map((ieee) => ({ ieee, asksDefaultResponse: true })), sleeping];
    site = await simulated({ locks }, cleanup);
    const report = () => {
      if (!isThrowing) return;
      thrown += 1;
      throw new Error('a listener threw');
    };
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
    gateway = await opened(site, {}, { cleanup, report, clock });
    aheadMs = STARTED_MS;
    now = clock.monotonic;
    for (const { ieee } of locks) await joined(gateway, site, ieee);
    await site.setGateway({ pace: 1 });
  }, 120_000);

  const frames = async (ieee: string) =>
    (await site.state(ieee)).received.filter(({ cluster }) => cluster === 0x0101);
  const commands = async (ieee: string) => (await frames(ieee)).filter(({ isFoundation }) => !isFoundation);
  const answers = async (ieee: string) =>
    (await frames(ieee)).filter((frame) => frame.isFoundation && frame.command === DEFAULT_RESPONSE).length;
  const fresh = async (ieee: string) => {
    await site.set(ieee, { faults: null, clearLog: true, manual: 'lock' });
    // Whatever fails next is not to be the answer to this event.
    await vi.waitFor(async () => expect(await answers(ieee)).toBeGreaterThan(0));
    await site.set(ieee, { clearLog: true });
  };
  const unlock = (hwId: string, timeoutMs = 20_000) => gateway.execute('unlock', unlockOf(hwId), timeoutMs);
  const unlocked = async (ieee: string) =>
    (await site.state(ieee)).executed.filter(({ what }) => what === 'unlock').length;

  it('is confirmed by the report of the bolt', async () => {
    await fresh(LOCK);
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
    expect(await unlocked(LOCK)).toBe(1);
    const data = expect.objectContaining({ hwId: LOCK, what: 'unlocked', source: 'rf' });
    const event = expect.objectContaining({ kind: 'lockEvent', data });
    // The answer does not wait for it.
    await vi.waitFor(() => expect(gateway.events).toContainEqual(event));
  });

  // Each with a lock of its own: they wait at the same time.
  it.concurrent('never reaches a poll-control lock late: it is not kept for its check-in', async () => {
    await fresh(POLLING_LOCK);
    await site.set(POLLING_LOCK, { faults: { offline: true } });
    // By the library's own choice this very command is queued for a sleeping lock, for an hour here.
    await expect(unlock(POLLING_LOCK, SHORT_MS)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await site.set(POLLING_LOCK, { faults: null });
    await site.set(POLLING_LOCK, { checkIn: true, announce: true });
    const heard = () => (gateway.reports.get(`device:${POLLING_LOCK}`) as { connected: boolean }).connected;
    await vi.waitFor(() => expect(heard()).toBe(true));
    // Something that comes after it in every queue.
    await gateway.execute('unlock', unlockOf(LOCK));
    expect(await unlocked(POLLING_LOCK)).toBe(0);
  });

  it.concurrent('is not sent twice when the answer is lost, and says that no one knows', async () => {
    await fresh(LOSING_LOCK);
    await site.set(LOSING_LOCK, { faults: { lostResponses: 20 } });
    await expect(unlock(LOSING_LOCK, SHORT_MS)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await site.set(LOSING_LOCK, { faults: null });
    await vi.waitFor(async () => expect(await commands(LOSING_LOCK)).toHaveLength(1));
    expect(await unlocked(LOSING_LOCK)).toBe(1);
  });

  it.concurrent('is not known, and never "not sent", after a negative confirmation and silence', async () => {
    await fresh(UNROUTED_LOCK);
    await site.set(UNROUTED_LOCK, { faults: { confirm: { status: 'NO_ROUTE', frames: 1 } } });
    const { code, message } = (await unlock(UNROUTED_LOCK, SHORT_MS).catch(
      (failure) => failure,
    )) as DriverError;
    expect([code, message]).toEqual(['OUTCOME_UNKNOWN', expect.stringMatching(/^it was sent, .* \(.+\)$/)]);
    expect((await commands(UNROUTED_LOCK)).length).toBe(0);
    // The lock is free for the next at once.
    expect(await unlock(UNROUTED_LOCK)).toEqual(CONFIRMED);
  });

  it.concurrent.each(IDLE_LOCKS)(
    'is not confirmed by a hand that turns the bolt, which the lock leaves as it was; its event is $lateEventsMs ms late',
    async ({ ieee, lateEventsMs }) => {
      await fresh(ieee);
      expect(await unlock(ieee)).toEqual(CONFIRMED);
      // The second time the event of the first may still come, as far as the gateway knows.
      for (let time = 0; time < 2; time += 1) {
        await fresh(ieee);
        await site.set(ieee, { faults: { stuck: true, lateEventsMs } });
        const stuck = unlock(ieee);
        await vi.waitFor(async () => expect(await commands(ieee)).toHaveLength(1));
        await site.set(ieee, { manual: 'unlock' });
        expect(await stuck).toEqual({ ...CONFIRMED, outcome: 'accepted' });
      }
    },
  );

  it('is confirmed by the event of the lock when its answer is lost, and the next need not wait for that', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { lostResponses: 1 } });
    // The library would wait 8 s for the answer, and then it is too late for the second.
    expect(await Promise.all([unlock(LOCK), unlock(LOCK, 11_000)])).toEqual([CONFIRMED, CONFIRMED]);
    await expect.poll(() => unlocked(LOCK)).toBe(2);
    expect(gateway.reports.get(`device:${LOCK}`)).toMatchObject({ connected: true });
  });

  it('does not take an event of a hand for its own', async () => {
    await fresh(LOCK);
    // Of two unlocks at once no event is that of one of them.
    aheadMs += EVENT_WITHIN_MS;
    await site.set(LOCK, { faults: { slowMs: 3_000 } });
    const slow = unlock(LOCK);
    let isOver = false;
    void slow.then(() => {
      isOver = true;
    });
    await site.set(LOCK, { manual: 'unlock' });
    const data = expect.objectContaining({ what: 'unlockedManually' });
    await vi.waitFor(() => expect(gateway.events).toContainEqual(expect.objectContaining({ data })));
    expect(isOver).toBe(false);
    expect(await slow).toEqual(CONFIRMED);
  });

  it('is refused by a failure default response', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { defaultResponse: { status: 0x81, commands: 1 } } });
    await expect(unlock(LOCK)).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('UNSUP_COMMAND (0x81)'),
    });
    expect(await unlocked(LOCK)).toBe(0);
  });

  it('is confirmed or jammed as the bolt reports after a default response', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { answersByDefault: true } });
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
    await fresh(LOCK);
    await site.set(LOCK, { faults: { answersByDefault: true, jammed: true } });
    expect(await unlock(LOCK)).toEqual({ ...CONFIRMED, outcome: 'jammed' });
  });

  it('is refused by a status inside a successful response', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { refuse: { status: 1, commands: 1 } } });
    await expect(unlock(LOCK)).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('is jammed when the bolt does not move', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { jammed: true } });
    expect(await unlock(LOCK)).toEqual({ ...CONFIRMED, outcome: 'jammed' });
  });

  it('is not sent when the lock could get it after the deadline', async () => {
    await fresh(LOCK);
    await expect(unlock(LOCK, 7_900)).rejects.toMatchObject({
      code: 'DEADLINE_PASSED',
      // It names what was late, and not a lock that sleeps: this one does not.
      message: expect.stringMatching(/less than 8 s to its deadline.* was too slow, or busy$/),
    });
    expect(await commands(LOCK)).toEqual([]);
  });

  it('is not sent late behind another frame to the same lock', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { slowMs: 1_000 } });
    // The second waits for the first in the library, and by then its time is over.
    const [first, second] = await Promise.allSettled([unlock(LOCK), unlock(LOCK, 8_300)]);
    expect(first).toMatchObject({ status: 'fulfilled' });
    expect(second).toMatchObject({ reason: { code: 'DEADLINE_PASSED' } });
    expect(await unlocked(LOCK)).toBe(1);
  });

  it('does not wait behind the answer to an event of a lock that sleeps before it fetches the answer', async () => {
    await fresh(POLLING_LOCK);
    await site.set(POLLING_LOCK, { sleepy: { pollMs: 4_000, awakeMs: 0 } });
    await site.set(POLLING_LOCK, { pin: '4711' });
    // It has just polled.
    await expect.poll(() => answers(POLLING_LOCK)).toBeGreaterThan(0);
    const before = gateway.events.length;
    await site.set(POLLING_LOCK, { pin: '4711' });
    const data = expect.objectContaining({ what: 'unlockFailedPin' });
    await vi.waitFor(() =>
      expect(gateway.events.slice(before)).toContainEqual(expect.objectContaining({ data })),
    );
    expect(await unlock(POLLING_LOCK, SHORT_MS)).toEqual(CONFIRMED);
    await site.set(POLLING_LOCK, { sleepy: {} });
  });

  const held = (released: Promise<void>, timeoutMs: number) => {
    const deadline = now() + timeoutMs;
    const data = unlockOf(LOCK);
    return gateway.driver.execute({ kind: 'unlock', data, deadline, released }, AbortSignal.timeout(20_000));
  };

  it('reaches the lock when it is released and not before, and keeps no other lock waiting', async () => {
    await fresh(LOCK);
    await fresh(POLLING_LOCK);
    const hold = Promise.withResolvers<void>();
    const end = held(hold.promise, 20_000);
    expect(await unlock(POLLING_LOCK)).toEqual(CONFIRMED);
    expect(await commands(LOCK)).toEqual([]);
    hold.resolve();
    expect(await end).toEqual(CONFIRMED);
    expect(await unlocked(LOCK)).toBe(1);
  });

  it('never reaches the lock when it is withdrawn, or not released in time', async () => {
    await fresh(LOCK);
    await expect(held(Promise.reject(new Error('not stored')), 20_000)).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
    });
    const hold = Promise.withResolvers<void>();
    await expect(held(hold.promise, 8_200)).rejects.toMatchObject({ code: 'DEADLINE_PASSED' });
    hold.resolve();
    // Behind it in every queue, had it gone on.
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
    expect(await unlocked(LOCK)).toBe(1);
  });

  const FAILURES = ['MAC_NO_ACK', 'NO_ROUTE', 'CHANNEL_ACCESS_FAILURE', 'TRANSACTION_EXPIRED'] as const;

  it.each(FAILURES)('is confirmed by the lock although the coordinator says %s', async (status) => {
    await fresh(LOCK);
    await site.set(LOCK, { faults: { confirm: { status, frames: 1, delivered: true } } });
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
    expect(await unlocked(LOCK)).toBe(1);
  });

  it.each(FAILURES)('is confirmed by the event alone after %s when the answer is lost', async (status) => {
    await fresh(LOCK);
    const confirm = { status, frames: 1, delivered: true };
    await site.set(LOCK, { faults: { confirm, lostResponses: 1 } });
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
    expect(await unlocked(LOCK)).toBe(1);
  });

  it('is known not to be sent when the coordinator refuses the frame in its answer', async () => {
    await fresh(LOCK);
    // More than one: what is still sent because of the tests before may come first.
    await site.fill(1_000);
    await expect(unlock(LOCK)).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
      message: expect.stringMatching(/^not sent: the coordinator has no (memory|room) for the frame$/),
    });
    expect((await commands(LOCK)).length).toBe(0);
    await site.fill(0);
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
  });

  it('goes on when a listener throws', async () => {
    await fresh(LOCK);
    isThrowing = true;
    await site.set(LOCK, { door: 'open' });
    await expect.poll(() => thrown).toBeGreaterThan(0);
    isThrowing = false;
    expect(gateway.logged.join('\n')).toContain('a listener threw');
    expect(await unlock(LOCK)).toEqual(CONFIRMED);
  });

  it('cannot reach a lock that is not there, and knows no command but its own', async () => {
    await expect(unlock('00158d00000000ff')).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    await expect(unlock('LOCK')).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
    await expect(gateway.execute('toggle', null)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });

  it('shows no digits of a PIN, neither in events nor in the log', async () => {
    await fresh(LOCK);
    await site.set(LOCK, { pin: '90210' });
    const failed = () => gateway.events.some(({ data }) => JSON.stringify(data).includes('unlockFailedPin'));
    await expect.poll(failed).toBe(true);
    expect(JSON.stringify([gateway.events, gateway.logged])).not.toMatch(/\b90210\b|57,48,50,49,48/);
  });
});

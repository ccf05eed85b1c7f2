import { describe, expect, it } from 'vitest';
import {
  arrivals,
  expectExactRepeats,
  firstArrivals,
  gapsSent,
  numbers,
  runOnce,
  sequenceOf,
  settled,
} from '../../../test/services/events/arrivals.ts';
import { type Answer, openTestBroker } from '../../../test/services/events/broker.ts';
import { openTestLog, progress, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { BURIED_IN_A_ROW_MAX, FAILURES_BEFORE_ALONE } from './outbox.ts';

describe('a message the service does not take', () => {
  const poison = 5;

  it('by closing the connection goes alone at last, then to the dead letters; all others arrive', async () => {
    const broker = await openTestBroker({
      answer: (received) => (sequenceOf(received) === poison ? 'close' : 0),
    });
    const log = await openTestLog();
    await log.record(1, 30);
    const forwarding = log.forward({ url: broker.url });
    await until(() => gapsSent(broker).length === 1);
    expect(gapsSent(broker)).toEqual([
      { encoderId: 'desk-1', firstSequence: 5, lastSequence: 5, count: 1, reason: 'REJECTED' },
    ]);
    expect(firstArrivals(broker).filter((n) => !Number.isNaN(n))).toEqual(numbers(1, 30));
    expectExactRepeats(broker);
    const tries = arrivals(broker).filter(({ sequence }) => sequence === poison);
    expect(tries.length).toBeGreaterThan(FAILURES_BEFORE_ALONE);
    const last = arrivals(broker).filter(({ connection }) => connection === tries.at(-1)?.connection);
    expect(last.at(-1)?.sequence).toBe(poison);
    await until(() => log.events.link.connectedSince !== null);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, deadLetters: 1, gaps: 1 });
  });

  it('far back in the window costs no innocent message', async () => {
    // The service closes before it has acknowledged anything of the burst.
    const broker = await openTestBroker({
      answer: (received) => (sequenceOf(received) === 12 ? 'reset' : received.inFlight < 12 ? 'hold' : 0),
    });
    const log = await openTestLog();
    await log.record(1, 20);
    broker.answer = (received) => {
      if (sequenceOf(received) === 12) return 'reset';
      return received.count === 1 || sequenceOf(received) > 12 || received.inFlight === 1 ? 0 : 'hold';
    };
    log.forward({ url: broker.url, window: 20 });
    await until(() => gapsSent(broker).length > 0);
    expect(gapsSent(broker)).toMatchObject([{ firstSequence: 12, lastSequence: 12 }]);
    expect(log.events.backlog().deadLetters).toBe(1);
  });

  it('by a reason code that names it is given up without breaking the connection', async () => {
    const broker = await openTestBroker({
      answer: (received) => (sequenceOf(received) === poison ? 0x99 : 0),
    });
    const log = await openTestLog();
    await log.record(1, 30);
    const forwarding = log.forward({ url: broker.url });
    await until(() => gapsSent(broker).length === 1);
    expect(gapsSent(broker)).toMatchObject([
      { firstSequence: 5, lastSequence: 5, count: 1, reason: 'REJECTED' },
    ]);
    const tries = arrivals(broker).filter(({ sequence }) => sequence === poison);
    expect(tries).toHaveLength(FAILURES_BEFORE_ALONE + 1);
    expect(broker.connections()).toBe(1);
    expectExactRepeats(broker);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, deadLetters: 1, gaps: 1 });
  });

  it('by a reason code after which it hangs up, as mosquitto 2.0.11 does, is given up all the same', async () => {
    const broker = await openTestBroker({
      answer: (received) => (sequenceOf(received) === poison ? { refuse: 0x87 } : 0),
    });
    const log = await openTestLog();
    await log.record(1, 30);
    const forwarding = log.forward({ url: broker.url });
    await until(() => gapsSent(broker).length === 1);
    expect(gapsSent(broker)).toMatchObject([
      { firstSequence: 5, lastSequence: 5, count: 1, reason: 'REJECTED' },
    ]);
    expect(firstArrivals(broker).filter((n) => n > 0)).toEqual(numbers(1, 30));
    expect(await settled(log, forwarding)).toMatchObject({ deadLetters: 1, gaps: 1 });
  });

  it('for a while only is sent, after all', async () => {
    let refusals = FAILURES_BEFORE_ALONE;
    const broker = await openTestBroker({
      answer(received) {
        if (sequenceOf(received) !== poison || refusals === 0) return 0;
        refusals -= 1;
        return 0x87;
      },
    });
    const log = await openTestLog();
    await log.record(1, 30);
    const forwarding = log.forward({ url: broker.url });
    await until(() => new Set(firstArrivals(broker)).size === 30);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, deadLetters: 0, gaps: 0 });
  });

  it('counts its failures across restarts', async () => {
    const folder = temporaryFolder();
    const broker = await openTestBroker({ answer: (received) => (sequenceOf(received) === 1 ? 0 : 'close') });
    for (let failures = 1; failures <= FAILURES_BEFORE_ALONE; failures += 1) {
      await using log = await openTestLog({ folder });
      if (failures === 1) await log.record(1, 2);
      await runOnce(log, broker);
      expect(log.events.table.cursor()).toMatchObject({ suspect: 2, suspectFailures: failures });
    }
    const log = await openTestLog({ folder });
    await runOnce(log, broker);
    // The message taken before, and the suspect alone.
    const last = arrivals(broker).filter((each) => each.connection === 4);
    expect(last.map(({ sequence, replayed }) => [sequence, replayed])).toEqual([
      [1, true],
      [2, true],
    ]);
    expect(log.events.backlog()).toMatchObject({ deadLetters: 1, gaps: 1, waiting: 1 });
  });

  it.each([
    ['before it takes anything', 1],
    ['after the first message', 2],
  ])('is not at fault when the service crashes in a loop %s of each connection', async (_when, crashesAt) => {
    let crashes = 0;
    const broker = await openTestBroker({ answer: () => 0 });
    const log = await openTestLog();
    await log.record(1, 3);
    const forwarding = log.forward({ url: broker.url });
    await until(() => broker.received.length === 3);
    broker.answer = ({ count }) => {
      if (count < crashesAt) return 0;
      crashes += 1;
      return 'close';
    };
    await log.record(4, 60);
    await until(() => crashes >= 80 || log.events.backlog().waiting === 0);
    broker.answer = () => 0;
    await until(() => arrivals(broker).at(-1)?.sequence === 60);
    expect(firstArrivals(broker)).toEqual(numbers(1, 60));
    await until(() => log.events.link.connectedSince !== null);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, deadLetters: 0, gaps: 0 });
  });

  it('because it is too long is given up at once and never sent', async () => {
    const broker = await openTestBroker({ maximumPacketSize: 1_500 });
    const log = await openTestLog();
    await log.record(1, 3);
    await log.database.commit(() => log.events.writeProgress({ ...progress(4), keyId: 'x'.repeat(1_500) }));
    await log.record(5, 6);
    const forwarding = log.forward({ url: broker.url });
    await until(() => gapsSent(broker).length === 1);
    expect(gapsSent(broker)[0]).toMatchObject({
      firstSequence: 4,
      lastSequence: 4,
      count: 1,
      reason: 'TOO_LARGE',
    });
    expect(Math.max(...broker.received.map(({ bytes }) => bytes))).toBeLessThanOrEqual(1_500);
    expect(firstArrivals(broker).slice(0, 5)).toEqual([1, 2, 3, 5, 6]);
    expect(broker.connections()).toBe(1);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, deadLetters: 1, gaps: 1 });
  });

  it('fits to the byte when it is as long as the service takes', async () => {
    const broker = await openTestBroker();
    const log = await openTestLog();
    await log.record(1, 1);
    const forwarding = log.forward({ url: broker.url });
    await until(() => broker.received.length === 1);
    await forwarding.stop();
    const bytes = broker.received[0]?.bytes ?? 0;
    for (const [maximumPacketSize, deadLetters] of [
      [bytes, 0],
      [bytes - 1, 1],
    ] as const) {
      const strict = await openTestBroker({ maximumPacketSize });
      await using other = await openTestLog();
      await other.record(1, 1);
      other.forward({ url: strict.url });
      await until(() => strict.received.length + other.events.backlog().deadLetters > 0);
      expect(other.events.backlog().deadLetters).toBe(deadLetters);
    }
  });

  it('is not at fault when the service wants a pause', async () => {
    const broker = await openTestBroker({ answer: () => 0x97 });
    const log = await openTestLog();
    await log.record(1, 3);
    expect(String(await runOnce(log, broker))).toContain('0x97');
    expect(log.events.table.cursor()).toMatchObject({ suspectFailures: 0 });
    expect(log.events.backlog()).toMatchObject({ waiting: 3 });
  });

  it('is not given up while the service takes nothing at all', async () => {
    const broker = await openTestBroker({ answer: () => 'close' });
    const log = await openTestLog();
    await log.record(1, 100);
    log.forward({ url: broker.url });
    await until(() => broker.connections() > 40);
    expect(log.events.backlog().deadLetters).toBe(0);
    broker.answer = () => 0;
    await until(() => arrivals(broker).at(-1)?.sequence === 100);
    expect(firstArrivals(broker)).toEqual(numbers(1, 100));
  });

  it.each<[string, Answer]>([
    ['refuses', 0x87],
    ['refuses and hangs up on', { refuse: 0x87 }],
  ])(
    'is not to blame for ever: a service that %s everything costs a few, not the backlog',
    async (_name, answer) => {
      const broker = await openTestBroker({ answer: () => answer });
      const log = await openTestLog();
      await log.record(1, 100);
      log.forward({ url: broker.url });
      await until(() => log.events.backlog().deadLetters === BURIED_IN_A_ROW_MAX);
      const before = broker.connections();
      await until(() => broker.connections() > before + 5);
      expect(log.events.backlog().deadLetters).toBe(BURIED_IN_A_ROW_MAX);
      const refused = broker.received.length;
      broker.answer = () => 0;
      const missing = () =>
        gapsSent(broker).flatMap(({ firstSequence, lastSequence }) => numbers(firstSequence, lastSequence));
      await until(() => new Set(missing()).size === BURIED_IN_A_ROW_MAX);
      expect(new Set(missing())).toEqual(new Set(numbers(1, BURIED_IN_A_ROW_MAX)));
      const taken = arrivals(broker)
        .slice(refused)
        .map(({ sequence }) => sequence);
      expect(taken.filter((n) => n > 0)).toEqual(numbers(BURIED_IN_A_ROW_MAX + 1, 100));
      expect(log.events.backlog().deadLetters).toBe(BURIED_IN_A_ROW_MAX);
    },
  );
});

import fc from 'fast-check';
import { writeToStream } from 'mqtt-packet';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import {
  arrivals,
  expectExactRepeats,
  firstArrivals,
  numbers,
  runOnce,
  sequenceOf,
  settled,
} from '../../../test/services/events/arrivals.ts';
import { type Answer, openTestBroker } from '../../../test/services/events/broker.ts';
import { openTestLog, SYSTEM_ID, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';

describe('a healthy service', () => {
  it('gets the backlog in order and then each event as it is recorded', async () => {
    const broker = await openTestBroker();
    const log = await openTestLog();
    await log.record(1, 600);
    const commits = log.database.figures().jobs;
    const forwarding = log.forward({ url: broker.url });
    await until(() => broker.received.length === 600);
    // Never one commit per acknowledgement: this one notes that a connection is open.
    expect(log.database.figures().jobs - commits).toBe(1);
    for (const n of [601, 602]) {
      await log.record(n, n);
      await until(() => broker.received.length === n);
    }
    expect(firstArrivals(broker)).toEqual(numbers(1, 602));
    expect(broker.received[0]?.topic).toBe(`gatehouse/1/${SYSTEM_ID}/encoders/desk-1/events`);
    await until(() => log.events.link.connectedSince !== null);
    expect(await settled(log, forwarding)).toMatchObject({
      waiting: 0,
      waitingBytes: 0,
      connectedSince: null,
    });
    expect(broker.connections()).toBe(1);
    expect(writeToStream.cacheNumbers).toBe(false);
  });

  it('is not sent anything twice after a restart, and knows what may be a repeat', async () => {
    const folder = temporaryFolder();
    const broker = await openTestBroker({ answer: (received) => (sequenceOf(received) <= 5 ? 0 : 'ignore') });
    const first = await openTestLog({ folder });
    await first.record(1, 10);
    const forwarding = first.forward({ url: broker.url, window: 3 });
    await until(() => broker.received.length === 8);
    await forwarding.stop();
    await first.record(11, 12);
    await first[Symbol.asyncDispose]();
    const second = await openTestLog({ folder });
    broker.answer = () => 0;
    second.forward({ url: broker.url });
    await until(() => broker.received.length === 15);
    const again = arrivals(broker).slice(8);
    expect(again.map(({ sequence }) => sequence)).toEqual(numbers(6, 12));
    expect(again.every(({ replayed }) => replayed)).toBe(true);
    await second.record(13, 13);
    await until(() => arrivals(broker).at(-1)?.replayed === false);
  });

  it('learns that everything may be a repeat after a crash with an open connection', async () => {
    const folder = temporaryFolder();
    const broker = await openTestBroker({ answer: () => 'ignore' });
    const first = await openTestLog({ folder });
    await first.record(1, 2);
    first.forward({ url: broker.url });
    await until(() => broker.received.length === 2);
    // The second opens the same file, as it is on the disk at a crash of the first.
    const second = await openTestLog({ folder });
    broker.answer = () => 0;
    second.forward({ url: broker.url });
    await until(() => arrivals(broker).filter(({ replayed }) => replayed).length === 2);
  });

  it('is given no more messages than it takes at once', async () => {
    const broker = await openTestBroker({ receiveMaximum: 3, answer: () => 'ignore' });
    const log = await openTestLog();
    await log.record(1, 300);
    const forwarding = log.forward({ url: broker.url, window: 256 });
    await until(() => log.events.link.sentThrough > 0);
    await log.record(301, 301);
    expect(log.events.link.sentThrough).toBe(3);
    await forwarding.stop();
    broker.answer = ({ inFlight }) => (inFlight < 3 ? 'hold' : 0);
    log.forward({ url: broker.url, window: 256 });
    await until(() => new Set(firstArrivals(broker)).size === 301);
  });

  it('costs the disk a commit a second at most, and none while nothing happens', async () => {
    const clock = manualClock();
    const broker = await openTestBroker();
    const log = await openTestLog({ clock });
    await log.record(1, 100);
    log.forward({ url: broker.url });
    await until(() => broker.received.length === 100 && clock.sleepers() > 0);
    const { jobs } = log.database.figures();
    await until(() => {
      void clock.advance(500);
      return log.events.table.cursor().acked === 100;
    });
    expect(clock.monotonic()).toBeLessThan(10_000);
    expect(log.database.figures().jobs).toBe(jobs + 1);
    await clock.advance(60_000);
    expect(log.database.figures().jobs).toBe(jobs + 1);
  });

  it('keeps how far it came with a few events in memory for half a minute, and shows them as delivered', async () => {
    const clock = manualClock();
    const broker = await openTestBroker();
    const log = await openTestLog({ clock });
    await log.record(1, 5);
    const forwarding = log.forward({ url: broker.url });
    await until(() => log.events.link.unsaved.events === 5);
    expect(log.events.backlog()).toMatchObject({ waiting: 0, waitingBytes: 0, oldestAgeMs: null });
    await until(() => clock.sleepers() > 0);
    const { jobs } = log.database.figures();
    for (let second = 0; second < 20; second += 1) await clock.advance(1_000);
    expect(log.events.table.cursor().acked).toBe(0);
    expect(log.database.figures().jobs).toBe(jobs);
    await until(() => {
      void clock.advance(1_000);
      return log.events.table.cursor().acked === 5;
    });
    expect(log.events.backlog()).toMatchObject({ waiting: 0, waitingBytes: 0, oldestAgeMs: null });
    await log.record(6, 7);
    await until(() => log.events.link.unsaved.events === 2);
    await forwarding.stop();
    expect(log.events.table.cursor().acked).toBe(7);
    expect(log.events.backlog()).toMatchObject({ waiting: 0, waitingBytes: 0 });
  });

  it('may keep an event for what is left of its age', async () => {
    const clock = manualClock();
    const broker = await openTestBroker();
    const log = await openTestLog({ clock });
    const expiries = () => broker.received.map((received) => received.messageExpiryInterval);
    await log.record(1, 1);
    await clock.advance(600_000);
    log.forward({ url: broker.url, maxAge: 3_600_000 });
    await until(() => broker.received.length === 1);
    log.synchronised = false;
    clock.jumpWall(1e12);
    await log.record(2, 2);
    await until(() => broker.received.length === 2);
    expect(expiries()).toEqual([3_000, 3_600]);
  });

  it('may speak MQTT 3.1.1', async () => {
    const broker = await openTestBroker();
    const log = await openTestLog();
    await log.record(1, 50);
    log.forward({ url: broker.url, protocolVersion: 4 });
    await until(() => broker.received.length === 50);
    expect(firstArrivals(broker)).toEqual(numbers(1, 50));
    expect(broker.received[0]?.messageExpiryInterval).toBeUndefined();
  });
});

describe('a connection that breaks', () => {
  it('again and again loses nothing: first arrivals in order, repeats exact and marked', async () => {
    const broker = await openTestBroker({ answer: ({ count }) => (count % 23 === 0 ? 'reset' : 0) });
    const log = await openTestLog();
    await log.record(1, 400);
    const forwarding = log.forward({ url: broker.url });
    await until(() => new Set(arrivals(broker).map(({ id }) => id)).size === 400);
    broker.answer = () => 0;
    await until(() => arrivals(broker).at(-1)?.sequence === 400);
    expect(firstArrivals(broker)).toEqual(numbers(1, 400));
    expectExactRepeats(broker);
    await until(() => log.events.link.connectedSince !== null);
    expect(await settled(log, forwarding)).toMatchObject({ deadLetters: 0, gaps: 0 });
    expect(broker.connections()).toBeGreaterThan(10);
  });

  it('in any way, at any time, loses nothing', { timeout: 120_000 }, async () => {
    const answers = fc.constantFrom<Answer>(0, 0, 0, 0, 'hold', 'reset', 'close', 0x97, { disconnect: 0x8b });
    const scripts = fc.array(answers, { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(scripts, fc.integer({ min: 1, max: 20 }), async (script, window) => {
        const left = [...script];
        const broker = await openTestBroker({ answer: () => left.shift() ?? 0 });
        const clock = manualClock();
        await using log = await openTestLog({ clock });
        await log.record(1, 40);
        const forwarding = log.forward({ url: broker.url, window });
        await until(() => {
          // For answers that never come, and to have the cursor saved.
          void clock.advance(50);
          return log.events.backlog().waiting === 0;
        });
        expect(firstArrivals(broker).filter((n) => !Number.isNaN(n))).toEqual(numbers(1, 40));
        expectExactRepeats(broker);
        await forwarding.stop();
        await broker.goAway();
      }),
      { numRuns: 40 },
    );
  });

  it('takes back what was acknowledged beyond the first hole', async () => {
    const broker = await openTestBroker({
      answer: (received) => {
        if (sequenceOf(received) === 3) return 'ignore';
        return sequenceOf(received) === 6 ? { disconnect: 0x8b } : 0;
      },
    });
    const log = await openTestLog();
    await log.record(1, 6);
    await runOnce(log, broker);
    expect(log.events.table.cursor()).toMatchObject({ acked: 2, sent: 6, suspectFailures: 0 });
    expect(log.events.backlog()).toMatchObject({ waiting: 4 });
  });

  it('is no failure of a message when nothing was in flight or the service is away', async () => {
    const broker = await openTestBroker();
    const log = await openTestLog();
    const forwarding = log.forward({ url: broker.url });
    await until(() => log.events.link.connectedSince !== null);
    await broker.goAway();
    await until(() => log.events.link.connectedSince === null);
    await log.record(1, 5);
    await until(() => log.events.link.lastError?.includes('ECONNREFUSED') === true);
    // The address is named once.
    expect(log.events.link.lastError).toBe(`${broker.url}: connect ECONNREFUSED`);
    await broker.comeBack();
    await until(() => broker.received.length === 5);
    await forwarding.stop();
    expect(log.events.table.cursor()).toMatchObject({ suspectFailures: 0 });
    expect(log.events.backlog()).toMatchObject({ waiting: 0 });
  });

  it.each([
    ['never acknowledges anything', 0],
    ['acknowledges some and then falls silent', 4],
  ])(
    'because the service %s is noticed within 15 s and no message is blamed',
    async (_name, acknowledged) => {
      const clock = manualClock();
      const broker = await openTestBroker({ answer: ({ count }) => (count <= acknowledged ? 0 : 'ignore') });
      const log = await openTestLog({ clock });
      await log.record(1, 10);
      const ended = runOnce(log, broker);
      await until(() => broker.received.length === 10);
      await until(() => log.events.link.sentThrough === 10 && clock.sleepers() > 0);
      const started = clock.monotonic();
      let error: unknown;
      void ended.then((reason) => {
        error = reason;
      });
      while (!error && clock.monotonic() - started < 15_000) await clock.advance(1_000);
      await until(() => error !== undefined);
      expect(String(error)).toMatch(/no acknowledgement for 10000 ms/);
      expect(log.events.table.cursor()).toMatchObject({ acked: acknowledged, suspectFailures: 0 });
    },
  );

  it('for want of an acknowledgement that later messages get is blamed on the message', async () => {
    const clock = manualClock();
    const broker = await openTestBroker({
      answer: (received) => (sequenceOf(received) === 2 ? 'ignore' : 0),
    });
    const log = await openTestLog({ clock });
    await log.record(1, 10);
    const ended = runOnce(log, broker);
    await until(() => broker.received.length === 10 && clock.sleepers() > 0);
    await clock.advance(1_000);
    await clock.advance(11_000);
    await ended;
    expect(log.events.table.cursor()).toMatchObject({ acked: 1, suspect: 2, suspectFailures: 1 });
  });
});

describe('ending', () => {
  it('waits for no one and keeps what is not acknowledged', async () => {
    const broker = await openTestBroker({ answer: ({ count }) => (count <= 4 ? 0 : 'ignore') });
    const log = await openTestLog();
    await log.record(1, 10);
    const forwarding = log.forward({ url: broker.url });
    await until(() => broker.received.length === 10);
    await forwarding.stop();
    expect(log.events.table.cursor()).toMatchObject({ acked: 4 });
    expect(log.events.backlog()).toMatchObject({ waiting: 6 });
  });

  it('does not wait for a connection that is being made', async () => {
    const broker = await openTestBroker();
    const log = await openTestLog();
    // TEST-NET-1 (RFC 5737): nothing answers there.
    const forwarding = log.forward({ url: 'mqtt://192.0.2.1:1883' });
    await new Promise((resolve) => setImmediate(resolve));
    const started = performance.now();
    await forwarding.stop();
    // After so long the connection would be given up.
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(broker.connections()).toBe(0);
  });
});

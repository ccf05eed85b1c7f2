/** Several sinks over one log of events: each has a cursor, bounds and gap records of its own. */
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { firstArrivals, gapsSent, numbers, sequenceOf } from '../../../test/services/events/arrivals.ts';
import { openTestBroker } from '../../../test/services/events/broker.ts';
import { openTestLog, type TestLog, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { silentLog } from '../../platform/log.ts';
import { KEEP_INTERVAL_MS } from './retention.ts';
import type { Sink } from './sink.ts';

const DAY_MS = 86_400_000;
const NAMES = ['near', 'far'];

function sinkOf({ events }: TestLog, name: string): Sink {
  const sink = events.sinks.find(({ bounds }) => bounds.name === name);
  if (!sink) throw new Error(`no sink ${name}`);
  return sink;
}

async function keep(log: TestLog, clock: ReturnType<typeof manualClock>) {
  const ending = new AbortController();
  const kept = log.events.keep(ending.signal).catch(() => {});
  await clock.advance(KEEP_INTERVAL_MS);
  await until(() => clock.sleepers() > 0, 'the keeper sleeps again');
  ending.abort();
  await kept;
}

const waiting = (log: TestLog) => NAMES.map((name) => sinkOf(log, name).backlog().waiting);
const stored = ({ database }: TestLog) =>
  database.prepare<[], { count: number }>('SELECT count(*) AS count FROM event').get()?.count;

describe('two sinks', () => {
  it('hold each other up in nothing, and go on after a restart where each was', async () => {
    const folder = temporaryFolder();
    const [near, far] = [await openTestBroker(), await openTestBroker({ answer: () => 'ignore' })];
    {
      await using log = await openTestLog({ folder, names: NAMES });
      await log.record(1, 100);
      const forwarding = [
        log.forward({ name: 'near', url: near.url }),
        log.forward({ name: 'far', url: far.url }),
      ];
      await until(() => near.received.length === 100 && far.received.length > 0);
      await until(() => sinkOf(log, 'near').backlog().waiting === 0);
      expect(waiting(log)).toEqual([0, 100]);
      for (const each of forwarding) await each.stop();
    }
    await using log = await openTestLog({ folder, names: NAMES });
    expect(waiting(log)).toEqual([0, 100]);
    far.answer = () => 0;
    log.forward({ name: 'near', url: near.url });
    log.forward({ name: 'far', url: far.url });
    await log.record(101, 101);
    await until(() => sinkOf(log, 'far').backlog().waiting === 0 && near.received.length === 101);
    expect(firstArrivals(far)).toEqual(numbers(1, 101));
    expect(near.received.map(sequenceOf)).toEqual(numbers(1, 101));
  });

  it('lose events each by its own bounds, and are informed each of its own gaps', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, names: NAMES });
    sinkOf(log, 'near').bounds.maxAge = DAY_MS;
    sinkOf(log, 'far').bounds.maxAge = 5 * DAY_MS;
    await log.record(1, 10);
    await clock.advance(2 * DAY_MS);
    await log.record(11, 11);
    await keep(log, clock);
    // For the far one all eleven, and not the record of the near one.
    expect(waiting(log)).toEqual([2, 11]);
    const [near, far] = [await openTestBroker(), await openTestBroker()];
    const forwarding = log.forward({ name: 'near', url: near.url });
    await until(() => near.received.length === 2);
    await forwarding.stop();
    expect(gapsSent(near)).toEqual([
      { encoderId: 'desk-1', firstSequence: 1, lastSequence: 10, count: 10, reason: 'AGE' },
    ]);
    log.forward({ name: 'far', url: far.url });
    await until(() => far.received.length === 11);
    expect(firstArrivals(far)).toEqual(numbers(1, 11));
    expect(NAMES.map((name) => sinkOf(log, name).backlog().dropped)).toEqual([10, 0]);
  });

  it('are warned of before the first event is dropped, and once', async () => {
    const clock = manualClock();
    const warnings: unknown[][] = [];
    const log = await openTestLog({
      clock,
      names: NAMES,
      log: { ...silentLog, warn: (...args: unknown[]) => void warnings.push(args) },
    });
    sinkOf(log, 'near').bounds.maxAge = 2 * DAY_MS;
    await log.record(1, 3);
    await keep(log, clock);
    expect(warnings).toEqual([]);
    await clock.advance(DAY_MS);
    await keep(log, clock);
    await keep(log, clock);
    expect(warnings.map(([, text]) => text)).toEqual([
      expect.stringMatching(/^3 events wait for near; the first is dropped in 23 hours: /),
    ]);
    expect(sinkOf(log, 'near').backlog().dropped).toBe(0);
  });

  it('show how long an outage may last, by what is recorded in a day', async () => {
    const clock = manualClock();
    const folder = temporaryFolder();
    const bounds = { maxAge: 3650 * DAY_MS, maxBytes: 2_000_000 };
    const rate = 1_000_000 / (10 * DAY_MS);
    {
      await using log = await openTestLog({ folder, clock, names: NAMES, bounds });
      expect(sinkOf(log, 'near').backlog().autonomyMs).toBeNull();
      for (let day = 0; day < 10; day += 1) {
        await log.record(1 + 200 * day, 200 * (day + 1));
        await clock.advance(DAY_MS);
      }
    }
    await using log = await openTestLog({ folder, clock, names: NAMES, bounds });
    const { waitingBytes, autonomyMs } = sinkOf(log, 'near').backlog();
    const expected = (2_000_000 - waitingBytes) / ((rate * waitingBytes) / 1_000_000);
    expect(Math.abs((autonomyMs ?? 0) / expected - 1)).toBeLessThan(0.01);
    expect(log.events.fillRate.bytesPerSecond()).toBeCloseTo(waitingBytes / 864_000, 3);
  });

  it('keep no event on the disk that was dropped for the last of them', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, names: NAMES });
    for (const name of NAMES) sinkOf(log, name).bounds.maxAge = DAY_MS;
    await log.record(1, 700);
    await clock.advance(8 * DAY_MS);
    await keep(log, clock);
    // One gap record for each.
    expect([stored(log), ...waiting(log)]).toEqual([2, 1, 1]);
  });

  it('are kept by name: a new one gets all that is stored, one that is gone is forgotten', async () => {
    const folder = temporaryFolder();
    {
      await using log = await openTestLog({ folder, names: ['near'] });
      await log.record(1, 5);
      await log.database.commit(() => {
        const { table } = sinkOf(log, 'near');
        table.countAll();
        table.countDown(table.waiting());
        table.setAcked(3);
      });
    }
    {
      await using log = await openTestLog({ folder, names: ['far'] });
      expect(sinkOf(log, 'far').backlog()).toMatchObject({ waiting: 5 });
    }
    await using log = await openTestLog({ folder, names: NAMES });
    expect(waiting(log)).toEqual([5, 5]);
    expect(sinkOf(log, 'near').table.page(0, 9)).toHaveLength(5);
  });
});

describe('a sink with several servers', () => {
  const sink = (...urls: string[]) => ({ kind: 'mqtt', name: 'upstream', urls }) as const;

  it('asks the next one when one is away', async () => {
    const [away, there] = [await openTestBroker(), await openTestBroker()];
    await away.goAway();
    const log = await openTestLog();
    await log.record(1, 3);
    log.forward(sink(away.url, there.url));
    await until(() => there.received.length === 3);
  });

  it('leaves one that accepts and never acknowledges', async () => {
    const clock = manualClock();
    const [silent, there] = [await openTestBroker({ answer: () => 'ignore' }), await openTestBroker()];
    const log = await openTestLog({ clock });
    await log.record(1, 3);
    log.forward(sink(silent.url, there.url));
    await until(() => silent.received.length === 3);
    while (there.received.length < 3) await clock.advance(1_000);
    expect(firstArrivals(there)).toEqual([1, 2, 3]);
  });

  it('names every failure when none is there', async () => {
    const brokers = [await openTestBroker(), await openTestBroker()];
    for (const broker of brokers) await broker.goAway();
    const log = await openTestLog();
    const [one, other] = brokers.map(({ url }) => url);
    log.forward(sink(one ?? '', other ?? ''));
    const error = () => log.events.backlog().lastError ?? '';
    await until(() => error().includes(`${one}: connect`) && error().includes(`${other}: connect`));
  });
});

it('publishes in binary mode where the sink is set to, on the topics it is given', async () => {
  const broker = await openTestBroker();
  const log = await openTestLog();
  await log.record(1, 1);
  await log.database.commit(() =>
    log.events.gap({ encoderId: 'desk-1', first: 7, last: 8, reason: 'REJECTED' }),
  );
  log.forward({
    kind: 'mqtt',
    urls: [broker.url],
    format: 'binary',
    topic: 'site/{encoderId}',
    gapTopic: 'site-gaps',
  });
  await until(() => broker.received.length === 2);
  const [event, gap] = broker.received;
  expect([event?.topic, gap?.topic]).toEqual(['site/desk-1', 'site-gaps']);
  expect(JSON.parse(event?.payload ?? '')).toEqual({
    requestId: 'r-1',
    keyId: 'k-1',
    entryIndex: 0,
    entryCount: 1,
    status: 'written',
    totals: { written: 1, open: 0 },
  });
});

describe('a broker that behaves badly', () => {
  // MQTT 5, 3.2.2.2: Bad User Name or Password, Not authorized, Server busy, Banned, Quota exceeded; 3.1.1, 3.2.2.3: 3 and 5.
  it.each([
    [5, 0x86],
    [5, 0x87],
    [5, 0x89],
    [5, 0x8a],
    [5, 0x97],
    [4, 3],
    [4, 5],
  ] as const)(
    'is asked again when it refuses the connection (MQTT version %d, code %d)',
    async (protocolVersion, code) => {
      const broker = await openTestBroker({ connackCode: (connection) => (connection < 8 ? code : 0) });
      const log = await openTestLog();
      await log.record(1, 3);
      log.forward({ url: broker.url, protocolVersion });
      await until(() => broker.received.length === 3);
      expect(broker.connections()).toBe(8);
      expect(log.events.backlog().deadLetters).toBe(0);
    },
  );

  it('loses no event by an acknowledgement of what was never sent', async () => {
    // PUBACK of packet 0x7fff (MQTT 5, 3.4).
    const broker = await openTestBroker({
      connected: (socket) => void socket.write(Buffer.from([0x40, 2, 0x7f, 0xff])),
      answer: () => 'hold',
    });
    const log = await openTestLog();
    await log.record(1, 3);
    log.forward({ url: broker.url });
    await until(() => broker.received.length >= 3);
    expect(log.events.backlog()).toMatchObject({ waiting: 3 });
    broker.answer = () => 0;
    broker.release();
    await until(() => log.events.backlog().waiting === 0);
    expect(firstArrivals(broker)).toEqual([1, 2, 3]);
  });

  it.each([
    [{ receiveMaximum: 0 }, 'announces a receive maximum of 0'],
    [{ maximumPacketSize: 0 }, 'announces a maximum packet size of 0'],
  ])('that takes nothing by %j is named so', async (limits, reason) => {
    const broker = await openTestBroker(limits);
    const log = await openTestLog();
    await log.record(1, 1);
    log.forward({ url: broker.url });
    await until(() => log.events.backlog().lastError?.includes(reason) === true);
    expect(broker.received).toEqual([]);
  });

  it('gets one event at a time where it takes no more, live ones too', async () => {
    const broker = await openTestBroker({ receiveMaximum: 1 });
    const log = await openTestLog();
    await log.record(1, 70);
    log.forward({ url: broker.url });
    await until(() => broker.received.length > 0);
    await log.record(1, 5, 'desk-2');
    await until(() => log.events.backlog().waiting === 0);
    expect(Math.max(...broker.received.map(({ inFlight }) => inFlight))).toBe(1);
    expect(broker.received).toHaveLength(75);
  });
});

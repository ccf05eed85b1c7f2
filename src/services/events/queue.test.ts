import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import {
  arrivals,
  firstArrivalsByEncoder,
  numbers,
  settled,
} from '../../../test/services/events/arrivals.ts';
import { openTestBroker } from '../../../test/services/events/broker.ts';
import { openTestLog, progress, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { KEEP_INTERVAL_MS } from './retention.ts';

const WINDOW = 16;
/** Without what is kept for live events. */
const OF_BACKLOG = 12;

/** A service that answers nothing until it is opened. */
async function closedBroker() {
  return openTestBroker({ answer: () => 'hold' });
}

describe('an event that happens now', () => {
  it('overtakes the backlog of other encoders, behind what waits of its own', async () => {
    const broker = await closedBroker();
    const log = await openTestLog();
    await log.record(1, 600, 'desk-1');
    await log.record(1, 3, 'desk-2');
    await log.record(601, 2_000, 'desk-1');
    const forwarding = log.forward({ url: broker.url, window: WINDOW });
    await until(() => broker.received.length === OF_BACKLOG);
    await Promise.all([log.record(4, 4, 'desk-2'), log.record(1, 1, 'desk-3')]);
    broker.answer = () => 0;
    broker.release();
    await until(() => broker.received.length === 2_005);
    const order = arrivals(broker).map(({ encoderId, sequence }) => `${encoderId} ${sequence}`);
    expect(order.slice(OF_BACKLOG, OF_BACKLOG + 5)).toEqual([
      'desk-2 1',
      'desk-3 1',
      'desk-2 2',
      'desk-2 3',
      'desk-2 4',
    ]);
    expect(firstArrivalsByEncoder(broker)).toEqual({
      'desk-1': numbers(1, 2_000),
      'desk-2': numbers(1, 4),
      'desk-3': [1],
    });
    const replayed = arrivals(broker).filter((each) => each.replayed);
    expect(replayed).toHaveLength(2_003);
    // The service has them all; its last acknowledgements may still be on their way.
    await until(() => log.events.backlog().waiting === 0);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, waitingBytes: 0 });
    expect(log.events.table.cursor().acked).toBe(log.events.table.newest());
  });

  it('leaves at once while the window is full of a backlog of which nothing is acknowledged', async () => {
    const broker = await closedBroker();
    const log = await openTestLog();
    await log.record(1, 3_000, 'desk-1');
    log.forward({ url: broker.url, window: WINDOW });
    await until(() => broker.received.length === OF_BACKLOG);
    await log.record(1, 1, 'desk-2');
    await until(() => broker.received.length > OF_BACKLOG);
    expect(arrivals(broker).at(-1)).toMatchObject({ encoderId: 'desk-2', sequence: 1 });
  });

  it('is stored and sent before more than a slice of the backlog leaves', async () => {
    const broker = await openTestBroker();
    const log = await openTestLog();
    await log.record(1, 4_000, 'desk-1');
    const { link } = log.events;
    const perTurn: number[] = [];
    let before = 0;
    const watch = () => {
      perTurn.push(link.sentThrough - before);
      before = link.sentThrough;
      if (before < 4_000) setImmediate(watch);
    };
    watch();
    log.forward({ url: broker.url, window: 256 });
    await until(() => link.sentThrough > 0);
    const asked = link.sentThrough;
    await log.record(1, 1, 'desk-2');
    await until(() => broker.received.length === 4_001);
    const place = arrivals(broker).findIndex(({ encoderId }) => encoderId === 'desk-2');
    // A slice for the acknowledgements of a turn, and one for what was recorded in it.
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(128);
    expect(place - asked).toBeLessThanOrEqual(128);
  });

  it('is sent while the cursor waits for the disk', async () => {
    const clock = manualClock();
    const broker = await openTestBroker();
    const log = await openTestLog({ clock });
    await log.record(1, 10);
    const forwarding = log.forward({ url: broker.url, window: WINDOW });
    await until(() => broker.received.length === 10 && clock.sleepers() > 0);
    const { commit } = log.database;
    const disk = Promise.withResolvers<void>();
    let isWaiting = false;
    log.database.commit = async (job) => {
      isWaiting = true;
      await disk.promise;
      return commit(job);
    };
    await until(() => {
      void clock.advance(500);
      return isWaiting;
    });
    await commit(() => log.events.writeProgress(progress(11)));
    log.events.wake();
    await until(() => broker.received.length === 11);
    disk.resolve();
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, waitingBytes: 0 });
  });

  it('is not sent again when the connection ends before the backlog, nor after a restart', async () => {
    const folder = temporaryFolder();
    const broker = await closedBroker();
    {
      await using log = await openTestLog({ folder });
      await log.record(1, 1_000, 'desk-1');
      const forwarding = log.forward({ url: broker.url, window: WINDOW });
      await until(() => broker.received.length === OF_BACKLOG);
      await log.record(1, 1, 'desk-2');
      broker.answer = ({ payload }) => (payload.includes('desk-2') ? 0 : 'ignore');
      broker.release();
      await until(() => broker.received.length > OF_BACKLOG);
      await until(() => log.events.link.aheadThrough > 0);
      await forwarding.stop();
    }
    await using log = await openTestLog({ folder });
    broker.answer = () => 0;
    const forwarding = log.forward({ url: broker.url });
    await until(() => new Set(arrivals(broker).map(({ id }) => id)).size === 1_001);
    expect(arrivals(broker).filter(({ encoderId }) => encoderId === 'desk-2')).toHaveLength(1);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, waitingBytes: 0 });
  });

  it('is not named in a gap when what it has overtaken is dropped', async () => {
    const clock = manualClock();
    const broker = await closedBroker();
    const log = await openTestLog({ clock, bounds: { maxAge: 1, maxBytes: 1e9 } });
    await log.record(1, 1_000, 'desk-1');
    log.forward({ url: broker.url, window: WINDOW });
    await until(() => broker.received.length === OF_BACKLOG);
    const ending = new AbortController();
    const kept = log.events.keep(ending.signal).catch(() => {});
    await clock.advance(KEEP_INTERVAL_MS / 2);
    await log.record(1, 1, 'desk-2');
    // It stays in flight: only the connection knows of it.
    broker.answer = () => 'ignore';
    broker.release();
    await until(() => log.events.link.aheadThrough > 0);
    await clock.advance(KEEP_INTERVAL_MS / 2);
    await until(() => log.events.backlog().gaps > 0);
    ending.abort();
    await kept;
    const gaps = log.database.prepare<[], { id: string }>('SELECT DISTINCT encoder_id AS id FROM gap').all();
    expect(gaps).toEqual([{ id: 'desk-1' }]);
  });

  it('keeps its order behind breaks of the connection, again and again', async () => {
    const broker = await openTestBroker({ answer: ({ count }) => (count % 37 === 0 ? 'reset' : 0) });
    const log = await openTestLog();
    await log.record(1, 900, 'desk-1');
    const forwarding = log.forward({ url: broker.url, window: WINDOW });
    for (let n = 1; n <= 40; n += 1) {
      await log.record(n, n, `desk-${2 + (n % 3)}`);
      await log.record(900 + n, 900 + n, 'desk-1');
      await until(() => broker.received.length > n * 20);
    }
    broker.answer = () => 0;
    await until(() => new Set(arrivals(broker).map(({ id }) => id)).size === 980);
    const first = firstArrivalsByEncoder(broker);
    expect(first['desk-1']).toEqual(numbers(1, 940));
    for (const order of Object.values(first)) expect(order).toEqual(numbers(1, order.length));
    // The service has them all; its last acknowledgements may still be on their way.
    await until(() => log.events.backlog().waiting === 0);
    expect(await settled(log, forwarding)).toMatchObject({ waiting: 0, waitingBytes: 0, deadLetters: 0 });
  });
});

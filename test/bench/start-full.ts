/** The start of the whole daemon with many events stored, none of them delivered and all of them, beside one with none. */
import { join } from 'node:path';
import { systemClock } from '../../src/platform/clock.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { silentLog } from '../../src/platform/log.ts';
import { type EventLog, openEvents } from '../../src/services/events/events.ts';
import type { Sink } from '../../src/services/events/sink.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { progress } from './forwarder.ts';
import { medianStart } from './start.ts';
import type { BenchTable, Row } from './table.ts';

const EVENTS_PER_COMMIT = 1_000;
const TARGET_MS = 1_000;
/** No one listens there: what waits goes on waiting. */
const NOWHERE = 'mqtt://127.0.0.1:9';

export async function benchStartFull({ events }: { events: number }): Promise<BenchTable> {
  await using site = await openTestSite({ config: { upstream: { url: NOWHERE } } });
  const { daemon } = site;
  const file = join(site.directory, 'data', 'gatehouse.db');
  const rows: Row[] = [await startRow('no event stored')];
  await withLog(file, async (log, commit) => {
    for (let from = 1; from <= events; from += EVENTS_PER_COMMIT) {
      await commit(() => {
        for (let n = from; n < from + EVENTS_PER_COMMIT; n += 1) log.writeProgress(progress(n));
      });
    }
  });
  rows.push(await startRow(`${events} events stored, all of them waiting`));
  await withLog(file, async ({ sinks }, commit) => {
    const { table } = sinks[0] as Sink;
    await commit(() => {
      table.countAll();
      table.countDown(table.waiting());
      table.setAcked(table.newest());
    });
  });
  rows.push(await startRow(`${events} events stored, all of them delivered`));
  return { title: 'Start with events: from the process to the first answer over HTTPS, 7 warm starts', rows };

  async function startRow(what: string): Promise<Row> {
    const { median, slowest } = await medianStart(daemon);
    await daemon.kill();
    return {
      what,
      figure: `median ${Math.round(median)} ms, slowest ${Math.round(slowest)} ms`,
      target: `≤ ${TARGET_MS} ms`,
      met: median <= TARGET_MS,
    };
  }
}

/** While the daemon is down. */
async function withLog(
  file: string,
  work: (log: EventLog, commit: (job: () => void) => Promise<void>) => Promise<void>,
): Promise<void> {
  await using database = await openDatabase({
    file,
    monotonic: () => performance.now(),
    failed: console.error,
  });
  const common = {
    database,
    clock: systemClock,
    time: { now: systemClock.now, synchronised: () => true },
    log: silentLog,
  };
  const systemId = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';
  const sinks = [{ name: 'upstream', maxAge: 30 * 86_400_000, maxBytes: 1e9 }];
  const log = await openEvents({ ...common, systemId, sinks });
  await work(log, database.commit);
}

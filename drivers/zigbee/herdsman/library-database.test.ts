import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { folder, joined, LOCK, OTHER_LOCK, opened, simulated } from '../../../test/drivers/zigbee/gateway.ts';
import type { Clock } from '../../contract/driver.ts';
import { calmDatabase } from './library-database.ts';

describe('the database of the library', () => {
  class Database {
    entries = new Map<number, unknown>([
      [1, { lastSeen: 1, endpoints: { lockState: 1, autoRelockTime: 30 } }],
    ]);
    readonly path = join(folder(), 'database.db');
    writes = 0;
    write() {
      this.writes += 1;
    }
  }
  function owned() {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const database = new Database();
    const saved = vi.fn(() => database.write());
    const timers = { databaseSaveTimer: setInterval(saved, 1), backupTimer: setInterval(saved, 1) };
    const databaseSave = () => {
      database.entries.set(1, { ...(database.entries.get(1) as object), type: 'EndDevice' });
      database.write();
    };
    const owner = { database, stopping: false, databaseSave, ...timers };
    calmDatabase(owner);
    return { owner, database, saved };
  }

  it('is not written by the clock, nor for what moves', () => {
    const { database, saved } = owned();
    vi.advanceTimersByTime(1_000);
    expect(saved).not.toHaveBeenCalled();
    database.write();
    expect(database.writes).toBe(0);
    database.entries.set(1, {
      lastSeen: 2,
      endpoints: { lockState: 2, autoRelockTime: 30 },
      type: 'EndDevice',
    });
    database.write();
    expect(database.writes).toBe(0);
  });

  it('is written for anything else, and at the end', () => {
    const { database, owner } = owned();
    database.entries.set(1, {
      lastSeen: 2,
      endpoints: { lockState: 2, autoRelockTime: 0 },
      type: 'EndDevice',
    });
    database.write();
    database.write();
    expect(database.writes).toBe(1);
    database.entries.set(1, {
      lastSeen: 2,
      endpoints: { lockState: 2, autoRelockTime: 0, doorState: 1 },
      type: 'EndDevice',
    });
    database.write();
    expect(database.writes).toBe(2);
    owner.stopping = true;
    database.write();
    expect(database.writes).toBe(3);
  });
});

/** An hour passes at once. */
const hasty: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds === 3_600_000 ? 100 : milliseconds, signal),
};

it('stays as it is from snapshot to snapshot while locks report, and has the times at the end', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }, { ieee: OTHER_LOCK }] });
  const stateDirectory = folder();
  const gateway = await opened(site, { stateDirectory }, { clock: hasty });
  await joined(gateway, site);
  const file = join(stateDirectory, 'database.db');
  const snapshots = () => gateway.events.filter(({ kind }) => kind === 'snapshot').length;
  const nextSnapshot = () => {
    const before = snapshots();
    // Each reads all that a coordinator keeps: hundreds of questions to another process.
    return expect.poll(snapshots, { timeout: 45_000 }).toBeGreaterThan(before + 1);
  };
  await nextSnapshot();
  const { ino } = statSync(file);
  await site.set(LOCK, { manual: 'unlock', door: 'open', battery: { withoutLoadMv: 5_000 } });
  const seenBattery = () => gateway.reports.get(`device:${LOCK}`) as { dueBatteryWithoutLoad: number };
  await expect.poll(() => seenBattery().dueBatteryWithoutLoad).toBe(5_000);
  await nextSnapshot();
  expect(statSync(file).ino).toBe(ino);
  await joined(gateway, site, OTHER_LOCK);
  expect(readFileSync(file, 'utf8')).toContain(OTHER_LOCK);
  const { lastSeen } = gateway.reports.get(`device:${LOCK}`) as { lastSeen: number };
  await gateway.close();
  // The library looks at the clock a moment before the report does.
  const kept =
    readFileSync(file, 'utf8')
      .split('\n')
      .find((line) => line.includes(LOCK)) ?? '{}';
  expect(JSON.parse(kept).lastSeen - lastSeen).toSatisfy((apart) => Math.abs(apart) < 1_000);
}, 150_000);

it('is not needed for when a lock was heard of last', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  await first.close();
  const now = Date.now();
  const reportAt = async (lastSeen: number) => {
    const gateway = await opened(site, { stateDirectory, lastSeen: { [LOCK]: lastSeen } });
    await gateway.close();
    return gateway.reports.get(`device:${LOCK}`);
  };
  expect(await reportAt(now)).toMatchObject({ lastSeen: now, connected: true });
  // The clock has gone back since: what the library kept counts.
  expect((await reportAt(now + 3_600_000)) as object).toHaveProperty(
    'lastSeen',
    expect.toSatisfy((at) => at <= now),
  );
}, 60_000);

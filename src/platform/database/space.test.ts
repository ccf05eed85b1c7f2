import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { canMount, type SmallDisk, smallDisk } from '../../../test/small-disk.ts';
import { type Database, openDatabase } from './database.ts';
import { roomNeeded, type SpaceState } from './space.ts';

const BALLAST_BYTES = 512 * 1024;
const LOOK_EVERY_MS = 5_000;
const CANNOT_MOUNT = !canMount();

const UNAVAILABLE = expect.objectContaining({ code: 'STORAGE_UNAVAILABLE' });

async function open(disk: SmallDisk, ballastBytes: number | null = BALLAST_BYTES) {
  const states: SpaceState[] = [];
  const faults: unknown[] = [];
  const database = await openDatabase({
    file: join(disk.folder, 'gatehouse.db'),
    monotonic: () => performance.now(),
    failed: (error) => faults.push(error),
    spaceChanged: (state) => states.push(state),
    ...(ballastBytes !== null && { ballastBytes }),
  });
  const insert = database.prepare<[string]>(
    `INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
     VALUES (0, '', '', ?, '', '', '{}', '', x'00')`,
  );
  const count = database.prepare<[], { count: number }>('SELECT count(*) AS count FROM audit');
  return {
    database,
    states,
    faults,
    /** A row of 20 kB. */
    store: (urgency?: 'telemetry' | 'normal' | 'urgent') =>
      database.commit(() => void insert.run('x'.repeat(20_000)), urgency),
    rows: () => count.get()?.count,
    ballast: join(disk.folder, 'ballast'),
  };
}

/** As the gateway does it; `look` lets it look once. */
function keep(database: Database) {
  const clock = manualClock();
  const stop = new AbortController();
  const kept = database.space.keep(clock, stop.signal).catch(() => {});
  onTestFinished(async () => {
    stop.abort();
    await kept;
  });
  const looked = () => vi.waitFor(() => expect(clock.sleepers()).toBe(1));
  return async () => {
    await looked();
    await clock.advance(LOOK_EVERY_MS);
    await looked();
  };
}

it.skipIf(CANNOT_MOUNT)(
  'goes on with urgent work on a full disk, and with all when there is room',
  async () => {
    const disk = smallDisk(8 * 1024 * 1024);
    const { database, states, store, rows, ballast } = await open(disk);
    await using _closing = database;
    const look = keep(database);
    await look();
    expect(statSync(ballast).size).toBe(BALLAST_BYTES);
    expect(statSync(ballast).blocks * 512).toBeGreaterThanOrEqual(BALLAST_BYTES);
    await store('telemetry');

    disk.fill();
    await look();
    expect(database.space.state().space).toBe('short');
    await expect(store('telemetry')).rejects.toEqual(UNAVAILABLE);
    // The log has some room left over from earlier commits.
    await vi.waitFor(() => expect(store()).rejects.toEqual(UNAVAILABLE), { interval: 1 });
    expect(database.space.state().space).toBe('full');
    expect(existsSync(ballast)).toBe(false);
    const before = rows() ?? 0;
    for (let unlock = 0; unlock < 10; unlock += 1) await store('urgent');
    await expect(store()).rejects.toEqual(UNAVAILABLE);
    expect(rows()).toBe(before + 10);
    await look();
    await expect(store()).rejects.toEqual(UNAVAILABLE);

    disk.makeRoom();
    await look();
    await store();
    await store('telemetry');
    expect(statSync(ballast).size).toBe(BALLAST_BYTES);
    expect(states.map(({ space }) => space)).toEqual(['short', 'full', 'plenty']);
    expect(rows()).toBe(before + 12);
  },
);

it.skipIf(CANNOT_MOUNT)(
  'refuses even urgent work once the ballast is used up, and loses nothing',
  async () => {
    const disk = smallDisk(8 * 1024 * 1024);
    const { database, store, rows } = await open(disk);
    await using _closing = database;
    const look = keep(database);
    await look();
    disk.fill();
    let stored = 0;
    await expect(
      (async () => {
        for (;;) {
          await store('urgent');
          stored += 1;
        }
      })(),
    ).rejects.toEqual(UNAVAILABLE);
    expect(rows()).toBe(stored);
    expect(stored).toBeGreaterThan(10);
    disk.makeRoom();
    await look();
    await store();
    expect(rows()).toBe(stored + 1);
  },
);

it.skipIf(CANNOT_MOUNT)(
  'starts on a full disk with the room of the ballast, and again with what the log was given of it',
  async () => {
    const disk = smallDisk(8 * 1024 * 1024);
    {
      const { database, store } = await open(disk);
      await using _closing = database;
      const look = keep(database);
      await store();
      await look();
    }
    disk.fill();
    {
      const { database, store, rows, states } = await open(disk);
      await using _closing = database;
      // At start-up everything is urgent.
      await store();
      expect(rows()).toBe(2);
      expect(states.map(({ space }) => space)).toEqual(['full']);
    }
    {
      // The ballast is spent, and its room is taken: what the log was given of it is left.
      disk.fill();
      const { database, store, rows } = await open(disk);
      await using _closing = database;
      await keep(database)();
      expect(database.space.state().space).toBe('full');
      for (let unlock = 0; unlock < 5; unlock += 1) await store('urgent');
      await expect(store()).rejects.toEqual(UNAVAILABLE);
      expect(rows()).toBe(7);
    }
    disk.makeRoom();
    const { database, rows } = await open(disk);
    await using _closing = database;
    expect(rows()).toBe(7);
  },
);

it.skipIf(CANNOT_MOUNT)('says what to do where nothing is left of the ballast', async () => {
  const disk = smallDisk(8 * 1024 * 1024);
  const { database, store } = await open(disk);
  await store();
  await database[Symbol.asyncDispose]();
  disk.fill();
  await expect(open(disk)).rejects.toThrow(
    /gatehouse\.db cannot be used while the disk is full: make room on it/,
  );
  disk.makeRoom();
  const { database: again, rows } = await open(disk);
  await using _closing = again;
  expect(rows()).toBe(1);
});

it.skipIf(CANNOT_MOUNT)(
  'is full after a restart, too, as long as there is no room for the ballast',
  async () => {
    const disk = smallDisk(8 * 1024 * 1024);
    {
      const { database, store } = await open(disk);
      await using _closing = database;
      await keep(database)();
      disk.fill();
      await vi.waitFor(() => expect(store()).rejects.toEqual(UNAVAILABLE), { interval: 1 });
    }
    const { database, store } = await open(disk);
    await using _closing = database;
    const look = keep(database);
    await vi.waitFor(() => expect(database.space.state().space).toBe('full'));
    await expect(store()).rejects.toEqual(UNAVAILABLE);
    await store('urgent');
    disk.makeRoom();
    await look();
    expect(database.space.state().space).toBe('plenty');
    await store('telemetry');
  },
);

it.skipIf(CANNOT_MOUNT)(
  'says at a first start that there is no room, and leaves no half database',
  async () => {
    const disk = smallDisk(8 * 1024 * 1024);
    disk.fill();
    await expect(open(disk)).rejects.toThrow(/gatehouse\.db cannot be used while the disk is full/);
    expect(existsSync(join(disk.folder, 'gatehouse.db'))).toBe(false);
    disk.makeRoom();
    const { database } = await open(disk);
    await database[Symbol.asyncDispose]();
  },
);

it('keeps back 16 MB of an ordinary disk, and less of a small one', () => {
  const MB = 1024 * 1024;
  expect(roomNeeded(32_000 * MB)).toEqual({ ballastBytes: 16 * MB, plentyBytes: 48 * MB });
  expect(roomNeeded(256 * MB)).toEqual({ ballastBytes: 8 * MB, plentyBytes: 24 * MB });
  expect(roomNeeded(20 * MB)).toEqual({ ballastBytes: 2 * MB, plentyBytes: 6 * MB });
});

it.skipIf(CANNOT_MOUNT)(
  'says at no time that a disk is full and has the room that is asked for',
  async () => {
    const disk = smallDisk(40 * 1024 * 1024);
    const { database, store } = await open(disk, null);
    await using _closing = database;
    const contradictions: SpaceState[] = [];
    const note = () => {
      const state = database.space.state();
      if (state.space === 'full' && Number(state.freeBytes) >= Number(state.plentyBytes))
        contradictions.push(state);
      return state.space;
    };
    const look = keep(database);
    await look();
    // The next look is still to come.
    disk.fill();
    await vi.waitFor(() => expect(store()).rejects.toEqual(UNAVAILABLE), { timeout: 20_000, interval: 0 });
    expect(note()).toBe('full');
    disk.makeRoom();
    const looked = look();
    // The ballast is written in between.
    while (note() === 'full') await new Promise(setImmediate);
    await looked;
    expect(contradictions).toEqual([]);
  },
);

it.skipIf(CANNOT_MOUNT)('stores everything again on a small disk that never had 48 MB free', async () => {
  const disk = smallDisk(40 * 1024 * 1024);
  const { database, store, ballast } = await open(disk, null);
  await using _closing = database;
  const look = keep(database);
  await look();
  expect(statSync(ballast).size).toBe(2 * 1024 * 1024);
  disk.fill();
  await vi.waitFor(() => expect(store()).rejects.toEqual(UNAVAILABLE), { timeout: 20_000, interval: 0 });
  await store('urgent');
  disk.makeRoom();
  await look();
  expect(database.space.state()).toMatchObject({ space: 'plenty', plentyBytes: 6 * 1024 * 1024 });
  await store('telemetry');
});

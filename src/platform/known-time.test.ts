import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../test/manual-clock.ts';
import { type KnownTime, type KnownTimeTable, openKnownTime } from './known-time.ts';
import { silentLog } from './log.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const START = Date.UTC(2026, 5, 1);
let clock: ManualClock;
let synchronised: boolean;
let disk: ReturnType<KnownTimeTable['stored']>;
let time: KnownTime;
let boots = 0;

/** The daemon starts, on a kernel that runs already. */
function start(bootId = 'boot 1'): void {
  time = openKnownTime({
    clock,
    synchronised: () => synchronised,
    bootId,
    table: {
      stored: () => disk,
      store: (reading) => {
        disk = reading;
      },
    },
    log: silentLog,
  });
}
/** After a power cut: the monotonic clock starts again, and the wall clock shows anything. */
function boot(wall: number): void {
  clock = manualClock(wall);
  boots += 1;
  start(`boot ${boots}`);
}
function store(closing = false): boolean {
  const batch = time.collect(closing);
  batch?.write();
  batch?.written();
  return batch !== undefined;
}

beforeEach(() => {
  synchronised = false;
  disk = undefined;
  boot(START);
});

describe('the known time', () => {
  it('is that of the first synchronised clock, whatever it was before', () => {
    synchronised = true;
    boot(START);
    expect(time.now()).toBe(START);
    store(true);
    boot(START - 400 * DAY_MS);
    expect(time.now()).toBe(START - 400 * DAY_MS);
  });

  it.each([27_000, 40, -100])(
    'does not follow a synchronised clock that is wrong by %i days for a minute',
    async (days) => {
      synchronised = true;
      boot(START);
      expect([time.now(), time.synchronised()]).toEqual([START, true]);
      clock.jumpWall(days * DAY_MS);
      await clock.advance(MINUTE_MS);
      expect([time.now(), time.synchronised()]).toEqual([START + MINUTE_MS, false]);
      expect(time.doubt()).toEqual({ aheadMs: days * DAY_MS, acceptedInMs: 6 * HOUR_MS });
      clock.jumpWall(-days * DAY_MS);
      expect([time.now(), time.synchronised()]).toEqual([START + MINUTE_MS, true]);
      expect(time.doubt()).toBeUndefined();
    },
  );

  it('does not follow a wrong clock because the daemon starts again', async () => {
    synchronised = true;
    boot(START);
    store(true);
    clock.jumpWall(40 * DAY_MS);
    await clock.advance(MINUTE_MS);
    start(`boot ${boots}`);
    expect([time.now(), time.synchronised()]).toEqual([START + MINUTE_MS, false]);
  });

  it('follows a synchronised clock whose jump lasts for six hours', async () => {
    synchronised = true;
    boot(START);
    time.now();
    clock.jumpWall(40 * DAY_MS);
    expect(time.now()).toBe(START);
    await clock.advance(6 * HOUR_MS - 1);
    expect([time.now(), time.latest()]).toEqual([START + 6 * HOUR_MS - 1, clock.now()]);
    await clock.advance(1);
    expect([time.now(), time.synchronised()]).toEqual([START + 40 * DAY_MS + 6 * HOUR_MS, true]);
  });

  it('counts the six hours again when the clock jumps again', async () => {
    synchronised = true;
    boot(START);
    clock.jumpWall(40 * DAY_MS);
    time.now();
    await clock.advance(5 * HOUR_MS);
    clock.jumpWall(40 * DAY_MS);
    time.now();
    await clock.advance(5 * HOUR_MS);
    expect(time.now()).toBe(START + 10 * HOUR_MS);
  });

  it('follows the small step of a time server at once', () => {
    synchronised = true;
    boot(START);
    clock.jumpWall(40 * MINUTE_MS);
    expect(time.now()).toBe(START + 40 * MINUTE_MS);
    clock.jumpWall(-40 * MINUTE_MS);
    expect(time.now()).toBe(START);
  });

  it('does not go back with a clock no one vouches for, and goes on meanwhile', async () => {
    await clock.advance(DAY_MS);
    expect(time.now()).toBe(START + DAY_MS);
    clock.jumpWall(-10 * DAY_MS);
    await clock.advance(MINUTE_MS);
    expect(time.now()).toBe(START + DAY_MS + MINUTE_MS);
  });

  it('starts where it was stored when the clock starts in the past, and follows one that was right', () => {
    store();
    boot(0);
    expect(time.now()).toBe(START);
    boot(START + 30 * DAY_MS);
    expect(time.now()).toBe(START + 30 * DAY_MS);
  });

  it('does not follow a clock into the far future', async () => {
    store();
    boot(Date.UTC(2099, 0, 1));
    await clock.advance(MINUTE_MS);
    expect(time.now()).toBe(START + MINUTE_MS);
    store(true);
    boot(START + DAY_MS);
    expect(time.now()).toBe(START + DAY_MS);
  });

  it('follows the time server once there is one', async () => {
    boot(0);
    expect(time.now()).toBe(0);
    synchronised = true;
    clock.jumpWall(START);
    await clock.advance(1_000);
    expect([time.now(), time.synchronised()]).toEqual([START + 1_000, true]);
  });

  it('is stored every ten minutes and at the end', async () => {
    expect([store(), store()]).toEqual([true, false]);
    await clock.advance(10 * MINUTE_MS - 1);
    expect(store()).toBe(false);
    await clock.advance(1);
    expect(store()).toBe(true);
    expect(disk?.at).toBe(START + 10 * MINUTE_MS);
    await clock.advance(MINUTE_MS);
    expect(store(true)).toBe(true);
    expect(disk?.at).toBe(START + 11 * MINUTE_MS);
  });
});

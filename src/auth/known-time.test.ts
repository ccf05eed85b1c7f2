import { beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../test/manual-clock.ts';
import { type KnownTime, openKnownTime } from './known-time.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 5, 1);
let clock: ManualClock;
let synchronised: boolean;
let disk: number | undefined;
let time: KnownTime;

/** As after a power cut: the monotonic clock starts anew, and the wall clock wherever it likes. */
function boot(wall: number): void {
  clock = manualClock(wall);
  time = openKnownTime({
    clock,
    synchronised: () => synchronised,
    table: {
      knownTime: () => disk,
      storeKnownTime: (at) => {
        disk = at;
      },
    },
  });
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
  it('is that of a synchronised clock, whatever it was before', () => {
    synchronised = true;
    boot(START);
    clock.jumpWall(-400 * DAY_MS);
    expect(time.now()).toBe(START - 400 * DAY_MS);
    clock.jumpWall(4_000 * DAY_MS);
    expect(time.now()).toBe(START + 3_600 * DAY_MS);
  });

  it('does not go back with a clock nobody vouches for, and goes on meanwhile', async () => {
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
    expect(disk).toBe(START + 10 * MINUTE_MS);
    await clock.advance(MINUTE_MS);
    expect(store(true)).toBe(true);
    expect(disk).toBe(START + 11 * MINUTE_MS);
  });
});

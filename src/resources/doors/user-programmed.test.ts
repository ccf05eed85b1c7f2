/** Users of ours that somebody changes at the lock, and locks that report our own writes in the same way. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { userApply } from '../../../drivers/contract/lock-users.ts';
import { type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

const pinOf = (userId: number) => `8642097${userId}`;
const OTHER_PIN = '97531086';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
});

interface Kind {
  /** It shows no digits: what it has is written again each time. */
  isMasking?: boolean;
  /** What it names for what the radio does. */
  source?: string;
  isNumbered?: boolean;
  /** It reports a write after the command for it has ended. */
  isLate?: boolean;
}
const NAMES_KEYPAD = { source: 'keypad' };

/** A lock with these PINs, whose events name a source and a user as it is given. */
function openLock({ isMasking = false, source = 'rf', isNumbered = true, isLate = false }: Kind = {}) {
  const pins = new Map<number, string>();
  const writes: number[] = [];
  const said: (() => Promise<unknown>)[] = [];
  const say = (what: string, userId: number, source: string) =>
    site.emit('lockEvent', {
      hwId: MAC,
      kind: 'programming',
      what,
      source,
      userId: isNumbered ? userId : null,
      at: site.clock.now(),
    });
  const put = (userId: number, pin: string | null) => {
    const what = pin === null ? 'pinDeleted' : pins.has(userId) ? 'pinChanged' : 'pinAdded';
    if (pin === null) pins.delete(userId);
    else pins.set(userId, pin);
    return what;
  };
  const lock = {
    pins,
    writes,
    /** During the command for a user. */
    during: async (_userId: number): Promise<void> => undefined,
    program: (userId: number, pin: string | null) => say(put(userId, pin), userId, 'keypad'),
    /** What the reconciler does, until nothing is to be written. */
    async settle(): Promise<void> {
      for (let rounds = 0; site.due('users of locks').length > 0; rounds += 1) {
        if (rounds > 20) throw new Error('it goes on for ever');
        await site.applyUsers();
        for (const one of said.splice(0)) await one();
      }
    },
  };
  site.played.command = async (_, data) => {
    const { userId, pin } = userApply.parse(data);
    if (isMasking || (pins.get(userId) ?? null) !== pin) {
      const what = put(userId, pin);
      writes.push(userId);
      if (isLate) said.push(() => say(what, userId, source));
      else await say(what, userId, source);
    }
    await lock.during(userId);
    return { isShown: !isMasking };
  };
  return lock;
}

async function wanted(...userIds: number[]): Promise<void> {
  for (const userId of userIds)
    await site.desk('PUT', `/doors/${id}/users/${userId}`, { pin: pinOf(userId) });
}
const states = async () =>
  ((await site.desk('GET', `/doors/${id}/users`)).body.items as Record<string, unknown>[]).map(
    ({ userId, state }) => [userId, state],
  );
const allOf = (...userIds: number[]) => new Map(userIds.map((userId) => [userId, pinOf(userId)]));

describe.each([{}, { isMasking: true }])('a user of a lock that somebody changes: %j', (kind) => {
  it('is written again, however soon after a write and however often', async () => {
    const lock = openLock(kind);
    await wanted(4, 5);
    await lock.settle();
    for (const pin of [null, OTHER_PIN, null, OTHER_PIN]) {
      await lock.program(5, pin);
      expect(await states()).toEqual([
        [4, 'applied'],
        [5, 'waiting'],
      ]);
      await lock.settle();
      expect(lock.pins).toEqual(allOf(4, 5));
    }
    await site.clock.advance(60_000);
    await lock.program(5, null);
    await lock.settle();
    expect(lock.pins).toEqual(allOf(4, 5));
  });

  it.each([4, 5])(
    'is written again where it is done while user 4 is written, whose write goes on: %d',
    async (changed) => {
      const lock = openLock(kind);
      await wanted(4, 5);
      await lock.settle();
      await site.desk('PUT', `/doors/${id}/users/4`, { pin: pinOf(9) });
      const before = site.due('users of locks');
      lock.during = async () => {
        lock.during = async () => undefined;
        await lock.program(changed, null);
        expect(site.due('users of locks')).toEqual(before);
      };
      await lock.settle();
      expect(lock.pins).toEqual(allOf(5).set(4, pinOf(9)));
    },
  );

  it('is written again while another one is refused, and where that made the lock refuse it', async () => {
    const lock = openLock(kind);
    await wanted(4, 5);
    await lock.settle();
    await wanted(6);
    lock.during = async (userId) => {
      if (userId === 6) {
        lock.pins.delete(6);
        await lock.program(5, null);
        throw new DriverError('REFUSED', 'memory full');
      }
      lock.during = async (next) => {
        if (next === 6) throw new DriverError('REFUSED', 'memory full');
      };
      await lock.program(5, null);
      throw new DriverError('REFUSED', 'pin: the lock said that it took it, and does not show it');
    };
    await expect(lock.settle()).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await states()).toEqual([
      [4, 'applied'],
      [5, 'applied'],
      [6, 'refused'],
    ]);
    expect(lock.pins.get(5)).toBe(pinOf(5));
  });

  it('is written again where the event names no number, and so is every one of ours', async () => {
    const lock = openLock({ ...kind, isNumbered: false });
    await wanted(4, 5);
    await lock.settle();
    await lock.program(5, null);
    expect(await states()).toEqual([
      [4, 'waiting'],
      [5, 'waiting'],
    ]);
    await lock.settle();
    expect(lock.pins).toEqual(allOf(4, 5));
  });

  it('after a restart before it was written', async () => {
    await wanted(4);
    await openLock(kind).settle();
    await openLock(kind).program(4, OTHER_PIN);
    site = await openDoorSite(site.database, { now: site.clock.now() + 60_000 });
    expect(site.due('users of locks')).toMatchObject([{ id }]);
  });
});

describe.each([{}, { isMasking: true }])('a lock that names the keypad for all: %j', (kind) => {
  const most = kind.isMasking ? 2 : 1;
  it.each([{}, { isLate: true }, { isNumbered: false }, { isNumbered: false, isLate: true }])(
    'is not written for ever: %j',
    async (more) => {
      const lock = openLock({ ...NAMES_KEYPAD, ...kind, ...more });
      const times = (userId: number) => lock.writes.filter((one) => one === userId).length;
      await wanted(4, 5, 6);
      await lock.settle();
      for (const userId of [4, 5, 6]) expect(times(userId)).toBeLessThanOrEqual(most);
      await site.desk('DELETE', `/doors/${id}/users/6`);
      await lock.settle();
      expect(await states()).toEqual([
        [4, 'applied'],
        [5, 'applied'],
      ]);
      expect(lock.writes.length).toBeLessThanOrEqual(4 * most + 2);
      await site.clock.advance(60_000);
      lock.writes.length = 0;
      await lock.program(5, null);
      await lock.settle();
      expect(lock.pins).toEqual(allOf(4, 5));
      expect(lock.writes.length).toBeLessThanOrEqual(4 * most);
    },
  );
});

/** The times of the user before are not those of the next one, against a simulated lock whose keypad keeps to its schedules. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  afterAllTests,
  joined,
  opened,
  simulated,
  type TestGateway,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { UsersShown } from '../contract/lock-users.ts';

const KIND = '00158d0001000033';
/** Does not report how many schedules it keeps (attributes 0x0014 to 0x0016). */
const MUTE = '00158d0001000035';
/** Clearing a schedule makes its PIN unrestricted. */
const UNLIMITING = '00158d0001000037';
const PIN = '86420975';
const OTHER_PIN = '97531086';

let site: SimulatedGateway;
let gateway: TestGateway;

beforeAll(async () => {
  const cleanup = afterAllTests();
  const plain = { vendorCluster: false, mains: true };
  const locks = [
    { ieee: KIND, ...plain },
    { ieee: MUTE, ...plain, lacksAttributes: [0x14, 0x15, 0x16] },
    { ieee: UNLIMITING, ...plain, clearingUnlimitsPins: true },
  ];
  site = await simulated({ pace: 1, locks }, cleanup);
  gateway = await opened(site, {}, { cleanup });
  for (const { ieee } of locks) await joined(gateway, site, ieee);
}, 60_000);

const NO_CODES = { userId: 5, isEnabled: true, pin: null, card: null, access: { kind: 'always' } };
const apply = (change: object = {}, hwId = KIND) =>
  gateway.execute('applyUser', { hwId, ...NO_CODES, ...change });
const fresh = (ieee = KIND) => site.set(ieee, { faults: null, clearLog: true });
const sent = async (ieee = KIND) =>
  (await site.state(ieee)).received
    .filter(({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation)
    .map(({ command }) => command);

// Set PIN Code 0x05, Clear PIN Code 0x07, Set User Status 0x09, Set User Type 0x14, Clear Week Day 0x0d, Clear Year Day 0x10
// (ZCL rev. 8, 7.3.2.17).
const CHANGES = [0x05, 0x07, 0x09, 0x0b, 0x0d, 0x0e, 0x10, 0x14];
const changes = async (ieee = KIND) => (await sent(ieee)).filter((command) => CHANGES.includes(command));
// One further than the 4 and 2 that it keeps, for a lock may number from 1.
const CLEARED = [...Array(5).fill(0x0d), ...Array(3).fill(0x10)];
const now = Math.floor((Date.now() - Date.UTC(2000, 0, 1)) / 1_000);
const yearDays = (start: number, end: number) => ({ kind: 'yearDays', schedules: [{ start, end }] });
const [TODAY, LATER] = [yearDays(now - 86_400, now + 86_400), yearDays(now + 10 * 86_400, now + 11 * 86_400)];
const DAILY = {
  kind: 'weekDays',
  schedules: [{ daysMask: 127, startHour: 0, startMinute: 0, endHour: 23, endMinute: 59 }],
};
const all = async (ieee = KIND) => {
  const { schedules } = await site.state(ieee);
  const { weekDays, yearDays } = schedules as Record<'weekDays' | 'yearDays', object[]>;
  return [...weekDays, ...yearDays];
};
/** The lock keeps no schedule as it was sent, so that none is left in it: as when the link ends after the code. */
const cutAfterCode = () => site.set(KIND, { clearLog: true, faults: { changesSchedules: true } });

it.each([
  ['another PIN', { pin: OTHER_PIN, access: LATER }],
  ['other days', { pin: OTHER_PIN, access: { kind: 'weekDays', schedules: [] } }],
  ['the same PIN, of another type', { pin: PIN, access: { kind: 'weekDays', schedules: [] } }],
])('are cleared between the codes of the one and of the next: %s', async (_, next) => {
  await fresh();
  await apply({ pin: PIN, access: TODAY });
  await cutAfterCode();
  await apply(next).catch(() => undefined);
  const frames = await changes();
  expect(frames.slice(0, frames.indexOf(0x05) + 1)).toEqual([0x07, ...CLEARED, 0x05]);
  expect(await all()).toEqual([]);
  await fresh();
  await apply();
});

it('are cleared before a user that was disabled is in use again', async () => {
  await fresh();
  await apply({ pin: PIN, access: TODAY, isEnabled: false });
  await fresh();
  await apply({ pin: PIN, access: LATER });
  expect((await changes()).slice(0, 10)).toEqual([0x07, ...CLEARED, 0x05]);
  await apply();
});

it.each([
  ['an enabled user', { pin: PIN }, 0],
  ['a disabled user', { pin: PIN, isEnabled: false }, 0],
  ['another PIN', { pin: OTHER_PIN }, 0],
  ['a disabled user with another PIN', { pin: OTHER_PIN, isEnabled: false }, 0],
  ['a disabled user with times of the other kind', { pin: PIN, isEnabled: false, access: DAILY }, 1],
  ['a user with times of the other kind', { pin: PIN, access: DAILY }, 1],
])('that are withdrawn leave the lock: %s', async (_, next, left) => {
  await fresh();
  await apply({ pin: PIN, access: TODAY });
  expect(await apply(next)).toEqual({ isShown: true });
  expect(await all()).toHaveLength(left);
  await apply();
});

it.each([
  [
    'status first of one that is disabled and has no times any more',
    TODAY,
    { isEnabled: false },
    [0x09, 0x14],
  ],
  ['type first of one that is in use again', TODAY, { isEnabled: true }, [0x14, 0x09]],
])('leave no PIN that opens between two frames: %s', async (_, access, { isEnabled }, order) => {
  await fresh();
  await apply({ pin: PIN, access, isEnabled: !isEnabled });
  await fresh();
  await apply({ pin: PIN, isEnabled });
  expect((await changes()).slice(0, 2)).toEqual(order);
  await apply();
});

const [OLD_CARD, NEW_CARD] = ['05a40702', '05a40703'];
const DISABLED = { isEnabled: false };
it.each([
  ['another card', DISABLED, { pin: PIN }, [0x18, 0x09, 0x16]],
  ['another PIN and card', DISABLED, { pin: OTHER_PIN }, [0x18, 0x05, 0x16]],
  ['another card, without times', { access: TODAY }, { pin: PIN }, [0x18, 0x14, 0x16]],
])('leave no former card that opens before it is another one: %s', async (_, before, codes, order) => {
  await fresh();
  await apply({ pin: PIN, card: OLD_CARD, ...before });
  await fresh();
  await apply({ ...codes, card: NEW_CARD });
  const frames = (await sent()).filter((command) => [...CHANGES, 0x16, 0x18].includes(command));
  expect(frames.slice(0, order.length)).toEqual(order);
  await apply();
});

it.each([KIND, MUTE])(
  'are found at a user that is not limited, and leave the lock with it: %s',
  async (hwId) => {
    const wanted = { ...NO_CODES, pin: PIN };
    const read = { hwId, from: 5, count: 1, wanted: [wanted] };
    await fresh(hwId);
    await apply(wanted, hwId);
    await site.set(hwId, { schedule: { kind: 'yearDays', user: 5, id: 1, fields: [now, now + 60] } });
    expect(await gateway.execute('readUsers', read)).toMatchObject({ users: [{ differs: ['yearDays'] }] });
    expect(await apply(wanted, hwId)).toEqual({ isShown: true });
    expect(await gateway.execute('readUsers', read)).toMatchObject({ users: [{ differs: [] }] });
    expect(await all(hwId)).toEqual([]);
    await apply({}, hwId);
  },
);

describe('of a lock that makes a PIN unrestricted when one of its schedules is cleared', () => {
  const pins = async () => (await site.state(UNLIMITING)).pins;
  const two = { kind: 'yearDays', schedules: [...TODAY.schedules, ...LATER.schedules] };

  it.each([
    ['other times alone', { pin: PIN, access: LATER }, 0x0e, 1],
    ['times of the other kind', { pin: PIN, access: DAILY }, 0x0b, 2],
    ['another PIN', { pin: OTHER_PIN, access: LATER }, 0x0e, 1],
    ['a disabled user', { pin: PIN, access: LATER, isEnabled: false }, 0x0e, 1],
  ])('change while it has none: %s', async (_, next, set, type) => {
    await fresh(UNLIMITING);
    expect(await apply({ pin: PIN, access: two }, UNLIMITING)).toEqual({ isShown: true });
    await fresh(UNLIMITING);
    expect(await apply(next, UNLIMITING)).toEqual({ isShown: true });
    expect(await changes(UNLIMITING)).toEqual([0x07, ...CLEARED, 0x05, set]);
    expect(await pins()).toMatchObject([{ code: next.pin, type }]);
    await apply({}, UNLIMITING);
  });

  it('leave no PIN there when one is shown otherwise', async () => {
    await site.set(UNLIMITING, { faults: { changesSchedules: true } });
    await expect(apply({ pin: PIN, access: TODAY }, UNLIMITING)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await pins()).toEqual([]);
  });

  it('are withdrawn after the limited PIN of before is another one', async () => {
    await fresh(UNLIMITING);
    await apply({ pin: PIN, access: two }, UNLIMITING);
    await fresh(UNLIMITING);
    expect(await apply({ pin: OTHER_PIN }, UNLIMITING)).toEqual({ isShown: true });
    expect(await changes(UNLIMITING)).toEqual([0x05, ...CLEARED]);
    await apply({}, UNLIMITING);
  });
});

it('leave with the user', async () => {
  await fresh();
  await apply({ pin: PIN, access: DAILY });
  await fresh();
  await apply();
  expect((await sent()).filter((command) => [0x07, ...CLEARED].includes(command))).toEqual([
    0x07,
    ...CLEARED,
  ]);
  expect(await all()).toEqual([]);
});

it('open while they last, and no user that is limited opens without', async () => {
  await fresh();
  await apply({ pin: PIN, access: { kind: 'weekDays', schedules: [] } });
  await site.set(KIND, { pin: PIN });
  await apply({ pin: PIN, access: LATER });
  await site.set(KIND, { pin: PIN });
  await apply({ pin: OTHER_PIN, access: DAILY });
  await site.set(KIND, { pin: OTHER_PIN });
  const unlocked = async () => (await site.state(KIND)).executed.filter(({ what }) => what === 'unlock');
  await expect.poll(unlocked).toMatchObject([{ source: 'keypad', user: 5 }]);
});

describe('of a lock that does not report how many it keeps', () => {
  const FIELDS = { weekDays: [127, 0, 0, 23, 59], yearDays: [now - 86_400, now + 86_400] };
  const NEXT = { weekDays: LATER, yearDays: { ...DAILY, schedules: [] } };
  /** As where a clearing was cut off: the last one alone is left. */
  const leftOver = (kind: 'weekDays' | 'yearDays') =>
    site.set(MUTE, {
      clearLog: true,
      schedule: { kind, user: 5, id: kind === 'weekDays' ? 3 : 1, fields: FIELDS[kind] },
    });
  const unlocked = async () => (await site.state(MUTE)).executed.filter(({ what }) => what === 'unlock');

  it.each(['weekDays', 'yearDays'] as const)('go behind a hole, too: %s', async (kind) => {
    await leftOver(kind);
    await apply({ pin: PIN, access: NEXT[kind] }, MUTE);
    expect(await all(MUTE)).toHaveLength(NEXT[kind].schedules.length);
    await leftOver(kind);
    await apply({}, MUTE);
    expect(await all(MUTE)).toEqual([]);
  });

  it.each(['weekDays', 'yearDays'] as const)('open nothing for the next one: %s', async (kind) => {
    await leftOver(kind);
    await apply({ pin: OTHER_PIN, access: { kind, schedules: [] } }, MUTE);
    await apply({ userId: 6, pin: PIN }, MUTE);
    await site.set(MUTE, { pin: OTHER_PIN });
    await site.set(MUTE, { pin: PIN });
    await expect.poll(unlocked).toMatchObject([{ user: 6 }]);
    await site.set(MUTE, { manual: 'lock' });
    for (const userId of [5, 6]) await apply({ userId }, MUTE);
  });

  it('are found when the lock is read, and go with those that are written then', async () => {
    const wanted = { ...NO_CODES, pin: PIN, access: LATER };
    await apply(wanted, MUTE);
    await leftOver('yearDays');
    const read = () =>
      gateway.execute('readUsers', {
        hwId: MUTE,
        from: 5,
        count: 1,
        wanted: [wanted],
      }) as Promise<UsersShown>;
    expect((await read()).users).toMatchObject([{ userId: 5, differs: ['yearDays'] }]);
    expect(await apply(wanted, MUTE)).toEqual({ isShown: true });
    expect((await read()).users).toMatchObject([{ userId: 5, differs: [] }]);
    expect(await all(MUTE)).toHaveLength(1);
    await apply({}, MUTE);
  });

  it('are fewer than before, with the same PIN', async () => {
    const two = { kind: 'yearDays', schedules: [...TODAY.schedules, ...LATER.schedules] };
    await apply({ pin: PIN, access: two }, MUTE);
    await apply({ pin: PIN, access: LATER }, MUTE);
    expect(await all(MUTE)).toMatchObject([{ id: 0, user: 5 }]);
    await apply({}, MUTE);
  });

  it('are holidays, too', async () => {
    const stored = (id: number) => ({ id, fields: [now + id * 10, now + id * 10 + 5, 1] });
    const kept = async () => (await site.state(MUTE)).schedules;
    const give = (holidays: { start: number; end: number; mode: string }[]) =>
      gateway.execute('applyLockSettings', { hwId: MUTE, settings: { holidays } });
    for (const id of [1, 2, 7]) await site.set(MUTE, { schedule: { kind: 'holidays', ...stored(id) } });
    await give([{ start: now, end: now + 5, mode: 'vacation' }]);
    expect(await kept()).toMatchObject({ holidays: [stored(0)] });
    await give([]);
    expect(await kept()).toMatchObject({ holidays: [] });
  });
});

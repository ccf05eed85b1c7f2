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
  ];
  site = await simulated({ pace: 1, locks }, cleanup);
  gateway = await opened(site, {}, { cleanup });
  for (const { ieee } of locks) await joined(gateway, site, ieee);
}, 60_000);

const NOBODY = { userId: 5, isEnabled: true, pin: null, card: null, access: { kind: 'always' } };
const apply = (change: object = {}, hwId = KIND) =>
  gateway.execute('applyUser', { hwId, ...NOBODY, ...change });
const fresh = (ieee = KIND) => site.set(ieee, { faults: null, clearLog: true });
const sent = async () =>
  (await site.state(KIND)).received
    .filter(({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation)
    .map(({ command }) => command);

// Set PIN Code 0x05, Clear PIN Code 0x07, Set User Status 0x09, Set User Type 0x14, Clear Week Day 0x0d, Clear Year Day 0x10
// (ZCL rev. 8, 7.3.2.17).
const CLEARED = [...Array(4).fill(0x0d), ...Array(2).fill(0x10)];
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
  ['another PIN', { pin: OTHER_PIN, access: LATER }, 0x05],
  ['other days', { pin: OTHER_PIN, access: { kind: 'weekDays', schedules: [] } }, 0x05],
  ['the same PIN, of another type', { pin: PIN, access: { kind: 'weekDays', schedules: [] } }, 0x14],
])('are cleared before the code of the next one: %s', async (_, next, first) => {
  await fresh();
  await apply({ pin: PIN, access: TODAY });
  await cutAfterCode();
  await apply(next).catch(() => undefined);
  const frames = await sent();
  expect(frames.slice(0, frames.indexOf(first) + 1)).toEqual([0x06, ...CLEARED, first]);
  expect(await all()).toEqual([]);
  await fresh();
  await apply();
});

it('are cleared before a user that was disabled is in use again', async () => {
  await fresh();
  await apply({ pin: PIN, access: TODAY, isEnabled: false });
  await fresh();
  await apply({ pin: PIN, access: LATER });
  expect((await sent()).slice(0, 8)).toEqual([0x06, ...CLEARED, 0x09]);
  await apply();
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
    const wanted = { ...NOBODY, pin: PIN, access: LATER };
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

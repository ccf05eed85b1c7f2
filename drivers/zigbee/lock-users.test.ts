/** Users of locks against a simulated network, whose locks have a codec of their own (test/simulators/zigbee/clusters/door-lock). */
import { inspect } from 'node:util';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  afterAllTests,
  joined,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { UsersShown, WantedUser } from '../contract/lock-users.ts';
import type { Holiday, LockReport } from '../contract/settings.ts';

const KIND = '00158d0001000031';
const MASKING = '00158d0001000032';
const BARE = '00158d0001000034';
const SLEEPER = '00158d0001000035';
const PIN = '86420975';
const OTHER_PIN = '97531086';
const CARD = '04a2b3c4d5e6f7';

let site: SimulatedGateway;
let gateway: TestGateway;

beforeAll(async () => {
  const cleanup = afterAllTests();
  const plain = { vendorCluster: false, mains: true };
  const { mains: _, ...asleep } = plain;
  const locks = [
    { ieee: KIND, ...plain },
    { ieee: MASKING, ...plain, sendsPins: false, codesMax: 1, supportedOperatingModes: 0x01 },
    {
      ieee: BARE,
      ...plain,
      lacksCommands: [5, 6, 7, 0x11, 0x12, 0x13, 0x16, 0x17, 0x18],
      lacksAttributes: [0x16, 0x24],
    },
    { ieee: SLEEPER, ...asleep, sleepy: { pollMs: 400, awakeMs: 0 } },
  ];
  site = await simulated({ pace: 1, locks }, cleanup);
  gateway = await opened(site, {}, { cleanup });
  for (const { ieee } of locks) await joined(gateway, site, ieee);
}, 60_000);

const ALWAYS = { kind: 'always' };
const apply = (hwId: string, userId: number, change: object = {}) =>
  gateway.execute('applyUser', {
    hwId,
    userId,
    isEnabled: true,
    pin: null,
    card: null,
    access: ALWAYS,
    ...change,
  });
const refusal = (reason: string) => ({ code: 'REFUSED', message: expect.stringContaining(reason) });
const fresh = (ieee: string) => site.set(ieee, { faults: null, clearLog: true });
const sent = async (ieee: string) =>
  (await site.state(ieee)).received
    .filter(({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation)
    .map(({ command }) => command);
const codes = async (ieee: string) => {
  const { pins, rfids } = await site.state(ieee);
  return { pins, rfids };
};

it('says what the lock keeps of users', () => {
  const users = (ieee: string) => (gateway.reports.get(`device:${ieee}`) as LockReport).users;
  expect(users(KIND)).toEqual({
    pins: 250,
    cards: 250,
    pinMin: 4,
    pinMax: 8,
    cardMin: 4,
    cardMax: 10,
    weekDays: 4,
    yearDays: 2,
    holidays: 8,
  });
  expect(users(BARE)).toMatchObject({ pins: 0, cards: 0 });
});

it('stores a PIN and a card, changes what differs alone, and removes them', async () => {
  await fresh(KIND);
  expect(await apply(KIND, 7, { pin: PIN, card: CARD })).toEqual({ isShown: true });
  expect(await codes(KIND)).toEqual({
    pins: [{ user: 7, status: 1, type: 0, code: PIN }],
    rfids: [{ user: 7, status: 1, type: 0, code: CARD }],
  });
  // Get schedules; get, set and get again, of each code (ZCL rev. 8, table 7-17).
  const schedules = [0x0c, 0x0c, 0x0c, 0x0c, 0x0f, 0x0f];
  expect(await sent(KIND)).toEqual([...schedules, 0x06, 0x17, 0x05, 0x06, 0x17, 0x16, 0x17]);
  await fresh(KIND);
  expect(await apply(KIND, 7, { pin: PIN, card: CARD })).toEqual({ isShown: true });
  expect(await sent(KIND)).toEqual([...schedules, 0x06, 0x17]);
  await fresh(KIND);
  expect(await apply(KIND, 7, { pin: PIN, card: CARD, isEnabled: false })).toEqual({ isShown: true });
  // Set User Status is of the user, and so of the card as well.
  expect(await sent(KIND)).toEqual([...schedules, 0x06, 0x09, 0x06, 0x17]);
  expect((await codes(KIND)).pins).toMatchObject([{ status: 3 }]);
  expect(await apply(KIND, 7, { pin: OTHER_PIN })).toEqual({ isShown: true });
  expect(await codes(KIND)).toEqual({ pins: [{ user: 7, status: 1, type: 0, code: OTHER_PIN }], rfids: [] });
  expect(await apply(KIND, 7)).toEqual({ isShown: true });
  expect(await codes(KIND)).toEqual({ pins: [], rfids: [] });
});

it('gives a user its schedules, and takes those of before', async () => {
  await fresh(KIND);
  const day = { daysMask: 0b0111110, startHour: 8, startMinute: 0, endHour: 17, endMinute: 30 };
  const weekDays = (...schedules: object[]) => ({ pin: PIN, access: { kind: 'weekDays', schedules } });
  await apply(KIND, 9, weekDays(day, { ...day, daysMask: 1 }));
  expect((await site.state(KIND)).schedules).toMatchObject({
    weekDays: [
      { id: 0, user: 9, fields: [62, 8, 0, 17, 30] },
      { id: 1, user: 9, fields: [1, 8, 0, 17, 30] },
    ],
  });
  await apply(KIND, 9, weekDays(day));
  expect((await site.state(KIND)).schedules).toMatchObject({ weekDays: [{ id: 0 }] });
  expect((await codes(KIND)).pins).toMatchObject([{ type: 2 }]);
  const span = { start: 700_000_000, end: 700_086_400 };
  await apply(KIND, 9, { pin: PIN, access: { kind: 'yearDays', schedules: [span] } });
  expect((await site.state(KIND)).schedules).toMatchObject({
    yearDays: [{ id: 0, user: 9, fields: [span.start, span.end] }],
  });
  expect((await codes(KIND)).pins).toMatchObject([{ type: 1 }]);
  await expect(apply(KIND, 9, weekDays(day, day, day, day, day))).rejects.toMatchObject(
    refusal('weekDays: the lock keeps 4 schedules for a user, and 5 are wanted'),
  );
  await apply(KIND, 9);
});

it('reads each schedule back, and keeps none that the lock shows otherwise', async () => {
  await fresh(KIND);
  const day = { daysMask: 0b0111110, startHour: 8, startMinute: 0, endHour: 17, endMinute: 30 };
  const weekDays = { pin: PIN, access: { kind: 'weekDays', schedules: [day] } };
  expect(await apply(KIND, 6, weekDays)).toEqual({ isShown: true });
  // Get Week Day Schedule (ZCL rev. 8, 7.3.2.17.14).
  expect((await sent(KIND)).at(-1)).toBe(0x0c);
  await apply(KIND, 6);
  await site.set(KIND, { faults: { changesSchedules: true } });
  await expect(apply(KIND, 6, weekDays)).rejects.toMatchObject(
    refusal('weekDays: the lock said that it took the schedule, and shows another'),
  );
  const span = { start: 700_000_000, end: 700_086_400 };
  const yearDays = { pin: PIN, access: { kind: 'yearDays', schedules: [span] } };
  await expect(apply(KIND, 6, yearDays)).rejects.toMatchObject(refusal('yearDays: the lock said'));
  const schedules = (await site.state(KIND)).schedules as Record<'weekDays' | 'yearDays', { user: number }[]>;
  expect([...schedules.weekDays, ...schedules.yearDays].filter(({ user }) => user === 6)).toEqual([]);
  await fresh(KIND);
  expect([await apply(KIND, 6, yearDays), await apply(KIND, 6)]).toEqual(Array(2).fill({ isShown: true }));
});

it('leaves the code of before where the lock refuses another one', async () => {
  await fresh(KIND);
  await apply(KIND, 1, { pin: PIN });
  await apply(KIND, 2, { pin: OTHER_PIN });
  await expect(apply(KIND, 2, { pin: PIN })).rejects.toMatchObject(refusal('duplicate code'));
  expect((await codes(KIND)).pins).toMatchObject([{ code: PIN }, { user: 2, code: OTHER_PIN }]);
  for (const userId of [1, 2]) await apply(KIND, userId);
});

it('removes a code that the lock would take always, whatever its schedule', async () => {
  await fresh(KIND);
  await site.set(KIND, { faults: { ignoresUserTypes: true } });
  await expect(
    apply(KIND, 5, { pin: PIN, access: { kind: 'weekDays', schedules: [] } }),
  ).rejects.toMatchObject(refusal('does not show type'));
  expect((await codes(KIND)).pins).toEqual([]);
});

it('believes a lock that shows no digits, and does not say that it was shown', async () => {
  await fresh(MASKING);
  expect(await apply(MASKING, 0, { pin: PIN })).toEqual({ isShown: false });
  expect((await codes(MASKING)).pins).toMatchObject([{ user: 0, code: PIN }]);
  // By its digits it may be another one: it is set again.
  await fresh(MASKING);
  await apply(MASKING, 0, { pin: OTHER_PIN });
  expect((await codes(MASKING)).pins).toMatchObject([{ user: 0, code: OTHER_PIN }]);
});

it.each([
  ['memory full', MASKING, 2, { pin: OTHER_PIN }, 'pin: the lock has no room for another PIN (memory full)'],
  ['duplicate code', KIND, 2, { pin: PIN }, 'pin: another user of the lock has this PIN (duplicate code)'],
  ['general failure', KIND, 2, { card: '0102' }, 'card: the lock refused the card (general failure)'],
  [
    'no such command',
    BARE,
    2,
    { pin: PIN },
    'pin: the lock does not have this command (UNSUP_COMMAND (0x81))',
  ],
])('says what the lock refuses: %s', async (_, ieee, userId, change, reason) => {
  await fresh(ieee);
  if (ieee === KIND) await apply(ieee, 1, { pin: PIN });
  await expect(apply(ieee, userId, change)).rejects.toMatchObject(refusal(reason));
  await apply(ieee, 1);
});

it('finds a lock that says yes and keeps nothing', async () => {
  await fresh(KIND);
  await site.set(KIND, { faults: { forgetsCodes: true } });
  await expect(apply(KIND, 3, { pin: PIN })).rejects.toMatchObject(
    refusal('pin: the lock said that it took it, and does not show it'),
  );
});

it('yields to an unlock of the same lock, which sleeps', async () => {
  await fresh(SLEEPER);
  const writing = apply(SLEEPER, 4, { pin: PIN, card: CARD }).then(
    () => 'whole',
    (error: { code: string }) => error.code,
  );
  await vi.waitFor(async () => expect(await sent(SLEEPER)).not.toEqual([]));
  expect(await gateway.execute('unlock', unlockOf(SLEEPER))).toMatchObject({ outcome: 'confirmed' });
  expect(await writing).toBe('NO_REPLY');
});

it('reports what a hand changes at the keypad, without its digits', async () => {
  // Other locks of this file may still report what the radio set on them.
  const programmed = () =>
    gateway.events
      .map(({ data }) => data as { kind?: string; hwId?: string })
      .filter(({ kind, hwId }) => kind === 'programming' && hwId === MASKING);
  const before = programmed().length;
  await site.set(MASKING, { program: { user: 8, pin: PIN } });
  await vi.waitFor(() =>
    expect(programmed().slice(before)).toMatchObject([{ what: 'pinAdded', source: 'keypad', userId: 8 }]),
  );
});

it('says which places are taken, and by what', async () => {
  await fresh(KIND);
  await apply(KIND, 1, { pin: PIN, isEnabled: false });
  await apply(KIND, 3, { pin: OTHER_PIN, card: CARD });
  expect(await gateway.execute('readUsers', { hwId: KIND, from: 0, count: 8, wanted: [] })).toEqual({
    users: [
      { userId: 1, hasPin: true, hasCard: false, differs: [] },
      { userId: 3, hasPin: true, hasCard: true, differs: [] },
    ],
  });
  expect(await gateway.execute('readUsers', { hwId: BARE, from: 0, count: 8, wanted: [] })).toEqual({
    users: [],
  });
  for (const userId of [1, 3]) await apply(KIND, userId);
});

it('says what of a user is not as it is wanted', async () => {
  await fresh(KIND);
  const day = { daysMask: 2, startHour: 8, startMinute: 0, endHour: 17, endMinute: 0 };
  const weekDays = { kind: 'weekDays', schedules: [day] };
  await apply(KIND, 1, { pin: PIN, access: weekDays });
  await apply(KIND, 2, { pin: OTHER_PIN, card: CARD });
  const user = { userId: 1, isEnabled: true, pin: PIN, card: null, access: weekDays };
  const other = { ...user, userId: 2, pin: OTHER_PIN, card: CARD, access: ALWAYS };
  const differs = async (...wanted: object[]) => {
    const given = { hwId: KIND, from: 1, count: 2, wanted: wanted as WantedUser[] };
    const answer = await gateway.execute('readUsers', given);
    return (answer as UsersShown).users.map((one) => one.differs);
  };
  expect(await differs(user, other)).toEqual([[], []]);
  expect(
    await differs({ ...user, isEnabled: false, card: CARD }, { ...other, pin: PIN, card: null }),
  ).toEqual([
    ['status', 'card'],
    ['pin', 'card'],
  ]);
  const later = { kind: 'weekDays', schedules: [{ ...day, endHour: 18 }] };
  const more = { kind: 'weekDays', schedules: [day, day] };
  const none = { kind: 'weekDays', schedules: [] };
  for (const access of [later, more, none])
    expect(await differs({ ...user, access })).toEqual([['weekDays'], []]);
  const yearDays = { kind: 'yearDays', schedules: [{ start: 700_000_000, end: 700_086_400 }] };
  expect(await differs({ ...user, access: yearDays }, { ...other, access: none })).toEqual([
    ['type', 'weekDays', 'yearDays'],
    ['type'],
  ]);
  for (const userId of [1, 2]) await apply(KIND, userId);
});

it('takes settings, and names what it does not have', async () => {
  const settings = { soundVolume: 0, oneTouchLocking: true, wrongCodeLimit: 3, autoRelockSeconds: 40 };
  const set = (hwId: string, more: object) =>
    gateway.execute('applyLockSettings', { hwId, settings: { ...more } });
  expect(await set(KIND, settings)).toBeNull();
  await vi.waitFor(() =>
    expect((gateway.reports.get(`device:${KIND}`) as LockReport).settings).toEqual({
      ...settings,
      wrongCodeLockoutSeconds: 30,
    }),
  );
  await expect(set(BARE, { soundVolume: 2, wrongCodeLimit: 4 })).rejects.toMatchObject(
    refusal('soundVolume: the lock refused it (UNSUPPORTED_ATTRIBUTE (0x86))'),
  );
  await vi.waitFor(() =>
    expect((gateway.reports.get(`device:${BARE}`) as LockReport).settings).toMatchObject({
      wrongCodeLimit: 4,
    }),
  );
});

describe('holidays of a lock', () => {
  const HOUR_S = 3_600;
  const VACATION = 1;
  /** As the clock of the lock has it. */
  const holiday = (fromHours: number, toHours: number, mode: Holiday['mode'] = 'vacation'): Holiday => {
    const now = Math.floor((Date.now() - Date.UTC(2000, 0, 1)) / 1_000);
    return { start: now + fromHours * HOUR_S, end: now + toHours * HOUR_S, mode };
  };
  const give = (hwId: string, holidays: Holiday[], more: object = {}) =>
    gateway.execute('applyLockSettings', { hwId, settings: { ...more, holidays } });
  const report = (ieee: string) => gateway.reports.get(`device:${ieee}`) as LockReport;
  const kept = async (ieee: string) =>
    ((await site.state(ieee)).schedules as { holidays: { id: number; fields: number[] }[] }).holidays;
  const unlocks = async (ieee: string) =>
    (await site.state(ieee)).executed.filter(({ what }) => what === 'unlock').map(({ source }) => source);

  it('are written, changed one by one, and removed, with those that somebody set at the lock', async () => {
    const [first, second, third] = [holiday(1, 2), holiday(3, 4, 'normal'), holiday(5, 6)];
    await give(KIND, [first, second]);
    expect(await kept(KIND)).toEqual([
      { id: 0, fields: [first.start, first.end, VACATION] },
      { id: 1, fields: [second.start, second.end, 0] },
    ]);
    expect(report(KIND).settings?.holidays).toEqual([first, second]);
    await fresh(KIND);
    await give(KIND, [first, third]);
    // Clear what is beyond (0x13; 8 is asked for, it may number from 1), get (0x12), set what differs (0x11), get (ZCL rev. 8, 7.3.2.17.19 to 21).
    expect(await sent(KIND)).toEqual([...Array(7).fill(0x13), 0x12, 0x12, 0x12, 0x11, 0x12]);
    expect(report(KIND).settings?.holidays).toEqual([first, third]);
    expect(await gateway.execute('readHolidays', { hwId: KIND })).toEqual({ holidays: [first, third] });
    await give(KIND, []);
    expect([await kept(KIND), report(KIND).settings?.holidays]).toEqual([[], []]);
  });

  it('keep PINs out in vacation mode, while Gatehouse opens and closes the lock', async () => {
    await fresh(KIND);
    await apply(KIND, 3, { pin: PIN });
    await give(KIND, [holiday(-1, 1)]);
    await site.set(KIND, { clearLog: true, pin: PIN });
    expect(await unlocks(KIND)).toEqual([]);
    expect(await gateway.execute('unlock', unlockOf(KIND))).toMatchObject({ outcome: 'confirmed' });
    await give(KIND, []);
    await site.set(KIND, { clearLog: true, pin: PIN });
    await expect.poll(() => unlocks(KIND)).toEqual(['keypad']);
    await site.set(KIND, { manual: 'lock' });
    await apply(KIND, 3);
  });

  it('leave no lock in its passage mode: a door with holidays stands open by its bolt', async () => {
    expect(report(KIND).standOpen).toBe('passage');
    await give(KIND, [holiday(-1, 1)]);
    expect(report(KIND).standOpen).toBe('unlocked');
    const door = { hwId: KIND, pin: null };
    expect(await gateway.execute('standOpen', door)).toMatchObject({ outcome: 'confirmed' });
    expect(await gateway.execute('endStandOpen', door, 40_000)).toMatchObject({ outcome: 'confirmed' });
    await give(KIND, []);
    expect(await site.state(KIND)).toMatchObject({ lockState: 1, operatingMode: 0 });
    expect(report(KIND).standOpen).toBe('passage');
  });

  it.each([
    ['room', KIND, Array.from({ length: 9 }, (_, day) => holiday(day, day + 1)), 'the lock keeps 8 of them'],
    ['such command', BARE, [holiday(1, 2)], 'the lock refused one (UNSUP_COMMAND (0x81))'],
    ['such mode', MASKING, [holiday(1, 2)], 'the lock has no mode vacation'],
  ])('are refused where the lock has no %s, and hold up no setting', async (_, ieee, holidays, reason) => {
    const refused = give(ieee, holidays, { wrongCodeLimit: 7 });
    await expect(refused).rejects.toMatchObject(refusal(`holidays: ${reason}`));
    await vi.waitFor(() => expect(report(ieee).settings).toMatchObject({ wrongCodeLimit: 7 }));
    expect(await kept(ieee)).toEqual([]);
  });

  it('are not kept where the lock shows another one', async () => {
    await site.set(KIND, { faults: { changesSchedules: true } });
    await expect(give(KIND, [holiday(1, 2)])).rejects.toMatchObject(refusal('shows another'));
    expect(await kept(KIND)).toEqual([]);
    // What was sent is not what it reports; until it is read, it may have one.
    const { settings, standOpen } = report(KIND);
    expect([settings?.holidays, standOpen]).toEqual([undefined, 'unlocked']);
    await fresh(KIND);
    await gateway.execute('readHolidays', { hwId: KIND });
    expect(report(KIND)).toMatchObject({ standOpen: 'passage', settings: { holidays: [] } });
  });

  it.each(['privacy', 'noRf', 'passage'] as const)('are not sent with the mode %s', async (mode) => {
    await expect(give(KIND, [holiday(1, 2, mode)])).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });
});

it('never says the digits', () => {
  const said = inspect([gateway.logged, gateway.events, [...gateway.reports]], { depth: null });
  const forms = [PIN, OTHER_PIN, CARD].flatMap((code) => [
    code,
    Buffer.from(code).toString('hex'),
    [...Buffer.from(code)].join(','),
  ]);
  for (const form of forms) expect(said).not.toContain(form);
});

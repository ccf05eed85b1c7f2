/** Users of the lock of a door: what is wanted, what is sent to the lock, and what is shown of it. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type UserApply, userApply } from '../../../drivers/contract/lock-users.ts';
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { errorOf, MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';
import { openLockMemoryDoubt } from './lock-memory-table.ts';

const PIN = '86420975';
const OTHER_MAC = '00124b0001a2b3c5';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  answers(() => ({ isShown: true }));
});

const path = (userId?: number) => `/doors/${id}/users${userId === undefined ? '' : `/${userId}`}`;
const put = (userId: number, body: object) => site.desk('PUT', path(userId), body);
const list = async () => (await site.desk('GET', path())).body.items as Record<string, unknown>[];
const states = async () => (await list()).map(({ userId, state }) => [userId, state]);
/** What the gateway is sent, checked as a driver does. */
const sent = (): UserApply[] =>
  site.played.commands.filter(({ kind }) => kind === 'applyUser').map(({ data }) => userApply.parse(data));
function answers(answer: (user: UserApply) => { isShown: boolean }): void {
  site.played.commands.length = 0;
  site.played.command = async (_, data) => answer(userApply.parse(data));
}
const refuses = (reason: string) => () => {
  throw new DriverError('REFUSED', reason);
};
const audited = (action: string) => site.played.audits.filter((entry) => entry.action === action);
const applied = () => site.applyUsers().catch(() => undefined);
const programmed = (what: string, userId: number, source = 'keypad', mac = MAC) =>
  site.emit('lockEvent', { hwId: mac, kind: 'programming', what, source, userId, at: site.clock.now() });

describe('a user', () => {
  it('is sent to the lock until that has it, and its codes are never shown', async () => {
    const { status, body } = await put(7, { pin: PIN, card: '04A2B3C4' });
    expect([status, body]).toEqual([
      200,
      {
        userId: 7,
        status: 'enabled',
        hasPin: true,
        hasCard: true,
        weekDays: null,
        yearDays: null,
        state: 'waiting',
        isShown: false,
        failure: null,
        at: null,
      },
    ]);
    site.played.command = () => Promise.reject(new DriverError('NO_REPLY', 'the lock did not answer'));
    await applied();
    expect(await states()).toEqual([[7, 'waiting']]);
    answers(() => ({ isShown: true }));
    await site.applyUsers();
    const user = { hwId: MAC, userId: 7, isEnabled: true, pin: PIN, card: '04a2b3c4' };
    expect(sent()).toEqual([{ ...user, access: { kind: 'always' } }]);
    expect(await list()).toMatchObject([{ state: 'applied', isShown: true }]);
    expect(site.due('users of locks')).toEqual([]);
    const stored = JSON.stringify(site.database.prepare('SELECT * FROM door_user').all());
    const said = JSON.stringify([site.played.audits, site.played.published, site.played.lines, await list()]);
    expect(stored + said).not.toContain(PIN);
    expect(audited('door.set-user')).toMatchObject([
      { detail: { userId: 7, fields: ['card', 'pin'], mac: MAC } },
    ]);
    expect(audited('door.apply-user')).toMatchObject([{ outcome: 'done', detail: { userId: 7, pin: true } }]);
  });

  it('is changed field by field, and what is the same writes nothing', async () => {
    await put(7, { pin: PIN });
    await site.applyUsers();
    const version = () => site.database.prepare('SELECT version FROM door_user').all();
    const before = version();
    expect(await put(7, { pin: PIN, status: 'enabled' })).toMatchObject({ body: { state: 'applied' } });
    expect(version()).toEqual(before);
    expect(await put(7, { status: 'disabled' })).toMatchObject({ body: { state: 'waiting', hasPin: true } });
    answers(() => ({ isShown: false }));
    await site.applyUsers();
    expect(sent()).toMatchObject([{ isEnabled: false, pin: PIN }]);
    expect(await list()).toMatchObject([{ status: 'disabled', state: 'applied', isShown: false }]);
  });

  it('is removed, and shown until the lock has confirmed that', async () => {
    await put(7, { pin: PIN });
    await site.applyUsers();
    expect(await site.desk('DELETE', path(7))).toMatchObject({ status: 200, body: { state: 'removing' } });
    expect(await list()).toMatchObject([{ userId: 7, state: 'removing', hasPin: false, status: null }]);
    answers(() => ({ isShown: true }));
    await site.applyUsers();
    expect(sent()).toMatchObject([{ userId: 7, pin: null, card: null }]);
    expect(await list()).toEqual([]);
    expect(errorOf(await site.desk('DELETE', path(7)))).toEqual([404, 'NOT_FOUND']);
  });

  it('that may have reached the lock is removed from it although it never answered', async () => {
    await put(7, { pin: PIN });
    site.played.command = () => Promise.reject(new DriverError('NO_REPLY', 'the lock did not answer'));
    await applied();
    await site.desk('DELETE', path(7));
    expect(await states()).toEqual([[7, 'removing']]);
  });

  it('that the lock refuses is shown with why, holds up no other, and is tried again after a change', async () => {
    for (const userId of [1, 2]) await put(userId, { pin: `${PIN}${userId}` });
    const full = 'pin: the lock has no room for another PIN (memory full): remove a user';
    answers(({ userId }) => (userId === 1 ? refuses(full)() : { isShown: true }));
    await expect(site.applyUsers()).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await list()).toMatchObject([
      { userId: 1, state: 'refused', failure: full },
      { userId: 2, state: 'applied', failure: null },
    ]);
    const [{ version } = { version: 0 }] = site.due('users of locks');
    await site.desk('DELETE', path(2));
    expect(site.due('users of locks')).toMatchObject([{ version: version + 1 }]);
    answers(() => ({ isShown: true }));
    await site.applyUsers();
    // Room is made first.
    expect(sent()).toMatchObject([{ userId: 2, pin: null }, { userId: 1 }]);
    expect(await states()).toEqual([[1, 'applied']]);
    expect(audited('door.apply-user').map(({ outcome }) => outcome)).toEqual([
      'refused',
      'done',
      'done',
      'done',
    ]);
  });

  it.each([
    [{}, 'VALIDATION_FAILED'],
    [{ pin: '12a4' }, 'VALIDATION_FAILED'],
    [{ card: '0a0' }, 'VALIDATION_FAILED'],
    [{ pin: PIN, yearDays: [{ start: '2027-02-30T10:00', end: '2027-03-01T10:00' }] }, 'VALIDATION_FAILED'],
    [{ pin: PIN, yearDays: [{ start: '2027-03-01T10:00', end: '2027-03-01T10:00' }] }, 'VALIDATION_FAILED'],
    [
      {
        pin: PIN,
        weekDays: [{ days: ['mon'], start: 0, end: 60 }],
        yearDays: [{ start: '2027-02-28T10:00', end: '2027-03-01T10:00' }],
      },
      'VALIDATION_FAILED',
    ],
    [{ pin: PIN, name: 'x' }, 'UNKNOWN_FIELD'],
  ])('is refused: %j', async (body, error) => {
    expect(errorOf(await put(7, body))).toEqual([400, error]);
    expect(await list()).toEqual([]);
  });

  it('is listed page by page, with holes', async () => {
    for (const userId of [0, 3, 65_534]) await put(userId, { pin: `${PIN}${userId}` });
    const first = (await site.desk('GET', `${path()}?limit=2`)).body;
    expect([(first.items as { userId: number }[]).map(({ userId }) => userId), first.next]).toEqual([
      [0, 3],
      '4',
    ]);
    const rest = (await site.desk('GET', `${path()}?limit=2&cursor=4`)).body;
    expect([(rest.items as { userId: number }[]).map(({ userId }) => userId), rest.next]).toEqual([
      [65_534],
      null,
    ]);
    expect(errorOf(await put(65_535, { pin: PIN }))).toEqual([400, 'VALIDATION_FAILED']);
  });
});

describe('what the lock says that it keeps', () => {
  beforeEach(() =>
    site.report(MAC, {
      users: { pins: 20, cards: 0, pinMin: 4, pinMax: 8, weekDays: 2, yearDays: 0 },
    }),
  );
  const MORNING = { days: ['mon'], start: 480, end: 720 };

  it.each([
    [3, { pin: '123' }, 400, '/pin'],
    [3, { pin: '123456789' }, 400, '/pin'],
    [21, { pin: PIN }, 400, '/userId'],
    [3, { card: '04a2b3c4' }, 422, '/card'],
    [3, { pin: PIN, weekDays: [MORNING, MORNING, MORNING] }, 422, '/weekDays'],
    [3, { pin: PIN, weekDays: [{ ...MORNING, end: 60 }, MORNING] }, 422, '/weekDays'],
    [3, { pin: PIN, yearDays: [{ start: '2027-02-28T10:00', end: '2027-03-01T10:00' }] }, 422, '/yearDays'],
  ])('bounds what is taken: user %d %j', async (userId, body, status, field) => {
    expect(await put(userId, body)).toMatchObject({ status, body: { details: [{ path: field }] } });
  });

  it('does not bound a door without a lock', async () => {
    const { body } = await site.desk('POST', '/doors', {});
    expect((await site.desk('PUT', `/doors/${body.id}/users/900`, { card: '04a2b3c4' })).status).toBe(200);
  });
});

describe('another lock', () => {
  beforeEach(async () => {
    await put(7, { pin: PIN });
    await site.applyUsers();
    answers(() => ({ isShown: true }));
  });

  it('gets the users of the door when it takes the place of the one before', async () => {
    await site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER_MAC });
    expect(await states()).toEqual([[7, 'waiting']]);
    await site.applyUsers();
    expect(sent()).toMatchObject([{ hwId: OTHER_MAC, userId: 7, pin: PIN }]);
  });

  it('loses those of the door where it was, and gets those of the door where it is', async () => {
    const { body } = await site.desk('POST', '/doors', { mac: OTHER_MAC, gatewayId: 'g' });
    await site.desk('PUT', `/doors/${body.id}/users/4`, { pin: '9753' });
    await site.applyUsers();
    answers(() => ({ isShown: true }));
    await site.desk('POST', `/doors/${id}/swap-lock`, { doorId: body.id });
    await site.applyUsers();
    const orders = sent().map(({ hwId, userId, pin }) => [hwId, userId, pin]);
    expect(orders.sort()).toEqual(
      [
        [OTHER_MAC, 4, null],
        [OTHER_MAC, 7, PIN],
        [MAC, 7, null],
        [MAC, 4, '9753'],
      ].sort(),
    );
    expect(site.due('users of locks')).toEqual([]);
  });

  it('that joins again is sent all again, and so after a restart', async () => {
    const joined = {
      hwId: MAC,
      manufacturer: null,
      model: null,
      zigbeeFirmwareVersion: null,
      capabilities: [],
    };
    await site.emit('lockJoined', joined);
    expect(site.played.worksWoken).toContain(id);
    site = await openDoorSite(site.database, { now: site.clock.now() });
    answers(() => ({ isShown: true }));
    expect(await states()).toEqual([[7, 'waiting']]);
    const applying = site.applyUsers();
    await site.clock.advance(HELD_AT_MOST_MS);
    await applying;
    expect(sent()).toMatchObject([{ hwId: MAC, userId: 7, pin: PIN }]);
  });

  it('keeps its codes when it is retired, and loses them when it is at a door again', async () => {
    const { body } = await site.desk('DELETE', `/doors/${id}/zigbee-lock`);
    expect(body).toMatchObject({ mac: null, usersLeft: 1 });
    expect(await states()).toEqual([[7, 'waiting']]);
    expect(site.due('users of locks')).toEqual([]);
    await site.desk('POST', '/doors', { mac: MAC, gatewayId: 'g' });
    await site.applyUsers();
    expect(sent()).toMatchObject([{ hwId: MAC, userId: 7, pin: null }]);
  });

  it('may have other codes than a database that was restored says', async () => {
    await site.database.commit(openLockMemoryDoubt(site.database));
    expect(await states()).toEqual([[7, 'waiting']]);
  });

  it('is emptied before it is retired', async () => {
    await put(8, { card: '04a2b3c4' });
    expect(await site.desk('DELETE', path())).toMatchObject({ status: 200, body: { removing: 1 } });
    await site.applyUsers();
    expect(sent()).toMatchObject([{ userId: 7, pin: null, card: null }]);
    expect([await list(), audited('door.clear-users').length]).toEqual([[], 1]);
  });
});

describe('what somebody stores at the lock', () => {
  it('is shown, left there, and removed when that is asked for', async () => {
    await programmed('pinAdded', 12);
    expect(await list()).toMatchObject([{ userId: 12, state: 'foreign', status: null }]);
    expect(site.due('users of locks')).toEqual([]);
    await site.desk('DELETE', path(12));
    await site.applyUsers();
    expect(sent()).toMatchObject([{ userId: 12, pin: null }]);
    await programmed('pinAdded', 13);
    await programmed('pinDeleted', 13);
    expect(await list()).toEqual([]);
  });
});

describe('the times of a user', () => {
  const NIGHT = { days: ['sat', 'sun'], start: 1_320, end: 360 };
  const access = () => sent().at(-1)?.access;

  it('are those of the door where the user has none, also when they change', async () => {
    const schedule = (end: number) =>
      site.desk('PUT', '/schedules/day', { intervals: [{ days: ['mon'], start: 480, end }] });
    await schedule(720);
    await site.desk('PUT', `/doors/${id}`, { scheduleId: 'day' });
    await put(7, { pin: PIN });
    await put(8, { card: '04a2b3c4', weekDays: [{ days: ['tue'], start: 0, end: 60 }] });
    await site.applyUsers();
    expect(sent().map(({ access }) => access)).toMatchObject([
      { schedules: [{ daysMask: 2, startHour: 8, endHour: 12 }] },
      { schedules: [{ daysMask: 4 }] },
    ]);
    await schedule(780);
    answers(() => ({ isShown: true }));
    expect(await states()).toEqual([
      [7, 'waiting'],
      [8, 'applied'],
    ]);
    await site.applyUsers();
    expect(sent()).toMatchObject([{ userId: 7, access: { schedules: [{ endHour: 13 }] } }]);
    await site.desk('PUT', `/doors/${id}`, { scheduleId: null });
    await site.applyUsers();
    expect(access()).toEqual({ kind: 'always' });
  });

  it('are none while the catalogue does not know the schedule of the door', async () => {
    await put(7, { pin: PIN });
    await site.desk('PUT', `/doors/${id}`, { scheduleId: 'day' });
    await site.applyUsers();
    expect(access()).toEqual({ kind: 'weekDays', schedules: [] });
    await site.desk('PUT', '/schedules/day', { intervals: [{ days: ['mon'], start: 480, end: 720 }] });
    expect(await states()).toEqual([[7, 'waiting']]);
    await site.applyUsers();
    expect(access()).toMatchObject({ schedules: [{ daysMask: 2 }] });
  });

  it('keep a user out of a lock that would let it in always', async () => {
    await put(7, { pin: PIN, weekDays: [NIGHT] });
    site.report(MAC, { users: { pins: 20, weekDays: 0 } });
    await applied();
    expect(sent()).toEqual([]);
    expect(await list()).toMatchObject([
      { state: 'refused', failure: expect.stringContaining('weekDays: the lock keeps no schedules') },
    ]);
  });
});

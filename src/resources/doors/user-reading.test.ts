/** A lock that is asked which places are taken, and whether it shows users as they are wanted. */
import { beforeEach, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import {
  type UserDifference,
  type UsersRead,
  userApply,
  usersRead,
} from '../../../drivers/contract/lock-users.ts';
import { HELD_FRAME_MS } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, playedRelay } from '../../../test/door-site.ts';
import { errorOf, MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

const PIN = '86420975';
const MORNING = { days: ['mon'], start: 480, end: 720 };

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  site.played.command = async () => ({ isShown: true });
});

const path = (userId?: number) => `/doors/${id}/users${userId === undefined ? '' : `/${userId}`}`;
const put = (userId: number, body: object) => site.desk('PUT', path(userId), body);
const states = async () =>
  ((await site.desk('GET', path())).body.items as Record<string, unknown>[]).map(({ userId, state }) => [
    userId,
    state,
  ]);
const orders = (kind: string) =>
  site.played.commands.filter((one) => one.kind === kind).map(({ data }) => data);

/** What the lock shows: places that are taken, with what differs there. `asked` is called with each question before its answer. */
async function read(
  shown: Record<number, UserDifference[]>,
  asked: (places: UsersRead) => Promise<unknown> = async () => undefined,
) {
  site.played.commands.length = 0;
  site.played.command = async (kind, data) => {
    if (kind === 'readHolidays') return { holidays: [{ start: 0, end: 60, mode: 'vacation' }] };
    const places = usersRead.parse(data);
    await asked(places);
    const here = Object.entries(shown).map(([userId, differs]) => ({ userId: Number(userId), differs }));
    const users = here.filter(({ userId }) => userId >= places.from && userId < places.from + places.count);
    return { users: users.map((one) => ({ ...one, hasPin: true, hasCard: false })) };
  };
  const started = await site.desk('POST', `${path()}/read`);
  const ended = await site.played.jobs.at(-1)?.ended;
  site.played.command = async () => ({ isShown: true });
  return { status: started.status, ended };
}

it('shows what somebody stored, and gets again what it has lost', async () => {
  site.report(MAC, { users: { pins: 20, cards: 0 } });
  for (const userId of [1, 2]) await put(userId, { pin: `${PIN}${userId}` });
  await site.applyUsers();
  const programmed = { hwId: MAC, kind: 'programming', what: 'pinAdded', source: 'keypad', userId: 3 };
  await site.emit('lockEvent', { ...programmed, at: site.clock.now() });
  expect(await read({ 2: [], 20: [] })).toEqual({
    status: 202,
    ended: { doorId: id, mac: MAC, places: 21, taken: 2, holidays: null, differing: [] },
  });
  expect(await states()).toEqual([
    [1, 'waiting'],
    [2, 'applied'],
    [20, 'foreign'],
  ]);
  site.played.commands.length = 0;
  await site.applyUsers();
  expect(orders('applyUser').map((data) => userApply.parse(data))).toMatchObject([
    { userId: 1, pin: `${PIN}1` },
  ]);
});

it('is given again what it shows otherwise, and the job says what that was', async () => {
  site.report(MAC, { users: { pins: 8, cards: 0, weekDays: 4, holidays: 8 } });
  for (const userId of [1, 2, 3]) await put(userId, { pin: `${PIN}${userId}`, weekDays: [MORNING] });
  await site.applyUsers();
  // It was never sent: the lock has another one there.
  await put(4, { pin: `${PIN}4` });
  const { ended } = await read({ 1: [], 2: ['status', 'weekDays'], 3: [], 4: [] });
  expect(ended).toMatchObject({
    taken: 4,
    holidays: 1,
    differing: [{ userId: 2, what: ['status', 'weekDays'] }],
  });
  expect(await states()).toEqual([
    [1, 'applied'],
    [2, 'waiting'],
    [3, 'applied'],
    [4, 'waiting'],
  ]);
  // With what is wanted of each user that it has: the driver compares.
  const asked = orders('readUsers').map((data) => usersRead.parse(data));
  expect(asked.flatMap(({ wanted }) => wanted.map(({ userId }) => userId))).toEqual([1, 2, 3]);
  expect(asked[0]?.wanted[0]).toMatchObject({ pin: `${PIN}1`, access: { schedules: [{ startHour: 8 }] } });
  expect(JSON.stringify([ended, site.played.audits, site.played.lines])).not.toContain(PIN);
});

it('has the time for each holiday that the lock keeps, also beyond those that may be wanted of it', async () => {
  site.report(MAC, { users: { pins: 1, cards: 0, holidays: 40 } });
  await read({});
  expect(site.played.timeoutMs).toBe(40 * HELD_FRAME_MS);
});

it('leaves a user alone that was changed while the lock was asked', async () => {
  site.report(MAC, { users: { pins: 4, cards: 0 } });
  await put(1, { pin: PIN });
  await site.applyUsers();
  await read({ 1: ['status'] }, async () => {
    await put(1, { status: 'disabled' });
    site.played.command = async () => ({ isShown: true });
    await site.applyUsers();
  });
  expect(await states()).toEqual([[1, 'applied']]);
});

it('is asked once more where an unlock went first, and fails where it does not answer', async () => {
  site.report(MAC, { users: { pins: 4, cards: 0 } });
  let tries = 0;
  const noReply = (until: number) => async () => {
    tries += 1;
    if (tries <= until) throw new DriverError('NO_REPLY', 'the lock is needed for something more urgent');
  };
  expect((await read({}, noReply(2))).ended).toMatchObject({ taken: 0 });
  tries = 0;
  await expect(read({}, noReply(3))).rejects.toMatchObject({ code: 'NO_REPLY' });
});

it('has to be there', async () => {
  site.played.unreachable = 'link zb-1 is down';
  expect(errorOf(await site.desk('POST', `${path()}/read`))).toEqual([503, 'DEVICE_OFFLINE']);
  const { body } = await site.desk('POST', '/doors', {});
  const ask = () => site.desk('POST', `/doors/${body.id}/users/read`);
  expect(errorOf(await ask())).toEqual([409, 'NO_LOCK']);
  site.played.relays.set(body.id as string, playedRelay('80000000-0000-4000-8000-000000000008'));
  expect((await ask()).body.message).toMatch(/^A relay opens this door/);
});

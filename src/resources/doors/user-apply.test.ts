/** Frames that a lock did not answer, and that may reach it after those which it did. */
import { beforeEach, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type UserApply, userApply } from '../../../drivers/contract/lock-users.ts';
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

const PIN = '86420975';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  answers();
});

const put = (userId: number, body: object) => site.desk('PUT', `/doors/${id}/users/${userId}`, body);
const states = async () =>
  ((await site.desk('GET', `/doors/${id}/users`)).body.items as Record<string, unknown>[]).map(
    ({ userId, state }) => [userId, state],
  );
const sent = (): UserApply[] =>
  site.played.commands.filter(({ kind }) => kind === 'applyUser').map(({ data }) => userApply.parse(data));
function answers(code?: 'OUTCOME_UNKNOWN' | 'NO_REPLY'): void {
  site.played.commands.length = 0;
  site.played.command = async () => {
    if (code) throw new DriverError(code, 'the lock did not answer');
    return { isShown: true };
  };
}
async function goesUnanswered(code: 'OUTCOME_UNKNOWN' | 'NO_REPLY' = 'OUTCOME_UNKNOWN'): Promise<void> {
  answers(code);
  await expect(site.applyUsers()).rejects.toMatchObject({ code });
  answers();
}

it('keep a user that may open from being written for as long as one may arrive', async () => {
  await put(7, { pin: PIN });
  await goesUnanswered();
  const applying = site.applyUsers();
  await site.clock.advance(HELD_AT_MOST_MS - 1);
  expect([sent(), await states()]).toEqual([[], [[7, 'waiting']]]);
  await site.clock.advance(1);
  await applying;
  expect([sent(), await states()]).toMatchObject([[{ userId: 7, pin: PIN }], [[7, 'applied']]]);
});

it('keep no user waiting where they only asked', async () => {
  await put(7, { pin: PIN });
  await goesUnanswered('NO_REPLY');
  await site.applyUsers();
  expect(await states()).toEqual([[7, 'applied']]);
});

it('keep no code from being removed or disabled at once: that is done once more when none may arrive', async () => {
  for (const userId of [7, 8]) await put(userId, { pin: `${PIN}${userId}` });
  await site.applyUsers();
  await put(9, { pin: `${PIN}9` });
  await goesUnanswered();
  await site.desk('DELETE', `/doors/${id}/users/7`);
  await put(8, { status: 'disabled' });
  const applying = site.applyUsers();
  const away = [
    { userId: 7, pin: null },
    { userId: 8, isEnabled: false },
  ];
  await expect.poll(sent).toMatchObject(away);
  const waiting = [
    [7, 'removing'],
    [8, 'waiting'],
    [9, 'waiting'],
  ];
  expect(await states()).toEqual(waiting);
  await site.clock.advance(HELD_AT_MOST_MS);
  await applying;
  expect(sent()).toMatchObject([...away, ...away, { userId: 9, isEnabled: true }]);
  expect(await states()).toEqual([
    [8, 'applied'],
    [9, 'applied'],
  ]);
});

it('may be of the run before, whose end is not known', async () => {
  await put(7, { pin: PIN });
  await goesUnanswered('NO_REPLY');
  site = await openDoorSite(site.database, { now: site.clock.now() });
  answers();
  const applying = site.applyUsers();
  await site.clock.advance(HELD_AT_MOST_MS - 1);
  expect(sent()).toEqual([]);
  await site.clock.advance(1);
  await applying;
  expect(await states()).toEqual([[7, 'applied']]);
});

/** Locks that sleep: each frame to them takes seconds, and the caller is answered before all of them were sent. */
import { beforeEach, expect, it } from 'vitest';
import type { Locked } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  const body = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  id = (await site.desk('POST', '/doors', body)).body.id as string;
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  site.run();
});

const call = (method: string, what: string, body?: object) => site.desk(method, `/doors/${id}/${what}`, body);
const standOpen = (seconds: number) => call('POST', 'stand-open', { seconds });
const state = async () => (await call('GET', 'state')).body;
const timeouts = () => site.played.actuated.map(({ kind, timeoutMs }) => [kind, timeoutMs]);
const sent = (kind: string) =>
  expect.poll(() => site.played.actuated.at(-1)?.kind, { interval: 1 }).toBe(kind);
/** Its lock does it so late. */
function takes(milliseconds: number): void {
  site.played.actuate = async (): Promise<Locked> => {
    await site.clock.sleep(milliseconds);
    return { outcome: 'confirmed' };
  };
}

it('a stand-open that takes 40 s is answered before, and shown when it is done', async () => {
  takes(40_000);
  const asking = standOpen(600);
  await sent('standOpen');
  await site.clock.advance(9_000);
  expect(await asking).toMatchObject({
    status: 200,
    body: { outcome: 'unknown', standingOpen: { state: 'sent', on: false } },
  });
  expect((await call('POST', 'unlock')).body).toMatchObject({ error: 'IN_PROGRESS' });
  await site.clock.advance(31_000);
  expect((await state()).standingOpen).toMatchObject({ state: 'open', on: true });
  const audited = site.played.audits.filter(({ action }) => action === 'door.stand-open');
  expect(audited.map(({ outcome }) => outcome)).toEqual(['accepted', 'begun', 'done']);
});

it('its end that takes 40 s is answered before, and shown when it is done', async () => {
  await standOpen(600);
  takes(40_000);
  const ending = call('DELETE', 'stand-open');
  await sent('endStandOpen');
  await site.clock.advance(9_000);
  expect(await ending).toMatchObject({
    status: 200,
    body: { outcome: 'unknown', standingOpen: { state: 'ending', on: false } },
  });
  await site.clock.advance(31_000);
  expect((await state()).standingOpen).toBeNull();
});

it('a lock command that takes 15 s is answered before, and shown when it is done', async () => {
  takes(15_000);
  const locking = call('POST', 'lock');
  await sent('lock');
  await site.clock.advance(9_000);
  expect(await locking).toMatchObject({ status: 200, body: { outcome: 'unknown' } });
  expect((await state()).lastLock).toMatchObject({ outcome: null });
  await site.clock.advance(6_000);
  await expect.poll(async () => (await state()).lastLock).toMatchObject({ outcome: 'confirmed' });
});

it('each command has the time that its frames take, a stand-open none after its end', async () => {
  await standOpen(600);
  await call('DELETE', 'stand-open');
  await call('POST', 'lock');
  await standOpen(30);
  expect(timeouts()).toEqual([
    ['standOpen', 60_000],
    ['endStandOpen', 60_000],
    ['lock', 20_000],
    ['standOpen', 30_000],
  ]);
});

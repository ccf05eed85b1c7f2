/** Two locks with one address. */
import { beforeEach, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, LINK, OTHER_GATEWAY, OTHER_LINK } from '../../../test/door-site.ts';
import { MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

const MINUTE = 60_000;

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
});

const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;
const gatewayId = () => site.doors.get(id).door.gatewayId;
const audited = (action: string) => site.played.audits.filter((entry) => entry.action === action);

async function heardThrough(link: string): Promise<void> {
  await site.clock.advance(20 * MINUTE);
  const { now, monotonic } = site.clock;
  site.report(MAC, { lastSeen: now(), heardAt: monotonic() }, link);
  await site.clock.advance(1);
}

it('are reported once, with what to do, and the door stays where it is until one of them is gone', async () => {
  await heardThrough(LINK);
  for (const link of [OTHER_LINK, LINK]) await heardThrough(link);
  expect([gatewayId(), (await state()).doubled]).toEqual([GATEWAY, null]);
  for (const link of [OTHER_LINK, LINK, OTHER_LINK]) await heardThrough(link);
  expect(gatewayId()).toBe(GATEWAY);
  expect((await state()).doubled).toMatchObject({
    gatewayIds: [GATEWAY, OTHER_GATEWAY],
    message: expect.stringContaining('Take one of them out'),
  });
  expect(audited('door.lock-moved')).toHaveLength(2);
  expect(audited('door.lock-doubled')).toMatchObject([
    { object: `door/${id}`, detail: { mac: MAC, stays: GATEWAY, other: OTHER_GATEWAY } },
  ]);
  // The other one is out of its network: no one hears of it.
  for (let round = 0; round < 7; round += 1) await heardThrough(LINK);
  expect((await state()).doubled).toBe(null);
});

it.each([-24, 24])('stay two when the wall clock is set by %i h', async (hours) => {
  for (const link of [LINK, OTHER_LINK, LINK, OTHER_LINK]) await heardThrough(link);
  const { doubled } = await state();
  expect(doubled).toMatchObject({ gatewayIds: [GATEWAY, OTHER_GATEWAY] });
  site.clock.jumpWall(hours * 60 * MINUTE);
  expect([gatewayId(), (await state()).doubled]).toEqual([GATEWAY, doubled]);
  for (const link of [LINK, OTHER_LINK]) await heardThrough(link);
  expect([gatewayId(), (await state()).doubled]).toEqual([GATEWAY, doubled]);
});

it('are one again when that of the door is gone: it follows the other', async () => {
  for (const link of [LINK, OTHER_LINK, LINK, OTHER_LINK]) await heardThrough(link);
  expect(await state()).toMatchObject({ doubled: { gatewayIds: [GATEWAY, OTHER_GATEWAY] } });
  await site.emit('lockLeft', { hwId: MAC });
  await heardThrough(OTHER_LINK);
  expect([gatewayId(), (await state()).doubled]).toEqual([OTHER_GATEWAY, null]);
});

it('are not suspected where one lock is let join here, and carried there, again and again', async () => {
  const joined = {
    hwId: MAC,
    manufacturer: null,
    model: null,
    zigbeeFirmwareVersion: null,
    capabilities: [],
  };
  for (let round = 0; round < 4; round += 1) {
    await site.emit('lockJoined', joined);
    await heardThrough(OTHER_LINK);
  }
  expect([gatewayId(), (await state()).doubled]).toEqual([OTHER_GATEWAY, null]);
});

it('are reported where one shares its network address with another of its network, until it does not', async () => {
  const report = (sharesAddressWith: string[]) => {
    const { now, monotonic } = site.clock;
    const heard = { lastSeen: now(), heardAt: monotonic() };
    site.report(MAC, { ...heard, sharesAddressWith }, LINK);
    return site.clock.advance(1);
  };
  await report([]);
  expect((await state()).doubled).toBe(null);
  for (let round = 0; round < 2; round += 1) await report(['00124b0001a2b3ff']);
  expect((await state()).doubled).toMatchObject({
    gatewayIds: [GATEWAY],
    message: expect.stringContaining('00124b0001a2b3ff'),
  });
  await report([]);
  expect((await state()).doubled).toBe(null);
  const detail = (others: string[]) => ({ object: `door/${id}`, detail: { mac: MAC, others } });
  expect(audited('door.lock-address-shared')).toMatchObject([
    { ...detail(['00124b0001a2b3ff']), outcome: 'found' },
    { ...detail([]), outcome: 'ended' },
  ]);
});

/** The history of radio and battery, on a clock that the test moves. */
import { beforeEach, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { runUntilTestEnds } from '../../../test/until-test-ends.ts';
import type { Database } from '../../platform/database/database.ts';

const MAC = '00124b0001a2b3c4';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let database: Database;
let site: DoorSite;
let id: string;
beforeEach(async () => {
  database = await temporaryDatabase();
  site = await openDoorSite(database);
  const body = { mac: MAC, gatewayId: GATEWAY, networkId: 'n', accessPointId: 1 };
  id = String((await site.desk('POST', '/doors', body)).body.id);
  runUntilTestEnds(site.doors.keepHistory);
});

const samples = async (query = '') =>
  (await site.desk('GET', `/doors/${id}/history${query}`)).body.samples as unknown as { at: string }[];
const heard = (more: object) => site.report(MAC, { heardAt: site.clock.monotonic(), ...more });
const rows = () =>
  database.prepare<[], { count: number }>('SELECT count(*) AS count FROM door_history').get()?.count;

it('has a sample of each hour in which something was heard of the lock', async () => {
  expect(await samples()).toEqual([]);
  heard({ lqi: 255, rssi: -61, battery: 0 });
  await site.clock.advance(HOUR_MS);
  // An hour and a half of silence, in which its driver reports what it knows.
  await site.clock.advance(HOUR_MS / 4);
  site.report(MAC, { connected: false });
  await site.clock.advance((3 * HOUR_MS) / 4);
  heard({ lqi: 0, dueBatteryWithoutLoad: 5_910 });
  await site.clock.advance(HOUR_MS);
  const other = await openDoorSite(database, { now: site.clock.now() });
  const kept = [
    { at: '2026-01-01T00:00:00.000Z', lqi: 255, rssi: -61, battery: 0, batteryMillivolts: null },
    { at: '2026-01-01T02:00:00.000Z', lqi: 0, rssi: -61, battery: 0, batteryMillivolts: 5_900 },
  ];
  // What the lock reported before stays its last report.
  expect(await samples()).toEqual(kept);
  expect((await other.desk('GET', `/doors/${id}/history`)).body.samples).toEqual(kept);
  expect((await site.desk('GET', `/doors/${id}/history?days=91`)).status).toBe(400);
  expect((await site.desk('GET', `/doors/${GATEWAY}/history`)).status).toBe(400);
});

it('is bounded, and ends with the door', async () => {
  for (let day = 0; day < 100; day += 1) {
    heard({ lqi: day });
    await site.clock.advance(HOUR_MS);
    site.clock.jumpWall(DAY_MS - HOUR_MS);
  }
  expect(rows()).toBe(91);
  // The last one is a day old.
  const all = await samples('?days=90');
  expect(all).toHaveLength(89);
  expect(all.at(-1)).toMatchObject({ lqi: 99 });
  expect(await samples('?days=2')).toHaveLength(1);
  // A clock that is wrong for a while shows nothing of the future, and removes nothing.
  site.clock.jumpWall(-50 * DAY_MS);
  expect((await samples('?days=90')).length).toBeLessThan(50);
  expect(rows()).toBe(91);
  site.clock.jumpWall(50 * DAY_MS);
  const { body } = await site.desk('DELETE', `/doors/${id}/zigbee-lock?confirm=true`);
  expect(body.error).toBeUndefined();
  expect((await site.desk('DELETE', `/doors/${id}`)).status).toBe(200);
  expect(rows()).toBe(0);
});

/** A stand-open was ordered for one relay of one device: it never goes over to what takes its place. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, openDoorSite, openRelayDoor, playedRelay } from '../../../test/door-site.ts';
import { GatehouseError } from '../../platform/errors.ts';

const DEVICE = '80000000-0000-4000-8000-000000000008';
const RELAY = playedRelay(DEVICE);
const MINUTE = 60_000;
const CHANGES: [string, object, string][] = [
  ['relayIndex is changed', { relayIndex: 3 }, 'the relayIndex of the device was changed from 0 to 3'],
  ['relayIndex is cleared', { relayIndex: null }, 'the relayIndex of the device was changed from 0 to null'],
  [
    'device is replaced',
    { hwId: 'IO-2' },
    `the device was replaced: it was ${RELAY.hwId} on bus b, and is IO-2 on bus b`,
  ],
  [
    'device is on another bus',
    { bus: 'x' },
    `the device was replaced: it was ${RELAY.hwId} on bus b, and is ${RELAY.hwId} on bus x`,
  ],
];

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  ({ site, id, end } = await openRelayDoor(RELAY));
});

const change = (more: object) => void site.played.relays.set(id, { ...RELAY, ...more });
const stand = () => site.desk('POST', `/doors/${id}/stand-open`, { seconds: 3_600 });
const held = () => site.played.held.map(({ hwId, bus, relayIndex }) => ({ hwId, bus, relayIndex }));
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body.standingOpen;
const ends = () =>
  site.played.audits
    .filter(({ action, outcome }) => action === 'door.stand-open' && outcome === 'ended')
    .map(({ detail }) => detail);
const ORDERED = { hwId: RELAY.hwId, bus: 'b', relayIndex: 0 };

describe.each(CHANGES)('when the %s', (_name, more, reason) => {
  it('it ends at once, and nothing is closed without another order', async () => {
    await stand();
    change(more);
    site.doors.wake(id);
    await site.clock.advance(0);
    expect([await state(), ends()]).toEqual([null, [{ deviceId: DEVICE, ...ORDERED, reason }]]);
    change({ ...more, relayIndex: 5 });
    await site.clock.advance(MINUTE);
    expect(held()).toEqual([ORDERED]);
  });

  it('it ends also where the gateway was stopped in between', async () => {
    await stand();
    await end();
    site = await openDoorSite(site.database, { now: site.clock.now() });
    change(more);
    site.run();
    await site.clock.advance(MINUTE);
    expect([held(), await state(), ends()]).toMatchObject([[], null, [{ reason }]]);
  });
});

it('a request that waits for its device is not carried out by another relay', async () => {
  site.played.hold = () => Promise.reject(new GatehouseError('DEVICE_OFFLINE', 'it does not answer'));
  await stand();
  change({ relayIndex: 3 });
  site.played.hold = async () => ({ outcome: 'confirmed' });
  await site.clock.advance(MINUTE);
  expect([held(), await state()]).toEqual([[ORDERED], null]);
});

it('another order is for the relay of the door then', async () => {
  await stand();
  change({ relayIndex: 3 });
  expect((await stand()).body).toMatchObject({ outcome: 'confirmed' });
  expect(held()).toEqual([ORDERED, { ...ORDERED, relayIndex: 3 }]);
  const accepted = site.played.audits.filter(({ outcome }) => outcome === 'accepted');
  expect(accepted.map(({ detail }) => detail)).toMatchObject([{ relayIndex: 0 }, { relayIndex: 3 }]);
});

it('what another relay shows says nothing of the one that is held', async () => {
  await stand();
  site.doors.standOpen.relayReported(id, RELAY, true);
  site.doors.standOpen.relayReported(id, { ...RELAY, relayIndex: 3 }, false);
  await site.clock.advance(0);
  expect(await state()).toMatchObject({ state: 'open', on: true });
});

it('no device without a relay is to hold a door open', async () => {
  change({ relayIndex: null });
  expect(await stand()).toMatchObject({ status: 409, body: { error: 'NO_RELAY' } });
  expect(held()).toEqual([]);
});

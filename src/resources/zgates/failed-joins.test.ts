import { expect, it } from 'vitest';
import { A, openTestbed } from '../../../test/resources/zgates/testbed.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const MINUTE = 60_000;
type Testbed = Awaited<ReturnType<typeof openTestbed>>;

let sent = 0;
async function emit({ zgates }: Testbed, kind: string, data: { [name: string]: string | string[] | null }) {
  sent += 1;
  return zgates.event('zb-1', { id: `zb-1-${sent}`, kind, data });
}
const failed = (bed: Testbed, hwId: string, reason: string) => emit(bed, 'joinFailed', { hwId, reason });
const shown = async ({ get }: Testbed) => (await get(`/${A}/state`)).body.failedJoins;

it('a lock that did not join is shown with what to do, audited and published, also after a restart', async () => {
  const bed = await openTestbed();
  expect(await shown(bed)).toEqual([]);
  expect(await failed(bed, MAC, 'silent')).toBe(true);
  const failure = {
    mac: MAC,
    at: '2026-01-01T00:00:00.000Z',
    reason: 'silent',
    message: expect.stringContaining('reset it'),
  };
  expect(await shown(bed)).toEqual([failure]);
  expect(bed.audits).toMatchObject([
    { action: 'zgate.permit-join', object: `zgate/${A}`, outcome: 'not-joined', detail: { mac: MAC } },
  ]);
  expect(bed.published).toMatchObject([
    { type: 'gatehouse.zgate.join.v1', data: { deviceId: A, ...failure } },
  ]);
  const again = await openTestbed({ database: bed.database });
  expect(await shown(again)).toEqual([failure]);
});

it('it is no more once it has joined, or no one has looked for a week', async () => {
  const bed = await openTestbed();
  await failed(bed, MAC, 'installCode');
  await bed.clock.advance(MINUTE);
  await failed(bed, OTHER, 'notAllowed');
  expect(await shown(bed)).toMatchObject([{ mac: OTHER }, { mac: MAC }]);
  const joined = {
    hwId: MAC,
    manufacturer: null,
    model: null,
    zigbeeFirmwareVersion: null,
    capabilities: [],
  };
  // The doors have to hear of it as well.
  expect(await emit(bed, 'lockJoined', joined)).toBe(false);
  expect(await shown(bed)).toMatchObject([{ mac: OTHER, reason: 'notAllowed' }]);
  await bed.clock.advance(7 * 24 * 60 * MINUTE);
  expect(await shown(bed)).toEqual([]);
});

it('it stays while a wall clock is wrong by 90 days', async () => {
  const bed = await openTestbed();
  await failed(bed, MAC, 'silent');
  bed.clock.jumpWall(90 * 24 * 60 * MINUTE);
  await failed(bed, OTHER, 'silent');
  bed.clock.jumpWall(-90 * 24 * 60 * MINUTE);
  expect(await shown(bed)).toMatchObject([{ mac: OTHER }, { mac: MAC }]);
  // What was stored of the wrong days holds back no event of today.
  await failed(bed, OTHER, 'silent');
  expect([bed.audits.length, bed.published.length]).toEqual([3, 3]);
});

it('one that asks on and on is published now and then, and many leave room for the newest', async () => {
  const bed = await openTestbed();
  for (let asked = 0; asked < 3; asked += 1) await failed(bed, MAC, 'notAllowed');
  expect([bed.audits.length, bed.published.length]).toEqual([1, 1]);
  await failed(bed, MAC, 'silent');
  expect([bed.audits.length, await shown(bed)]).toMatchObject([2, [{ mac: MAC, reason: 'silent' }]]);
  await bed.clock.advance(10 * MINUTE);
  await failed(bed, MAC, 'silent');
  expect(bed.audits).toHaveLength(3);
  for (let index = 0; index < 40; index += 1)
    await failed(bed, `00124b00000000${index.toString(16).padStart(2, '0')}`, 'silent');
  const macs = ((await shown(bed)) as { mac: string }[]).map(({ mac }) => mac);
  expect([macs.length, macs[0]]).toEqual([32, '00124b0000000027']);
});

it('what is no such event is dropped', async () => {
  const bed = await openTestbed();
  expect(await failed(bed, MAC, 'bored')).toBe(true);
  expect(await bed.zgates.event('zb-9', { id: 'x', kind: 'joinFailed', data: null })).toBe(false);
  expect([await shown(bed), bed.audits]).toEqual([[], []]);
});

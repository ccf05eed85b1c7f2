/** What is decided of a door, or heard of its lock, and is otherwise by the time it is stored. */
import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { type HeldCommits, heldCommits } from '../../../test/held-commits.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';

const MAC = '00124b0001a2b3c4';

let held: HeldCommits;
let site: DoorSite;
let id: string;
beforeEach(async () => {
  held = heldCommits(await temporaryDatabase());
  site = await openDoorSite(held.database);
  const { body } = await site.desk('POST', '/doors', { mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
  id = body.id as string;
});

const put = (body: unknown) => site.desk('PUT', `/doors/${id}`, body);
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;

it('a configuration that is cancelled before it is sent is not sent', async () => {
  await site.applyAll();
  await put({ standOpenEnabled: true });
  held.hold();
  const cancelled = site.desk('DELETE', `/doors/${id}/pending`);
  await expect.poll(() => held.waiting).toHaveLength(1);
  const applied = site.applyAll();
  await expect.poll(() => held.waiting).toHaveLength(2);
  held.release();
  expect((await cancelled).status).toBe(200);
  await expect(applied).rejects.toMatchObject({ code: 'BUSY' });
  await site.applyAll();
  const sent = site.played.sent.map(({ apply }) => [
    apply.configVersion,
    apply.configuration.standOpenEnabled,
  ]);
  expect(sent).toEqual([
    [1, false],
    [3, false],
  ]);
});

it('a lock that loses its configuration while it is stored as applied does not have it', async () => {
  site.report(MAC, { configVersion: 0 });
  held.hold();
  site.played.lock = async ({ hwId: _, configuration: __, ...versions }) => {
    // Behind the answer, before what follows from it is on the disk.
    setImmediate(() => {
      site.report(MAC, { configVersion: 0 });
      held.release();
    });
    return { ...versions, payloads: [] };
  };
  setImmediate(() => held.waiting.shift()?.());
  await site.applyAll();
  expect((await state()).configuration).toMatchObject({ applied: 1, reported: 0, inForce: false });
});

it('a lock that joins is not there when its gateway was lost before that was stored', async () => {
  const joined = { manufacturer: 'Acme', model: 'L1', zigbeeFirmwareVersion: '1.2', capabilities: ['x'] };
  held.hold();
  const emitted = site.emit('lockJoined', { hwId: MAC, ...joined }, randomUUID());
  site.connectGateway(false);
  held.release();
  await emitted;
  site.connectGateway(true);
  expect((await state()).connection).toMatchObject({ status: 'unknown' });
  const { body } = await site.desk('GET', `/doors/${id}`);
  expect(body).toMatchObject({ zigbeeFirmwareVersion: '1.2', capabilities: ['x'] });
});

it('an unlock goes to no lock that is another one by the time it may be sent', async () => {
  held.hold();
  const replaced = site.desk('POST', `/doors/${id}/replace-lock`, { mac: '00124b0001a2b3c5' });
  await expect.poll(() => held.waiting).toHaveLength(1);
  const unlocked = site.desk('POST', `/doors/${id}/unlock`);
  await expect.poll(() => held.waiting).toHaveLength(2);
  held.release();
  expect((await replaced).status).toBe(200);
  expect((await unlocked).body).toMatchObject({ error: 'DEVICE_OFFLINE' });
  expect(site.played.unlocks).toEqual([]);
});

it.each<[string, () => void]>([
  ['opens another door', () => void site.played.relays.delete(id)],
  ['is not that of the door', () => void setRelay({ relayIndex: 3 })],
  ['is in other hardware', () => void setRelay({ hwId: 'IO-2' })],
])('an unlock fires no relay that %s by the time it may be fired', async (_name, change) => {
  setRelay({});
  held.hold();
  const unlocked = site.desk('POST', `/doors/${id}/unlock`);
  await expect.poll(() => held.waiting).toHaveLength(1);
  change();
  held.release();
  expect((await unlocked).body).toMatchObject({ error: 'DEVICE_OFFLINE' });
  expect(site.played.pulses).toEqual([]);
});

function setRelay(more: object): void {
  site.played.relays.set(id, { ...playedRelay('io-1'), ...more });
}

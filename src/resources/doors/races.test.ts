/** What is decided of a door, or heard of its lock, and is otherwise by the time it is stored. */
import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { type Estate, GATEWAY, openEstate, playedRelay } from '../../../test/estate.ts';
import { type HeldCommits, heldCommits } from '../../../test/held-commits.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';

const MAC = '00124b0001a2b3c4';

let held: HeldCommits;
let estate: Estate;
let id: string;
beforeEach(async () => {
  held = heldCommits(await temporaryDatabase());
  estate = await openEstate(held.database);
  const { body } = await estate.desk('POST', '/doors', { mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
  id = body.id as string;
});

const put = (body: unknown) => estate.desk('PUT', `/doors/${id}`, body);
const state = async () => (await estate.desk('GET', `/doors/${id}/state`)).body;

it('a configuration that is cancelled before it is sent is not sent', async () => {
  await estate.applyAll();
  await put({ standOpenEnabled: true });
  held.hold();
  const cancelled = estate.desk('DELETE', `/doors/${id}/pending`);
  await expect.poll(() => held.waiting).toHaveLength(1);
  const applied = estate.applyAll();
  await expect.poll(() => held.waiting).toHaveLength(2);
  held.release();
  expect((await cancelled).status).toBe(200);
  await expect(applied).rejects.toMatchObject({ code: 'BUSY' });
  await estate.applyAll();
  const sent = estate.played.sent.map(({ apply }) => [
    apply.configVersion,
    apply.configuration.standOpenEnabled,
  ]);
  expect(sent).toEqual([
    [1, false],
    [3, false],
  ]);
});

it('a lock that loses its configuration while it is stored as applied does not have it', async () => {
  estate.report(MAC, { configVersion: 0 });
  held.hold();
  estate.played.lock = async ({ hwId: _, configuration: __, ...versions }) => {
    // Behind the answer, before what follows from it is on the disk.
    setImmediate(() => {
      estate.report(MAC, { configVersion: 0 });
      held.release();
    });
    return { ...versions, payloads: [] };
  };
  setImmediate(() => held.waiting.shift()?.());
  await estate.applyAll();
  expect((await state()).configuration).toMatchObject({ applied: 1, reported: 0, inForce: false });
});

it('a lock that joins is not there when its gateway was lost before that was stored', async () => {
  const joined = { manufacturer: 'Acme', model: 'L1', zigbeeFirmwareVersion: '1.2', capabilities: ['x'] };
  held.hold();
  const emitted = estate.emit('lockJoined', { hwId: MAC, ...joined }, randomUUID());
  estate.connectGateway(false);
  held.release();
  await emitted;
  estate.connectGateway(true);
  expect((await state()).connection).toMatchObject({ status: 'unknown' });
  const { body } = await estate.desk('GET', `/doors/${id}`);
  expect(body).toMatchObject({ zigbeeFirmwareVersion: '1.2', capabilities: ['x'] });
});

it('an unlock goes to no lock that is another one by the time it may be sent', async () => {
  held.hold();
  const replaced = estate.desk('POST', `/doors/${id}/replace-lock`, { mac: '00124b0001a2b3c5' });
  await expect.poll(() => held.waiting).toHaveLength(1);
  const unlocked = estate.desk('POST', `/doors/${id}/unlock`);
  await expect.poll(() => held.waiting).toHaveLength(2);
  held.release();
  expect((await replaced).status).toBe(200);
  expect((await unlocked).body).toMatchObject({ error: 'DEVICE_OFFLINE' });
  expect(estate.played.unlocks).toEqual([]);
});

it.each<[string, () => void]>([
  ['opens another door', () => void estate.played.relays.delete(id)],
  ['is not that of the door', () => void setRelay({ relayIndex: 3 })],
  ['is in other hardware', () => void setRelay({ hwId: 'IO-2' })],
])('an unlock fires no relay that %s by the time it may be fired', async (_name, change) => {
  setRelay({});
  held.hold();
  const unlocked = estate.desk('POST', `/doors/${id}/unlock`);
  await expect.poll(() => held.waiting).toHaveLength(1);
  change();
  held.release();
  expect((await unlocked).body).toMatchObject({ error: 'DEVICE_OFFLINE' });
  expect(estate.played.pulses).toEqual([]);
});

function setRelay(more: object): void {
  estate.played.relays.set(id, { ...playedRelay('io-1'), ...more });
}

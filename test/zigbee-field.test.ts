/** What is done with locks and their gateways, end to end through a host process that plays them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it, vi } from 'vitest';
import { CALLER, DEVICE, DOOR, LOCK, NETWORK, openFieldSite, ZGATE } from './field-site.ts';
import { otaFile } from './ota-file.ts';
import { makeFactory } from './simulators/encoder/factory.ts';

/** A machine that does other things besides takes its time to start a host. */
const PATIENCE_MS = 30_000;
vi.setConfig({ testTimeout: 4 * PATIENCE_MS });
const waitFor = <T>(condition: () => T | Promise<T>) =>
  vi.waitFor(condition, { timeout: PATIENCE_MS, interval: 10 });
type Site = Awaited<ReturnType<typeof openFieldSite>>['first'];

const NEW = '00124b00000000aa';
const isUp = (site: Site) =>
  waitFor(() => expect(site.doors.state(DOOR).connection).toMatchObject({ status: 'connected' }));
const list = ({ doors }: Site) => doors.list({ limit: 10 }).items;
const outcomes = ({ audits }: Site, verb: string) =>
  audits.filter(({ action }) => action === verb).map(({ outcome }) => outcome);

it('a door is unlocked by its lock, or nothing is said to be done that was not', async () => {
  const { first } = await openFieldSite();
  await isUp(first);
  const { doors, behave } = first;
  expect(await doors.unlock(DOOR, CALLER)).toMatchObject({ outcome: 'confirmed', via: 'zigbee' });
  await behave('zb-1', LOCK, { unlockOutcome: 'jammed' });
  expect(await doors.unlock(DOOR, CALLER)).toMatchObject({ outcome: 'jammed' });
  await behave('zb-1', LOCK, { behaviour: 'refuse' });
  expect(await doors.unlock(DOOR, CALLER)).toMatchObject({ outcome: 'refused' });
  await behave('zb-1', LOCK, { behaviour: 'silent' });
  expect(await doors.unlock(DOOR, CALLER)).toMatchObject({ outcome: 'unknown' });
  await behave('zb-1', LOCK, { behaviour: 'answer', connected: false });
  await expect(doors.unlock(DOOR, CALLER)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  expect(outcomes(first, 'door.unlock')).toEqual(
    ['done', 'failed', 'refused', 'unknown', 'failed'].flatMap((outcome) => ['accepted', outcome]),
  );
});

it('an unlock whose host dies is unknown, and not sent again by the next one', async () => {
  const { first } = await openFieldSite();
  await isUp(first);
  await first.behave('zb-1', LOCK, { delayMs: 5_000 });
  const unlocking = first.doors.unlock(DOOR, CALLER);
  await waitFor(() => expect(outcomes(first, 'door.unlock')).toEqual(['accepted']));
  first.killHost('zigbee');
  expect(await unlocking).toMatchObject({ outcome: 'unknown' });
  await isUp(first);
  expect(outcomes(first, 'door.unlock')).toEqual(['accepted', 'unknown']);
});

it('a door stands open by its lock until somebody ends that, and is locked until it was seen locked', async () => {
  const { first, open } = await openFieldSite();
  await isUp(first);
  const { doors, behave } = first;
  expect(await doors.lock(DOOR, CALLER)).toMatchObject({ outcome: 'confirmed', via: 'zigbee' });
  const order = doors.standOpen.begin(DOOR, { seconds: 3_600 }, CALLER);
  await expect(order).rejects.toMatchObject({ code: 'STAND_OPEN_NOT_ALLOWED' });
  await doors.update(DOOR, { standOpenEnabled: true }, { ...CALLER, ifMatch: undefined });
  expect(await doors.standOpen.begin(DOOR, { seconds: 3_600 }, CALLER)).toMatchObject({
    outcome: 'confirmed',
  });
  expect(doors.standingOpen(DOOR)).toMatchObject({ state: 'open', on: true });
  await behave('zb-1', LOCK, { lockOutcome: 'accepted' });
  expect(await doors.endStandOpen(DOOR, CALLER)).toMatchObject({ outcome: 'accepted' });
  expect(doors.standingOpen(DOOR)).toMatchObject({ state: 'ending' });
  await first.close();
  const second = await open();
  await waitFor(() => expect(second.doors.state(DOOR).standingOpen).toBeNull());
  expect(second.doors.state(DOOR).relock).toMatchObject({ pending: [] });
  expect(outcomes(second, 'door.stand-open')).toEqual(['ended']);
});

it('a door on a relay is unlocked by the relay', async () => {
  const { first } = await openFieldSite();
  await isUp(first);
  await first.rs485.update(DEVICE, { doorId: DOOR, relayIndex: 0 }, CALLER);
  await waitFor(() => expect(first.rs485.relay(DOOR)).toMatchObject({ settled: true }));
  expect(await first.doors.unlock(DOOR, CALLER)).toMatchObject({ outcome: 'confirmed', via: 'rs485' });
  expect([outcomes(first, 'door.unlock'), outcomes(first, 'rs485.pulse')]).toEqual([
    ['accepted', 'done'],
    ['accepted', 'done'],
  ]);
});

it('a lock joins, is configured, reports what happens at it, replaces a broken one, and leaves', async () => {
  const { first, open } = await openFieldSite();
  await isUp(first);
  await expect(first.play('join', { hwId: NEW })).rejects.toMatchObject({ code: 'REFUSED' });
  await first.play('permitJoin', { seconds: 60, allowed: [], installCodes: [] });
  await first.play('join', { hwId: NEW, id: 'joined-1' });
  expect(list(first)).toMatchObject([{ id: DOOR }, { accessPointId: 2, mac: NEW, networkId: NETWORK }]);
  const found = list(first)[1]?.id ?? '';
  await waitFor(() => expect(first.doors.state(found).configuration).toMatchObject({ inForce: true }));
  await first.play('happen', {
    hwId: NEW,
    kind: 'operation',
    what: 'unlocked',
    source: 'keypad',
    userId: 3,
  });
  expect(first.published.at(-1)).toMatchObject({ type: 'gatehouse.door.event.v1', subject: found });
  expect(first.doors.get(found).door.connectionState.lastEvent).not.toBe(null);

  const { lockId } = first.doors.get(DOOR).door;
  const { door } = await first.doors.replaceLock(DOOR, { mac: NEW }, CALLER);
  expect(door).toMatchObject({ id: DOOR, accessPointId: 1, mac: NEW, gatewayId: ZGATE });
  expect(door.lockId).not.toBe(lockId);
  expect(list(first)).toHaveLength(1);
  await waitFor(() => expect(first.doors.state(DOOR).configuration).toMatchObject({ inForce: true }));
  await first.play('leave', { hwId: NEW });
  expect(first.doors.state(DOOR).connection).toMatchObject({ status: 'disconnected' });

  await first.close();
  const second = await open();
  expect(second.doors.state(DOOR).connection?.leftAt).not.toBe(null);
  expect(list(second)).toMatchObject([{ id: DOOR, mac: NEW }]);
});

it('a network moves as a job, and takes its locks along', async () => {
  const { first } = await openFieldSite();
  await isUp(first);
  await first.behave('zb-1', LOCK, { stays: true });
  await first.play('permitJoin', { seconds: 60, allowed: [], installCodes: [] });
  await first.play('join', { hwId: NEW });
  // Until the new one has been heard, the move asks for a confirmation.
  await waitFor(() => first.zgates.moveChannel(ZGATE, { channel: 20, confirm: false }, CALLER));
  const [job] = first.jobs.running();
  await waitFor(() =>
    expect(first.jobs.get(job?.id ?? '', CALLER.principal).progress).toMatchObject({ done: 1, total: 2 }),
  );
  expect(first.zgates.get(ZGATE).zgate.zigbeeChannel).toBe(20);
  await first.jobs.cancel(job?.id ?? '', CALLER);

  const behind = [{ doorId: DOOR, mac: LOCK, heardOn: 11 }];
  expect(first.zgates.counts().stayedBehind).toMatchObject([
    { deviceId: ZGATE, zigbeeChannel: 20, locks: behind },
  ]);
  await first.zgates.update(ZGATE, { allowedChannels: [24] }, CALLER);
  await waitFor(() =>
    expect(first.zgates.state(ZGATE)).toMatchObject({
      failure: { code: 'REFUSED' },
      move: { to: 24, unseen: [{ mac: LOCK, reason: 'STAYED_BEHIND' }] },
    }),
  );
  expect(first.zgates.get(ZGATE).zgate.zigbeeChannel).toBe(20);

  await first.behave('zb-1', LOCK, { stays: false });
  await waitFor(() => expect(first.zgates.counts().stayedBehind).toEqual([]));
  await first.zgates.update(ZGATE, { allowedChannels: [25] }, CALLER);
  await waitFor(() => expect(first.zgates.get(ZGATE).zgate.zigbeeChannel).toBe(25));
  await first.zgates.map(ZGATE, CALLER);
  await waitFor(() => {
    const { items } = first.jobs.list({ limit: 10, kind: 'zigbee-map' }, CALLER.principal);
    expect(items).toMatchObject([{ status: 'done', result: { nodes: [{ type: 'coordinator' }, {}, {}] } }]);
  });
});

it('the join window closes when the gateway does not close it', async () => {
  const { first } = await openFieldSite();
  await isUp(first);
  // No one asked for it.
  await first.play('permitJoin', { seconds: 254, allowed: [], installCodes: [] });
  await waitFor(() => expect(first.zgates.get(ZGATE).zgate.permitJoin).toBe(true));
  await waitFor(() => expect(first.zgates.get(ZGATE).zgate.permitJoin).toBe(false));
});

it('a gateway keeps the secrets of its network, gets its snapshots back, and connects again with new certificates', async () => {
  const { first, open } = await openFieldSite();
  await isUp(first);
  const started = async (site: Site) => (await site.play('started')) as Record<string, unknown>;
  const before = await started(first);
  expect(before).toMatchObject({ cert: null, snapshot: null, restore: false, knownLocks: [LOCK] });
  await first.play('takeSnapshot', { database: 'one' });
  await first.play('takeSnapshot', { database: 'two' });
  const { pid } = hostOf(first);
  const cert = (await makeFactory()).root;
  await first.networks.update(NETWORK, { cert }, CALLER);
  await waitFor(async () => expect(await started(first)).toMatchObject({ cert }));
  const after = await started(first);
  expect(after).toMatchObject({ digest: before.digest, panId: before.panId, restore: false });
  expect(contentOf(after)).toEqual({ database: 'two', backup: null });
  expect(hostOf(first).pid).not.toBe(pid);

  const [gateway] = first.zgates.snapshots();
  await first.zgates.restore(ZGATE, { snapshot: gateway?.snapshots.at(-1)?.number }, CALLER);
  // With the snapshot, and once more without it.
  await waitFor(() => expect(outcomes(first, 'zgate.restore')).toEqual(['accepted', 'done']));
  await waitFor(async () => expect(await started(first)).toMatchObject({ restore: false }));
  await isUp(first);
  expect(contentOf(await started(first))).toMatchObject({ database: 'two' });
  await first.close();
  const second = await open();
  await isUp(second);
  expect(await started(second)).toMatchObject({ digest: before.digest, cert });
});

function hostOf({ field }: Site) {
  const host = field.state().hosts.find(({ name }) => name === 'zigbee');
  return { pid: host?.pid };
}

function contentOf({ snapshot }: Record<string, unknown>): unknown {
  return JSON.parse(gunzipSync(snapshot as Uint8Array).toString());
}

it('a lock is given firmware out of the folder of the configuration', async () => {
  const { first, firmwareDirectory } = await openFieldSite();
  await isUp(first);
  writeFileSync(join(firmwareDirectory, 'lock.ota'), otaFile(0x0102_0400));
  await first.behave('zb-1', LOCK, { dueBatteryUnderLoad: 6_000, delayMs: 20 });
  await waitFor(() => expect(first.doors.get(DOOR).door.dueBatteryUnderLoad).toBe(6_000));
  const jobs = () => first.jobs.list({ limit: 10, kind: 'lock-firmware' }, CALLER.principal).items;
  await first.doors.firmware.start(DOOR, { file: 'lock.ota', ignoreBattery: false }, CALLER);
  await waitFor(() => expect(jobs()).toMatchObject([{ status: 'done', progress: { percent: 100 } }]));
  expect(jobs()[0]?.result).toMatchObject({ doorId: DOOR, zigbeeFirmwareVersion: '2.0' });
  await first.behave('zb-1', LOCK, { behaviour: 'refuse' });
  await first.doors.firmware.start(DOOR, { file: 'lock.ota', ignoreBattery: false }, CALLER);
  await waitFor(() => expect(jobs()[0]).toMatchObject({ status: 'failed', error: { code: 'REFUSED' } }));
});

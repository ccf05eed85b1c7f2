/** A coordinator that fails, is exchanged, or is not who it should be. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  CONFIRMED,
  folder,
  hurried,
  joined,
  LOCK,
  NETWORK,
  opened,
  restored,
  simulated,
  snapshotOf,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { openWire } from '../../test/drivers/zigbee/wire.ts';
import { MAKE } from '../../test/simulators/zigbee/make.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';
import type { Clock, DriverError, DriverEvent } from '../contract/driver.ts';
import { carriedNetwork, snapshot } from '../contract/zgate.ts';

/** A default response (ZCL rev. 8, 2.5.12). */
const isDefaultResponse = ({ isFoundation, command }: { isFoundation: boolean; command: number }) =>
  isFoundation && command === 0x0b;

/** Probes at once, where the driver would wait for a quarter of a minute. */
const impatient: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds === 15_000 ? 50 : milliseconds, signal),
};

/** Probes after an hour. */
const trusting: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) =>
    systemClock.sleep(milliseconds === 15_000 ? 3_600_000 : milliseconds, signal),
};

/** Takes snapshots at once, where the driver would wait for more to come. */
const hasty = hurried('snapshots', 5_000);

it('loses a stick that falls silent', async () => {
  const site = await simulated({});
  const gateway = await opened(site, {}, { clock: impatient });
  shortenTimeouts(0.2);
  await site.hang(true);
  expect(await gateway.ended).toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringMatching(MAKE.silence),
  });
  await gateway.close();
});

it('says in words of its own that a silent stick was sent nothing, and keeps those of the library for the log', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.hang(true);
  const unlock = gateway.execute('unlock', unlockOf(LOCK));
  const { code, message } = (await unlock.catch((failure) => failure)) as DriverError;
  expect([code, message]).toEqual([
    'DEVICE_OFFLINE',
    expect.stringMatching(/^not sent: .*see whether its stick/),
  ]);
  expect(message).not.toMatch(/[{}]|ZCL|unlockDoor/);
  expect(gateway.logged.join('\n')).toContain('a frame was not sent: ZCL command');
  // Of what it is asked when it is closed.
  shortenTimeouts(0.2);
  await gateway.close();
});

it('loses a stick at once that says it has restarted', async () => {
  const site = await simulated({});
  const gateway = await opened(site, {}, { clock: trusting });
  // What it is sent at the start is over.
  await gateway.execute('permitJoin', { seconds: 0, allowed: [], installCodes: [] });
  await site.selfReset();
  expect(await gateway.ended).toMatchObject({ code: 'LINK_LOST' });
});

it('loses a stick whose connection drops, and comes back in the same process', async () => {
  const site = await simulated({});
  const stateDirectory = folder();
  const gateway = await opened(site, { stateDirectory });
  await expect(opened(site)).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
    message: expect.stringContaining('a host of its own'),
  });
  await site.drop();
  expect(await gateway.ended).toMatchObject({ code: 'LINK_LOST' });
  await gateway.close();
  const again = await opened(site, { stateDirectory });
  expect(again.reports.get('gateway')).toMatchObject({ connected: true });
});

it('answers the events of a lock after a cut during which an answer to it waited', async () => {
  const lock = { ieee: LOCK, eventMasks: 0xff_ff, boltMs: 0, asksDefaultResponse: true };
  const site = await simulated({ locks: [lock] });
  const wire = await openWire(site.port);
  const gateway = await opened(wire);
  await joined(gateway, site);
  const isIt = (event: DriverEvent) => event.kind === 'lockEvent';
  const before = gateway.events.filter(isIt).length;
  wire.tamper = (frame) => (frame.type === 'SRSP' ? undefined : frame);
  const measuring = gateway.execute('energyScan', {}).catch(() => undefined);
  await site.set(LOCK, { manual: 'unlock' });
  await expect.poll(() => gateway.events.filter(isIt).length).toBeGreaterThan(before);
  await site.drop();
  await Promise.all([gateway.ended, measuring]);
  await gateway.close();
  wire.tamper = (frame) => frame;
  const answers = async () => (await site.state(LOCK)).received.filter(isDefaultResponse).length;
  const answered = await answers();
  const again = await opened(wire, {}, { again: gateway });
  await site.set(LOCK, { manual: 'lock' });
  await expect.poll(answers).toBeGreaterThan(answered);
  await again.close();
});

it('fails to start on a silent stick, and can be started again', async () => {
  const site = await simulated({ silent: true });
  shortenTimeouts(0.2);
  await expect(opened(site)).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining(`see that its port is that of ${MAKE.called}`),
  });
  shortenTimeouts(1);
  await site.hang(false);
  const again = await opened(site);
  expect(again.reports.get('gateway')).toMatchObject({ connected: true });
}, 60_000);

it('is called off at once while it waits for a silent stick', async () => {
  const site = await simulated({ silent: true });
  // Longer than this test waits.
  shortenTimeouts(10);
  // By then it has been asked, and whenever it is called off this holds.
  const signal = AbortSignal.timeout(1_000);
  await expect(opened(site, {}, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
});

it('leaves a stick alone that is on another network, and shows no key of either', async () => {
  const site = await simulated({});
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await first.close();
  const networkKey = 'ffeeddccbbaa99887766554433221100';
  const network = { ...NETWORK, networkKey };
  const error = await opened(site, { stateDirectory, network, knownLocks: [] }).catch((failure) => failure);
  expect(error).toMatchObject({ code: 'REFUSED' });
  const other = opened(site, { network, snapshot: null, knownLocks: [LOCK] });
  await expect(other).rejects.toMatchObject({ code: 'REFUSED' });
  const shown = `${error.message} ${first.logged.join('\n')}`;
  expect(shown).not.toMatch(new RegExp(`${networkKey}|${NETWORK.networkKey}`, 'i'));
  expect(shown).not.toContain('255, 238');
  // It is as it was.
  expect((await site.stats()).stick).toMatchObject({ panId: NETWORK.panId, channel: 15 });
});

it('forms no network over another one for a gateway that has none, until it is asked to', async () => {
  const site = await simulated({});
  await (await opened(site)).close();
  const other = { ...NETWORK, panId: NETWORK.panId - 1, networkKey: 'ffeeddccbbaa99887766554433221100' };
  const refused = {
    code: 'REFUSED',
    message: expect.stringContaining('gatehouse zgate restore --new-network'),
  };
  const open = (options: object) => opened(site, { network: other, ...options });
  const why = await open({}).catch(String);
  const newNetwork = carriedNetwork(`${why}`.replace('DriverError: ', '')) ?? '';
  expect(newNetwork).toMatch(/^1a62-[0-9a-f]{16}$/);
  // Asked for that of another coordinator, or too long ago.
  await expect(open({ newNetwork: `0000-${NETWORK.extPanId}` })).rejects.toMatchObject(refused);
  await expect(open({ newNetwork, askedUntil: Date.now() })).rejects.toMatchObject(refused);
  const before = (await site.stats()).stick;
  expect(before).toMatchObject({ panId: NETWORK.panId, channel: 15 });
  // Its own gateway has lost its files.
  await (await opened(site)).close();
  await open({ newNetwork, askedUntil: Date.now() + 60_000 });
  expect((await site.stats()).stick).toMatchObject({ panId: other.panId });
}, 60_000);

it('puts a network on another stick only when it is asked to', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  const archive = await snapshotOf(first);
  await first.close();
  // Ten times what the library adds to the frame counter of a backup. Locks ignore a coordinator that is behind.
  await site.setGateway({ frames: 25_000 });
  await site.setGateway({ newStick: { ieee: '00124b0014d9a0ff' } });
  await expect(opened(site, { stateDirectory, snapshot: archive })).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringContaining('gatehouse zgate restore'),
  });
  expect((await site.stats()).stick).toMatchObject({ isStarted: false, ieee: '00124b0014d9a0ff' });
  const gateway = await restored(site, { snapshot: archive, restore: true, knownLocks: [LOCK] });
  expect(gateway.reports.get('gateway')).toMatchObject({ hwId: '00124b0014d9a001', zigbeeChannel: 15 });
  // A coordinator that does not know its child has it look for its network again.
  await site.set(LOCK, { rejoin: true });
  expect(await site.set(LOCK, { rejoin: 'withoutKey' })).toMatchObject({ isReachable: true });
  expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
}, 60_000);

it('puts a snapshot on a stick that is still on its network, too', { timeout: 60_000 }, async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  const taken = () => first.events.findLast(({ kind, data }) => kind === 'snapshot' && locksOf(data) === 1);
  await expect.poll(taken).toBeDefined();
  const { archive } = snapshot.parse(taken()?.data);
  await first.execute('moveChannel', { channel: 20 }, 40_000);
  await first.close();
  const counter = async () => (await site.stats()).stick.frameCounter;
  expect(await counter()).toBeLessThan(100_000);
  const gateway = await opened(site, {
    stateDirectory,
    snapshot: archive,
    restore: true,
    knownLocks: [LOCK],
  });
  // Where its locks are, which followed.
  expect(gateway.reports.get('gateway')).toMatchObject({ zigbeeChannel: 20 });
  expect((await site.stats()).stick).toMatchObject({ panId: NETWORK.panId, channel: 20 });
  expect(await counter()).toBeGreaterThan(100_000);
  expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
});

const locksOf = (data: unknown) => snapshot.parse(data).locks;

it('lets a channel move end before it is closed, so that it can be opened again', {
  timeout: 60_000,
}, async () => {
  const site = await simulated({});
  const stateDirectory = folder();
  const gateway = await opened(site, { stateDirectory });
  const moved = gateway.execute('moveChannel', { channel: 20 }, 40_000);
  await gateway.close();
  expect(await Promise.race([moved, 'still moving'])).toEqual({ zigbeeChannel: 20 });
  const again = await opened(site, { stateDirectory });
  expect(again.reports.get('gateway')).toMatchObject({ zigbeeChannel: 20 });
});

it('puts a network on another stick where its locks are, also from before a channel move', async () => {
  const site = await simulated({});
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory }, { clock: hasty });
  const snapshots = () => first.events.filter(({ kind }) => kind === 'snapshot').map(({ data }) => data);
  await expect.poll(snapshots).toMatchObject([{ zigbeeChannel: 15 }]);
  await first.execute('moveChannel', { channel: 20 }, 40_000);
  await expect.poll(snapshots).toMatchObject([{ zigbeeChannel: 15 }, { zigbeeChannel: 20 }]);
  await first.close();
  await site.setGateway({ newStick: { ieee: '00124b0014d9a0ff' } });
  const { archive } = snapshot.parse(snapshots()[0]);
  const gateway = await restored(site, { stateDirectory, snapshot: archive, restore: true });
  expect(gateway.reports.get('gateway')).toMatchObject({ hwId: '00124b0014d9a001', zigbeeChannel: 20 });
  expect((await site.stats()).stick).toMatchObject({ panId: NETWORK.panId, channel: 20 });
  expect(gateway.logged.join('\n')).toContain('was put back from the snapshot');
}, 60_000);

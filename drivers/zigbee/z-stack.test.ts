/** What holds of Z-Stack coordinators alone, and what their wire can be made to say; what holds of all is in link.test.ts and others. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  snapshotOf,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { foreign, openWire } from '../../test/drivers/zigbee/wire.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import { encodeMt } from '../../test/simulators/zigbee/mt/frame.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';
import type { Clock } from '../contract/driver.ts';
import { lockReport } from '../contract/settings.ts';

/** Probes at once, where the driver would wait for a quarter of a minute. */
const impatient: Clock = {
  ...systemClock,
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds === 15_000 ? 50 : milliseconds, signal),
};
const DOOR_LOCK = 0x0101;
/** A parent may hold an actuation for 8 s, and the rest is what a busy machine takes to send it. */
const SHORT_MS = 12_000;
const A_MINUTE = { timeout: 60_000, interval: 100 };
const TOO_OLD = { code: 'REFUSED', message: expect.stringContaining('Z-Stack 1.2') };

const unlock = (gateway: TestGateway) => gateway.execute('unlock', unlockOf(LOCK), SHORT_MS);
const isConnected = (gateway: TestGateway) =>
  (gateway.reports.get(`device:${LOCK}`) as { connected?: boolean } | undefined)?.connected;

it('loses a stick that resets itself without a word', async () => {
  const site = await simulated({});
  const wire = await openWire(site.port);
  const gateway = await opened(wire, {}, { clock: impatient });
  shortenTimeouts(0.2);
  wire.tamper = (frame) => (frame.type === 'AREQ' && frame.subsystem === 1 ? undefined : frame);
  await site.selfReset();
  expect(await gateway.ended).toMatchObject({ code: 'LINK_LOST' });
  await gateway.close();
});

it('forms and restores no network on a stick with Z-Stack 1.2', async () => {
  const site = await simulated({ stack: '1.2' });
  await expect(opened(site)).rejects.toMatchObject(TOO_OLD);
  expect((await site.stats()).stick).toMatchObject({ isStarted: false, panId: null });
  await site.setGateway({ newStick: { ieee: '00124b0014d9a0fd', stack: '3.x.0' } });
  const first = await opened(site);
  const archive = await snapshotOf(first);
  await first.close();
  await site.setGateway({ newStick: { ieee: '00124b0014d9a0fe', stack: '1.2' } });
  await expect(opened(site, { snapshot: archive })).rejects.toMatchObject(TOO_OLD);
  await expect(opened(site, { snapshot: archive, restore: true })).rejects.toMatchObject(TOO_OLD);
});

it('takes no frame of another PAN for one of a lock, whatever address it has', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const wire = await openWire(site.port);
  const gateway = await opened(wire);
  await joined(gateway, site);
  const { nwk } = await site.state(LOCK);
  const happened = gateway.events.length;
  for (const from of [{ nwk }, { ieee: LOCK }])
    for (const hex of ['18010a0000' + '3002', '1901200102ffff' + '000000000000'])
      await wire.inject(encodeMt(foreign(from, DOOR_LOCK, Buffer.from(hex, 'hex'))));
  // What comes after them.
  await site.set(LOCK, { door: 'open' });
  const report = () => lockReport.parse(gateway.reports.get(`device:${LOCK}`));
  await expect.poll(() => report().doorState?.value).toBe('open');
  expect(report().lockState?.value).toBe('locked');
  expect(gateway.events.slice(happened).map(({ data }) => data)).toMatchObject([{ what: 'doorOpen' }]);
});

it('uses no coordinator on a channel that does not exist, and keeps none', async () => {
  const site = await simulated({});
  const wire = await openWire(site.port);
  const stateDirectory = folder();
  // ZDO_EXT_NWK_INFO: the channel is the last byte (Z-Stack Monitor and Test API, 3.12.1.33).
  wire.tamper = (frame) => {
    const isInfo = frame.type === 'SRSP' && frame.subsystem === 5 && frame.id === 0x50;
    return isInfo ? { ...frame, data: Buffer.from([...frame.data.subarray(0, -1), 27]) } : frame;
  };
  await expect(opened(wire, { stateDirectory })).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining('channel 27'),
  });
  wire.tamper = (frame) => frame;
  const gateway = await opened(wire, { stateDirectory });
  expect(gateway.reports.get('gateway')).toMatchObject({ zigbeeChannel: 15 });
});

it('leaves a lock that is away the child that it is, and hands no lock a frame of another', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK, sleepy: {} }, { ieee: OTHER_LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await joined(gateway, site, OTHER_LOCK);
  await site.set(LOCK, { faults: { offline: true } });
  await expect(unlock(gateway)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  const children = async () => (await site.stats()).stick.children;
  await vi.waitFor(async () => expect(await children()).not.toContain(LOCK), A_MINUTE);
  // Others are not kept waiting meanwhile.
  expect(await gateway.execute('unlock', unlockOf(OTHER_LOCK), SHORT_MS)).toEqual(CONFIRMED);
  await vi.waitFor(async () => expect(await children()).toContain(LOCK), A_MINUTE);
  await site.set(LOCK, { faults: null, announce: true });
  await vi.waitFor(() => expect(isConnected(gateway)).toBe(true));
  expect(await unlock(gateway)).toEqual(CONFIRMED);
}, 120_000);

it('restores at its start a child that a gateway which was killed had disowned', async () => {
  const stateDirectory = folder();
  const site = await simulated({ locks: [{ ieee: LOCK, sleepy: {} }] });
  const killed = await opened(site, { stateDirectory });
  await joined(killed, site);
  await site.set(LOCK, { faults: { offline: true } });
  await expect(unlock(killed)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  const children = async () => (await site.stats()).stick.children;
  await vi.waitFor(async () => expect(await children()).not.toContain(LOCK), A_MINUTE);
  await site.hang(true);
  await killed.close();
  await site.hang(false);
  expect(await children()).not.toContain(LOCK);
  await opened(site, { stateDirectory });
  expect(await children()).toContain(LOCK);
}, 120_000);

const NOT_THERE = {
  code: 'LINK_LOST',
  message: expect.stringContaining('see that its port is that of a Z-Stack coordinator'),
};

it('leaves a coordinator of another make alone, which the configuration took for this one', async () => {
  const site = await simulated({ adapter: 'ember' });
  await (await opened(site)).close();
  const { panId, channel } = (await site.stats()).stick;
  shortenTimeouts(0.2);
  await expect(opened(site, { adapter: 'zstack' })).rejects.toMatchObject(NOT_THERE);
  shortenTimeouts(1);
  expect((await site.stats()).stick).toMatchObject({ panId, channel });
  await opened(site);
}, 60_000);

it('does not start over a line at another baud rate, and says what to look at', async () => {
  const random = openRandom(7);
  // Each character is read as others.
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => socket.write(bytes.map(() => Math.floor(random() * 256))));
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  shortenTimeouts(0.2);
  const port = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(opened({ port })).rejects.toMatchObject(NOT_THERE);
}, 60_000);

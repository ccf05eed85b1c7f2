import { expect, it } from 'vitest';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  opened,
  simulated,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { MAKE } from '../../test/simulators/zigbee/make.ts';
import { gatewayReport, lockReport } from '../contract/settings.ts';
import { lockJoined, snapshot } from '../contract/zgate.ts';

it('forms a network, lets a lock in, and reports both', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  expect(gatewayReport.parse(gateway.reports.get('gateway'))).toMatchObject({
    connected: true,
    hwId: '00124b0014d9a001',
    ...MAKE.reported,
    zigbeeChannel: 15,
    permitJoin: false,
  });
  await joined(gateway, site);
  const event = gateway.events.find(({ kind }) => kind === 'lockJoined');
  expect(lockJoined.parse(event?.data)).toMatchObject({
    hwId: LOCK,
    manufacturer: 'Gatehouse',
    model: 'GH-Lock',
    zigbeeFirmwareVersion: '1.2.3',
    capabilities: expect.arrayContaining(['passage', 'doorSensor', 'firmwareUpdate', 'standOpen']),
  });
  const report = lockReport.parse(gateway.reports.get(`device:${LOCK}`));
  expect(report).toMatchObject({
    connected: true,
    battery: 87,
    rssi: -60,
    configVersion: 0,
    lcuFirmwareVersion: '4.2.0',
    dueBatteryUnderLoad: 5_720,
    zigbeeFirmwareVersion: '1.2.3',
  });
  // As the lock is heard: 180, and up to 10 more or less from frame to frame.
  expect(Math.abs((report.lqi ?? 0) - 180)).toBeLessThanOrEqual(10);
  expect((await site.state(LOCK)).bindings).toHaveLength(4);
});

it('comes up again with its locks, and sends a snapshot that does so without its files', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  await expect.poll(() => first.events.some(({ kind }) => kind === 'snapshot')).toBe(true);
  const taken = first.events.findLast(({ kind }) => kind === 'snapshot');
  await first.close();
  const again = await opened(site, { stateDirectory, knownLocks: [LOCK] });
  expect(again.reports.get(`device:${LOCK}`)).toMatchObject({ connected: true });
  await again.close();
  const kept = snapshot.parse(taken?.data);
  const without = await opened(site, { snapshot: kept.archive, knownLocks: [LOCK] });
  expect(without.reports.get(`device:${LOCK}`)).toMatchObject({ hwId: LOCK });
  expect(await without.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
});

it('closes the window that an earlier life left open, and none that was opened since', async () => {
  const site = await simulated({});
  const stateDirectory = folder();
  const openMs = async () => (await site.stats()).stick.permitJoinMs;
  const window = { seconds: 200, allowed: [], installCodes: [] };
  const first = await opened(site, { stateDirectory });
  await first.execute('permitJoin', window);
  // As when its host is killed: in order it would close the window.
  await site.drop();
  await first.close();
  expect(await openMs()).toBeGreaterThan(0);
  const again = await opened(site, { stateDirectory });
  await expect.poll(openMs).toBe(0);
  await again.close();
  const third = await opened(site, { stateDirectory });
  await third.execute('permitJoin', window);
  // What the library does last of it, it does behind everything that closes.
  expect(await openMs()).toBeGreaterThan(0);
});

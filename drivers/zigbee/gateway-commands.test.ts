/** The commands of a gateway, against a simulated network with locks of both kinds. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  afterAllTests,
  CONFIRMED,
  folder,
  joined,
  LOCK,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { otaFile } from '../../test/ota-file.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import { type LockConfiguration, lockApplied } from '../contract/settings.ts';
import { networkMap } from '../contract/zgate.ts';

const STANDARD = '00158d0001000011';
const CODED = '00158d0001000012';
const STRANGER = '00158d0001000013';
const LEAVER = '00158d0001000014';
const ROUTER = '00124b0000000051';
const BEHIND = '00158d0001000015';
const RELOCKING = '00158d0001000016';
const DOOR = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
/** The install code of BDB 3.0.1, 10.1.1, with its CRC. */
const CODE = '83fed3407a939723a5c639b26916d505c3b5';

const configuration: LockConfiguration = {
  name: 'Room 101',
  number: 101,
  type: null,
  relaySetup: null,
  standOpenEnabled: true,
  onlineEnabled: false,
  accessInternal: { doors: [DOOR], interval: { start: 480, end: 1_080 } },
  outputs: [],
  schedule: [{ weekdays: 31, start: 0, end: 1_440 }],
};
const versions = { doorVersion: 9, scheduleVersion: 3, templateVersion: 0, systemConfigVersion: 1 };

describe('a gateway', () => {
  let site: SimulatedGateway;
  let gateway: TestGateway;

  beforeAll(async () => {
    const cleanup = afterAllTests();
    const locks = [
      { ieee: LOCK },
      { ieee: STANDARD, vendorCluster: false },
      { ieee: CODED, installCode: CODE },
      ...[{ ieee: STRANGER }, { ieee: LEAVER }, { ieee: BEHIND, parent: ROUTER }],
      // Wired, and without a passage mode or a sensor at its door.
      {
        ieee: RELOCKING,
        vendorCluster: false,
        mains: true,
        supportedOperatingModes: 0x01,
        hasDoorSensor: false,
      },
    ];
    site = await simulated({ locks, routers: [{ ieee: ROUTER }] }, cleanup);
    gateway = await opened(site, {}, { cleanup });
    for (const ieee of [LOCK, STANDARD, LEAVER, RELOCKING]) await joined(gateway, site, ieee);
  }, 60_000);

  const report = (ieee: string) => gateway.reports.get(`device:${ieee}`) as Record<string, unknown>;
  const apply = (hwId: string, configVersion: number, change: Partial<LockConfiguration> = {}) =>
    gateway.execute('applyConfiguration', {
      hwId,
      configVersion,
      ...versions,
      configuration: { ...configuration, ...change },
    });
  const reported = (kind: string, ieee: string) =>
    gateway.events.some((event) => event.kind === kind && JSON.stringify(event.data).includes(ieee));

  const endsOf = (ieee: string) =>
    gateway.events
      .filter(({ kind, data }) => kind === 'lockUpdated' && JSON.stringify(data).includes(ieee))
      .map(({ data }) => data);

  it('gives a lock its configuration whole, and keeps the frames as they were sent', async () => {
    const applied = lockApplied.parse(await apply(LOCK, 7));
    expect(applied).toMatchObject({ configVersion: 7, ...versions });
    const { vendor, received } = await site.state(LOCK);
    expect(vendor?.applied).toMatchObject([{ configVersion: 7, configuration: { name: 'Room 101' } }]);
    const frames = received.filter(({ cluster, isFoundation }) => cluster === 0xfc11 && !isFoundation);
    expect(applied.payloads.map((one) => Buffer.from(one, 'base64').subarray(5).toString('hex'))).toEqual(
      frames.map(({ payload }) => payload),
    );
    expect(report(LOCK)).toMatchObject({ configVersion: 7, doorVersion: 9 });
  });

  it('does not give a lock an older configuration', async () => {
    await expect(apply(LOCK, 6)).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('does not say applied when a part got lost', async () => {
    await site.set(LOCK, { faults: { confirm: { status: 'MAC_NO_ACK', frames: 1 } } });
    await expect(apply(LOCK, 8)).rejects.toMatchObject({ code: 'NO_REPLY' });
    expect((await site.state(LOCK)).vendor?.versions).toMatchObject({ config: 7 });
    expect(await apply(LOCK, 8)).toMatchObject({ configVersion: 8 });
  });

  it('gives a lock the next configuration at once when one is superseded on its way', async () => {
    await site.set(LOCK, { faults: { slowMs: 50 } });
    const before = (await site.state(LOCK)).received.length;
    const stop = new AbortController();
    const data = { hwId: LOCK, configVersion: 8, ...versions, configuration };
    const deadline = systemClock.monotonic() + 20_000;
    const superseded = gateway.driver.execute({ kind: 'applyConfiguration', data, deadline }, stop.signal);
    await expect.poll(async () => (await site.state(LOCK)).received.length).toBeGreaterThan(before);
    stop.abort(new Error('a newer version is wanted'));
    await expect(superseded).rejects.toMatchObject({ code: 'NO_REPLY' });
    await site.set(LOCK, { faults: null });
    expect(await apply(LOCK, 8, { number: 102 })).toMatchObject({ configVersion: 8 });
    const { vendor } = await site.state(LOCK);
    expect(vendor?.applied.at(-1)).toMatchObject({ configuration: { number: 102 } });
  });

  it('sends a standard lock no setting, names what it cannot carry, and opens nothing by a permission', async () => {
    const writes = async (ieee: string) =>
      (await site.state(ieee)).received.filter(({ isFoundation, command }) => isFoundation && command === 2);
    for (const ieee of [STANDARD, RELOCKING]) {
      const before = await writes(ieee);
      const applied = lockApplied.parse(await apply(ieee, 1));
      expect(applied).toMatchObject({ configVersion: 1, payloads: [] });
      expect(applied.unsupported).toEqual(['accessInternal', 'number', 'name']);
      expect(report(ieee)).toMatchObject({ unsupported: applied.unsupported });
      await apply(ieee, 2, { standOpenEnabled: false });
      expect(await writes(ieee)).toEqual(before);
      expect(await site.state(ieee)).toMatchObject({ operatingMode: 0, lockState: 1, autoRelockSeconds: 0 });
    }
  });

  it('knows what a standard lock can do', async () => {
    const can = (ieee: string) => report(ieee).capabilities as string[];
    expect(can(STANDARD)).toEqual(expect.arrayContaining(['passage', 'doorSensor', 'autoRelock']));
    expect(can(RELOCKING)).toContain('autoRelock');
    expect(can(RELOCKING)).not.toContain('passage');
    expect(can(RELOCKING)).not.toContain('doorSensor');
  });

  it('unlocks a lock that is wired and relays, and asks it for the map', async () => {
    expect(await gateway.execute('unlock', { ...unlockOf(RELOCKING), relockSeconds: 5 })).toEqual(CONFIRMED);
    const map = networkMap.parse(await gateway.execute('networkMap', {}));
    expect(map.nodes).toContainEqual({ hwId: RELOCKING, type: 'router' });
    expect(map.silent).toEqual([]);
  });

  it('lets no one in while its window is closed, and only who is on the list while it is open', async () => {
    expect(await site.join(STRANGER)).toBe('closed');
    await gateway.execute('permitJoin', { seconds: 30, allowed: [CODED], installCodes: [] });
    await site.join(STRANGER);
    await expect.poll(async () => (await site.state(STRANGER)).isJoined).toBe(false);
    expect(gateway.reports.get('gateway')).toMatchObject({ permitJoin: true });
    await gateway.execute('permitJoin', { seconds: 0, allowed: [], installCodes: [] });
    expect(gateway.reports.get('gateway')).toMatchObject({ permitJoin: false });
    expect(reported('lockJoined', STRANGER)).toBe(false);
  });

  it('closes its window at the deadline', async () => {
    await gateway.execute('permitJoin', { seconds: 1, allowed: [], installCodes: [] });
    const isOpen = () => (gateway.reports.get('gateway') as { permitJoin: boolean }).permitJoin;
    expect(isOpen()).toBe(true);
    await expect.poll(isOpen).toBe(false);
    expect(await site.join(STRANGER)).toBe('closed');
  });

  it('lets a lock in by its install code, which is never shown', async () => {
    const wrong = { hwId: CODED, code: `${CODE.slice(0, -4)}0000` };
    const open = (installCodes: { hwId: string; code: string }[]) =>
      gateway.execute('permitJoin', { seconds: 30, allowed: [], installCodes });
    const error = await open([wrong]).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ code: 'INVALID_COMMAND' });
    expect(String(error)).not.toContain(CODE.slice(0, 8));
    await open([{ hwId: CODED, code: CODE }]);
    expect(await site.join(CODED)).toBe('joined');
    await expect.poll(() => reported('lockJoined', CODED)).toBe(true);
    expect(gateway.logged.join('\n').toLowerCase()).not.toContain(CODE.slice(0, 12));
    await gateway.execute('permitJoin', { seconds: 0, allowed: [], installCodes: [] });
  });

  it('reports a lock that leaves, and knows it no more', async () => {
    await site.set(LEAVER, { leave: true });
    await expect.poll(() => reported('lockLeft', LEAVER)).toBe(true);
    const unlock = gateway.execute('unlock', unlockOf(LEAVER));
    await expect(unlock).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    // It is waited for: a configuration is refused for good only by a lock that is there.
    await expect(apply(LEAVER, 1)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    // Its return takes an open window again.
    expect(await site.join(LEAVER)).toBe('closed');
  });

  it('reports a door that opens, and the user at it', async () => {
    await site.set(LOCK, { door: 'open' });
    await expect.poll(() => reported('lockEvent', 'doorOpen')).toBe(true);
    await site.set(LOCK, { alarm: 4 });
    await expect.poll(() => reported('lockEvent', 'wrongCodes')).toBe(true);
  });

  it('believes nothing of values that mean unknown, nor of endpoints and clusters of others', async () => {
    const before = report(LOCK);
    await site.set(LOCK, {
      faults: { invalidValues: true, foreignClusters: [0xfc99], oversizedStrings: 200 },
    });
    await gateway.execute('unlock', unlockOf(LOCK));
    await site.set(LOCK, { battery: { percent: 50 }, announce: true });
    const { lcuFirmwareVersion, configVersion } = before;
    expect(report(LOCK)).toMatchObject({ connected: true, lcuFirmwareVersion, configVersion });
    await site.set(LOCK, { faults: null });
  });

  it('maps its network', async () => {
    await gateway.execute('permitJoin', { seconds: 30, allowed: [], installCodes: [] });
    await site.join(ROUTER);
    // In the same window, through the router, once it knows of the window.
    await expect
      .poll(
        async () =>
          await site.join(BEHIND).then(
            () => true,
            () => false,
          ),
      )
      .toBe(true);
    await expect
      .poll(async () => networkMap.parse(await gateway.execute('networkMap', {})).nodes.length)
      .toBeGreaterThanOrEqual(4);
    const map = networkMap.parse(await gateway.execute('networkMap', {}));
    expect(map.nodes).toContainEqual({ hwId: '00124b0014d9a001', type: 'coordinator' });
    expect(map.links).toContainEqual(
      expect.objectContaining({ from: '00124b0014d9a001', to: LOCK, lqi: 180 }),
    );
    await gateway.execute('permitJoin', { seconds: 0, allowed: [], installCodes: [] });
  }, 60_000);

  it('ends an update on request, and goes on with it where the lock was', async () => {
    const file = join(folder(), 'lock.ota');
    writeFileSync(file, otaFile(0x0102_0500));
    const before = (await site.state(RELOCKING)).firmware.version;
    const ends = () => endsOf(RELOCKING);
    const download = async () =>
      (await site.state(RELOCKING)).firmware.download as { offset: number; blocks: number };
    await gateway.execute('updateLock', { hwId: RELOCKING, file });
    await expect.poll(async () => (await download()).blocks).toBeGreaterThan(1);
    // Of another lock, it changes nothing.
    await gateway.execute('cancelUpdate', { hwId: LOCK });
    await gateway.execute('cancelUpdate', { hwId: RELOCKING });
    await expect.poll(() => ends()[0]).toMatchObject({ outcome: 'cancelled', reason: null });
    expect((await site.state(RELOCKING)).firmware.version).toBe(before);
    const { offset, blocks } = await download();
    expect(offset).toBeGreaterThan(0);
    // Harmless when there is none.
    await gateway.execute('cancelUpdate', { hwId: RELOCKING });
    await gateway.execute('updateLock', { hwId: RELOCKING, file });
    await expect.poll(() => ends()[1], { timeout: 30_000 }).toMatchObject({ outcome: 'updated' });
    expect((await site.state(RELOCKING)).firmware.version).toBe(0x0102_0500);
    // Each block came once: what the lock had was not sent again.
    const rest = otaFile(0).length - offset;
    expect((await download()).blocks - blocks).toBe(Math.ceil(rest / 50));
  }, 90_000);

  it('gives a lock new firmware from a file, and only a newer one', async () => {
    const file = join(folder(), 'lock.ota');
    writeFileSync(file, otaFile(0x0102_0400));
    expect(await gateway.execute('updateLock', { hwId: LOCK, file })).toBe(null);
    await expect(gateway.execute('updateLock', { hwId: STANDARD, file })).rejects.toMatchObject({
      code: 'BUSY',
    });
    const ends = () => endsOf(LOCK);
    await expect.poll(() => ends().length, { timeout: 60_000 }).toBe(1);
    expect(ends()[0]).toMatchObject({ hwId: LOCK, outcome: 'updated', reason: null });
    expect(gateway.reports.get(`firmware:${LOCK}`)).toMatchObject({ percent: 100 });
    expect((await site.state(LOCK)).firmware.version).toBe(0x0102_0400);
    expect(ends()[0]).toMatchObject({ zigbeeFirmwareVersion: '1.2.4' });
    await expect.poll(() => report(LOCK).zigbeeFirmwareVersion).toBe('1.2.4');
    await gateway.execute('updateLock', { hwId: LOCK, file });
    await expect.poll(() => ends()[1], { timeout: 20_000 }).toMatchObject({ outcome: 'refused' });
    // A daemon that was killed before it heard of the end asks for it again.
    await gateway.execute('updateLock', { hwId: LOCK, file, isResumed: true });
    const updated = { outcome: 'updated', reason: null, zigbeeFirmwareVersion: '1.2.4' };
    await expect.poll(() => ends()[2], { timeout: 20_000 }).toMatchObject(updated);
    const missing = { hwId: LOCK, file: '/nonexistent.ota' };
    await expect(gateway.execute('updateLock', missing)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  }, 90_000);

  it('offers a lock no firmware that is for another make or type, or is cut short', async () => {
    const file = join(folder(), 'other.ota');
    const before = endsOf(LOCK).length;
    for (const [index, other] of [
      otaFile(0x0102_0900, { manufacturer: 0x9999 }),
      otaFile(0x0102_0900, { type: 2 }),
    ].entries()) {
      writeFileSync(file, other);
      await gateway.execute('updateLock', { hwId: LOCK, file });
      await expect
        .poll(() => endsOf(LOCK)[before + index], { timeout: 20_000 })
        .toMatchObject({
          outcome: 'refused',
          reason: expect.stringMatching(
            /^the file is for manufacturer 0x.*, the lock is of manufacturer 0x1234, image type 1$/,
          ),
        });
    }
    writeFileSync(file, otaFile(0x0102_0900).subarray(0, -1));
    await expect(gateway.execute('updateLock', { hwId: LOCK, file })).rejects.toMatchObject({
      code: 'INVALID_COMMAND',
      message: expect.stringMatching(/^other\.ota is no Zigbee OTA file, or is damaged/),
    });
    expect(endsOf(LOCK)).toHaveLength(before + 2);
  }, 60_000);

  it('gives no firmware to a lock that asks for some by itself', async () => {
    const before = (await site.state(STANDARD)).firmware;
    const seen = () => report(STANDARD).lastSeen as number;
    const last = seen();
    await site.set(STANDARD, { queryFirmware: true });
    await expect.poll(seen).toBeGreaterThan(last);
    // What it had been answered came before this.
    await gateway.execute('unlock', unlockOf(STANDARD));
    expect((await site.state(STANDARD)).firmware).toEqual(before);
  });

  it('moves to another channel on request, and not before', async () => {
    await expect(gateway.execute('applyChannels', { allowedChannels: [20] })).rejects.toMatchObject({
      code: 'REFUSED',
    });
    expect(await gateway.execute('applyChannels', { allowedChannels: [15, 20] })).toEqual({
      zigbeeChannel: 15,
    });
    const seen = report(STANDARD).lastSeen as number;
    const moving = gateway.execute('moveChannel', { channel: 20 }, 40_000);
    await expect(gateway.execute('unlock', unlockOf(LOCK))).rejects.toMatchObject({
      code: 'BUSY',
    });
    expect(await moving).toEqual({ zigbeeChannel: 20 });
    expect(gateway.reports.get('gateway')).toMatchObject({ zigbeeChannel: 20 });
    // It is asked whether it has followed: by itself it would say so at its next check-in.
    await expect.poll(() => report(STANDARD).lastSeen, { timeout: 20_000 }).toBeGreaterThan(seen);
    expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
    expect(await apply(LOCK, 9)).toMatchObject({ configVersion: 9 });
  }, 60_000);

  it('frees a lock at once of a configuration that is withdrawn before it has left', async () => {
    await site.set(LOCK, { faults: { slowMs: 2_000 } });
    // It has the lock to itself until it is answered.
    const before = gateway.execute('unlock', unlockOf(LOCK));
    const withdrawn = new AbortController();
    const data = { hwId: LOCK, configVersion: 1_000, ...versions, configuration };
    const deadline = systemClock.monotonic() + 20_000;
    const first = gateway.driver.execute({ kind: 'applyConfiguration', data, deadline }, withdrawn.signal);
    await expect(apply(LOCK, 1_001)).rejects.toMatchObject({ code: 'BUSY' });
    withdrawn.abort();
    await expect(first).rejects.toMatchObject({ code: 'NO_REPLY' });
    expect(await apply(LOCK, 1_001)).toMatchObject({ configVersion: 1_001 });
    await before;
    await site.set(LOCK, { faults: null });
  });
});

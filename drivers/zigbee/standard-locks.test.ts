/** Locks without a cluster of their own, as they come from makers: against a simulated network. */
import { inspect } from 'node:util';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  afterAllTests,
  CONFIRMED,
  joined,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { LockReport } from '../contract/settings.ts';

const FULL = '00158d0001000021';
const BARE = '00158d0001000022';
const RELOCKING = '00158d0001000023';
const CODED = '00158d0001000024';
const PIN = '90210';

describe('a standard lock', () => {
  let site: SimulatedGateway;
  let gateway: TestGateway;

  beforeAll(async () => {
    const cleanup = afterAllTests();
    const plain = { vendorCluster: false, mains: true };
    // Without a passage mode or Unlock with Timeout.
    const least = { ...plain, supportedOperatingModes: 0x01, lacksCommands: [3] };
    const locks = [
      { ieee: FULL, ...plain, bindingsMax: 2 },
      { ieee: BARE, ...least, autoRelockSeconds: null },
      { ieee: RELOCKING, ...least, autoRelockSeconds: 60 },
      { ieee: CODED, ...plain, requirePin: true, pins: [{ user: 3, code: PIN }] },
    ];
    site = await simulated({ locks }, cleanup);
    gateway = await opened(site, {}, { cleanup });
    for (const { ieee } of locks) await joined(gateway, site, ieee);
    await site.setGateway({ pace: 1 });
  }, 60_000);

  const report = (ieee: string) => gateway.reports.get(`device:${ieee}`) as LockReport;
  const events = (ieee: string) =>
    gateway.events
      .filter(({ kind, data }) => kind === 'lockEvent' && JSON.stringify(data).includes(ieee))
      .map(({ data }) => (data as { what: string }).what);

  it('is configured but for the one binding that it has no room for, which is shown', async () => {
    const [fault, ...others] = report(FULL).setupFaults ?? [];
    expect(fault).toMatchObject({
      step: 'binding of genPowerCfg',
      reason: 'the lock refused it: TABLE_FULL (0x8c)',
    });
    expect(others).toEqual([]);
    expect(report(FULL)).toMatchObject({ battery: 87, batteryLow: false, lockState: { value: 'locked' } });
    await site.set(FULL, { door: 'forcedOpen' });
    await site.set(FULL, { manual: 'unlock' });
    await vi.waitFor(() =>
      expect(events(FULL)).toEqual(expect.arrayContaining(['unlockedManually', 'forcedOpen'])),
    );
  });

  const fresh = async (ieee: string) => {
    await site.set(ieee, { faults: null, manual: 'lock' });
    await expect.poll(async () => (await site.state(ieee)).lockState).toBe(1);
    await site.set(ieee, { clearLog: true });
  };
  const commands = async (ieee: string) =>
    (await site.state(ieee)).received
      .filter(({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation)
      .map(({ command }) => command);
  const unlock = (hwId: string, change: object = {}) =>
    gateway.execute('unlock', { ...unlockOf(hwId), ...change });

  it('is unlocked by Unlock with Timeout where it says that it has it', async () => {
    await fresh(FULL);
    expect(report(FULL).relock).toEqual({ by: 'timedUnlock', seconds: null });
    expect(await unlock(FULL, { relockSeconds: 1 })).toEqual(CONFIRMED);
    await expect.poll(async () => (await site.state(FULL)).lockState).toBe(1);
    expect(await commands(FULL)).toEqual([3]);
  });

  it('is unlocked for its own auto-relock to lock it where it has no Unlock with Timeout', async () => {
    await fresh(RELOCKING);
    expect(report(RELOCKING).relock).toEqual({ by: 'autoRelock', seconds: 60 });
    expect(await unlock(RELOCKING)).toEqual({ ...CONFIRMED, relock: 'autoRelock' });
    expect(await commands(RELOCKING)).toEqual([1]);
  });

  it('is unlocked only for a gateway that locks it again where it never does itself', async () => {
    await fresh(BARE);
    expect(report(BARE)).toMatchObject({ relock: { by: 'gateway', seconds: null }, requiresPin: false });
    await expect(unlock(BARE)).rejects.toMatchObject({ code: 'REFUSED', message: /^not sent: / });
    expect(await commands(BARE)).toEqual([]);
    expect(await unlock(BARE, { gatewayRelocks: true })).toEqual({ ...CONFIRMED, relock: 'gateway' });
    expect(await gateway.execute('lock', { hwId: BARE, pin: null })).toEqual({ outcome: 'confirmed' });
    expect((await site.state(BARE)).lockState).toBe(1);
    // Of one that is locked already.
    expect(await gateway.execute('lock', { hwId: BARE, pin: null })).toEqual({ outcome: 'confirmed' });
    expect(await commands(BARE)).toEqual([1, 0, 0]);
  });

  it('is not said to be locked while its bolt does not move', async () => {
    await fresh(BARE);
    await unlock(BARE, { gatewayRelocks: true });
    await site.set(BARE, { faults: { jammed: true } });
    expect(await gateway.execute('lock', { hwId: BARE, pin: null })).toEqual({ outcome: 'jammed' });
  });

  it('is sent a lock command once more when it speaks after it has not heard the first', async () => {
    await fresh(BARE);
    await unlock(BARE, { gatewayRelocks: true });
    await site.set(BARE, { faults: { lostRequests: 1 } });
    const locking = gateway.execute('lock', { hwId: BARE, pin: null });
    await expect.poll(async () => (await site.state(BARE)).faults).toEqual({});
    await site.set(BARE, { announce: true });
    expect(await locking).toEqual({ outcome: 'confirmed' });
    expect(await site.state(BARE)).toMatchObject({ lockState: 1 });
  });

  it('is given its PIN where it requires one, which nothing shows', async () => {
    await fresh(CODED);
    expect(report(CODED)).toMatchObject({ requiresPin: true });
    await expect(unlock(CODED)).rejects.toMatchObject({ code: 'REFUSED', message: /requires a PIN/ });
    const wrong = await unlock(CODED, { pin: '77077' }).catch((error: unknown) => error);
    expect(wrong).toMatchObject({ code: 'REFUSED', message: /its stored PIN/ });
    expect(await unlock(CODED, { pin: PIN })).toEqual(CONFIRMED);
    expect(await gateway.execute('lock', { hwId: CODED, pin: PIN })).toEqual({ outcome: 'confirmed' });
    // A frame that is lost, whose payload the library writes into its errors.
    await site.set(CODED, { faults: { offline: true } });
    const lost: unknown = await gateway
      .execute('unlock', { ...unlockOf(CODED), pin: PIN }, 9_000)
      .catch((error: unknown) => error);
    await site.set(CODED, { faults: null });
    // With the properties of errors, their stacks and causes.
    const shown = inspect([wrong, lost, gateway.logged, gateway.events, gateway.reports], { depth: 10 });
    expect(shown).not.toMatch(/\b(90210|77077)\b|57, ?48, ?50, ?49, ?48|3930323130/);
    // To a lock that needs none, none is sent.
    await unlock(FULL, { pin: PIN });
    const heard = JSON.stringify((await site.state(FULL)).received);
    expect(heard).not.toContain(Buffer.from(PIN).toString('hex'));
  });

  const standing = (kind: 'standOpen' | 'endStandOpen', hwId: string) =>
    gateway.execute(kind, { hwId, pin: null });

  it('stands open by its passage mode, is seen open, and is locked at the end', async () => {
    await fresh(FULL);
    expect(report(FULL).standOpen).toBe('passage');
    expect(await standing('standOpen', FULL)).toEqual({ outcome: 'confirmed' });
    expect(await site.state(FULL)).toMatchObject({ operatingMode: 4, lockState: 2 });
    expect(await standing('endStandOpen', FULL)).toEqual({ outcome: 'confirmed' });
    expect(await site.state(FULL)).toMatchObject({ operatingMode: 0, lockState: 1 });
  });

  it('stands open unlocked, with its own relock time put aside and given back', async () => {
    await fresh(RELOCKING);
    expect(report(RELOCKING).standOpen).toBe('unlocked');
    expect(await standing('standOpen', RELOCKING)).toEqual({ outcome: 'confirmed' });
    expect(await standing('standOpen', RELOCKING)).toMatchObject({ outcome: 'confirmed' });
    expect(await site.state(RELOCKING)).toMatchObject({ autoRelockSeconds: 0, lockState: 2 });
    expect(await standing('endStandOpen', RELOCKING)).toEqual({ outcome: 'confirmed' });
    expect(await site.state(RELOCKING)).toMatchObject({ autoRelockSeconds: 60, lockState: 1 });
    await expect.poll(() => report(RELOCKING).relock).toEqual({ by: 'autoRelock', seconds: 60 });
    expect(await standing('endStandOpen', RELOCKING)).toEqual({ outcome: 'confirmed' });
    expect(await site.state(RELOCKING)).toMatchObject({ autoRelockSeconds: 60, lockState: 1 });
  });

  it('stands open and is locked again also with neither a passage mode nor a relock time', async () => {
    await fresh(BARE);
    expect(await standing('standOpen', BARE)).toEqual({ outcome: 'confirmed' });
    expect(await standing('endStandOpen', BARE)).toEqual({ outcome: 'confirmed' });
    expect(await site.state(BARE)).toMatchObject({ lockState: 1 });
  });

  it('does not say that it stands open while its bolt does not move', async () => {
    await fresh(BARE);
    await site.set(BARE, { faults: { jammed: true } });
    expect(await standing('standOpen', BARE)).toEqual({ outcome: 'jammed' });
    await site.set(BARE, { faults: null });
  });
});

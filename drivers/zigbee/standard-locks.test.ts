/** Locks without a cluster of their own, as they come from makers: against a simulated network. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { LockReport } from '../settings.ts';
import { joined, opened, simulated, type TestGateway } from './test-gateway.ts';

const FULL = '00158d0001000021';

describe('a standard lock', () => {
  let site: SimulatedGateway;
  let gateway: TestGateway;

  beforeAll(async () => {
    const closers: (() => Promise<void> | void)[] = [];
    afterAll(async () => {
      for (const close of closers.toReversed()) await close();
    });
    const cleanup = (close: () => Promise<void> | void) => void closers.push(close);
    const plain = { vendorCluster: false, mains: true };
    const locks = [{ ieee: FULL, ...plain, bindingsMax: 2 }];
    site = await simulated({ locks }, cleanup);
    gateway = await opened(site, {}, { cleanup });
    for (const { ieee } of locks) await joined(gateway, site, ieee);
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
});

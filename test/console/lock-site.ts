/** A site of simulated locks with a browser in front of it: two gateways, each with a lock that has joined. */
import { expect } from 'vitest';
import type { GatewayPlan } from '../simulators/zigbee/plan.ts';
import { openZigbeeSite, waitFor, type ZigbeeSite } from '../zigbee-site.ts';
import { openVisitors, type Visitors } from './browser.ts';

export const MACS = ['00158d0001aa0101', '00158d0001aa0102'] as const;
/** A lock at the first gateway that has not joined. */
export const NEWCOMER = '00158d0001aa0103';

export interface LockSite {
  site: ZigbeeSite;
  visitors: Visitors;
}

/** Closed with `stack`. */
export async function openLockSite(stack: AsyncDisposableStack): Promise<LockSite> {
  const plan = (number: number, ...locks: string[]) =>
    ({ ieee: `00124b0014d9a00${number}`, locks: locks.map((ieee) => ({ ieee })) }) as GatewayPlan;
  const plans = [plan(1, MACS[0], NEWCOMER), plan(2, MACS[1])] as const;
  const site = stack.use(await openZigbeeSite(plans));
  const joined = MACS.map(async (mac, index) => {
    const gateway = site.gateways[index as 0 | 1];
    await waitFor(async () =>
      expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }),
    );
    await site.join(gateway, mac);
  });
  await Promise.all(joined);
  return { site, visitors: stack.use(await openVisitors(site.site.daemon)) };
}

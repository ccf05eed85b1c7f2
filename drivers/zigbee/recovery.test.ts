/** Locks that moved while nobody heard them: with another address, or from the coordinator to a router. */
import { expect, it, vi } from 'vitest';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import {
  CONFIRMED,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from './test-gateway.ts';

const ROUTER = '00158d00010000aa';
/** A parent may hold an actuation for 8 s, and the rest is to send it. */
const SHORT_MS = 8_500;
const A_MINUTE = { timeout: 60_000, interval: 100 };

const unlock = (gateway: TestGateway) => gateway.execute('unlock', unlockOf(LOCK), SHORT_MS);
const isConnected = (gateway: TestGateway) =>
  (gateway.reports.get(`device:${LOCK}`) as { connected?: boolean } | undefined)?.connected;

/** What it executed, each by a command of its own. */
async function executed(site: SimulatedGateway): Promise<unknown[]> {
  const { executed: all } = await site.state(LOCK);
  return all.filter(({ what }) => what === 'unlock').map(({ tsn }) => tsn);
}

async function healed(site: SimulatedGateway, gateway: TestGateway): Promise<void> {
  await expect(unlock(gateway)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await vi.waitFor(() => expect(isConnected(gateway)).toBe(false));
  const { received } = await site.state(LOCK);
  await vi.waitFor(() => expect(isConnected(gateway)).toBe(true), A_MINUTE);
  // It was asked, and sent nothing by itself.
  expect((await site.state(LOCK)).received.length).toBeGreaterThan(received.length);
  expect(await unlock(gateway)).toEqual(CONFIRMED);
  // The first one was never delivered, and is not delivered now.
  expect(await executed(site)).toHaveLength(1);
}

it('finds a lock with another network address within a minute, without a word of it', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { readdress: 'silently' });
  await healed(site, gateway);
}, 90_000);

it('finds a sleeping lock that went from the coordinator to a router, within a minute', async () => {
  const site = await simulated({
    locks: [{ ieee: LOCK, sleepy: {} }],
    routers: [{ ieee: ROUTER, joined: true }],
  });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { missedParent: ROUTER });
  await healed(site, gateway);
}, 90_000);

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

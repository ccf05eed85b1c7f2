/** Coordinators that restart in the middle of work, or whose line carries noise. */
import { expect, it } from 'vitest';
import {
  CONFIRMED,
  folder,
  hasJoined,
  joined,
  LOCK,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { openWire } from '../../test/drivers/zigbee/wire.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';
import type { GatewayReport } from '../contract/settings.ts';

const PIN = '86420975';
const DOOR = { hwId: LOCK, pin: null };
const USER = { hwId: LOCK, userId: 3, isEnabled: true, pin: PIN, card: null, access: { kind: 'always' } };
const SETTINGS = { hwId: LOCK, settings: { soundVolume: 2, wrongCodeLimit: 7 } };
const open = (gateway: TestGateway, seconds: number) =>
  gateway.execute('permitJoin', { seconds, allowed: [], installCodes: [] });

/** Frames of any kind that the coordinator was sent. */
const frames = async (site: SimulatedGateway) =>
  Object.values((await site.stats()).stick.frames.byType).reduce((sum, count) => sum + count, 0);

async function isLost(gateway: TestGateway, work: Promise<unknown>): Promise<void> {
  expect(await gateway.ended).toMatchObject({ code: 'LINK_LOST' });
  await work;
}

/** It restarts once it was sent so many frames of the work; what comes of that is not said. */
async function restartsIn(
  site: SimulatedGateway,
  gateway: TestGateway,
  work: () => Promise<unknown>,
  { after = 2, lost = isLost } = {},
): Promise<void> {
  const before = await frames(site);
  const end = work().catch((error: unknown) => error);
  await expect.poll(() => frames(site), { interval: 1 }).toBeGreaterThanOrEqual(before + after);
  await site.selfReset();
  await lost(gateway, end);
  await gateway.close();
}

it('a coordinator that restarts in the middle of its work is lost, and the work is done by the next start', async () => {
  // It repeats no event: one of standing open would be new to the next start, and say who moved the bolt in the unlock at the end.
  const lock = { ieee: LOCK, vendorCluster: false, mains: true, asksDefaultResponse: false };
  const site = await simulated({ locks: [lock] });
  shortenTimeouts(0.2);
  const stateDirectory = folder();
  const start = () => opened(site, { stateDirectory, knownLocks: [] });
  let gateway = await start();
  /** The same again. */
  const again = async (work: (one: TestGateway) => Promise<unknown>) => {
    const before = gateway;
    await restartsIn(site, before, () => work(before));
    gateway = await start();
    return work(gateway);
  };

  await again((one) => open(one, 60));
  await open(gateway, 0);
  await joined(gateway, site);

  expect(await again((one) => one.execute('applyUser', USER))).toEqual({ isShown: true });
  expect((await site.state(LOCK)).pins).toMatchObject([{ user: 3, code: PIN }]);
  await again((one) => one.execute('applyLockSettings', SETTINGS));
  await again((one) => one.execute('standOpen', DOOR));
  expect(await again((one) => one.execute('endStandOpen', DOOR, 40_000))).toMatchObject({
    outcome: 'confirmed',
  });
  expect(await site.state(LOCK)).toMatchObject({ lockState: 1, operatingMode: 0 });

  const moving = gateway;
  // A move has its connection closed for a while, and need not notice.
  const lost = async (_: TestGateway, work: Promise<unknown>) => void (await work);
  await restartsIn(site, moving, () => moving.execute('moveChannel', { channel: 20 }, 40_000), { lost });
  gateway = await start();
  expect((gateway.reports.get('gateway') as GatewayReport).zigbeeChannel).toBe(20);
  await site.set(LOCK, { clearLog: true });
  expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
  expect((await site.state(LOCK)).executed.filter(({ what }) => what === 'unlock')).toHaveLength(1);
}, 120_000);

it('a lock that was being asked what it is when its coordinator restarted is asked by the next start', async () => {
  const site = await simulated({
    locks: [{ ieee: LOCK, mains: true, faults: { lostResponses: 1_000_000 } }],
  });
  const stateDirectory = folder();
  const before = await opened(site, { stateDirectory });
  await open(before, 60);
  await restartsIn(site, before, () => site.join(LOCK));
  expect(hasJoined(before)).toBe(false);
  await site.set(LOCK, { faults: null });
  const gateway = await opened(site, { stateDirectory });
  await expect.poll(() => hasJoined(gateway)).toBe(true);
  expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
}, 60_000);

it('noise between the frames of its line opens no door, and no door twice', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const wire = await openWire(site.port);
  const gateway = await opened(wire);
  await joined(gateway, site);
  await site.set(LOCK, { clearLog: true });
  const random = openRandom(20_261_127);
  // ASH: flag, escape, XON, XOFF, substitute and cancel (UG101, rev. 3.1, clause 4.2); MT: start of frame.
  const special = [0x7e, 0x7d, 0x11, 0x13, 0x18, 0x1a, 0xfe];
  const byte = () =>
    random() < 0.3 ? special[Math.floor(random() * special.length)] : Math.floor(random() * 256);
  const noise = () => Buffer.from(Array.from({ length: 1 + Math.floor(random() * 40) }, () => byte() ?? 0));
  const unlock = () => gateway.execute('unlock', unlockOf(LOCK)).catch((error: unknown) => error);
  const outcomes: unknown[] = [];
  for (let round = 0; round < 4; round += 1) {
    const outcome = unlock();
    for (let burst = 0; burst < 3; burst += 1) await wire.inject(noise());
    outcomes.push(await outcome);
  }
  // Noise that looks like the beginning of a frame has its end once an answer to the library was waited for in vain, 6 s.
  const again = async () => outcomes[outcomes.push(await unlock()) - 1];
  await expect.poll(again).toEqual(CONFIRMED);
  const unlocks = (await site.state(LOCK)).executed.filter(({ what }) => what === 'unlock');
  expect(new Set(unlocks.map(({ tsn }) => tsn)).size).toBe(unlocks.length);
  expect(unlocks.length).toBeLessThanOrEqual(outcomes.length);
  const confirmed = outcomes.filter((one) => (one as { outcome?: string }).outcome === 'confirmed');
  expect(unlocks.length).toBeGreaterThanOrEqual(confirmed.length);
}, 120_000);

/** What holds of EmberZNet coordinators alone; what holds of all is in unlocking.test.ts and others. */
import { expect, it, vi } from 'vitest';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  NETWORK,
  OTHER_LOCK,
  opened,
  simulated,
  snapshotOf,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { carriedNetwork } from '../contract/zgate.ts';
import { zigbeeLinkOptions } from './options.ts';

const unlock = unlockOf(LOCK);
/** The example of the Base Device Behavior specification 3.0.1, 10.1. */
const CODE = '83fed3407a939723a5c639b26916d505c3b5';
const NEW_STICK = '00124b0014d9a0ff';
const LINK_LOST = { code: 'LINK_LOST' };

it('loses a coordinator at once that does not take an unlock, with what it has not taken', async () => {
  const site = await simulated({ adapter: 'ember', locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const gateway = await opened(site, { stateDirectory });
  await joined(gateway, site);
  await site.setGateway({ ash: { lost: 1 } });
  await expect(gateway.execute('unlock', unlock)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(await gateway.ended).toMatchObject(LINK_LOST);
  await gateway.close();
  const again = await opened(site, { stateDirectory });
  expect(await again.execute('unlock', unlock)).toEqual(CONFIRMED);
  expect((await site.state(LOCK)).executed).toHaveLength(1);
}, 60_000);

it('opens a door once over a line on which frames are damaged', async () => {
  const site = await simulated({ adapter: 'ember', locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { clearLog: true });
  await site.setGateway({ ash: { nak: 1 } });
  expect(await gateway.execute('unlock', unlock)).toEqual(CONFIRMED);
  await site.setGateway({ ash: { damaged: 1 } });
  expect(await gateway.execute('unlock', unlock)).toEqual(CONFIRMED);
  expect((await site.state(LOCK)).executed).toHaveLength(2);
}, 60_000);

it('is lost when its coordinator restarts during an unlock, which is not sent again', async () => {
  const site = await simulated({ adapter: 'ember', locks: [{ ieee: LOCK, sleepy: {} }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { clearLog: true, sleepy: { pollMs: 2_000, awakeMs: 0 } });
  const sent = async () => (await site.stats()).stick.frames.byType['34'] ?? 0;
  const before = await sent();
  const ended = gateway.execute('unlock', unlock).catch((error: unknown) => error);
  await vi.waitFor(async () => expect(await sent()).toBeGreaterThan(before));
  await site.selfReset();
  expect(await gateway.ended).toMatchObject(LINK_LOST);
  const outcome = await ended;
  const { executed } = await site.state(LOCK);
  // It may have fetched it just before.
  if (executed.length === 0) expect(outcome).not.toEqual(CONFIRMED);
  expect(executed.length).toBeLessThanOrEqual(1);
}, 60_000);

it('forms no network over another one for a gateway that has none, until it is asked to', async () => {
  const site = await simulated({ adapter: 'ember' });
  await (await opened(site)).close();
  const network = { ...NETWORK, panId: NETWORK.panId - 1, networkKey: 'ffeeddccbbaa99887766554433221100' };
  const refused = {
    code: 'REFUSED',
    message: expect.stringContaining('gatehouse zgate restore --new-network'),
  };
  const why = await opened(site, { network }).catch(String);
  const newNetwork = carriedNetwork(`${why}`.replace('DriverError: ', '')) ?? '';
  expect(newNetwork).toMatch(/^1a62-[0-9a-f]{16}$/);
  // Asked for that of another coordinator, or too long ago.
  const ofOther = { network, newNetwork: `0000-${NETWORK.extPanId}` };
  await expect(opened(site, ofOther)).rejects.toMatchObject(refused);
  await expect(opened(site, { network, newNetwork, askedUntil: Date.now() })).rejects.toMatchObject(refused);
  expect((await site.stats()).stick).toMatchObject({ panId: NETWORK.panId });
  await opened(site, { network, newNetwork });
  expect((await site.stats()).stick).toMatchObject({ panId: network.panId });
}, 60_000);

it('says what to do when a stick stores the address of the one before, and keeps its own', async () => {
  const site = await simulated({ adapter: 'ember' });
  const first = await opened(site);
  const archive = await snapshotOf(first);
  await first.close();
  await site.setGateway({ newStick: { ieee: NEW_STICK, keepsIeee: true } });
  const restore = { snapshot: archive, restore: true };
  await expect(opened(site, restore)).rejects.toMatchObject(LINK_LOST);
  for (const _ of ['again', 'and again'])
    await expect(opened(site, restore)).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('restore onto another coordinator'),
    });
  expect((await site.stats()).stick).toMatchObject({ isStarted: false, ieee: NEW_STICK });
}, 60_000);

it.each([
  { ezspVersion: 12, advice: 'EmberZNet 7.4 or newer' },
  {
    ezspVersion: 20,
    advice: 'versions to 19 are known here: give it an older EmberZNet, or update Gatehouse',
  },
])(
  'refuses a stick of EZSP $ezspVersion, and says what to do',
  async ({ ezspVersion, advice }) => {
    const site = await simulated({ adapter: 'ember', ezspVersion });
    await expect(opened(site)).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining(advice),
    });
  },
  60_000,
);

it('leaves a stick on the network that it is on, when that is another one', async () => {
  const site = await simulated({ adapter: 'ember' });
  const stateDirectory = folder();
  await (await opened(site, { stateDirectory })).close();
  await site.setGateway({ newStick: { ieee: NEW_STICK } });
  const network = { ...NETWORK, panId: 0x2b73, networkKey: 'ffeeddccbbaa99887766554433221100' };
  await (await opened(site, { network })).close();
  await expect(opened(site, { stateDirectory })).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringContaining('not on the network of this gateway'),
  });
  expect((await site.stats()).stick).toMatchObject({ isStarted: true, panId: 0x2b73 });
}, 60_000);

it('takes back the install code of a lock, and keeps those of others', async () => {
  const site = await simulated({
    adapter: 'ember',
    locks: [{ ieee: LOCK, installCode: CODE }, { ieee: OTHER_LOCK }],
  });
  const gateway = await opened(site);
  const open = (seconds: number, hwIds: string[] = []) => {
    const installCodes = hwIds.map((hwId) => ({ hwId, code: CODE }));
    return gateway.execute('permitJoin', { seconds, allowed: [], installCodes });
  };
  const codes = async () => (await site.stats()).stick.installCodes;
  await open(60, [OTHER_LOCK]);
  expect(await site.join(OTHER_LOCK)).toBe('keyMismatch');
  await open(60, [LOCK]);
  expect(await codes()).toEqual([LOCK]);
  expect(await site.join(LOCK)).toBe('joined');
  await open(0);
  expect(await codes()).toEqual([]);
  await joined(gateway, site, OTHER_LOCK);
}, 60_000);

it('is not configured for deCONZ, and says why', () => {
  const { error } = zigbeeLinkOptions.safeParse({ port: '/dev/ttyACM0', adapter: 'deconz' });
  expect(error?.issues[0]?.message).toContain('an unlock could be sent late');
  expect(zigbeeLinkOptions.safeParse({ port: '/dev/ttyACM0', adapter: 'ember' }).success).toBe(true);
});

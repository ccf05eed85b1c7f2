/** Two locks of one network with one network address, by chance or by what one of them announces. */
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { PLAIN } from '../../test/drivers/zigbee/configuration.ts';
import {
  CONFIRMED,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';

const REFUSED = { code: 'DEVICE_OFFLINE', message: expect.stringContaining('its network address is also') };
const DOUBTED = {
  code: 'DEVICE_OFFLINE',
  message: expect.stringContaining('its network address is not certain yet'),
};
const PAIR = [
  { ieee: LOCK, mains: true },
  { ieee: OTHER_LOCK, mains: true },
];

/** A site of two locks that have joined, and what is done at it. */
async function pairedNetwork(locks: { ieee: string; mains: boolean; nwk?: number }[]) {
  const site = await simulated({ locks });
  const gateway = await opened(site);
  for (const { ieee } of locks) await joined(gateway, site, ieee);
  const unlocks = async (ieee: string) =>
    (await site.state(ieee)).executed.filter(({ what }) => what === 'unlock').length;
  return {
    site,
    gateway,
    unlock: (ieee: string) => gateway.execute('unlock', unlockOf(ieee)),
    moved: async () => [await unlocks(LOCK), await unlocks(OTHER_LOCK)],
    sharing: () => [LOCK, OTHER_LOCK].map((ieee) => field(gateway.reports.get(`device:${ieee}`))),
  };
}

/** An unlock without the time to be sent: nothing is, once or before it is known that the lock has asked to join. */
const tooShort = (gateway: TestGateway) =>
  gateway.execute('unlock', unlockOf(LOCK), 5_000).catch((error: unknown) => error);

const field = (report: unknown) => (report as { sharesAddressWith?: string[] }).sharesAddressWith;

it('opens neither door of two that share an address, and closes them', { timeout: 60_000 }, async () => {
  const { site, gateway, unlock, moved, sharing } = await pairedNetwork(
    PAIR.map((lock) => ({ ...lock, nwk: 0x11_11 })),
  );
  for (const ieee of [LOCK, OTHER_LOCK]) {
    await expect(unlock(ieee)).rejects.toMatchObject(REFUSED);
    await expect(gateway.execute('standOpen', { hwId: ieee, pin: null })).rejects.toMatchObject(REFUSED);
  }
  expect(await moved()).toEqual([0, 0]);
  expect(sharing()).toEqual([[OTHER_LOCK], [LOCK]]);
  expect(gateway.logged.join('\n')).toContain('its network address is also that of');
  await site.set(OTHER_LOCK, { manual: 'unlock', clearLog: true });
  // Who answered, and whose bolt is thrown, cannot be known.
  await expect(gateway.execute('lock', { hwId: OTHER_LOCK, pin: null }, 9_000)).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringContaining('its network address is also'),
  });
  expect((await site.state(OTHER_LOCK)).lockState).toBe(1);
  await site.set(OTHER_LOCK, { readdress: 'announced', clearLog: true });
  await site.set(LOCK, { clearLog: true });
  await vi.waitFor(() => expect(sharing()).toEqual([[], []]));
  expect(await unlock(LOCK)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 0]);
  expect(await unlock(OTHER_LOCK)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 1]);
});

it('opens no door whose lock another one claims to be, until it has spoken itself', {
  timeout: 60_000,
}, async () => {
  const { site, unlock, moved, sharing } = await pairedNetwork(PAIR);
  await site.set(LOCK, { faults: { offline: true } });
  await site.set(OTHER_LOCK, { announceAs: LOCK });
  await vi.waitFor(() => expect(sharing()).toEqual([[OTHER_LOCK], [LOCK]]));
  for (const ieee of [LOCK, OTHER_LOCK]) await expect(unlock(ieee)).rejects.toMatchObject(REFUSED);
  expect(await moved()).toEqual([0, 0]);
  await site.set(LOCK, { faults: { offline: null }, announce: true });
  await vi.waitFor(() => expect(sharing()).toEqual([[], []]));
  expect(await unlock(LOCK)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 0]);
  expect(await unlock(OTHER_LOCK)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 1]);
});

it('finds by itself who has the address when the lock that was claimed is there', {
  timeout: 60_000,
}, async () => {
  const { site, gateway, unlock, moved, sharing } = await pairedNetwork(PAIR);
  await site.set(OTHER_LOCK, { announceAs: LOCK });
  await vi.waitFor(() => expect(gateway.logged.join('\n')).toContain('is its own again'));
  await vi.waitFor(() => expect(sharing()).toEqual([[], []]));
  expect(await unlock(LOCK)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 0]);
});

it('opens no door whose lock another one claims to be before the command is released', {
  timeout: 60_000,
}, async () => {
  const { site, gateway, moved, sharing } = await pairedNetwork(PAIR);
  await site.set(LOCK, { faults: { offline: true } });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const deadline = systemClock.monotonic() + 20_000;
  const command = { kind: 'unlock', data: unlockOf(LOCK), deadline, released };
  const unlocking = gateway.driver.execute(command, AbortSignal.timeout(20_000));
  const refused = expect(unlocking).rejects.toMatchObject(REFUSED);
  await site.set(OTHER_LOCK, { announceAs: LOCK });
  await vi.waitFor(() => expect(sharing()).toEqual([[OTHER_LOCK], [LOCK]]));
  release();
  await refused;
  expect(await moved()).toEqual([0, 0]);
});

it('opens no door whose lock is said to have joined again until its address is certain, and does not take it for connected', {
  timeout: 60_000,
}, async () => {
  const { site, gateway, unlock, moved } = await pairedNetwork(PAIR);
  const connected = () => (gateway.reports.get(`device:${LOCK}`) as { connected: boolean }).connected;
  await site.set(LOCK, { faults: { offline: true } });
  await expect(gateway.execute('lock', { hwId: LOCK, pin: null }, 9_000)).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
  });
  await expect.poll(connected).toBe(false);
  await site.setGateway({ forgedJoin: { ieee: LOCK, nwk: 0x77_77 } });
  await expect.poll(() => tooShort(gateway)).toMatchObject(DOUBTED);
  expect(connected()).toBe(false);
  await site.set(LOCK, { faults: null, announce: true });
  await expect.poll(connected).toBe(true);
  expect(await unlock(LOCK)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 0]);
});

it('opens no door by a forged request to join that has the address of another lock', {
  timeout: 60_000,
}, async () => {
  const { site, gateway, unlock, moved } = await pairedNetwork(PAIR);
  const shown = () => gateway.reports.get(`device:${LOCK}`) as { lockState?: unknown };
  // It stands open.
  await site.set(LOCK, { manual: 'unlock' });
  await expect.poll(shown).toMatchObject({ lockState: { value: 'unlocked' } });
  await site.set(LOCK, { faults: { offline: true }, clearLog: true });
  await site.set(OTHER_LOCK, { readdress: 'silently' });
  const { nwk } = await site.state(OTHER_LOCK);
  await site.setGateway({ forgedJoin: { ieee: LOCK, nwk } });
  // What the other lock sends from there is not the word of the one that is said to be there.
  await expect.poll(() => tooShort(gateway)).toMatchObject(DOUBTED);
  await expect(unlock(LOCK)).rejects.toMatchObject(DOUBTED);
  const happened = () => gateway.events.filter(({ kind }) => kind === 'lockEvent').length;
  const [events, { lockState }] = [happened(), shown()];
  await site.set(OTHER_LOCK, { manual: 'lock' });
  const locking = gateway.execute('lock', { hwId: LOCK, pin: null }, 9_000);
  await expect(locking).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect((await site.state(OTHER_LOCK)).executed.map(({ what }) => what)).toContain('lock');
  expect([happened(), shown().lockState]).toEqual([events, lockState]);
  const versions = { doorVersion: 1, scheduleVersion: 0, templateVersion: 0, systemConfigVersion: 1 };
  const wanted = { hwId: LOCK, configVersion: 1, ...versions, configuration: PLAIN };
  const configuring = gateway.execute('applyConfiguration', wanted, 9_000);
  await expect(configuring).rejects.toMatchObject({ code: 'NO_REPLY', message: DOUBTED.message });
  expect((await site.state(OTHER_LOCK)).vendor?.applied).toEqual([]);
  expect(await moved()).toEqual([0, 0]);
  // The process that comes after this one has the address, and the doubt.
  await gateway.close();
  const again = await opened(site, {}, { again: gateway });
  const unlockAgain = () => again.execute('unlock', unlockOf(LOCK));
  await expect(unlockAgain()).rejects.toMatchObject(DOUBTED);
  expect(await moved()).toEqual([0, 0]);
  // It is asked where it is.
  await site.set(LOCK, { faults: null });
  await expect.poll(() => unlockAgain().catch(() => undefined)).toEqual(CONFIRMED);
  expect(await moved()).toEqual([1, 0]);
});

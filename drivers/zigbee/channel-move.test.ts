/** Which locks are reported as connected after the network has moved to another channel, on a simulated network. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import {
  folder,
  joined,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { lockReport } from '../contract/settings.ts';

const FOLLOWS = '00158d0001000021';
const REJOINS = '00158d0001000022';
const STAYS = '00158d0001000023';
const IS_AWAY = '00158d0001000024';
const TIMEOUT = { timeout: 20_000 };

it('reports the bolt as it was read again after a move', { timeout: 60_000 }, async () => {
  const site = await simulated({ locks: [{ ieee: FOLLOWS }] });
  const gateway = await opened(site);
  await joined(gateway, site, FOLLOWS);
  const bolt = () => lockReport.parse(gateway.reports.get(`device:${FOLLOWS}`)).lockState?.value;
  await vi.waitFor(() => expect(bolt()).toBe('locked'), TIMEOUT);
  // Turned by hand while no one hears it.
  await site.set(FOLLOWS, { faults: { lostResponses: 1_000 }, manual: 'unlock' });
  await expect.poll(async () => (await site.state(FOLLOWS)).lockState).toBe(2);
  expect(bolt()).toBe('locked');
  await site.set(FOLLOWS, { faults: null });
  await gateway.execute('moveChannel', { channel: 20 }, 40_000);
  await vi.waitFor(() => expect(bolt()).toBe('unlocked'), TIMEOUT);
  expect(of(gateway, FOLLOWS)).toEqual({ connected: true, heardOn: 20 });
});

const of = (gateway: TestGateway, ieee: string) => {
  const { connected, heardOn } = lockReport.parse(gateway.reports.get(`device:${ieee}`));
  return { connected, heardOn };
};

it('names as connected those that were heard on the new channel, also after a restart', {
  timeout: 60_000,
}, async () => {
  const site = await simulated({
    locks: [
      { ieee: FOLLOWS },
      { ieee: REJOINS, sleepy: { pollMs: 100 }, followsChannel: false, rejoinMs: 1_500 },
      { ieee: STAYS, followsChannel: false },
      { ieee: IS_AWAY },
    ],
  });
  const stateDirectory = folder();
  const gateway = await opened(site, { stateDirectory });
  for (const ieee of [FOLLOWS, REJOINS, STAYS, IS_AWAY]) await joined(gateway, site, ieee);
  await site.set(IS_AWAY, { faults: { offline: true } });
  await expect(gateway.execute('unlock', unlockOf(IS_AWAY))).rejects.toThrow();
  await vi.waitFor(() => expect(of(gateway, IS_AWAY)).toEqual({ connected: false, heardOn: 15 }), TIMEOUT);

  expect(await gateway.execute('moveChannel', { channel: 20 }, 40_000)).toEqual({ zigbeeChannel: 20 });
  // What has yet to speak on the new channel is not connected, and least of all what was not so before.
  expect(of(gateway, IS_AWAY)).toEqual({ connected: false, heardOn: 15 });
  expect(of(gateway, STAYS)).toEqual({ connected: false, heardOn: 15 });
  for (const ieee of [FOLLOWS, REJOINS])
    await vi.waitFor(() => expect(of(gateway, ieee)).toEqual({ connected: true, heardOn: 20 }), TIMEOUT);
  expect(await gateway.execute('unlock', unlockOf(REJOINS))).toMatchObject({ outcome: 'confirmed' });
  await gateway.close();

  const heardOn = { [FOLLOWS]: 20, [REJOINS]: 20, [STAYS]: 15, [IS_AWAY]: 15 };
  const again = await opened(site, { stateDirectory, heardOn, missed: [IS_AWAY, STAYS] });
  for (const ieee of [FOLLOWS, REJOINS]) expect(of(again, ieee).connected).toBe(true);
  for (const ieee of [STAYS, IS_AWAY]) expect(of(again, ieee)).toEqual({ connected: false, heardOn: 15 });
  await site.set(IS_AWAY, { faults: { offline: null }, rejoin: true });
  await site.set(STAYS, { rejoin: true });
  for (const ieee of [STAYS, IS_AWAY])
    await vi.waitFor(() => expect(of(again, ieee)).toEqual({ connected: true, heardOn: 20 }), TIMEOUT);
});

it('names no lock as connected that stayed behind when the link was lost during the move', {
  timeout: 60_000,
}, async () => {
  const site = await simulated({ locks: [{ ieee: FOLLOWS }, { ieee: STAYS, followsChannel: false }] });
  const stateDirectory = folder();
  // They join after the start of the host, whose options say nothing of them.
  const gateway = await opened(site, { stateDirectory });
  for (const ieee of [FOLLOWS, STAYS]) await joined(gateway, site, ieee);
  await site.drop();
  await gateway.close();
  // The move was stored, and is finished by the next start.
  writeFileSync(join(stateDirectory, 'channel'), '20');
  const again = await opened(site, {}, { again: gateway });
  expect(of(again, STAYS)).toEqual({ connected: false, heardOn: 15 });
  await vi.waitFor(() => expect(of(again, FOLLOWS)).toEqual({ connected: true, heardOn: 20 }), TIMEOUT);
  expect(of(again, STAYS)).toEqual({ connected: false, heardOn: 15 });
});

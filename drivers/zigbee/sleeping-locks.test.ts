/** Locks that sleep: their parent holds each frame until they poll, and they sleep again as soon as they answered. */
import { beforeAll, expect, it } from 'vitest';
import {
  afterAllTests,
  joined,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';

const PASSAGE = '00158d0001000041';
const RELOCKING = '00158d0001000042';
const BARE = '00158d0001000043';
const POLL_MS = 4_000;
/** Read Attributes (ZCL rev. 8, 2.5.1). */
const READ = 0x00;
/** As the daemon gives them (src/resources/doors/lock-links.ts). */
const UNLOCK_MS = 10_000;
const LOCK_MS = 20_000;
const CHANGE_MS = 60_000;

let site: SimulatedGateway;
let gateway: TestGateway;
beforeAll(async () => {
  const cleanup = afterAllTests();
  const plain = { vendorCluster: false, sleepy: { pollMs: 50 } };
  const least = { ...plain, supportedOperatingModes: 0x01, lacksCommands: [3] };
  const locks = [
    { ieee: PASSAGE, ...plain },
    { ieee: RELOCKING, ...least, autoRelockSeconds: 600 },
    { ieee: BARE, ...least, autoRelockSeconds: null },
  ];
  site = await simulated({ locks }, cleanup);
  gateway = await opened(site, {}, { cleanup });
  await site.setGateway({ pace: 1 });
  for (const { ieee } of locks) {
    await joined(gateway, site, ieee);
    await site.set(ieee, { sleepy: { pollMs: POLL_MS, awakeMs: 0 }, clearLog: true });
  }
}, 60_000);

const LOCKS = [PASSAGE, RELOCKING, BARE];
const lockOf = async (ieee: string) => {
  const { lockState, operatingMode, autoRelockSeconds } = await site.state(ieee);
  return { lockState, operatingMode, autoRelockSeconds };
};
const everyLock = <T>(doing: (ieee: string) => Promise<T>) => Promise.all(LOCKS.map(doing));
const send = (kind: 'lock' | 'standOpen' | 'endStandOpen', timeoutMs: number) =>
  everyLock((hwId) => gateway.execute(kind, { hwId, pin: null }, timeoutMs));
const CONFIRMED = LOCKS.map(() => ({ outcome: 'confirmed' }));

it('are locked with their first poll where their event names the command', { timeout: 60_000 }, async () => {
  await everyLock((ieee) => site.set(ieee, { manual: 'unlock' }));
  const reads = async (ieee: string) =>
    (await site.state(ieee)).received.filter(({ isFoundation, command }) => isFoundation && command === READ);
  await expect.poll(() => everyLock(lockOf)).toMatchObject(LOCKS.map(() => ({ lockState: 2 })));
  const before = await everyLock(reads);
  const sent = everyLock(async (hwId) => [
    await gateway.execute('lock', { hwId, pin: null, eventConfirms: true }, LOCK_MS),
    await reads(hwId),
  ]);
  // An answer to a question for the bolt would come with the next poll.
  expect(await sent).toEqual(before.map((reads) => [{ outcome: 'confirmed' }, reads]));
});

it('are unlocked within 10 s, and locked', { timeout: 60_000 }, async () => {
  const unlocks = everyLock((hwId) =>
    gateway.execute('unlock', { ...unlockOf(hwId), gatewayRelocks: true }, UNLOCK_MS),
  );
  expect(await unlocks).toMatchObject(CONFIRMED);
  expect(await send('lock', LOCK_MS)).toEqual(CONFIRMED);
  expect(await everyLock(lockOf)).toMatchObject(LOCKS.map(() => ({ lockState: 1 })));
});

it('stand open, and end that as they were', { timeout: 120_000 }, async () => {
  expect(await send('standOpen', CHANGE_MS)).toEqual(CONFIRMED);
  expect(await everyLock(lockOf)).toMatchObject([
    { lockState: 2, operatingMode: 4 },
    { lockState: 2, autoRelockSeconds: 0 },
    { lockState: 2 },
  ]);
  expect(await send('endStandOpen', CHANGE_MS)).toEqual(CONFIRMED);
  expect(await everyLock(lockOf)).toMatchObject([
    { lockState: 1, operatingMode: 0 },
    { lockState: 1, autoRelockSeconds: 600 },
    { lockState: 1 },
  ]);
});

it('are locked when a stand-open is ended before it was done', { timeout: 120_000 }, async () => {
  const opening = send('standOpen', CHANGE_MS).catch((error: unknown) => error);
  const ended = await send('endStandOpen', CHANGE_MS);
  expect(ended).toEqual(CONFIRMED);
  expect(await opening).toMatchObject({ code: expect.any(String) });
  expect(await everyLock(lockOf)).toMatchObject([
    { lockState: 1, operatingMode: 0 },
    { lockState: 1, autoRelockSeconds: 600 },
    { lockState: 1 },
  ]);
});

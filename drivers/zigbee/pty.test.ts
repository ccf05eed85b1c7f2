/** A coordinator on a serial port, which here is a pseudo-terminal; with its own way to be opened, lost and found again. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CONFIRMED, folder, joined, LOCK, opened, simulated, unlockOf } from './test-gateway.ts';

it('unlocks over a serial port, loses it when it is pulled, and has its locks again when it is back', async () => {
  const link = join(folder(), 'adapter');
  const site = await simulated({ transport: 'pty', link, locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  const unlock = unlockOf(LOCK);
  expect(await first.execute('unlock', unlock)).toEqual(CONFIRMED);
  await site.hangUp();
  expect(await first.ended).toMatchObject({ code: 'LINK_LOST' });
  await first.close();
  await site.replug();
  const again = await opened(site, { stateDirectory, knownLocks: [LOCK] });
  expect(await again.execute('unlock', unlock)).toEqual(CONFIRMED);
  expect((await site.state(LOCK)).executed).toHaveLength(2);
}, 60_000);

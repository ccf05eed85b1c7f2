/** The numbers of frames: a host that starts again does not begin with those of the last one. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { joined, LOCK, opened, simulated } from '../../test/drivers/zigbee/gateway.ts';

const FIRST = 200;
const NUMBERS = 256;
const DOOR_LOCK_CLUSTER = 0x0101;

it('numbers its frames from what the clock shows, since answers to the last process may still come', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const now = () => {
    const time = systemClock.now();
    return time - (time % NUMBERS) + FIRST;
  };
  const gateway = await opened(site, {}, { clock: { ...systemClock, now } });
  await joined(gateway, site);
  const { received } = await site.state(LOCK);
  const first = received.find(({ cluster }) => cluster === DOOR_LOCK_CLUSTER);
  expect(first?.tsn).toBeGreaterThan(FIRST);
  expect(first?.tsn).toBeLessThan(FIRST + received.length);
});

import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { PLAIN } from '../../test/drivers/zigbee/configuration.ts';
import { joined, LOCK, opened, simulated } from '../../test/drivers/zigbee/gateway.ts';

/** The next one ends in 0xff. */
const BEFORE_255 = 0x1_00 * 4_000_000_000 - 2;

it('goes by no number that a lock cannot name in its answer, whatever the clock says', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] }, onTestFinished);
  const gateway = await opened(site, {}, { clock: { ...systemClock, now: () => BEFORE_255 } });
  await joined(gateway, site, LOCK);
  const versions = { doorVersion: 1, scheduleVersion: 0, templateVersion: 0, systemConfigVersion: 0 };
  for (const configVersion of [1, 2, 3]) {
    const apply = { hwId: LOCK, configVersion, ...versions, configuration: PLAIN };
    expect(await gateway.execute('applyConfiguration', apply)).toMatchObject({ configVersion });
  }
}, 60_000);

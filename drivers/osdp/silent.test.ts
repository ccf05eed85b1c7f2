/** What is shown of a device that was silent, and came back with other inputs and outputs. */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const HW_ID = '0a4748-1-1';

it('has no levels and no pulse from its silence until they are read again', async () => {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom() });
  let isSilent = false;
  const link = await openWireLink({
    answer: (request, now) => (isSilent ? null : (device.answer(request, now) ?? null)),
    devices: [{ address: 0 }],
  });
  const { pins } = device.peripheral;
  pins.setInput(0, true, link.clock.monotonic());
  await link.watch([{ address: 0, key: KEY }]);
  await link.connected(HW_ID);
  await link.outcome(link.execute('pulse', { hwId: HW_ID, relay: 2, milliseconds: 60_000 }));
  expect(link.report(HW_ID)).toMatchObject({
    levels: { input0: true, input1: false, output2: true },
    pulse: { relay: 2 },
  });
  isSilent = true;
  await link.connected(HW_ID, false);
  const silentSince = link.history.length - 1;
  await link.clock.advance(10_000);
  device.restart(link.clock.monotonic());
  pins.setInput(0, false, link.clock.monotonic());
  pins.setInput(1, true, link.clock.monotonic());
  isSilent = false;
  const backAt = link.clock.monotonic();
  await link.connected(HW_ID);
  await link.clock.advance(6_000);
  const shown = link.history.slice(silentSince);
  expect(shown.filter(({ connected, levels }) => !connected && Object.keys(levels).length > 0)).toEqual([]);
  expect(shown.filter(({ pulse }) => pulse !== null)).toEqual([]);
  const later = shown.filter(({ connected }) => connected);
  expect(later.length).toBeGreaterThan(0);
  for (const { levels, readAt } of later) {
    expect(levels).toMatchObject({ input0: false, input1: true, output2: false });
    expect(readAt).toBeGreaterThanOrEqual(backAt);
  }
});

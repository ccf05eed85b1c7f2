/** A relay that is to open before its pulse is over. */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const HW_ID = '0a4748-1-1';

async function openOne() {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom() });
  const link = await openWireLink({
    answer: (request, now) => device.answer(request, now) ?? null,
    devices: [{ address: 0 }],
  });
  await link.watch([{ address: 0, key: KEY }]);
  await link.connected(HW_ID);
  const pulse = (milliseconds: number) =>
    link.outcome(link.execute('pulse', { hwId: HW_ID, relay: 2, milliseconds }));
  return { device, link, pulse };
}

it('opens at once, and the next pulse is as long as it says', async () => {
  const { device, link, pulse } = await openOne();
  const history = () => device.pins.history.map(({ output, on }) => [output, on]);
  await pulse(20_000);
  expect(await link.outcome(link.execute('endPulse', { hwId: HW_ID, relay: 2 }))).toBeNull();
  await link.clock.advance(500);
  expect(history()).toEqual([
    [2, true],
    [2, false],
  ]);
  expect(link.report(HW_ID)).toMatchObject({ pulse: null, levels: { output2: false } });
  await pulse(1_000);
  await link.clock.advance(2_000);
  expect(history()).toHaveLength(4);
});

it('a pulse after a restart of the device is as long as was asked for, not as long as the one that the restart has cut', async () => {
  const { device, link, pulse } = await openOne();
  await pulse(60_000);
  device.restart(link.clock.monotonic());
  await link.clock.advance(5_000);
  await link.connected(HW_ID);
  expect(device.pins.outputs()).toBe(0);
  await pulse(1_000);
  expect(device.pins.outputs()).toBe(0b100);
  await link.clock.advance(3_000);
  expect(device.pins.outputs()).toBe(0);
});

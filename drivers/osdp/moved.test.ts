/** A device that comes to another address keeps its name, and the pulses it was promised. */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { PINS } from '../contract/settings.ts';

const HW_ID = '0a4748-1-1';
const BAUD = 115_200;
const LONG_MS = 60_000;
const OUT = 0x68;
const SETTINGS = {
  ioPins: Object.fromEntries(PINS.map((pin) => [pin, pin === 'input1'])),
  relayIndex: 0,
  unlockDurationMilliseconds: 1_250,
};

async function openMovable() {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom(), baudRate: BAUD });
  let present = device;
  const link = await openWireLink({
    answer: (request, now) => present.answer(request, now) ?? null,
    devices: [{ address: 0 }, { address: 7 }],
  });
  await link.watch([0, 7].map((address) => ({ address, key: KEY })));
  await link.connected(HW_ID);
  return {
    device,
    link,
    pulse: (milliseconds: number) => link.execute('pulse', { hwId: HW_ID, relay: 0, milliseconds }),
    /** By somebody else, and at once. */
    move() {
      present = openOsdpDevice({ address: 7, serial: 1, key: KEY, random: testRandom() });
    },
  };
}

it('is taken for itself once it is gone from where it was, however soon it was met at the other one', async () => {
  const { link, move } = await openMovable();
  move();
  await link.until(() => link.report(HW_ID)?.address === 7 && link.report(HW_ID)?.connected === true);
});

it('closes its relay for no less than was promised before', async () => {
  const { link, device, pulse } = await openMovable();
  await link.outcome(pulse(60_000));
  const moved = link.execute('readdress', { hwId: HW_ID, address: 7, baudRate: BAUD }, undefined, LONG_MS);
  expect(await link.outcome(moved)).toMatchObject({ found: 7 });
  await link.outcome(pulse(1_000));
  const tenths = device.peripheral.deeds
    .filter(({ code }) => code === OUT)
    .map(({ data }) => Buffer.from(data, 'hex').readUInt16LE(2));
  expect(tenths).toEqual([600, expect.any(Number)]);
  expect(tenths[1]).toBeGreaterThan(500);
});

it('has each activation counted once, when it comes back', async () => {
  const { link, device } = await openMovable();
  const settings = { ...SETTINGS, useInputPinMemory: true };
  await link.outcome(link.execute('applySettings', { hwId: HW_ID, settingsVersion: 2, settings }));
  const pressed = async (times: number) => {
    for (let change = 1; change <= 2 * times; change += 1)
      device.peripheral.pins.setInput(1, change % 2 === 1, link.clock.monotonic());
    await link.clock.advance(1_000);
  };
  for (const address of [7, 0]) {
    await pressed(2);
    device.setAddress(address);
    await link.until(() => {
      const report = link.report(HW_ID);
      return report?.address === address && report.connected;
    });
    await link.clock.advance(1_000);
  }
  await pressed(3);
  expect(link.events.filter(({ kind }) => kind === 'input')).toMatchObject(
    [2, 2, 3].map((activations) => ({ data: { activations } })),
  );
});

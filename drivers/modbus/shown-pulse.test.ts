/** Which pulse a device with pulse ids is shown to carry out, after others of it were refused or lost. On a manual clock. */
import { expect, it } from 'vitest';
import { openOne } from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';

const hwId = 'GIO-0001';
const WRITE = 16;

it.each([
  ['refused', () => framed(17, [WRITE | 0x80, 3]), 'REFUSED'],
  ['lost', () => null, 'NO_REPLY'],
])('a pulse is shown with its relay after the next ones were %s', async (_, answered, code) => {
  const { link, device } = await openOne();
  await using _link = link;
  await link.execute('pulse', { hwId, relay: 2, milliseconds: 60_000 });
  device.behave = (request, answer) => (request[1] === WRITE ? answered() : answer());
  for (const relay of [3, 2])
    await expect(link.execute('pulse', { hwId, relay, milliseconds: 1_000 })).rejects.toMatchObject({ code });
  device.behave = undefined;
  await link.clock.advance(20_000);
  expect(link.report(hwId)).toMatchObject({ connected: true, pulse: { relay: 2 } });
  // It is not shorter than the one that another caller was promised.
  await link.execute('pulse', { hwId, relay: 2, milliseconds: 1_000 });
  await link.clock.advance(20_000);
  expect(device.device.pins.outputs()).toBe(0b100);
});

it('a pulse after a restart of the device is as long as was asked for, not as long as the one that the restart has cut', async () => {
  const { link, device } = await openOne();
  await using _link = link;
  await link.execute('pulse', { hwId, relay: 2, milliseconds: 60_000 });
  device.device.restart(link.clock.monotonic());
  await link.clock.advance(5_000);
  expect(device.device.pins.outputs()).toBe(0);
  await link.execute('pulse', { hwId, relay: 2, milliseconds: 1_000 });
  expect(device.device.pins.outputs()).toBe(0b100);
  await link.clock.advance(3_000);
  expect(device.device.pins.outputs()).toBe(0);
});

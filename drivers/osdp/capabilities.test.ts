/** Devices whose answer to osdp_CAP is not as the standard has it (SIA OSDP 2.2, 7.6: records of three bytes). */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const ADDRESS = 3;
const HW_ID = '0a4748-1-1';
/** Contact status monitoring, output control (annex B). */
const RECORDS = Buffer.from([1, 1, 4, 2, 1, 8]);

it.each([
  ['none', Buffer.alloc(0)],
  ['no whole record', Buffer.from([1, 2])],
  ['a part of a record behind the others', Buffer.concat([RECORDS, Buffer.from([3])])],
  ['256 records', Buffer.concat(Array.from({ length: 128 }, () => RECORDS))],
])('a device with %s is paired, and fires its relay', async (_, capabilities) => {
  const random = testRandom();
  const device = openOsdpDevice({ address: ADDRESS, serial: 1, random, capabilities });
  const link = await openWireLink({
    answer: (request, now) => device.answer(request, now) ?? null,
    devices: [{ address: ADDRESS }],
  });
  await link.watch([]);
  await link.until(() => link.report(HW_ID)?.security === 'unpaired');
  const paired = link.execute('pair', { address: ADDRESS, key: KEY, milliseconds: 8_000 }, undefined, 10_000);
  expect(await link.outcome(paired)).toEqual({ hwId: HW_ID });
  await link.connected(HW_ID);
  const pulse = link.execute('pulse', { hwId: HW_ID, relay: 7, milliseconds: 500 });
  expect(await link.outcome(pulse)).toMatchObject({ relay: 7 });
  expect(device.peripheral.pins.history).toMatchObject([{ output: 7, on: true }]);
});

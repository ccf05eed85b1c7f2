/** Two readers in clear text at one address, of which one answers behind the other: an order would close the relays of both. */
import { expect, it } from 'vitest';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const PULSE = { hwId: '0a4748-1-1', relay: 1, milliseconds: 500 };
const BEHIND_MS = 15;

it.each([
  ['while a question is open', true],
  ['later', false],
])('%s: both are given no order until one of them is gone', async (_, isAtOnce) => {
  const random = testRandom();
  const devices = [1, 2].map((serial) => openOsdpDevice({ address: 0, serial, random }));
  let areTwo = false;
  const link = await openWireLink({
    answer(request, now) {
      const [one, other] = devices.map((device) => device.answer(request, now));
      if (areTwo && isAtOnce && one && other) return Buffer.concat([one, other]);
      if (areTwo && other) void link.clock.sleep(BEHIND_MS).then(() => link.port.deliver(other));
      return one ?? null;
    },
    devices: [{ address: 0, secure: 'off' }],
  });
  await link.watch([]);
  await link.connected(PULSE.hwId);
  areTwo = true;
  await link.clock.advance(5_000);
  // What they say is the same until something differs between them.
  devices[1]?.pins.setInput(0, true, link.clock.monotonic());
  await link.clock.advance(500);
  expect(await link.outcome(link.execute('pulse', PULSE))).toBe('REFUSED');
  const { hwId } = PULSE;
  const file = { hwId, type: 1, total: 4, offset: 0, data: Uint8Array.from([2, 1, 0, 0]) };
  expect(await link.outcome(link.execute('sendFile', file))).toBe('REFUSED');
  expect(devices.map(({ pins }) => pins.history)).toEqual([[], []]);
  expect(devices.map(({ peripheral }) => peripheral.files())).toEqual([[], []]);
  areTwo = false;
  await link.clock.advance(70_000);
  expect(await link.outcome(link.execute('pulse', PULSE))).toMatchObject({ relay: 1 });
});

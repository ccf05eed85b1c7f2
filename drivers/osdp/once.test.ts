/** A pulse closes its relay once, and what is said of it is so, though the device does what no standard says. */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const HW_ID = '0a4748-1-1';
const PULSE = { hwId: HW_ID, relay: 2, milliseconds: 500 };
const REFUSED = { code: 0x41, data: Buffer.of(9) };
const OUT = 0x68;
const OSTAT = 0x66;

async function openReader(isSecure: boolean) {
  const device = openOsdpDevice({
    address: 0,
    serial: 1,
    random: testRandom(),
    isLenient: true,
    ...(isSecure && { key: KEY }),
  });
  const played = { isAway: false, afterOut: () => false };
  const link = await openWireLink({
    answer(request, now) {
      if (played.isAway) return null;
      const before = device.peripheral.deeds.length;
      const reply = device.answer(request, now) ?? null;
      return device.peripheral.deeds.length > before && played.afterOut() ? null : reply;
    },
    devices: [isSecure ? { address: 0 } : { address: 0, secure: 'off' }],
  });
  await link.watch(isSecure ? [{ address: 0, key: KEY }] : []);
  await link.connected(HW_ID);
  const closings = () => device.pins.history.filter(({ on }) => on).length;
  return { device, link, played, closings, fire: () => link.outcome(link.execute('pulse', PULSE)) };
}

it.each([
  ['in clear text', false],
  ['in a secure session', true],
])(
  '%s, by a device that a power dip restarts behind it, and that takes any number then',
  async (_, isSecure) => {
    const { device, link, played, closings, fire } = await openReader(isSecure);
    played.afterOut = () => {
      played.isAway = true;
      void link.clock.sleep(150).then(() => {
        device.restart(link.clock.monotonic());
        played.isAway = false;
      });
      return true;
    };
    expect(await fire()).toBe('OUTCOME_UNKNOWN');
    await link.clock.advance(10_000);
    expect(closings()).toBe(1);
  },
);

it.each([
  ['in clear text', false],
  ['in a secure session', true],
])('%s, and is confirmed by the relay, though the device refuses what it has done', async (_, isSecure) => {
  const { device, closings, fire } = await openReader(isSecure);
  const { perform } = device.peripheral;
  device.peripheral.perform = (code, data, now) => {
    const answer = perform(code, data, now);
    return code === OUT ? REFUSED : answer;
  };
  expect(await fire()).toMatchObject({ relay: 2 });
  expect(closings()).toBe(1);
});

it('is refused by a device that has not done it', async () => {
  const { device, closings, fire } = await openReader(true);
  const { perform } = device.peripheral;
  device.peripheral.perform = (code, data, now) => (code === OUT ? REFUSED : perform(code, data, now));
  expect(await fire()).toBe('REFUSED');
  expect(closings()).toBe(0);
});

it.each([
  ['in clear text', false],
  ['in a secure session', true],
])('%s, and is not known by a device that refuses what it has done and to show it', async (_, isSecure) => {
  const { device, closings, fire } = await openReader(isSecure);
  const { perform } = device.peripheral;
  device.peripheral.perform = (code, data, now) => {
    const answer = perform(code, data, now);
    return code === OUT || code === OSTAT ? REFUSED : answer;
  };
  expect(await fire()).toBe('OUTCOME_UNKNOWN');
  expect(closings()).toBe(1);
});

/** Devices that take as long as the standard allows for their replies (SIA OSDP 2.2, 5.7: 200 ms). */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { busReport } from '../contract/rs485.ts';

const [FASTEST_MS, SLOWEST_MS] = [150, 199];
const SELDOM = 20;

it('are missed never, though most of their replies come at once', async () => {
  const random = testRandom();
  const devices = [0, 1].map((address) =>
    openOsdpDevice({ address, serial: 1 + address, key: KEY, random, requiresSecurity: true }),
  );
  const link = await openWireLink({
    answer(request, now) {
      const bytes = devices.map((device) => device.answer(request, now)).find((reply) => reply !== undefined);
      if (!bytes) return null;
      const isSlow = random() < 1 / SELDOM;
      return { bytes, turnaroundMs: isSlow ? FASTEST_MS + random() * (SLOWEST_MS - FASTEST_MS) : 1 };
    },
    devices: [{ address: 0 }, { address: 1 }],
  });
  await link.watch([0, 1].map((address) => ({ address, key: KEY })));
  await link.connected('0a4748-1-1');
  await link.connected('0a4748-1-2');
  const reported = link.history.length;
  await link.clock.advance(120_000);
  const counters = busReport.parse(link.bus()).devices.map((device) => device.counters);
  expect(counters.map(({ timeouts, collisions, crc }) => ({ timeouts, collisions, crc }))).toEqual(
    Array(2).fill({ timeouts: 0, collisions: 0, crc: 0 }),
  );
  expect(link.history.slice(reported).every(({ connected }) => connected)).toBe(true);
  expect(link.events).toEqual([]);
  expect(devices.map((device) => device.sessions())).toEqual([1, 1]);
});

it('raise no alarm of security, though they take longer than is allowed', async () => {
  const random = testRandom();
  const devices = [0, 1].map((address) =>
    openOsdpDevice({ address, serial: 1 + address, key: KEY, random, requiresSecurity: true }),
  );
  const slow = { share: 0 };
  const link = await openWireLink({
    answer(request, now) {
      const bytes = devices.map((device) => device.answer(request, now)).find((reply) => reply !== undefined);
      if (!bytes) return null;
      return { bytes, turnaroundMs: random() < slow.share ? 200 + random() * 400 : 1 };
    },
    devices: [{ address: 0 }, { address: 1 }],
  });
  await link.watch([0, 1].map((address) => ({ address, key: KEY })));
  await link.connected('0a4748-1-1');
  await link.connected('0a4748-1-2');
  for (const share of [0.1, 0.5, 1, 0.3]) {
    slow.share = share;
    await link.clock.advance(60_000);
  }
  expect(link.events).toEqual([]);
});

it('that are polled seldom are met soon, and keep their sessions', async () => {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom() });
  let asked = 0;
  const link = await openWireLink({
    answer(request, now) {
      const reply = device.answer(request, now) ?? null;
      asked += 1;
      return asked <= 3 ? null : reply;
    },
    devices: [{ address: 0 }],
    pollEveryMs: 10_000,
  });
  await link.watch([{ address: 0, key: KEY }]);
  await link.clock.advance(5_000);
  expect(link.report('0a4748-1-1')).toMatchObject({ connected: true });
  await link.clock.advance(60_000);
  expect(device.sessions()).toBe(1);
});

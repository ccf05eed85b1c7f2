/** Devices that take nearly as long for a reply as turnaroundMaxMs lets them, now and then. */
import { expect, it } from 'vitest';
import { io, openOne, openTestLink, profileNamed, type TestDevice } from '../../test/drivers/modbus/link.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';

const LONGEST_MS = 250;
const SELDOM = 20;

it('are never missed, however fast they are otherwise', async () => {
  const random = openRandom(7);
  const stations = new Map<number, TestDevice>(
    [1, 2, 3].map((unit) => [unit, io(`GIO-000${unit}`, { turnaroundMs: 1 })]),
  );
  await using link = await openTestLink({
    stations,
    profiles: { 'gatehouse-io': profileNamed('gatehouse-io') },
    options: {
      turnaroundMaxMs: LONGEST_MS,
      pollEveryMs: 20,
      devices: [1, 2, 3].map((unitId) => ({ unitId })),
    },
  });
  await link.clock.advance(5_000);
  let slow = 0;
  for (const device of stations.values())
    device.behave = (_, answer) => {
      const isSlow = random() < 1 / SELDOM;
      if (isSlow) slow += 1;
      const bytes = answer();
      return bytes && { bytes, turnaroundMs: isSlow ? LONGEST_MS * (0.6 + 0.4 * random()) : 1 };
    };
  await link.clock.advance(120_000);
  expect(slow).toBeGreaterThan(100);
  const counters = link.bus()?.devices.map((device) => device.counters);
  expect(counters).toMatchObject(Array(3).fill({ timeouts: 0, late: 0, crc: 0, framing: 0, collisions: 0 }));
  expect(link.history('GIO-0002').at(-1)).toMatchObject({ connected: true });
});

it('that is polled seldom is met soon, though its first answers are lost', async () => {
  const device = io();
  let lost = 0;
  device.behave = (_request, answer) => {
    lost += 1;
    return lost <= 3 ? null : answer();
  };
  const options = { devices: [{ unitId: 17 }], pollEveryMs: 10_000 };
  const { link } = await openOne(device, { options });
  await using _ = link;
  await link.clock.advance(3_000);
  expect(link.report('GIO-0001')).toMatchObject({ connected: true });
});

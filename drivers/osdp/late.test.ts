/** A pulse whose caller gave up while it was on the wire: it is done once, and what became of it is found out. */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const HW_ID = '0a4748-1-1';
const OUT = 0x68;
const OSTAT = 0x66;
const SOM = 0x53;
/** Less than a device may take for its reply. */
const LATE_MS = 150;

it.each([
  ['its answer comes late', true, 1],
  ['its answer is lost', false, 2],
])('and %s', async (_name, isAnswered, sessions) => {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom() });
  const cancelled = new AbortController();
  const link = await openWireLink({
    answer(request, now) {
      const before = device.peripheral.deeds.length;
      const bytes = device.answer(request, now);
      if (!bytes) return null;
      if (device.peripheral.deeds.length === before) return bytes;
      void link.clock.sleep(LATE_MS / 2).then(() => cancelled.abort(new Error('its time is over')));
      return isAnswered ? { bytes, turnaroundMs: LATE_MS } : null;
    },
    devices: [{ address: 0 }],
  });
  await link.watch([{ address: 0, key: KEY }]);
  await link.connected(HW_ID);
  const pulse = { hwId: HW_ID, relay: 2, milliseconds: 5_000 };
  expect(await link.outcome(link.execute('pulse', pulse, cancelled.signal))).toMatchObject({ relay: 2 });
  await link.clock.advance(1_000);
  expect(device.peripheral.deeds.filter(({ code }) => code === OUT)).toHaveLength(1);
  expect(device.sessions()).toBe(sessions);
  expect(link.report(HW_ID)).toMatchObject({ connected: true, pulse: { relay: 2 } });
});

it('is unknown, though its relay is closed, when an earlier pulse of unknown outcome may have closed it', async () => {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom() });
  let pulse: 'none' | 'first' | 'second' = 'none';
  const link = await openWireLink({
    answer(request, now) {
      // The code of a command is not encrypted (annex D.1.3).
      const code = request[request.indexOf(SOM) + 7];
      // The first one is done, and nothing of it is heard; the second one never arrives.
      if (pulse === 'second' && code === OUT) return null;
      const bytes = device.answer(request, now);
      return pulse === 'first' && (code === OUT || code === OSTAT) ? null : (bytes ?? null);
    },
    devices: [{ address: 0 }],
  });
  await link.watch([{ address: 0, key: KEY }]);
  await link.connected(HW_ID);
  const data = { hwId: HW_ID, relay: 2, milliseconds: 60_000 };
  const fire = (within: number) => link.outcome(link.execute('pulse', data, undefined, within));
  pulse = 'first';
  expect(await fire(300)).toBe('OUTCOME_UNKNOWN');
  expect((device.peripheral.pins.outputs() >> 2) & 1).toBe(1);
  pulse = 'second';
  expect(await fire(900)).toBe('OUTCOME_UNKNOWN');
  expect(device.peripheral.deeds.filter(({ code }) => code === OUT)).toHaveLength(1);
});

it.each([
  ['does not show its relay is unknown', true, 'OUTCOME_UNKNOWN'],
  ['shows its relay closed when asked is done', false, { relay: 2 }],
] as const)('of a device that acknowledges it and %s', async (_name, isHidden, outcome) => {
  const random = testRandom();
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random, acknowledgesOutputs: true });
  const link = await openWireLink({
    answer(request, now) {
      const isOstat = request[request.indexOf(SOM) + 7] === OSTAT;
      const isHiding = isHidden && isOstat && device.peripheral.deeds.some(({ code }) => code === OUT);
      const bytes = device.answer(request, now) ?? null;
      return isHiding ? null : bytes;
    },
    devices: [{ address: 0 }],
  });
  await link.watch([{ address: 0, key: KEY }]);
  await link.connected(HW_ID);
  const fired = link.outcome(link.execute('pulse', { hwId: HW_ID, relay: 2, milliseconds: 60_000 }));
  expect(await fired).toEqual(typeof outcome === 'string' ? outcome : expect.objectContaining(outcome));
  expect(device.peripheral.deeds.filter(({ code }) => code === OUT)).toHaveLength(1);
});

const FOREIGN = { vendorCode: 0x00_07_56 };

it.each([
  ['a relay that stayed open was not fired', {}, 'never arrives', 'NO_REPLY'],
  ['a relay that a power cut has opened may have been fired', {}, 'power cut', 'OUTCOME_UNKNOWN'],
  [
    'a device that does not say that it was restarted proves nothing',
    FOREIGN,
    'never arrives',
    'OUTCOME_UNKNOWN',
  ],
] as const)('%s', async (_name, traits, fate, outcome) => {
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: testRandom(), ...traits });
  let isOut = false;
  const link = await openWireLink({
    answer(request, now) {
      const isNow = request[request.indexOf(SOM) + 7] === OUT;
      if (isNow && fate === 'never arrives') return null;
      const bytes = device.answer(request, now);
      if (!isNow || isOut) return bytes ?? null;
      isOut = true;
      device.restart(now);
      return null;
    },
    devices: [{ address: 0 }],
  });
  await link.watch([{ address: 0, key: KEY }]);
  const hwId = 'vendorCode' in traits ? '000756-1-1' : HW_ID;
  await link.connected(hwId);
  const pulse = { hwId, relay: 2, milliseconds: 60_000 };
  expect(await link.outcome(link.execute('pulse', pulse, undefined, 900))).toBe(outcome);
  expect(isOut).toBe(fate === 'power cut');
});

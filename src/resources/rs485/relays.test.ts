/** What devices report of the relays that open doors. */
import { expect, it } from 'vitest';
import { A, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';

const settings = (relayIndex: number | null) => ({
  ioPins: NO_PINS,
  relayIndex,
  unlockDurationMilliseconds: null,
  useInputPinMemory: false,
});

const inForce = (reportedSettingsVersion: number, relayIndex: number | null) => ({
  reportedSettingsVersion,
  settings: settings(relayIndex),
});

it('the level of the relay in force is passed on to the door that it opens', async () => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', relayIndex: 0, doorId: DOOR });
  const levels = { output0: true, output1: false };
  bed.report('io-1', { levels, ...inForce(1, 0) });
  await bed.put(A, { relayIndex: 1 });
  bed.report('io-1', { levels, ...inForce(2, 1) });
  bed.report('io-1', { levels: { ...levels, output1: true }, ...inForce(2, 1) });
  const relay = (relayIndex: number) => ({ deviceId: A, bus: 'bus-1', hwId: 'io-1', relayIndex });
  expect(bed.relayLevels).toEqual([
    { doorId: DOOR, relay: relay(0), isClosed: true },
    { doorId: DOOR, relay: relay(1), isClosed: false },
    { doorId: DOOR, relay: relay(1), isClosed: true },
  ]);
});

it.each([
  ['is not connected', { connected: false, levels: { output1: true }, ...inForce(1, 1) }],
  ['does not report the relay', { levels: {}, ...inForce(1, 1) }],
  ['has no relay in force', { levels: { output1: true }, ...inForce(1, null) }],
  ['has not taken its settings', { levels: { output1: true }, settings: null }],
  ['has those that it came with', { levels: { output1: true }, ...inForce(0, 1) }],
])('nothing is passed on of a device that %s', async (_name, report) => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', relayIndex: 1, doorId: DOOR });
  bed.report('io-1', report);
  expect(bed.relayLevels).toEqual([]);
});

it('nothing is passed on of a device that opens no door', async () => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', relayIndex: 1 });
  bed.report('io-1', { levels: { output1: true }, ...inForce(1, 1) });
  expect(bed.relayLevels).toEqual([]);
});

/** A pulse that a host has, while the device that it was aimed at is changed. */
import { expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { A, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';

const IN_FORCE = {
  ioPins: NO_PINS,
  relayIndex: 2,
  unlockDurationMilliseconds: 1_250,
  useInputPinMemory: false,
};
async function ready() {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', doorId: DOOR, ...IN_FORCE });
  bed.report('io-1', { reportedSettingsVersion: 1, settings: IN_FORCE });
  return bed;
}
type Bed = Awaited<ReturnType<typeof ready>>;
async function imported(bed: Bed) {
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', relayIndex: 5 });
  return { status: 200 };
}
const pulses = ({ commands }: Bed) => commands.filter(({ kind }) => kind === 'pulse');

it.each([
  ['is given another relay', (bed: Bed) => bed.put(A, { relayIndex: 5 })],
  ['is given another door', (bed: Bed) => bed.put(A, { doorId: null })],
  ['is replaced', (bed: Bed) => bed.post(`/${A}/replace`, { hwId: 'io-2', confirm: true })],
  ['is given another relay by a site file', imported],
])('that waits for its turn is withdrawn before its device %s, and the answer to that', async (_, change) => {
  const bed = await ready();
  const order: string[] = [];
  bed.answer(async (_data, kind, signal) => {
    if (kind !== 'pulse') return null;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    // It waits for the answer to what was sent before.
    await new Promise((resolve) => setTimeout(resolve, 50));
    order.push('withdrawn');
    throw new DriverError('DEADLINE_PASSED', 'nothing was sent in time');
  });
  const fired = bed.post(`/${A}/pulse`);
  await expect.poll(() => pulses(bed).length).toBe(1);
  expect((await change(bed)).status).toBe(200);
  order.push('answered');
  expect(await fired).toMatchObject({
    status: 409,
    body: { error: 'NO_RELAY', message: expect.stringMatching(/another relay or door, before/) },
  });
  expect(order).toEqual(['withdrawn', 'answered']);
});

it.each([
  ['is given another relay', (bed: Bed) => bed.put(A, { relayIndex: 5 })],
  ['is given another door', (bed: Bed) => bed.put(A, { doorId: null })],
  ['is replaced', (bed: Bed) => bed.post(`/${A}/replace`, { hwId: 'io-2', confirm: true })],
  ['is given another relay by a site file', imported],
])('that keeps a relay closed is ended when its device %s, before the answer to that', async (_, change) => {
  const bed = await ready();
  bed.answer(() => {
    throw new DriverError('REFUSED', 'it has no way to do so');
  });
  expect((await change(bed)).status).toBe(200);
  const ends = bed.commands.filter(({ kind }) => kind === 'endPulse');
  expect(ends).toMatchObject([{ link: 'bus-1', data: { hwId: 'io-1', relay: 2 } }]);
});

it('of a device that is away, or whose name alone is changed, is left', async () => {
  const bed = await ready();
  await bed.put(A, { name: 'Lobby' });
  bed.report('io-1', { connected: false });
  await bed.put(A, { relayIndex: 5 });
  expect(bed.commands.filter(({ kind }) => kind === 'endPulse')).toEqual([]);
});

it('goes on when something else of its device is changed', async () => {
  const bed = await ready();
  const answered = Promise.withResolvers<void>();
  bed.answer(async () => {
    await answered.promise;
    return { relay: 2, milliseconds: 1_300, timedBy: 'device' };
  });
  const fired = bed.post(`/${A}/pulse`);
  await expect.poll(() => pulses(bed).length).toBe(1);
  expect((await bed.put(A, { name: 'Lobby' })).status).toBe(200);
  answered.resolve();
  expect(await fired).toMatchObject({ status: 200, body: { outcome: 'confirmed' } });
});

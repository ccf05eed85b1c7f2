/** An output that is to go off before its pulse is over. */
import { expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';

it('goes off at once, and on again by the next order', async () => {
  await using bench = await openTestDriver({ 1: { name: '7060', kind: 'host' } });
  await bench.clock.advance(2_000);
  const outputs = () => bench.modules.module(1).now().outputs;
  const pulse = { hwId: 'lobby-01', relay: 1, milliseconds: 20_000 };
  await bench.settled(bench.execute('pulse', pulse));
  await bench.settled(bench.execute('pulse', { ...pulse, relay: 0 }));
  expect(outputs()).toBe(0b11);
  expect(await bench.settled(bench.execute('endPulse', { hwId: 'lobby-01', relay: 1 }))).toBeNull();
  expect(outputs()).toBe(0b01);
  expect(bench.report('lobby-01')).toMatchObject({ relayFault: null, pulse: { relay: 0 } });
  await bench.settled(bench.execute('pulse', pulse));
  expect(outputs()).toBe(0b11);
});

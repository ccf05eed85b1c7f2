/** Activations as a module's levels and its latch report them together, reading by reading. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { openInputs } from './inputs.ts';

function opened() {
  return openInputs({ hwId: 'io', clock: manualClock(), inUse: () => ({}), addEvent() {} });
}

it('counts an activation once that begins between a reading of the levels and one of the latch', () => {
  const inputs = opened();
  inputs.read(0b0);
  inputs.latched(0b1);
  inputs.read(0b1);
  inputs.latched(0b1);
  inputs.read(0b1);
  expect(inputs.edges()).toMatchObject({ input0: { total: 1 } });
});

it('counts one that is over before the levels are read again', () => {
  const inputs = opened();
  inputs.read(0b0);
  inputs.latched(0b10);
  inputs.read(0b0);
  inputs.read(0b0);
  expect(inputs.edges()).toMatchObject({ input1: { total: 1 } });
});

it('forgets what the latch showed of a module that is brought up again', () => {
  const inputs = opened();
  inputs.read(0b0);
  inputs.latched(0b1);
  inputs.forget();
  inputs.read(0b0);
  expect(inputs.edges()).toEqual({});
});

it('wants the latch cleared once what it shows is over, and counts nothing of it again', () => {
  const inputs = opened();
  inputs.read(0b1);
  expect(inputs.latched(0b1)).toBe(false);
  inputs.read(0b0);
  inputs.read(0b0);
  expect(inputs.latched(0b1)).toBe(true);
  inputs.read(0b0);
  expect(inputs.edges()).toEqual({});
  expect(inputs.latched(0b0)).toBe(false);
  expect(inputs.latched(0b1)).toBe(true);
  inputs.read(0b0);
  expect(inputs.edges()).toMatchObject({ input0: { total: 1 } });
});

it('says since when an activation may have been there: what the latch kept while no one asked is old', async () => {
  const clock = manualClock();
  const heard: DeviceEvent[] = [];
  const inputs = openInputs({ hwId: 'io', clock, inUse: () => ({}), addEvent: (event) => heard.push(event) });
  inputs.read(0b0);
  inputs.latched(0b0);
  const asked = clock.monotonic();
  await clock.advance(30_000);
  inputs.forget();
  inputs.read(0b0);
  await clock.advance(100);
  inputs.latched(0b1);
  inputs.read(0b10);
  expect(heard).toMatchObject([
    { input: 'input0', since: asked },
    { input: 'input1', since: asked + 30_000 },
  ]);
});

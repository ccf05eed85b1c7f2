/** Inputs as ISTATR reports them: 0 inactive, 1 active, and above that a fault of a supervised line. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { INPUT_PINS, type Rs485Settings } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { openDeviceState } from './device-state.ts';
import { openInputs } from './inputs.ts';
import { GATEHOUSE_VENDOR_CODE } from './protocol/vendor-messages.ts';

function open() {
  const reported: DeviceEvent[] = [];
  const inputs = openInputs({
    hwId: 'IO',
    clock: manualClock(),
    addEvent: (event) => void reported.push(event),
  });
  return { inputs, reported, faults: () => reported.filter(({ kind }) => kind === 'alarm') };
}
const fault = (input: number, raised: boolean) => ({
  kind: 'alarm',
  hwId: 'IO',
  alarm: `input${input}Fault`,
  raised,
});
function settingsWith(used: readonly number[]): Rs485Settings {
  return {
    ioPins: Object.fromEntries(INPUT_PINS.map((pin, index) => [pin, used.includes(index)])),
    relayIndex: 0,
    unlockDurationMilliseconds: 5_000,
    useInputPinMemory: false,
  } as Rs485Settings;
}

it.each([2, 3])('a fault %i is reported once, and once when the line is mended', (state) => {
  const { inputs, reported } = open();
  inputs.levels([0, state, 0, 0], undefined, 7);
  expect(reported).toEqual([fault(1, true)]);
  inputs.levels([0, 5 - state, 0, 0], undefined, 7);
  inputs.levels([0, state, 0, state], undefined, 7);
  inputs.levels([0, 0, 0, state], undefined, 7);
  inputs.levels([0, 0, 0, 0], undefined, 7);
  expect(reported.slice(1)).toEqual([fault(3, true), fault(1, false), fault(3, false)]);
});

it('a line with a fault shows no level, and keeps no activation', () => {
  const { inputs, reported, faults } = open();
  inputs.levels([1, 0, 0, 0], undefined, 7);
  expect(inputs.shown()).toEqual({ input0: true, input1: false, input2: false, input3: false });
  inputs.levels([2, 2, 0, 0], undefined, 7);
  expect(inputs.shown()).toEqual({ input2: false, input3: false });
  // Pressed before and after; the fault between is no release.
  inputs.levels([1, 1, 0, 0], undefined, 7);
  expect(inputs.shown()).toEqual({ input0: true, input1: true, input2: false, input3: false });
  expect(faults()).toHaveLength(4);
  expect(reported.filter(({ kind }) => kind === 'input')).toMatchObject([
    { input: 'input1', activations: 1, since: 7 },
  ]);
});

it('pins that are not in use report no activation', () => {
  const { inputs, reported } = open();
  const settings = settingsWith([1]);
  inputs.levels([0, 0, 0, 0], settings, 7);
  inputs.levels([1, 1, 0, 0], settings, 7);
  expect(reported).toMatchObject([{ kind: 'input', input: 'input1' }]);
});

it('what a device has beyond four inputs is passed over', () => {
  const { inputs, reported } = open();
  inputs.levels([0, 0, 0, 0, 2, 3], undefined, 7);
  expect(reported).toEqual([]);
});

it('settings of another device that cleared the counters make no activation, nor do its own after them', () => {
  const reported: DeviceEvent[] = [];
  const log = () => undefined;
  const state = openDeviceState({
    address: 0,
    clock: manualClock(),
    log: { debug: log, info: log, warn: log, error: log },
    expected: () => undefined,
    addEvent: (event) => void reported.push(event),
  });
  state.meet({ vendorCode: GATEHOUSE_VENDOR_CODE, model: 1, version: 1, serial: 1, firmware: [1, 0, 0] });
  const takes = (settingsVersion: number, useInputPinMemory: boolean) =>
    state.madeKnown({
      kind: 'settings',
      settings: { ...settingsWith([0]), useInputPinMemory },
      settingsVersion,
    });
  const counts = (settingsVersion: number, count: number) =>
    state.madeKnown({
      kind: 'status',
      status: { settingsVersion, inputEdges: [count, 0, 0, 0], bootCount: 1 },
    });
  takes(4, true);
  counts(4, 2);
  counts(4, 3);
  expect(reported).toMatchObject([{ activations: 1 }]);
  counts(5, 0);
  takes(5, false);
  takes(6, true);
  counts(6, 0);
  counts(6, 1);
  expect(reported).toMatchObject([{ activations: 1 }, { activations: 1 }]);
});

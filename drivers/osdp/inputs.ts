/**
 * The inputs of one device: what they show, faults of supervised lines, and activations. These are counted by the
 * device's own counters while its pin memory is on, else from one ISTATR to the next.
 */
import type { Clock } from '../contract/driver.ts';
import { INPUT_PINS, type Rs485Report, type Rs485Settings } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type InputCounts, openInputCounts } from '../rs485/input-counts.ts';

export interface Inputs {
  /** As in ISTATR: 0 inactive, 1 active, above a fault of the line. `since`: when the device last had nothing to report. */
  levels(states: readonly number[], settings: Rs485Settings | undefined, since: number | null): void;
  /** Activations so far, modulo 16. */
  counters(counts: readonly number[], settings: Rs485Settings | undefined): void;
  /** The pin memory was off so far, and its counters 0. */
  startCounters(): void;
  /** They began again. */
  forgetCounters(): void;
  /** A pin with a fault shows nothing. */
  shown(): Rs485Report['levels'];
  /** How many have shown anything. */
  count(): number;
  edges: InputCounts['edges'];
}

interface Input {
  /** undefined: not shown yet. */
  state: number | undefined;
  /** The last one that was no fault. */
  level: number | undefined;
  counter: number | undefined;
}

const MODULUS = 16;
const FAULT_FROM = 2;
type Fault = (DeviceEvent & { kind: 'alarm' })['alarm'];
const FAULTS: readonly Fault[] = ['input0Fault', 'input1Fault', 'input2Fault', 'input3Fault'];

export function openInputs({
  hwId,
  clock,
  addEvent,
}: {
  hwId: string;
  clock: Clock;
  addEvent(event: DeviceEvent): void;
}): Inputs {
  const inputs = new Map<number, Input>();
  const activations = openInputCounts(clock, addEvent);

  function at(index: number): Input {
    const input = inputs.get(index) ?? { state: undefined, level: undefined, counter: undefined };
    inputs.set(index, input);
    return input;
  }

  let countersAt: number | null = null;

  function activated(
    index: number,
    count: number,
    settings: Rs485Settings | undefined,
    since: number | null,
  ) {
    const input = INPUT_PINS[index];
    if (input) activations.add(hwId, input, count, settings?.ioPins, since);
  }

  return {
    levels(states, settings, since) {
      for (const [index, state] of states.slice(0, INPUT_PINS.length).entries()) {
        const input = at(index);
        const alarm = FAULTS[index];
        const isFault = state >= FAULT_FROM;
        if (alarm && isFault !== isFaulty(input)) addEvent({ kind: 'alarm', hwId, alarm, raised: isFault });
        input.state = state;
        if (isFault) continue;
        const isActivated = state === 1 && input.level === 0;
        input.level = state;
        if (isActivated && settings?.useInputPinMemory !== true) activated(index, 1, settings, since);
      }
    },
    counters(counts, settings) {
      for (const [index, counter] of counts.slice(0, INPUT_PINS.length).entries()) {
        const input = at(index);
        const before = input.counter;
        input.counter = counter;
        if (before === undefined || settings?.useInputPinMemory !== true) continue;
        activated(index, (counter - before + MODULUS) % MODULUS, settings, countersAt);
      }
      countersAt = clock.monotonic();
    },
    startCounters() {
      for (const index of INPUT_PINS.keys()) at(index).counter = 0;
    },
    forgetCounters() {
      for (const input of inputs.values()) input.counter = undefined;
    },
    shown: () =>
      Object.fromEntries(
        [...inputs].flatMap(([index, { state }]) =>
          state !== undefined && state < FAULT_FROM ? [[INPUT_PINS[index], state === 1] as const] : [],
        ),
      ),
    count: () => inputs.size,
    edges: activations.edges,
  };
}

function isFaulty({ state }: Input): boolean {
  return state !== undefined && state >= FAULT_FROM;
}

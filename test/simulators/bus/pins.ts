/** Inputs and outputs of a device. Nothing runs: what is due is done, at its own time, when somebody looks. */

/** One change of an output. */
export interface Switching {
  output: number;
  on: boolean;
  /** Milliseconds of CLOCK_MONOTONIC, the same in every process of the machine (process.hrtime). */
  monotonicMs: number;
  /** Epoch milliseconds. */
  at: number;
}

export interface Pins {
  /** Bit n: input n is active. */
  inputs(): number;
  /** Bit n: output n is on. */
  outputs(): number;
  setInput(input: number, active: boolean, now: number): void;
  pulseInput(input: number, milliseconds: number, now: number): void;
  /** Ends a pulse of this output. */
  setOutput(output: number, on: boolean, now: number): void;
  /** Switches now, and back at `until`. */
  pulseOutput(output: number, on: boolean, until: number, now: number): void;
  /** When the pulse of this output ends; undefined without one. */
  pulseEnd(output: number): number | undefined;
  advance(now: number): void;
  /** While true no output goes on, whatever is ordered: their contacts, or the supply of their coils, are broken. */
  break(isBroken: boolean): void;
  /** The latest, oldest first. */
  readonly history: readonly Switching[];
  readonly inputCount: number;
  readonly outputCount: number;
}

const HISTORY_MAX = 1_000;

/** `activated` receives each input that becomes active. `epoch` turns monotonic into wall time. */
export function openPins(options: {
  inputs: number;
  outputs: number;
  epoch: (monotonicMs: number) => number;
  activated?: (input: number) => void;
}): Pins {
  const inputs = Array.from({ length: options.inputs }, () => false);
  const outputs = Array.from({ length: options.outputs }, () => false);
  const inputPulses = new Map<number, number>();
  const outputPulses = new Map<number, { until: number; after: boolean }>();
  const history: Switching[] = [];
  let isBroken = false;

  function changeInput(input: number, active: boolean): void {
    if (input >= inputs.length || inputs[input] === active) return;
    inputs[input] = active;
    if (active) options.activated?.(input);
  }
  function changeOutput(output: number, on: boolean, now: number): void {
    if (output >= outputs.length || outputs[output] === on || (on && isBroken)) return;
    outputs[output] = on;
    history.push({ output, on, monotonicMs: now, at: options.epoch(now) });
    if (history.length > HISTORY_MAX) history.shift();
  }

  return {
    history,
    inputCount: options.inputs,
    outputCount: options.outputs,
    inputs: () => bits(inputs),
    outputs: () => bits(outputs),
    setInput(input, active) {
      inputPulses.delete(input);
      changeInput(input, active);
    },
    pulseInput(input, milliseconds, now) {
      changeInput(input, true);
      inputPulses.set(input, now + milliseconds);
    },
    setOutput(output, on, now) {
      outputPulses.delete(output);
      changeOutput(output, on, now);
    },
    pulseOutput(output, on, until, now) {
      changeOutput(output, on, now);
      outputPulses.set(output, { until, after: !on });
    },
    break(broken) {
      isBroken = broken;
    },
    pulseEnd: (output) => outputPulses.get(output)?.until,
    advance(now) {
      for (const [input, until] of inputPulses) {
        if (until > now) continue;
        inputPulses.delete(input);
        changeInput(input, false);
      }
      for (const [output, { until, after }] of outputPulses) {
        if (until > now) continue;
        outputPulses.delete(output);
        changeOutput(output, after, until);
      }
    },
  };
}

function bits(pins: readonly boolean[]): number {
  return pins.reduce((sum, on, index) => sum | (on ? 1 << index : 0), 0);
}

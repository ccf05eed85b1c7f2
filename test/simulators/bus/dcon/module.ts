/**
 * DCON modules: Advantech ADAM-4055, ADAM-4060 and ADAM-4068 (ADAM-4000 manual, 7) and ICP DAS I-7060 and I-7050 (I-7000 DIO manual rev.
 * B1.2, 2). Layout of `$AA6`: outputs, inputs, 00 (EX-9060D manual, 2.14). An input that is pressed reads 1.
 */
import { openPins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { commandOf, framed, hex } from './frame.ts';
import { type Guard, type Outputs, openHostWatchdog, openSafetyValue } from './guard.ts';

interface Model {
  name: string;
  version: string;
  inputs: number;
  outputs: number;
  isIcp: boolean;
  /** Of the safety value of an Advantech module; 2 by default. */
  safetyDigits?: 4;
}

const MODELS: Record<string, Model> = {
  'adam-4055': { name: '4055', version: 'A1.04', inputs: 8, outputs: 8, isIcp: false },
  'adam-4060': { name: '4060', version: 'A2.3', inputs: 0, outputs: 4, isIcp: false, safetyDigits: 4 },
  'adam-4068': { name: '4068', version: 'A2.3', inputs: 0, outputs: 8, isIcp: false, safetyDigits: 4 },
  'i-7060': { name: '7060', version: 'B1.2', inputs: 4, outputs: 4, isIcp: true },
  'i-7050': { name: '7050', version: 'B1.2', inputs: 7, outputs: 8, isIcp: true },
};
const DIGITAL_IO = '40';
const CHECKSUM_BIT = 0x40;
const BAUD_CODES = new Map<number, string>([
  [1_200, '03'],
  [2_400, '04'],
  [4_800, '05'],
  [9_600, '06'],
  [19_200, '07'],
  [38_400, '08'],
  [57_600, '09'],
  [115_200, '0A'],
]);

export interface Line {
  baudRate: number;
  checksum: boolean;
}

export function openModule(plan: DevicePlan, line: Line, opened: number): Device {
  const model = MODELS[plan.kind];
  if (!model) throw new Error(`no DCON module is called ${plan.kind}`);
  const aa = hex(plan.address);
  let latched = 0;
  const pins = openPins({
    inputs: model.inputs,
    outputs: model.outputs,
    epoch: epochMs,
    activated: (input) => {
      latched |= 1 << input;
    },
  });
  const outputs: Outputs = {
    get: pins.outputs,
    set(value, now) {
      for (let output = 0; output < model.outputs; output += 1)
        pins.setOutput(output, (value & (1 << output)) !== 0, now);
    },
  };
  const guard = model.isIcp
    ? openHostWatchdog(aa, outputs, opened)
    : openSafetyValue(aa, outputs, opened, model.safetyDigits ?? 2);
  const levels = () => `${hex(pins.outputs())}${hex(pins.inputs())}00`;
  const state = { wasReset: true, sampled: levels(), isFresh: false };

  function readings(body: string): string | undefined {
    switch (body) {
      case '4': {
        const answer = `!${state.isFresh ? 1 : 0}${state.sampled}`;
        state.isFresh = false;
        return answer;
      }
      case '5': {
        const answer = `!${aa}${state.wasReset ? 1 : 0}`;
        state.wasReset = false;
        return answer;
      }
      case '6':
        return `!${levels()}`;
      default:
        return undefined;
    }
  }
  function latch(body: string): string | undefined {
    if (body === 'L1') return `!00${hex(latched)}00`;
    if (body !== 'C') return undefined;
    latched = pins.inputs();
    return `!${aa}`;
  }
  /** What it does not know it does not answer. */
  function answer(command: string, now: number): string | undefined {
    const body = command.slice(3);
    if (command[0] === '#') return toOutputs(body, model as Model, aa, outputs, guard, now);
    if (command[0] === '%') return `?${aa}`;
    if (command[0] === '$') {
      const known = configuration(body, model as Model, aa, line) ?? readings(body);
      return known ?? (model?.isIcp ? latch(body) : guard.answer(command, now));
    }
    if (!model?.isIcp) return undefined;
    if (command[0] === '~') return guard.answer(command, now);
    return body === '' ? `>${levels().slice(0, 4)}` : toAllOutputs(body, model, outputs, guard, now);
  }

  return {
    pins,
    answer(request, now) {
      const command = commandOf(request, line.checksum) ?? '';
      guard.heard(command, now);
      if (command === '#**') Object.assign(state, { sampled: levels(), isFresh: true });
      const text = command.slice(1, 3) === '**' ? undefined : answer(command, now);
      return text === undefined ? undefined : framed(text, line.checksum);
    },
    advance(now) {
      pins.advance(now);
      guard.advance(now);
    },
    restart(now) {
      guard.restart(now);
      state.wasReset = true;
      latched = 0;
    },
    alarm: () => undefined,
    describe: (now) => ({ ...guard.describe(now), wasReset: state.wasReset }),
  };
}

function configuration(body: string, model: Model, aa: string, line: Line): string | undefined {
  switch (body) {
    case '2': {
      const format = hex(line.checksum ? CHECKSUM_BIT : 0);
      return `!${aa}${DIGITAL_IO}${BAUD_CODES.get(line.baudRate) ?? '06'}${format}`;
    }
    case 'F':
      return `!${aa}${model.version}`;
    case 'M':
      return `!${aa}${model.name}`;
    default:
      return undefined;
  }
}

/** `#AABBDD`: all outputs, or one channel. */
function toOutputs(
  body: string,
  model: Model,
  aa: string,
  outputs: Outputs,
  guard: Guard,
  now: number,
): string | undefined {
  const [, group = '', data = ''] = /^([0-9A-F]{2})([0-9A-F]{2})$/.exec(body) ?? [];
  if (group === '') return undefined;
  if (guard.isBlocking()) return '!';
  const value = outputsAfter(group, data, outputs.get(), model.outputs);
  if (value === undefined) return model.isIcp ? '?' : `?${aa}`;
  outputs.set(value, now);
  return '>';
}

function outputsAfter(group: string, data: string, before: number, count: number): number | undefined {
  const value = Number.parseInt(data, 16);
  if (group === '00' || group === '0A') return value < 1 << count ? value : undefined;
  const channel = Number.parseInt(group[1] ?? '', 16);
  if ((group[0] !== '1' && group[0] !== 'A') || channel >= count || value > 1) return undefined;
  return value === 1 ? before | (1 << channel) : before & ~(1 << channel);
}

/** `@AA(data)`: as many digits as four outputs, or eight, need. */
function toAllOutputs(body: string, model: Model, outputs: Outputs, guard: Guard, now: number): string {
  if (guard.isBlocking()) return '!';
  const digits = model.outputs <= 4 ? /^[0-9A-F]$/ : /^[0-9A-F]{2}$/;
  if (!digits.test(body)) return '?';
  outputs.set(Number.parseInt(body, 16), now);
  return '>';
}

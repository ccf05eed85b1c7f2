/**
 * DCON modules: an Advantech ADAM-4055 (ADAM-4000 manual, chapter 4) and ICP DAS I-7060 and I-7050 (I-7000 DIO manual
 * rev. B1.2, chapter 2), the latter two with a host watchdog.
 */

import { openPins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { commandOf, framed, hex } from './frame.ts';

interface Model {
  name: string;
  version: string;
  inputs: number;
  outputs: number;
  isIcp: boolean;
}

const MODELS: Record<string, Model> = {
  'adam-4055': { name: '4055', version: 'A1.04', inputs: 8, outputs: 8, isIcp: false },
  'i-7060': { name: '7060', version: 'B1.2', inputs: 4, outputs: 4, isIcp: true },
  'i-7050': { name: '7050', version: 'B1.2', inputs: 7, outputs: 8, isIcp: true },
};
const WATCHDOG_UNIT_MS = 100;
const DIGITAL_IO = '40';
const BAUD_CODES = new Map<number, string>([
  ...([
    [1_200, '03'],
    [2_400, '04'],
    [4_800, '05'],
    [9_600, '06'],
  ] as const),
  ...([
    [19_200, '07'],
    [38_400, '08'],
    [57_600, '09'],
    [115_200, '0A'],
  ] as const),
]);
const CHECKSUM_BIT = 0x40;

export interface Line {
  baudRate: number;
  checksum: boolean;
}

export function openModule(plan: DevicePlan, line: Line, opened: number): Device {
  const model = MODELS[plan.kind];
  if (!model) throw new Error(`no DCON module is called ${plan.kind}`);
  const { inputs, outputs, isIcp } = model;
  const aa = hex(plan.address);
  const pins = openPins({ inputs, outputs, epoch: epochMs });
  /** Kept without power. */
  const memory = { timedOut: false, isEnabled: false, timeout: 0xff, safe: 0, powerOn: 0 };
  let hostOkAt = opened;
  let wasReset = true;
  let sampled: { levels: string; isFresh: boolean } = { levels: '000000', isFresh: false };

  const mask = (1 << outputs) - 1;
  const levels = () => `${hex(pins.outputs())}${hex(pins.inputs())}00`;
  const ok = (data = '') => `!${aa}${data}`;
  const invalid = () => `?${aa}`;
  function setOutputs(value: number, now: number): void {
    for (let output = 0; output < outputs; output += 1)
      pins.setOutput(output, (value & (1 << output)) !== 0, now);
  }
  /** What every command to the outputs is answered; `undefined` data is out of range. */
  function output(value: number | undefined, now: number): string {
    if (isIcp && memory.timedOut) return '!';
    if (value === undefined || value > mask) return isIcp ? '?' : invalid();
    setOutputs(value, now);
    return '>';
  }
  function channel(index: number, data: string): number | undefined {
    if (index >= outputs || (data !== '00' && data !== '01')) return undefined;
    const others = pins.outputs() & ~(1 << index);
    return data === '01' ? others | (1 << index) : others;
  }
  function toOutputs(body: string, now: number): string | undefined {
    const [, group = '', data = ''] = /^([0-9A-F]{2})([0-9A-F]{2})$/.exec(body) ?? [];
    if (group === '') return undefined;
    if (group === '00' || group === '0A') return output(Number.parseInt(data, 16), now);
    const isChannel = group[0] === '1' || group[0] === 'A';
    return output(isChannel ? channel(Number.parseInt(group[1] ?? '', 16), data) : undefined, now);
  }
  function configuration(body: string): string | undefined {
    switch (body) {
      case '2':
        return ok(
          `${DIGITAL_IO}${BAUD_CODES.get(line.baudRate) ?? '06'}${hex(line.checksum ? CHECKSUM_BIT : 0)}`,
        );
      case '4': {
        const answer = `!${sampled.isFresh ? 1 : 0}${sampled.levels}`;
        sampled = { ...sampled, isFresh: false };
        return answer;
      }
      case '5': {
        const answer = ok(wasReset ? '1' : '0');
        wasReset = false;
        return answer;
      }
      case '6':
        return `!${levels()}`;
      case 'F':
        return ok(model?.version);
      case 'M':
        return ok(model?.name);
      default:
        return undefined;
    }
  }
  function watchdog(body: string, now: number): string | undefined {
    const [, enable, timeout = ''] = /^3([01])([0-9A-F]{2})$/.exec(body) ?? [];
    if (enable !== undefined) {
      if (timeout === '00') return invalid();
      Object.assign(memory, { isEnabled: enable === '1', timeout: Number.parseInt(timeout, 16) });
      hostOkAt = now;
      return ok();
    }
    switch (body) {
      case '0':
        return ok(memory.timedOut ? '04' : '00');
      case '1':
        memory.timedOut = false;
        return ok();
      case '2':
        return ok(`${memory.isEnabled ? 1 : 0}${hex(memory.timeout)}`);
      case '4P':
        return ok(`${hex(memory.powerOn)}00`);
      case '4S':
        return ok(`${hex(memory.safe)}00`);
      case '5P':
        memory.powerOn = pins.outputs();
        return ok();
      case '5S':
        memory.safe = pins.outputs();
        return ok();
      default:
        return undefined;
    }
  }
  function toAll(command: string, now: number): void {
    if (command === '~**') hostOkAt = now;
    if (command === '#**') sampled = { levels: levels(), isFresh: true };
  }
  /** What it does not know it does not answer. */
  function answer(command: string, now: number): string | undefined {
    const body = command.slice(3);
    if (command[0] === '$') return configuration(body);
    if (command[0] === '#') return toOutputs(body, now);
    if (command[0] === '%') return invalid();
    if (!isIcp) return undefined;
    if (command[0] === '~') return watchdog(body, now);
    if (body === '') return `>${levels().slice(0, 4)}`;
    const digits = outputs <= 4 ? /^[0-9A-F]$/ : /^[0-9A-F]{2}$/;
    return output(digits.test(body) ? Number.parseInt(body, 16) : undefined, now);
  }

  return {
    pins,
    answer(request, now) {
      const command = commandOf(request, line.checksum) ?? '';
      if (command.slice(1, 3) === '**') {
        toAll(command, now);
        return undefined;
      }
      const text = answer(command, now);
      return text === undefined ? undefined : framed(text, line.checksum);
    },
    advance(now) {
      pins.advance(now);
      const expiry = hostOkAt + memory.timeout * WATCHDOG_UNIT_MS;
      if (!memory.isEnabled || now < expiry) return;
      // From here on it waits for ~AA1, and to be enabled anew.
      Object.assign(memory, { timedOut: true, isEnabled: false });
      setOutputs(memory.safe, expiry);
    },
    restart(now) {
      setOutputs(memory.timedOut ? memory.safe : memory.powerOn, now);
      wasReset = true;
      hostOkAt = now;
    },
    alarm: () => undefined,
    describe: (now) => ({
      ...(isIcp && { watchdog: { ...memory, hostOkAgoMs: now - hostOkAt } }),
      wasReset,
    }),
  };
}

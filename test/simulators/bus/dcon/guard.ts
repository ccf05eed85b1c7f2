/** What switches the outputs of a DCON module off when its host is silent, each with commands of its own. */
import { hex } from './frame.ts';

export interface Outputs {
  get(): number;
  set(value: number, now: number): void;
}

export interface Guard {
  /** Undefined for commands that are not its own. */
  answer(command: string, now: number): string | undefined;
  /** A command came, to this module or to all. */
  heard(command: string, now: number): void;
  advance(now: number): void;
  /** Commands to the outputs are ignored. */
  isBlocking(): boolean;
  restart(now: number): void;
  describe(now: number): Record<string, unknown>;
}

const UNIT_MS = 100;

/** ICP DAS, fed by `~**` (I-7000 DIO manual rev. B1.2, 2.17 to 2.23, 3.3, 3.5). */
export function openHostWatchdog(aa: string, outputs: Outputs, opened: number): Guard {
  /** Kept without power. */
  const memory = { timedOut: false, isEnabled: false, timeout: 0xff, safe: 0, powerOn: 0 };
  let hostOkAt = opened;

  function arm(enable: string, timeout: string, now: number): string {
    if (timeout === '00') return `?${aa}`;
    Object.assign(memory, { isEnabled: enable === '1', timeout: Number.parseInt(timeout, 16) });
    hostOkAt = now;
    return `!${aa}`;
  }
  function keep(preset: 'safe' | 'powerOn'): string {
    memory[preset] = outputs.get();
    return `!${aa}`;
  }
  return {
    answer(command, now) {
      if (command[0] !== '~') return undefined;
      const body = command.slice(3);
      const [, enable, timeout = ''] = /^3([01])([0-9A-F]{2})$/.exec(body) ?? [];
      if (enable !== undefined) return arm(enable, timeout, now);
      switch (body) {
        case '0':
          return `!${aa}${memory.timedOut ? '04' : '00'}`;
        case '1':
          memory.timedOut = false;
          return `!${aa}`;
        case '2':
          return `!${aa}${memory.isEnabled ? 1 : 0}${hex(memory.timeout)}`;
        case '4P':
          return `!${aa}${hex(memory.powerOn)}00`;
        case '4S':
          return `!${aa}${hex(memory.safe)}00`;
        case '5P':
          return keep('powerOn');
        case '5S':
          return keep('safe');
        default:
          return undefined;
      }
    },
    heard(command, now) {
      if (command === '~**') hostOkAt = now;
    },
    advance(now) {
      const expiry = hostOkAt + memory.timeout * UNIT_MS;
      if (!memory.isEnabled || now < expiry) return;
      // From here on it waits for ~AA1, and to be enabled again.
      Object.assign(memory, { timedOut: true, isEnabled: false });
      outputs.set(memory.safe, expiry);
    },
    isBlocking: () => memory.timedOut,
    restart(now) {
      outputs.set(memory.timedOut ? memory.safe : memory.powerOn, now);
      hostOkAt = now;
    },
    describe: (now) => ({ watchdog: { ...memory, hostOkAgoMs: now - hostOkAt } }),
  };
}

/**
 * Advantech, fed by any command to the module (ADAM-4000 manual, 7: $AAX0, $AAX1, $AAX2). Editions differ in the digits of
 * the safety value, $AAX0TTTTDD and $AAX0TTTTDDDD: a module takes one form and refuses the other.
 */
export function openSafetyValue(aa: string, outputs: Outputs, opened: number, digits: 2 | 4): Guard {
  let safety = { tenths: 0, outputs: 0, executed: false };
  let heardAt = opened;
  return {
    answer(command) {
      const [, tenths, value = ''] = /^\$..X0([0-9A-F]{4})([0-9A-F]{2,4})$/.exec(command) ?? [];
      if (tenths !== undefined) {
        if (value.length !== digits) return `?${aa}`;
        safety = {
          tenths: Number.parseInt(tenths, 16),
          outputs: Number.parseInt(value, 16),
          executed: false,
        };
        return '>';
      }
      if (command === `$${aa}X1`) return `!${hex(safety.tenths, 4)}${hex(safety.outputs, digits)}`;
      if (command === `$${aa}X2`) return `!${safety.executed ? '01' : '00'}`;
      return undefined;
    },
    heard(_, now) {
      heardAt = now;
    },
    advance(now) {
      const expiry = heardAt + safety.tenths * UNIT_MS;
      if (safety.tenths === 0 || now < expiry) return;
      safety.executed = true;
      outputs.set(safety.outputs, expiry);
      heardAt = now;
    },
    isBlocking: () => false,
    restart(now) {
      outputs.set(0, now);
      heardAt = now;
    },
    describe: (now) => ({ safety: { ...safety, heardAgoMs: now - heardAt } }),
  };
}

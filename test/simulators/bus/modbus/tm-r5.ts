/**
 * An ICP DAS tM-R5 by its Quick Start ("Modbus Address Mapping") and the tM Series DIO User Manual, Rev. A1.3: five relays and
 * a host watchdog that does nothing before its coil enables it, is disabled by running out, and lets no relay be switched
 * until its timeout status is cleared (host watchdog mode 0, as an I-7000). What is not in the table does not exist.
 */
import { openPins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, framed, pduOf } from './frame.ts';
import { answerFrom, cell, type Field, outputFields } from './map-server.ts';

const CHANNELS = 5;
const UNIT_MS = 100;
const TIMEOUT_MAX = 255;

export function openTmR5(plan: DevicePlan, opened: number): Device {
  const pins = openPins({ inputs: 0, outputs: CHANNELS, epoch: epochMs });
  const five = () => Array.from({ length: CHANNELS }, () => cell(0));
  /** Kept without power. */
  const [safe, powerOn] = [five(), five()];
  const memory = { enabled: 0, timeout: 0, timedOut: 0, count: 0 };
  const isFirstRead = cell(1);
  let heardAt = opened;

  // While it has timed out: acknowledged, and ignored.
  const outputs = outputFields(pins, CHANNELS, () => memory.timedOut === 0);
  const enable: Field = {
    read: () => memory.enabled,
    write(value, now) {
      if (value === 1 && memory.timeout === 0) return EXCEPTION.illegalValue;
      memory.enabled = value;
      heardAt = now;
      return undefined;
    },
  };
  const status: Field = {
    read: () => memory.timedOut,
    write(value) {
      if (value === 1) memory.timedOut = 0;
      return undefined;
    },
  };
  const timeout: Field = {
    read: () => memory.timeout,
    write(value) {
      if (value > TIMEOUT_MAX) return EXCEPTION.illegalValue;
      memory.timeout = value;
      return undefined;
    },
  };
  const coils = new Map<number, Field>([
    ...row(0, outputs),
    ...row(128, safe),
    ...row(160, powerOn),
    [256, { read: () => 1 }],
    [257, { read: () => 0 }],
    [259, { read: () => 0 }],
    [260, enable],
    [265, { read: () => 0 }],
    [269, status],
    [272, isFirstRead],
  ]);
  const registers = new Map<number, Field>([
    [484, { read: () => plan.address }],
    [488, timeout],
    [491, { read: () => memory.count }],
  ]);

  function advance(now: number): void {
    pins.advance(now);
    const expiry = heardAt + memory.timeout * UNIT_MS;
    if (memory.enabled === 0 || now < expiry) return;
    Object.assign(memory, { enabled: 0, timedOut: 1, count: memory.count + 1 });
    for (const [output, { value }] of safe.entries()) pins.setOutput(output, value === 1, expiry);
  }

  return {
    pins,
    answer(request, now) {
      advance(now);
      heardAt = now;
      const maps = {
        coil: (at: number) => coils.get(at),
        register: (at: number) => registers.get(at),
      };
      return framed(plan.address, answerFrom(pduOf(request), maps, now));
    },
    advance,
    restart(now) {
      const values = memory.timedOut === 1 ? safe : powerOn;
      for (const [output, { value }] of values.entries()) pins.setOutput(output, value === 1, now);
      isFirstRead.value = 1;
      heardAt = now;
    },
    alarm: () => undefined,
    describe: () => ({ watchdog: { ...memory } }),
  };
}

function row(from: number, fields: readonly Field[]): [number, Field][] {
  return fields.map((field, index) => [from + index, field]);
}

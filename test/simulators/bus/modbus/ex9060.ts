/**
 * An expertDAQ EX9060-M by page 51 of its operation manual ("9060-M Modbus mapping"): four relays, four inputs with counters, and a
 * watchdog that is enabled apart from its time. Once it has run out it is disabled, and lets no relay be switched until its status
 * is cleared: that is not in its table, and is how the modules behave whose command set it has (tm-r5.ts).
 */
import { openPins } from '../pins.ts';
import type { DevicePlan } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, framed, pduOf } from './frame.ts';
import { answerFrom, cell, type Field, outputFields } from './map-server.ts';

const CHANNELS = 4;
const UNIT_MS = 100;
const TIMEOUT_MAX = 255;
const COUNTS = 0x1_0000;
const COIL = { outputs: 0, inputs: 32, safe: 128, powerOn: 160, enable: 260, status: 269 } as const;
const REGISTER = { name: 482, address: 484, timeout: 488 } as const;
const NAME = [0x0090, 0x6000];

export function openEx9060(plan: DevicePlan, opened: number): Device {
  const counters = [0, 0, 0, 0];
  const pins = openPins({
    inputs: CHANNELS,
    outputs: CHANNELS,
    epoch: epochMs,
    activated: (input) => {
      counters[input] = ((counters[input] ?? 0) + 1) % COUNTS;
    },
  });
  const four = () => Array.from({ length: CHANNELS }, () => cell(0));
  const [safe, powerOn] = [four(), four()];
  const watchdog = openWatchdog(opened);
  const inputs = Array.from(
    { length: CHANNELS },
    (_, input): Field => ({ read: () => (pins.inputs() >> input) & 1 }),
  );
  const row = (from: number, fields: readonly Field[]): [number, Field][] =>
    fields.map((field, index) => [from + index, field]);
  const coils = new Map<number, Field>([
    ...row(
      COIL.outputs,
      outputFields(pins, CHANNELS, () => !watchdog.hasTimedOut()),
    ),
    ...row(COIL.inputs, inputs),
    ...row(COIL.safe, safe),
    ...row(COIL.powerOn, powerOn),
    [COIL.enable, watchdog.enable],
    [COIL.status, watchdog.status],
  ]);
  const registers = new Map<number, Field>([
    ...row(
      REGISTER.name,
      NAME.map((word) => ({ read: () => word })),
    ),
    [REGISTER.address, { read: () => plan.address }],
    [REGISTER.timeout, watchdog.timeout],
  ]);
  const counts = counters.map((_, input): Field => ({ read: () => counters[input] ?? 0 }));
  const maps = {
    coil: (at: number) => coils.get(at),
    register: (at: number) => registers.get(at),
    discrete: (at: number) => inputs[at],
    input: (at: number) => counts[at],
  };

  function advance(now: number): void {
    pins.advance(now);
    const expiry = watchdog.expiry(now);
    if (expiry === undefined) return;
    for (const [output, { value }] of safe.entries()) pins.setOutput(output, value === 1, expiry);
  }

  return {
    pins,
    answer(request, now) {
      advance(now);
      watchdog.feed(now);
      return framed(plan.address, answerFrom(pduOf(request), maps, now));
    },
    advance,
    restart(now) {
      for (const [output, { value }] of powerOn.entries()) pins.setOutput(output, value === 1, now);
      counters.fill(0);
      watchdog.feed(now);
    },
    alarm: () => undefined,
    describe: () => ({ watchdog: watchdog.describe(), counters }),
  };
}

function openWatchdog(opened: number) {
  const memory = { enabled: 0, timeout: 0, timedOut: 0 };
  let fedAt = opened;
  const enable: Field = {
    read: () => memory.enabled,
    write(value, now) {
      memory.enabled = value;
      fedAt = now;
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
  return {
    enable,
    status,
    timeout,
    hasTimedOut: () => memory.timedOut === 1,
    feed(now: number): void {
      fedAt = now;
    },
    /** When it has run out, where it does now. */
    expiry(now: number): number | undefined {
      const at = fedAt + memory.timeout * UNIT_MS;
      if (memory.enabled === 0 || memory.timeout === 0 || now < at) return undefined;
      Object.assign(memory, { enabled: 0, timedOut: 1 });
      return at;
    },
    describe: () => ({ ...memory }),
  };
}

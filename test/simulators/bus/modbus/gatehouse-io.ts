/** The Gatehouse I/O controller, with the register map that config/profiles/gatehouse-io.yaml describes. */
import { openPins, type Pins } from '../pins.ts';
import { type DevicePlan, type DeviceSettings, settingsSchema } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { framed, pduOf } from './frame.ts';
import { answer, type Registers } from './registers.ts';

const INPUT_COUNT = 4;
const OUTPUT_COUNT = 8;
interface Block {
  address: number;
  length: number;
}
const STATUS: Block = { address: 0x0000, length: 10 };
const SETTINGS: Block = { address: 0x0100, length: 7 };
const PULSE: Block = { address: 0x0200, length: 4 };
const IDENTITY: Block = { address: 0x0300, length: 40 };
const NAME_BYTES = 16;
/** Inputs 0 to 3 and outputs 0 to 7. */
const PINS_MASK = 0xff0f;
const PULSES_KEPT = 1_000;
const DURATION_MS = { min: 100, max: 600_000 } as const;
const VENDOR = 'Gatehouse';

export function openGatehouseIo(plan: DevicePlan): Device {
  const { address, hwId = '', type = 'GIO-48', platformVersion = '1.0.0' } = plan;
  const app = plan.app ?? { name: 'io', version: '1.0.0' };
  const identity = textRegisters([hwId, type, platformVersion, app.name, app.version]);
  let settings = plan.settings ?? settingsSchema.parse({});
  let edges = [0, 0, 0, 0];
  let bootCount = 1;
  let alarms = { tamper: false, supplyFault: false };
  const pins = openPins({
    inputs: INPUT_COUNT,
    outputs: OUTPUT_COUNT,
    epoch: epochMs,
    activated: (input) => {
      if (settings.useInputPinMemory) edges[input] = ((edges[input] ?? 0) + 1) % 16;
    },
  });
  const pulse = openPulse(pins);

  function status(now: number): number[] {
    const inputEdges = edges.reduce((sum, count, input) => sum | (count << (4 * input)), 0);
    return [
      pins.inputs(),
      inputEdges,
      pins.outputs(),
      ...words(settings.settingsVersion),
      bootCount,
      (alarms.tamper ? 1 : 0) | (alarms.supplyFault ? 2 : 0),
      pulse.last().id,
      ...words(pulse.remainingMs(now)),
    ];
  }
  function apply(values: Buffer): boolean {
    const next = settingsFrom(values);
    if (!next) return false;
    settings = next;
    if (!settings.useInputPinMemory) edges = [0, 0, 0, 0];
    return true;
  }
  const registers = (now: number): Registers => ({
    identity: [VENDOR, type, platformVersion],
    read(from, count) {
      if (isWithin(STATUS, from, count)) return part(status(now), STATUS, from, count);
      if (isWithin(SETTINGS, from, count)) return part(settingsRegisters(settings), SETTINGS, from, count);
      return isWithin(IDENTITY, from, count) ? part(identity, IDENTITY, from, count) : undefined;
    },
    write(from, count, values) {
      const block = [SETTINGS, PULSE].find((one) => isWithin(one, from, count));
      if (!block) return 'illegalAddress';
      const isAccepted =
        count === block.length && (block === SETTINGS ? apply(values) : pulse.take(values, now));
      return isAccepted ? 'done' : 'illegalValue';
    },
  });

  return {
    pins,
    answer: (request, now) => framed(address, answer(pduOf(request), registers(now))),
    advance: (now) => pins.advance(now),
    restart(now) {
      for (let output = 0; output < OUTPUT_COUNT; output += 1) pins.setOutput(output, false, now);
      edges = [0, 0, 0, 0];
      pulse.forget();
      bootCount = (bootCount + 1) % 0x1_0000;
    },
    alarm(change) {
      alarms = { ...alarms, ...change };
    },
    describe: (now) => ({
      settings,
      bootCount,
      ...alarms,
      inputEdges: edges,
      pulse: { ...pulse.last(), remainingMilliseconds: pulse.remainingMs(now), takenMs: pulse.takenMs },
    }),
  };
}

/** The pulse that was ordered last. Its id separates a repetition from a new one. */
function openPulse(pins: Pins) {
  let last = { id: 0, relay: 0 };
  const takenMs: number[] = [];
  return {
    last: () => last,
    /** When it took each, also one for a relay that was closed; repetitions are none. Milliseconds of CLOCK_MONOTONIC. */
    takenMs,
    remainingMs: (now: number) => Math.max(0, Math.ceil((pins.pulseEnd(last.relay) ?? now) - now)),
    /** False: it is none that can be. */
    take(values: Buffer, now: number): boolean {
      const [id, relay, duration] = [values.readUInt16BE(0), values.readUInt16BE(2), values.readUInt32BE(4)];
      if (relay >= OUTPUT_COUNT || !isDuration(duration)) return false;
      // A repetition is acknowledged, for its sender has missed the first acknowledgement.
      if (id === last.id) return true;
      last = { id, relay };
      takenMs.push(now);
      if (takenMs.length > PULSES_KEPT) takenMs.shift();
      pins.pulseOutput(relay, true, Math.max(now + duration, pins.pulseEnd(relay) ?? 0), now);
      return true;
    },
    forget(): void {
      last = { id: 0, relay: 0 };
    },
  };
}

function settingsRegisters(settings: DeviceSettings): number[] {
  const { ioPins, relayIndex, unlockDurationMilliseconds, useInputPinMemory, settingsVersion } = settings;
  const duration = words(unlockDurationMilliseconds);
  return [ioPins, relayIndex, ...duration, useInputPinMemory ? 1 : 0, ...words(settingsVersion)];
}

/** Undefined when any of them cannot be. */
function settingsFrom(values: Buffer): DeviceSettings | undefined {
  const [ioPins, relayIndex, flags] = [
    values.readUInt16BE(0),
    values.readUInt16BE(2),
    values.readUInt16BE(8),
  ];
  const unlockDurationMilliseconds = values.readUInt32BE(4);
  if ((ioPins & ~PINS_MASK) !== 0 || relayIndex >= OUTPUT_COUNT || flags > 1) return undefined;
  if (!isDuration(unlockDurationMilliseconds)) return undefined;
  const settingsVersion = values.readUInt32BE(10);
  return { ioPins, relayIndex, unlockDurationMilliseconds, useInputPinMemory: flags === 1, settingsVersion };
}

function isWithin(block: Block, from: number, count: number): boolean {
  return from >= block.address && from + count <= block.address + block.length;
}

function part(registers: readonly number[], block: Block, from: number, count: number): number[] {
  return registers.slice(from - block.address, from - block.address + count);
}

function words(value: number): [number, number] {
  return [Math.floor(value / 0x1_0000) & 0xffff, value & 0xffff];
}

/** Sixteen characters each, padded with NUL. */
function textRegisters(texts: readonly string[]): number[] {
  const bytes = Buffer.alloc(texts.length * NAME_BYTES);
  for (const [index, text] of texts.entries()) bytes.write(text, index * NAME_BYTES, NAME_BYTES, 'latin1');
  return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(2 * index));
}

function isDuration(milliseconds: number): boolean {
  return milliseconds >= DURATION_MS.min && milliseconds <= DURATION_MS.max;
}

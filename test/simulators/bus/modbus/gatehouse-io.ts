/** The Gatehouse I/O controller, with the register map that config/profiles/gatehouse-io.yaml describes. */

import { openPins } from '../pins.ts';
import { type DevicePlan, type DeviceSettings, settingsSchema } from '../plan.ts';
import type { Device } from '../protocol.ts';
import { epochMs } from '../time.ts';
import { EXCEPTION, exception, FUNCTION, framed, type Pdu, pduOf } from './frame.ts';

const INPUT_COUNT = 4;
const OUTPUT_COUNT = 8;
const STATUS = { address: 0x0000, length: 10 } as const;
const SETTINGS = { address: 0x0100, length: 7 } as const;
const PULSE = { address: 0x0200, length: 4 } as const;
const IDENTITY = { address: 0x0300, length: 40 } as const;
const NAME_BYTES = 16;
const READ_MAX = 125;
/** Inputs 0 to 3 and outputs 0 to 7. */
const PINS_MASK = 0xff0f;
const PULSE_MS = { min: 100, max: 600_000 } as const;
const VENDOR = 'Gatehouse';

export function openGatehouseIo(plan: DevicePlan): Device {
  const { address } = plan;
  const names = [plan.hwId ?? `GIO-${address}`, plan.type ?? 'GIO-48', plan.platformVersion ?? '1.0.0'];
  const app = plan.app ?? { name: 'io', version: '1.0.0' };
  let settings: DeviceSettings = plan.settings ?? settingsSchema.parse({});
  let edges = [0, 0, 0, 0];
  let bootCount = 1;
  let status = { tamper: false, supplyFault: false };
  let lastPulse = { id: 0, relay: 0 };
  const pins = openPins({
    ...{ inputs: INPUT_COUNT, outputs: OUTPUT_COUNT, epoch: epochMs },
    activated: (input) => {
      if (settings.useInputPinMemory) edges[input] = ((edges[input] ?? 0) + 1) % 16;
    },
  });

  const remaining = (now: number) => Math.max(0, Math.ceil((pins.pulseEnd(lastPulse.relay) ?? now) - now));
  const inputEdges = () => edges.reduce((sum, count, input) => sum | (count << (4 * input)), 0);
  function statusBlock(now: number): number[] {
    return [
      ...[pins.inputs(), inputEdges(), pins.outputs(), ...words(settings.settingsVersion), bootCount],
      ...[(status.tamper ? 1 : 0) | (status.supplyFault ? 2 : 0), lastPulse.id, ...words(remaining(now))],
    ];
  }
  const settingsBlock = () => [
    ...[settings.ioPins, settings.relayIndex, ...words(settings.unlockDurationMilliseconds)],
    ...[settings.useInputPinMemory ? 1 : 0, ...words(settings.settingsVersion)],
  ];
  function identityBlock(): number[] {
    const bytes = Buffer.concat([...names, app.name, app.version].map(padded));
    return Array.from({ length: IDENTITY.length }, (_, index) => bytes.readUInt16BE(2 * index));
  }

  /** All of it inside one block. */
  function registers(from: number, count: number, now: number): number[] | undefined {
    const blocks = [
      { ...STATUS, read: () => statusBlock(now) },
      { ...SETTINGS, read: settingsBlock },
      { ...IDENTITY, read: identityBlock },
    ];
    const block = blocks.find((one) => from >= one.address && from + count <= one.address + one.length);
    return block?.read().slice(from - block.address, from - block.address + count);
  }
  function writeSettings(values: Buffer): boolean {
    const next: DeviceSettings = {
      ioPins: values.readUInt16BE(0),
      relayIndex: values.readUInt16BE(2),
      unlockDurationMilliseconds: values.readUInt32BE(4),
      useInputPinMemory: values.readUInt16BE(8) === 1,
      settingsVersion: values.readUInt32BE(10),
    };
    if ((next.ioPins & ~PINS_MASK) !== 0 || next.relayIndex >= OUTPUT_COUNT || values.readUInt16BE(8) > 1)
      return false;
    if (!isDuration(next.unlockDurationMilliseconds)) return false;
    settings = next;
    if (!settings.useInputPinMemory) edges = [0, 0, 0, 0];
    return true;
  }
  function pulse(values: Buffer, now: number): boolean {
    const [id, relay, duration] = [values.readUInt16BE(0), values.readUInt16BE(2), values.readUInt32BE(4)];
    if (relay >= OUTPUT_COUNT || !isDuration(duration)) return false;
    // A repetition is acknowledged, for its sender has missed the first acknowledgement.
    if (id === lastPulse.id) return true;
    lastPulse = { id, relay };
    pins.pulseOutput(relay, true, Math.max(now + duration, pins.pulseEnd(relay) ?? 0), now);
    return true;
  }

  function write(pdu: Pdu, now: number): number[] {
    const [from, count] = [pdu.readUInt16BE(1), pdu.readUInt16BE(3)];
    const values = pdu.subarray(6);
    const refuse = (code: number) => exception(FUNCTION.writeMultipleRegisters, code);
    if (pdu[5] !== 2 * count || values.length !== 2 * count) return refuse(EXCEPTION.illegalValue);
    const inSettings = from >= SETTINGS.address && from + count <= SETTINGS.address + SETTINGS.length;
    const inPulse = from >= PULSE.address && from + count <= PULSE.address + PULSE.length;
    if (count === 0 || !(inSettings || inPulse)) return refuse(EXCEPTION.illegalAddress);
    const isWhole = count === (inSettings ? SETTINGS : PULSE).length;
    const accepted = isWhole && (inSettings ? writeSettings(values) : pulse(values, now));
    return accepted ? [...pdu.subarray(0, 5)] : refuse(EXCEPTION.illegalValue);
  }
  function answer(pdu: Pdu, now: number): number[] {
    const [functionCode = 0] = pdu;
    switch (functionCode) {
      case FUNCTION.readHoldingRegisters: {
        const count = pdu.readUInt16BE(3);
        if (count < 1 || count > READ_MAX) return exception(functionCode, EXCEPTION.illegalValue);
        const values = registers(pdu.readUInt16BE(1), count, now);
        if (!values) return exception(functionCode, EXCEPTION.illegalAddress);
        return [functionCode, 2 * count, ...values.flatMap((value) => [value >> 8, value & 0xff])];
      }
      case FUNCTION.writeMultipleRegisters:
        return write(pdu, now);
      case FUNCTION.encapsulated:
        return identification(pdu, [VENDOR, names[1] ?? '', names[2] ?? '']);
      default:
        return exception(functionCode, EXCEPTION.illegalFunction);
    }
  }

  return {
    pins,
    answer: (request, now) => framed(address, answer(pduOf(request), now)),
    advance: (now) => pins.advance(now),
    restart(now) {
      for (let output = 0; output < OUTPUT_COUNT; output += 1) pins.setOutput(output, false, now);
      edges = [0, 0, 0, 0];
      lastPulse = { id: 0, relay: 0 };
      bootCount = (bootCount + 1) % 0x1_0000;
    },
    alarm(change) {
      status = { ...status, ...change };
    },
    describe: (now) => ({
      ...{ settings, bootCount, ...status, inputEdges: edges },
      pulse: { ...lastPulse, remainingMilliseconds: remaining(now) },
    }),
  };
}

/** Read Device Identification, basic objects (application protocol 1.1b3, 6.21). */
function identification(pdu: Pdu, objects: readonly string[]): number[] {
  const [functionCode = 0, meiType, readCode = 0, object = 0] = pdu;
  if (meiType !== 0x0e) return exception(functionCode, EXCEPTION.illegalFunction);
  if (readCode < 1 || readCode > 4) return exception(functionCode, EXCEPTION.illegalValue);
  const wanted = readCode === 4 ? [object] : [0, 1, 2].slice(object < objects.length ? object : 0);
  if (readCode === 4 && object >= objects.length) return exception(functionCode, EXCEPTION.illegalAddress);
  const listed = wanted.flatMap((id) => {
    const text = Buffer.from(objects[id] ?? '');
    return [id, text.length, ...text];
  });
  // Conformity 0x81: basic, as a stream and one by one; nothing follows.
  return [functionCode, 0x0e, readCode, 0x81, 0, 0, wanted.length, ...listed];
}

function words(value: number): [number, number] {
  return [Math.floor(value / 0x1_0000) & 0xffff, value & 0xffff];
}

function padded(text: string): Buffer {
  const bytes = Buffer.alloc(NAME_BYTES);
  bytes.write(text, 'latin1');
  return bytes;
}

function isDuration(milliseconds: number): boolean {
  return milliseconds >= PULSE_MS.min && milliseconds <= PULSE_MS.max;
}

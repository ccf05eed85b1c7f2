/** What a simulated reader and I/O board does, once a command has come through: pins, lamps, cards, files, settings. */
import { openPins, type Pins } from '../bus/pins.ts';
import { epochMs } from '../bus/time.ts';
import { type FileOptions, openFileStore } from './files.ts';
import { openReports } from './reports.ts';
import { type IoSettings, openVendorRequests } from './vendor-requests.ts';
import type { Answer } from './wire.ts';

export interface PeripheralOptions {
  /** The vendor's OUI, first octet highest; ours by default. */
  vendorCode?: number;
  model?: number;
  version?: number;
  serial: number;
  firmware?: readonly [number, number, number];
  inputs?: number;
  outputs?: number;
  type?: string;
  app?: { name: string; version: string };
  settings?: Partial<IoSettings>;
  files?: FileOptions;
  /** What it answers to CAP, where that is not as the standard has it. */
  capabilities?: Buffer;
  /** Answers OUT by ACK alone, and not by what its outputs are then: the standard has both. */
  acknowledgesOutputs?: boolean;
}

/** Something that was done, and may be done once only. */
export interface Deed {
  code: number;
  data: string;
  now: number;
}

export interface Peripheral {
  readonly pins: Pins;
  /** `now`: milliseconds of whatever clock it is opened with. */
  perform(code: number, data: Buffer, now: number): Answer;
  /** A card or keys, reported at the next POLL. */
  presentCard(card: { reader?: number; bits: number; data: Buffer }): void;
  pressKeys(reader: number, keys: string): void;
  alarm(change: { tamper?: boolean; supplyFault?: boolean }): void;
  advance(now: number): void;
  restart(now: number): void;
  /** Commands that act, in the order in which they were carried out. */
  readonly deeds: readonly Deed[];
  identity(): Buffer;
  /** Whole ones, in the order in which they came. */
  files(): readonly { type: number; content: Buffer }[];
  describe(): Record<string, unknown>;
}

const OUR_VENDOR_CODE = 0x0a4748;
export const ACK: Answer = { code: 0x40, data: Buffer.alloc(0) };
export const nak = (code: number): Answer => ({ code: 0x41, data: Buffer.from([code]) });
const LENGTH_ERROR = nak(2);
const UNKNOWN = nak(3);
const RECORD_ERROR = nak(9);

/** Those after which the world is another. */
const ACTS = new Set([0x68, 0x69, 0x6a, 0x6b]);
const FILE = 0x7c;
const ABORT = 0xa2;
const DEEDS_MAX = 20_000;
const RECEIVE_BUFFER = 512;
const FIRMWARE = [1, 0, 0] as const;

export function openPeripheral(options: PeripheralOptions): Peripheral {
  const { vendorCode = OUR_VENDOR_CODE } = options;
  let firmware = options.firmware ?? FIRMWARE;
  const identity = () => identityOf({ ...options, firmware });
  const pins = openPins({
    inputs: options.inputs ?? 4,
    outputs: options.outputs ?? 8,
    epoch: epochMs,
    activated: (input) => vendor.activated(input),
  });
  const vendor = openVendorRequests({ ...options, vendorCode, platformVersion: () => firmware.join('.') });
  const display = openDisplay();
  const files = openFileStore(options.files ?? {});
  const reports = openReports(pins);
  const deeds: Deed[] = [];

  const carryOut = openAnswers({ ...options, pins, vendor, display, files, reports, identity });

  return {
    pins,
    deeds,
    identity,
    files: files.received,
    perform(code, data, now) {
      pins.advance(now);
      if (code !== FILE && code !== ABORT) files.disturb();
      if (ACTS.has(code)) deeds.push({ code, data: data.toString('hex'), now });
      if (deeds.length > DEEDS_MAX) deeds.shift();
      return carryOut(code, data, now);
    },
    presentCard({ reader = 0, bits, data }) {
      reports.happened({ code: 0x50, data: Buffer.from([reader, 1, bits & 0xff, bits >> 8, ...data]) });
    },
    pressKeys(reader, keys) {
      const codes = [...keys].map((key) => (key === '*' ? 0x7f : key === '#' ? 0x0d : key.charCodeAt(0)));
      reports.happened({ code: 0x53, data: Buffer.from([reader, codes.length, ...codes]) });
    },
    alarm: reports.alarm,
    advance: (now) => pins.advance(now),
    restart(now) {
      for (let output = 0; output < pins.outputCount; output += 1) pins.setOutput(output, false, now);
      reports.restart();
      display.restart();
      firmware = firmwareIn(files.received().at(-1)?.content) ?? firmware;
      files.restart();
      vendor.restart();
    },
    describe: () => ({ ...display.describe(), ...files.describe(), ...vendor.describe() }),
  };
}

interface Parts {
  pins: Pins;
  vendor: ReturnType<typeof openVendorRequests>;
  display: ReturnType<typeof openDisplay>;
  files: ReturnType<typeof openFileStore>;
  reports: ReturnType<typeof openReports>;
  identity(): Buffer;
  capabilities?: Buffer;
  acknowledgesOutputs?: boolean;
}

function openAnswers(parts: Parts) {
  const { pins, vendor, display, files, reports, identity } = parts;
  return (code: number, data: Buffer, now: number): Answer => {
    switch (code) {
      case 0x60:
        return data.length === 0 ? reports.poll() : LENGTH_ERROR;
      case 0x61:
        return { code: 0x45, data: identity() };
      case 0x62:
        return { code: 0x46, data: parts.capabilities ?? capabilities(pins) };
      case 0x64:
      case 0x65:
      case 0x66:
        return reports.send(code - 0x1c);
      case 0x67:
        return { code: 0x4b, data: Buffer.from([0]) };
      case 0x68:
        return switchOutputs(pins, data, now) ?? (parts.acknowledgesOutputs ? ACK : reports.send(0x4a));
      case 0x69:
        return display.light(data);
      case 0x6a:
        return display.buzz(data);
      case 0x6b:
        return display.write(data);
      case 0x7b:
      case 0xa7:
        return data.length === 2 ? ACK : LENGTH_ERROR;
      case FILE:
        return files.receive(data);
      case 0x80:
        return vendor.perform(data);
      case ABORT:
        files.abort();
        return ACK;
      default:
        return UNKNOWN;
    }
  };
}

/** What the device runs after a restart: the first three bytes of the file it was given say so. */
function firmwareIn(file: Buffer | undefined): readonly [number, number, number] | undefined {
  const [major, minor, build] = file ?? [];
  return build === undefined || major === undefined || minor === undefined
    ? undefined
    : [major, minor, build];
}

/** Annex B: function, compliance level, number of items. */
function capabilities({ inputCount, outputCount }: Pins): Buffer {
  const all = [
    [1, 2, inputCount],
    [2, 4, outputCount],
    [3, 1, 0],
    [4, 4, 1],
    [5, 2, 1],
    [8, 1, 0],
    [9, 1, 1],
    [10, RECEIVE_BUFFER & 0xff, RECEIVE_BUFFER >> 8],
    [13, 0, 1],
  ];
  return Buffer.from(all.flat());
}

/** undefined: done; otherwise why not, and then none of it is. */
function switchOutputs(pins: Pins, data: Buffer, now: number): Answer | undefined {
  if (data.length === 0 || data.length % 4 !== 0) return LENGTH_ERROR;
  const records = Array.from({ length: data.length / 4 }, (_, index) => data.subarray(4 * index));
  for (const record of records) {
    const [output = 0, code = 0] = record;
    const isTimed = code === 5 || code === 6;
    if (output >= pins.outputCount || code > 6 || (isTimed && record.readUInt16LE(2) === 0))
      return RECORD_ERROR;
  }
  for (const record of records) {
    const [output = 0, code = 0] = record;
    const running = pins.pulseEnd(output);
    const isOn = code === 2 || code === 4 || code === 5;
    if (code === 5 || code === 6) pins.pulseOutput(output, isOn, now + 100 * record.readUInt16LE(2), now);
    else if (code > 2 && running !== undefined) pins.pulseOutput(output, !isOn, running, now);
    else if (code > 0) pins.setOutput(output, isOn, now);
  }
  return undefined;
}

/** LEDs, buzzer, text. */
function openDisplay() {
  const lamps = new Map<string, string>();
  let buzzer = '';
  let text = '';
  return {
    light(data: Buffer): Answer {
      if (data.length === 0 || data.length % 14 !== 0) return LENGTH_ERROR;
      for (let at = 0; at < data.length; at += 14)
        lamps.set(`${data[at]}.${data[at + 1]}`, data.subarray(at + 2, at + 14).toString('hex'));
      return ACK;
    },
    buzz(data: Buffer): Answer {
      buzzer = data.toString('hex');
      return data.length > 0 && data.length % 5 === 0 ? ACK : LENGTH_ERROR;
    },
    write(data: Buffer): Answer {
      text = data.subarray(6).toString('latin1');
      return data.length === 6 + (data[5] ?? 0) ? ACK : LENGTH_ERROR;
    },
    restart: () => lamps.clear(),
    describe: () => ({ lamps: Object.fromEntries(lamps), buzzer, text }),
  };
}

function identityOf(options: PeripheralOptions): Buffer {
  const { serial, vendorCode = OUR_VENDOR_CODE, model = 1, version = 1, firmware = FIRMWARE } = options;
  const bytes = Buffer.alloc(12);
  bytes.writeUIntBE(vendorCode, 0, 3);
  bytes.set([model, version], 3);
  bytes.writeUInt32LE(serial, 5);
  bytes.set(firmware, 9);
  return bytes;
}

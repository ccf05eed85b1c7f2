/**
 * Frames of the EmberZNet Serial Protocol ('UG100: EZSP Reference Guide', Silicon Labs, rev. 4.0, clause 3): the legacy
 * format, in which a host asks for the version first, and the extended one, which is format version 1. Pure.
 */
import { bytes, u16 } from '../bytes.ts';

const RESPONSE = 0x80;
const ASYNCHRONOUS_CALLBACK = 0x10;
const EXTENDED_FORMAT = 0x01;
const FORMAT_MASK = 0x03;
const LEGACY_HEAD = 3;
const EXTENDED_HEAD = 5;

export interface EzspCommand {
  sequence: number;
  isLegacy: boolean;
  id: number;
  parameters: Buffer;
}

/** Undefined: too short, or no command. */
export function readCommand(data: Buffer): EzspCommand | undefined {
  const [sequence = 0, control = 0, second = 0] = data;
  if (data.length < LEGACY_HEAD || control & RESPONSE) return undefined;
  const isExtended = data.length >= EXTENDED_HEAD && (second & FORMAT_MASK) === EXTENDED_FORMAT;
  if (!isExtended) return { sequence, isLegacy: true, id: second, parameters: data.subarray(LEGACY_HEAD) };
  const id = data.readUInt16LE(3);
  return { sequence, isLegacy: false, id, parameters: data.subarray(EXTENDED_HEAD) };
}

export function encodeResponse(
  { sequence, isLegacy }: EzspCommand,
  id: number,
  parameters: Uint8Array,
): Buffer {
  if (isLegacy) return bytes(sequence, RESPONSE, id, parameters);
  return bytes(sequence, RESPONSE, EXTENDED_FORMAT, u16(id), parameters);
}

/** `sequence`: of the last command. */
export function encodeCallback(sequence: number, id: number, parameters: Uint8Array): Buffer {
  return bytes(sequence, RESPONSE | ASYNCHRONOUS_CALLBACK, EXTENDED_FORMAT, u16(id), parameters);
}

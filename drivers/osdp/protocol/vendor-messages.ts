/**
 * What Gatehouse I/O devices understand beyond the standard, in osdp_MFG and osdp_MFGREP: drivers/osdp/README.md has the layout.
 * Numbers are big-endian, as in the Modbus map, of which the settings are the same bytes.
 */
import {
  INPUT_PINS,
  type IoPins,
  OUTPUT_PINS,
  RELAY_MAX,
  type Rs485Settings,
  UNLOCK_MAX_MS,
  UNLOCK_MIN_MS,
} from '../../contract/settings.ts';
import type { Command, Reply } from './messages.ts';

/** 0A-47-48: locally administered, so it is no other maker's OUI. */
export const GATEHOUSE_VENDOR_CODE = 0x0a_47_48;

const OPERATION = { status: 1, readSettings: 2, writeSettings: 3, product: 4 } as const;
const STATUS_LENGTH = 8;
const SETTINGS_LENGTH = 14;
const NAME_LENGTH = 16;
const NO_RELAY = 0xff_ff;
const DEVICES_OWN = 0;
const OUTPUTS_FROM_BIT = 8;

export type VendorRequest =
  | { kind: 'status' | 'readSettings' | 'product' }
  | { kind: 'writeSettings'; settings: Rs485Settings; settingsVersion: number };

export interface VendorStatus {
  settingsVersion: number;
  /** +1 modulo 16 at each activation of input 0 to 3 while the pin memory is on; else 0. */
  inputEdges: readonly number[];
  /** +1 modulo 65536 at each restart. */
  bootCount: number;
}

export type VendorReply =
  | { kind: 'status'; status: VendorStatus }
  | { kind: 'settings'; settings: Rs485Settings; settingsVersion: number }
  | { kind: 'product'; type: string; platformVersion: string; app: { name: string; version: string } }
  /** It understood, and does not take it. */
  | { kind: 'refused'; operation: number; reason: number };

export function encodeVendorRequest(request: VendorRequest): Command & { kind: 'MFG' } {
  const body = request.kind === 'writeSettings' ? encodeSettings(request) : [];
  const data = Uint8Array.from([OPERATION[request.kind], ...body]);
  return { kind: 'MFG', vendorCode: GATEHOUSE_VENDOR_CODE, data };
}

function encodeSettings({
  settings,
  settingsVersion,
}: VendorRequest & { kind: 'writeSettings' }): Uint8Array {
  const bytes = new Uint8Array(SETTINGS_LENGTH);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, pinBits(settings.ioPins));
  view.setUint16(2, settings.relayIndex ?? NO_RELAY);
  view.setUint32(4, settings.unlockDurationMilliseconds ?? DEVICES_OWN);
  view.setUint16(8, settings.useInputPinMemory ? 1 : 0);
  view.setUint32(10, settingsVersion);
  return bytes;
}

/** null: another maker's, or not as it is laid down. */
export function decodeVendorReply(reply: Reply): VendorReply | null {
  if ((reply.kind !== 'MFGREP' && reply.kind !== 'MFGERRR') || reply.vendorCode !== GATEHOUSE_VENDOR_CODE)
    return null;
  const [operation = 0, reason = 0] = reply.data;
  if (reply.kind === 'MFGERRR')
    return reply.data.length === 2 ? { kind: 'refused', operation, reason } : null;
  const body = reply.data.slice(1);
  switch (operation) {
    case OPERATION.status:
      return body.length === STATUS_LENGTH ? { kind: 'status', status: decodeStatus(viewOf(body)) } : null;
    case OPERATION.readSettings:
    case OPERATION.writeSettings:
      return body.length === SETTINGS_LENGTH ? decodeSettings(viewOf(body)) : null;
    case OPERATION.product:
      return body.length === 4 * NAME_LENGTH ? decodeProduct(body) : null;
    default:
      return null;
  }
}

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function decodeStatus(view: DataView): VendorStatus {
  const edges = view.getUint16(4);
  return {
    settingsVersion: view.getUint32(0),
    inputEdges: INPUT_PINS.map((_, input) => (edges >> (4 * input)) & 0xf),
    bootCount: view.getUint16(6),
  };
}

function decodeSettings(view: DataView): VendorReply | null {
  const [bits, relay, duration] = [view.getUint16(0), view.getUint16(2), view.getUint32(4)];
  const flags = view.getUint16(8);
  const isDuration = duration === DEVICES_OWN || (duration >= UNLOCK_MIN_MS && duration <= UNLOCK_MAX_MS);
  if ((relay > RELAY_MAX && relay !== NO_RELAY) || !isDuration || flags > 1) return null;
  const settings: Rs485Settings = {
    ioPins: pinsOf(bits),
    relayIndex: relay === NO_RELAY ? null : relay,
    unlockDurationMilliseconds: duration === DEVICES_OWN ? null : duration,
    useInputPinMemory: flags === 1,
  };
  return { kind: 'settings', settings, settingsVersion: view.getUint32(10) };
}

function decodeProduct(body: Uint8Array): VendorReply {
  const [type = '', platformVersion = '', name = '', version = ''] = Array.from({ length: 4 }, (_, index) =>
    nameOf(body.subarray(NAME_LENGTH * index, NAME_LENGTH * (index + 1))),
  );
  return { kind: 'product', type, platformVersion, app: { name, version } };
}

/** ASCII up to the first NUL; what cannot be printed is shown as ?. */
function nameOf(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  const text = Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString('latin1');
  return text.replaceAll(/[^ -~]/g, '?');
}

/** Bits 0 to 3 are inputs, 8 to 15 outputs. */
function pinBits(ioPins: IoPins): number {
  const inputs = INPUT_PINS.reduce((bits, pin, index) => bits | (ioPins[pin] ? 1 << index : 0), 0);
  return OUTPUT_PINS.reduce(
    (bits, pin, index) => bits | (ioPins[pin] ? 1 << (OUTPUTS_FROM_BIT + index) : 0),
    inputs,
  );
}

function pinsOf(bits: number): IoPins {
  const inputs = INPUT_PINS.map((pin, index) => [pin, (bits & (1 << index)) !== 0]);
  const outputs = OUTPUT_PINS.map((pin, index) => [pin, (bits & (1 << (OUTPUTS_FROM_BIT + index))) !== 0]);
  return Object.fromEntries([...inputs, ...outputs]) as IoPins;
}

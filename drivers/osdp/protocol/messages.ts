/**
 * Commands and replies of OSDP v2.2 (SIA OSDP 2.2, 6 and 7), named as there. Numbers on the wire are little-endian, and
 * times are in tenths of a second unless the name says otherwise.
 */

export type Colour = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;
/** Black, that is off, red, green, amber, blue, magenta, cyan, white. */
export const COLOUR = { off: 0, red: 1, green: 2, amber: 3 } as const;

export interface Blink {
  on: number;
  off: number;
  onColour: Colour;
  offColour: Colour;
}

/** What an output does (6.10): the timed codes go back by themselves, whatever becomes of the panel. */
export const OUTPUT = {
  offNow: 1,
  onNow: 2,
  offAfterTimer: 3,
  onAfterTimer: 4,
  onForTime: 5,
  offForTime: 6,
} as const;
export type OutputCode = (typeof OUTPUT)[keyof typeof OUTPUT];

export type Command =
  | { kind: 'POLL' | 'ID' | 'CAP' | 'LSTAT' | 'ISTAT' | 'OSTAT' | 'RSTAT' | 'ABORT' }
  | { kind: 'OUT'; outputs: { output: number; code: OutputCode; time: number }[] }
  /** `temporary`: for `time`, 0 is for ever; null: leave it as it is. */
  | {
      kind: 'LED';
      reader: number;
      led: number;
      temporary: (Blink & { time: number }) | null;
      permanent: Blink | null;
    }
  /** `tone`: 1 off, 2 the device's own. `count` 0: until ordered otherwise. */
  | { kind: 'BUZ'; reader: number; tone: 1 | 2; on: number; off: number; count: number }
  /** ASCII, 32 characters at most; `seconds` null: for good. */
  | { kind: 'TEXT'; reader: number; row: number; column: number; seconds: number | null; text: string }
  | { kind: 'COMSET'; address: number; baudRate: number }
  | { kind: 'KEYSET'; key: Uint8Array }
  | { kind: 'CHLNG'; nonce: Uint8Array }
  | { kind: 'SCRYPT'; cryptogram: Uint8Array }
  | { kind: 'ACURXSIZE'; bytes: number }
  | { kind: 'KEEPACTIVE'; milliseconds: number }
  | { kind: 'FILETRANSFER'; type: number; total: number; offset: number; data: Uint8Array }
  | { kind: 'MFG'; vendorCode: number; data: Uint8Array };
export type CommandKind = Command['kind'];

const COMMAND_CODES: Record<CommandKind, number> = {
  POLL: 0x60,
  ID: 0x61,
  CAP: 0x62,
  LSTAT: 0x64,
  ISTAT: 0x65,
  OSTAT: 0x66,
  RSTAT: 0x67,
  OUT: 0x68,
  LED: 0x69,
  BUZ: 0x6a,
  TEXT: 0x6b,
  COMSET: 0x6e,
  KEYSET: 0x75,
  CHLNG: 0x76,
  SCRYPT: 0x77,
  ACURXSIZE: 0x7b,
  FILETRANSFER: 0x7c,
  MFG: 0x80,
  ABORT: 0xa2,
  KEEPACTIVE: 0xa7,
};

const TENTH_MS = 100;
/** 16 bits of tenths: about 109 minutes. */
const TIMER_MAX = 0xff_ff;
const TEXT_MAX = 32;

/** What `milliseconds` becomes on the wire, rounded up, so that a door is never open for less than was asked. */
export function timerTenths(milliseconds: number): number {
  return Math.min(TIMER_MAX, Math.max(1, Math.ceil(milliseconds / TENTH_MS)));
}

export function encodeCommand(command: Command): { code: number; data: Uint8Array } {
  return { code: COMMAND_CODES[command.kind], data: Uint8Array.from(encodeData(command)) };
}

function encodeData(command: Command): readonly number[] | Uint8Array {
  switch (command.kind) {
    case 'ID':
    case 'CAP':
      return [0];
    case 'OUT':
      return command.outputs.flatMap(({ output, code, time }) => [output, code, ...le(time, 2)]);
    case 'LED': {
      const { reader, led, temporary, permanent } = command;
      const kept = [0, 0, 0, 0, 0];
      return [
        ...[reader, led],
        ...(temporary ? [2, ...blink(temporary), ...le(temporary.time, 2)] : [...kept, 0, 0]),
        ...(permanent ? [1, ...blink(permanent)] : kept),
      ];
    }
    case 'BUZ':
      return [command.reader, command.tone, command.on, command.off, command.count];
    case 'TEXT': {
      const { reader, row, column, seconds } = command;
      const text = [...command.text].map((letter) => (/[ -~]/.test(letter) ? letter.charCodeAt(0) : 0x3f));
      const shown = text.slice(0, TEXT_MAX);
      return [reader, seconds === null ? 1 : 3, seconds ?? 0, row, column, shown.length, ...shown];
    }
    case 'COMSET':
      return [command.address, ...le(command.baudRate, 4)];
    case 'KEYSET':
      return [1, command.key.length, ...command.key];
    case 'CHLNG':
      return command.nonce;
    case 'SCRYPT':
      return command.cryptogram;
    case 'ACURXSIZE':
      return le(command.bytes, 2);
    case 'KEEPACTIVE':
      return le(command.milliseconds, 2);
    case 'FILETRANSFER': {
      const { type, total, offset, data } = command;
      return [type, ...le(total, 4), ...le(offset, 4), ...le(data.length, 2), ...data];
    }
    case 'MFG':
      return [...vendorBytes(command.vendorCode), ...command.data];
    default:
      return [];
  }
}

const blink = ({ on, off, onColour, offColour }: Blink) => [on, off, onColour, offColour];
const le = (value: number, length: number) =>
  Array.from({ length }, (_, index) => Math.floor(value / 256 ** index) & 0xff);
/** The three octets of an IEEE OUI, first octet first; as a number the first octet is the highest. */
const vendorBytes = (code: number) => [code >> 16, (code >> 8) & 0xff, code & 0xff];

export interface Identity {
  /** The maker's IEEE OUI; its first octet is the highest. */
  vendorCode: number;
  model: number;
  version: number;
  serial: number;
  firmware: readonly [major: number, minor: number, build: number];
}

export interface Capability {
  /** Function code (annex B): 1 inputs, 2 outputs, 4 LEDs, 5 buzzer, 8 check, 9 security, 10 largest message, 13 readers. */
  code: number;
  compliance: number;
  count: number;
}

/** Why a device said no (7.3). */
export const NAK = {
  check: 1,
  length: 2,
  unknownCommand: 3,
  sequence: 4,
  securityBlock: 5,
  securityRequired: 6,
  biometricType: 7,
  biometricFormat: 8,
  record: 9,
} as const;

const NAK_TEXTS: Record<number, string> = {
  [NAK.check]: 'the check was wrong',
  [NAK.length]: 'the length was wrong',
  [NAK.unknownCommand]: 'it does not know the command',
  [NAK.sequence]: 'the number was wrong',
  [NAK.securityBlock]: 'it does not take this security',
  [NAK.securityRequired]: 'it wants a secure channel',
  [NAK.biometricType]: 'it does not know this type of biometric',
  [NAK.biometricFormat]: 'it does not know this format of biometric',
  [NAK.record]: 'it cannot do what the command says',
};

export function nakText(code: number): string {
  return `the device says no: ${NAK_TEXTS[code] ?? 'for a reason of its own'} (NAK ${code})`;
}

export interface FileStatus {
  /** Other commands may come between. */
  interleave: boolean;
  /** The device asks for the rest in clear text. */
  leaveSecureChannel: boolean;
  /** It has an answer to a POLL. */
  pollResponse: boolean;
  delayMs: number;
  /** 0 go on, 1 done, 2 restarts now, 3 still at it; below 0 an error. */
  status: number;
  /** Most bytes of a message from now on; 0: as before. */
  messageMax: number;
}

export type Reply =
  | { kind: 'ACK' | 'BUSY' }
  | { kind: 'NAK'; code: number; data: Uint8Array }
  | { kind: 'PDID'; identity: Identity }
  | { kind: 'PDCAP'; capabilities: Capability[] }
  | { kind: 'LSTATR'; tamper: boolean; powerFault: boolean }
  /** 0 inactive, 1 active, above: a fault of a supervised line. */
  | { kind: 'ISTATR'; inputs: number[] }
  | { kind: 'OSTATR'; outputs: number[] }
  /** 0 normal, 1 not connected, 2 tamper. */
  | { kind: 'RSTATR'; readers: number[] }
  | { kind: 'RAW'; reader: number; format: number; bitCount: number; bits: Uint8Array }
  | { kind: 'KEYPAD'; reader: number; digits: string }
  | { kind: 'COM'; address: number; baudRate: number }
  | { kind: 'CCRYPT'; clientId: Uint8Array; nonce: Uint8Array; cryptogram: Uint8Array }
  | { kind: 'RMAC_I'; replyMac: Uint8Array }
  | { kind: 'FTSTAT'; file: FileStatus }
  | { kind: 'MFGREP' | 'MFGERRR'; vendorCode: number; data: Uint8Array }
  /** Of a code that is not decoded here. */
  | { kind: 'OTHER'; code: number };
export type ReplyKind = Reply['kind'];

/** null: not as the standard has it, hence not to be believed. */
type Decode = (data: Uint8Array, view: DataView) => Reply | null;

const exactly =
  (length: number, decode: Decode): Decode =>
  (data, view) =>
    data.length === length ? decode(data, view) : null;
const atLeast =
  (length: number, decode: Decode): Decode =>
  (data, view) =>
    data.length >= length ? decode(data, view) : null;
const states = (data: Uint8Array, highest: number) =>
  data.every((state) => state <= highest) ? [...data] : null;
const vendorCode = (view: DataView) => (view.getUint16(0) << 8) | view.getUint8(2);

/** * and # are sent as 7F and 0D (7.14); makers have keys of their own, shown as ?. */
const KEYS: Record<number, string> = { 127: '*', 13: '#' };
for (let digit = 0; digit <= 9; digit += 1) KEYS[0x30 + digit] = String(digit);

const OUTPUT_STATE_MAX = 1;
const READER_STATE_MAX = 2;

const DECODERS: ReadonlyMap<number, Decode> = new Map<number, Decode>([
  [0x40, exactly(0, () => ({ kind: 'ACK' }))],
  [0x41, atLeast(1, (data) => ({ kind: 'NAK', code: data[0] ?? 0, data: data.slice(1) }))],
  [0x45, exactly(12, (data, view) => ({ kind: 'PDID', identity: decodeIdentity(data, view) }))],
  [0x46, decodeCapabilities],
  [0x48, exactly(2, decodeLocalStatus)],
  [0x49, atLeast(1, decodeStates('ISTATR'))],
  [0x4a, atLeast(1, decodeStates('OSTATR'))],
  [0x4b, atLeast(1, decodeStates('RSTATR'))],
  [0x50, atLeast(4, decodeRaw)],
  [0x53, atLeast(2, decodeKeypad)],
  [0x54, exactly(5, decodeCommunication)],
  [
    0x76,
    exactly(32, (data) => ({
      kind: 'CCRYPT',
      clientId: data.slice(0, 8),
      nonce: data.slice(8, 16),
      cryptogram: data.slice(16),
    })),
  ],
  [0x78, exactly(16, (data) => ({ kind: 'RMAC_I', replyMac: data.slice() }))],
  [0x79, exactly(0, () => ({ kind: 'BUSY' }))],
  [0x7a, exactly(7, decodeFileStatus)],
  [
    0x84,
    atLeast(3, (data, view) => ({ kind: 'MFGERRR', vendorCode: vendorCode(view), data: data.slice(3) })),
  ],
  [0x90, atLeast(3, (data, view) => ({ kind: 'MFGREP', vendorCode: vendorCode(view), data: data.slice(3) }))],
]);

/** null: a length or a value that the standard does not have. */
export function decodeReply(code: number, data: Uint8Array): Reply | null {
  const decode = DECODERS.get(code);
  if (!decode) return { kind: 'OTHER', code };
  return decode(data, new DataView(data.buffer, data.byteOffset, data.byteLength));
}

function decodeIdentity(data: Uint8Array, view: DataView): Identity {
  return {
    vendorCode: vendorCode(view),
    model: view.getUint8(3),
    version: view.getUint8(4),
    serial: view.getUint32(5, true),
    firmware: [data[9] ?? 0, data[10] ?? 0, data[11] ?? 0],
  };
}

/** Of three bytes each (7.6). What is left behind the last whole one says nothing; the device is paired and used all the same. */
function decodeCapabilities(data: Uint8Array): Reply {
  const capabilities = Array.from({ length: Math.floor(data.length / 3) }, (_, index): Capability => {
    const [code = 0, compliance = 0, count = 0] = data.subarray(3 * index);
    return { code, compliance, count };
  });
  return { kind: 'PDCAP', capabilities };
}

function decodeLocalStatus(data: Uint8Array): Reply | null {
  const [tamper = 0, power = 0] = data;
  return tamper <= 1 && power <= 1 ? { kind: 'LSTATR', tamper: tamper === 1, powerFault: power === 1 } : null;
}

function decodeStates(kind: 'ISTATR' | 'OSTATR' | 'RSTATR'): Decode {
  return (data) => {
    // Makers have states of their own for supervised lines.
    if (kind === 'ISTATR') return { kind, inputs: [...data] };
    if (kind === 'OSTATR') {
      const outputs = states(data, OUTPUT_STATE_MAX);
      return outputs && { kind, outputs };
    }
    const readers = states(data, READER_STATE_MAX);
    return readers && { kind, readers };
  };
}

function decodeRaw(data: Uint8Array, view: DataView): Reply | null {
  const bitCount = view.getUint16(2, true);
  const bits = data.slice(4);
  if (bits.length !== Math.ceil(bitCount / 8)) return null;
  return { kind: 'RAW', reader: view.getUint8(0), format: view.getUint8(1), bitCount, bits };
}

function decodeKeypad(data: Uint8Array): Reply | null {
  const [reader = 0, count = 0, ...keys] = data;
  if (keys.length !== count) return null;
  return { kind: 'KEYPAD', reader, digits: keys.map((key) => KEYS[key] ?? '?').join('') };
}

function decodeCommunication(_data: Uint8Array, view: DataView): Reply {
  return { kind: 'COM', address: view.getUint8(0), baudRate: view.getUint32(1, true) };
}

function decodeFileStatus(_data: Uint8Array, view: DataView): Reply {
  const flags = view.getUint8(0);
  return {
    kind: 'FTSTAT',
    file: {
      interleave: (flags & 1) !== 0,
      leaveSecureChannel: (flags & 2) !== 0,
      pollResponse: (flags & 4) !== 0,
      delayMs: view.getUint16(1, true),
      status: view.getInt16(3, true),
      messageMax: view.getUint16(5, true),
    },
  };
}

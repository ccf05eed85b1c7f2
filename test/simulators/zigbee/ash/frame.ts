/**
 * Frames of the Asynchronous Serial Host protocol, by 'UG101: UART Gateway Protocol Reference' (Silicon Labs, rev. 3.1),
 * clauses 2 to 4: a control byte, data, CRC-CCITT, byte stuffing, and a flag at the end. Pure.
 */

export const ASH_VERSION = 2;
const FLAG = 0x7e;
const ESCAPE = 0x7d;
const XON = 0x11;
const XOFF = 0x13;
const SUBSTITUTE = 0x18;
const CANCEL = 0x1a;
const FLIP = 0x20;
const RESERVED: readonly number[] = [FLAG, ESCAPE, XON, XOFF, SUBSTITUTE, CANCEL];
/** Of the data field of a DATA frame (clause 2.2). */
const DATA_MAX = 220;
const CRC_BYTES = 2;
/** Control bytes (clause 2.1). */
const CONTROL = { ack: 0x80, nak: 0xa0, rst: 0xc0, rstack: 0xc1, error: 0xc2 } as const;
const SHORT_MASK = 0xe0;
const NOT_READY = 0x08;
const RETRANSMITTED = 0x08;
const NUMBER_MASK = 7;
const FRAME_NUMBER_AT = 4;

/** Clause 4.3: the pseudo-random sequence that data is mixed with. */
const LFSR_SEED = 0x42;
const LFSR_POLYNOMIAL = 0xb8;

export type AshFrame =
  | { kind: 'data'; number: number; ack: number; isRepeated: boolean; data: Buffer }
  | { kind: 'ack' | 'nak'; ack: number; isNotReady: boolean }
  | { kind: 'rst' }
  | { kind: 'rstack' | 'error'; version: number; code: number };

export type AshReading = { kind: 'frame'; frame: AshFrame } | { kind: 'damaged' };

/** Its own inverse. */
function randomized(data: Uint8Array): Buffer {
  let seed = LFSR_SEED;
  return Buffer.from(data).map((byte) => {
    const mixed = byte ^ seed;
    seed = seed & 1 ? (seed >> 1) ^ LFSR_POLYNOMIAL : seed >> 1;
    return mixed;
  }) as Buffer;
}

/** CRC-CCITT: 0x1021, from 0xFFFF, highest bit first (clause 2.3). */
function crcOf(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
}

export function encodeAsh(frame: AshFrame): Buffer {
  const body = bodyOf(frame);
  const crc = crcOf(body);
  const stuffed = [...body, crc >> 8, crc & 0xff].flatMap((byte) =>
    RESERVED.includes(byte) ? [ESCAPE, byte ^ FLIP] : [byte],
  );
  return Buffer.from([...stuffed, FLAG]);
}

function bodyOf(frame: AshFrame): Buffer {
  switch (frame.kind) {
    case 'data': {
      const repeated = frame.isRepeated ? RETRANSMITTED : 0;
      const control = (frame.number << FRAME_NUMBER_AT) | repeated | frame.ack;
      return Buffer.concat([Buffer.of(control), randomized(frame.data)]);
    }
    case 'ack':
    case 'nak':
      return Buffer.of(CONTROL[frame.kind] | (frame.isNotReady ? NOT_READY : 0) | frame.ack);
    case 'rst':
      return Buffer.of(CONTROL.rst);
    default:
      return Buffer.of(CONTROL[frame.kind], frame.version, frame.code);
  }
}

/** Cuts what comes in pieces into frames. */
export function openAshReader() {
  let bytes: number[] = [];
  let isEscaped = false;
  let isSubstituted = false;
  function clear(): void {
    bytes = [];
    isEscaped = false;
    isSubstituted = false;
  }
  return {
    clear,
    read(chunk: Uint8Array): AshReading[] {
      const readings: AshReading[] = [];
      for (const byte of chunk) {
        if (byte === FLAG) {
          if (bytes.length > 0 || isSubstituted)
            readings.push(isSubstituted ? { kind: 'damaged' } : readingOf(Buffer.from(bytes)));
          clear();
        } else if (byte === CANCEL) clear();
        else if (byte === SUBSTITUTE) isSubstituted = true;
        else if (byte === ESCAPE) isEscaped = true;
        else if (byte !== XON && byte !== XOFF) {
          // A frame that is too long is damaged; its bytes are not kept.
          if (bytes.length <= DATA_MAX + 1 + CRC_BYTES) bytes.push(isEscaped ? byte ^ FLIP : byte);
          isEscaped = false;
        }
      }
      return readings;
    },
  };
}

function readingOf(bytes: Buffer): AshReading {
  const body = bytes.subarray(0, -CRC_BYTES);
  const isSound =
    body.length > 0 && body.length <= DATA_MAX + 1 && crcOf(body) === bytes.readUInt16BE(body.length);
  const frame = isSound ? frameOf(body) : undefined;
  return frame ? { kind: 'frame', frame } : { kind: 'damaged' };
}

function frameOf(body: Buffer): AshFrame | undefined {
  const [control = 0, version = 0, code = 0] = body;
  const ack = control & NUMBER_MASK;
  if ((control & 0x80) === 0)
    return {
      kind: 'data',
      number: (control >> FRAME_NUMBER_AT) & NUMBER_MASK,
      ack,
      isRepeated: (control & RETRANSMITTED) !== 0,
      data: randomized(body.subarray(1)),
    };
  if (control === CONTROL.rst) return { kind: 'rst' };
  if (control === CONTROL.rstack || control === CONTROL.error)
    return { kind: control === CONTROL.error ? 'error' : 'rstack', version, code };
  const isNotReady = (control & NOT_READY) !== 0;
  if ((control & SHORT_MASK) === CONTROL.ack) return { kind: 'ack', ack, isNotReady };
  if ((control & SHORT_MASK) === CONTROL.nak) return { kind: 'nak', ack, isNotReady };
  return undefined;
}

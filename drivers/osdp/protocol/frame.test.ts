import { expect, it } from 'vitest';
import { checksum, crc16, encodeFrame, type Frame, parseFrame, scan } from './frame.ts';

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/[\s-]/g, ''), 'hex'));
const shown = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** SIA OSDP 2.2, annex E, as libosdp quotes it (test-sc-sia-vectors.c). */
it('computes the checks of annex E', () => {
  expect(crc16(hex('53 7F 0D 00 04 6E 00 80 25 00 00'))).toBe(0x386e);
  expect(crc16(hex('53 00 09 00 04 61 00'))).toBe(0x66c0);
  expect(checksum(hex('53 7F 0C 00 00 6E 00 80 25 00 00'))).toBe(0x0f);
  expect(checksum(hex('53 00 08 00 00 61 00'))).toBe(0x44);
});

/** As OSDP.Net builds them (CommandOutgoingMessageTest.cs of its tests). */
it.each([
  ['crc', 0x6e, '01 80 25 00 00', 'FF 53 00 0D 00 06 6E 01 80 25 00 00 EC 7B'],
  ['checksum', 0x6e, '01 80 25 00 00', 'FF 53 00 0C 00 02 6E 01 80 25 00 00 8B'],
  ['crc', 0x62, '00', 'FF 53 00 09 00 06 62 00 F3 5D'],
  ['crc', 0x60, '', 'FF 53 00 08 00 06 60 89 CC'],
  ['checksum', 0x60, '', 'FF 53 00 07 00 02 60 44'],
] as const)('writes a command with %s', (check, code, data, wire) => {
  const frame = { address: 0, sequence: 2, check, security: null, code, data: hex(data) } as const;
  expect(shown(encodeFrame(frame))).toBe(shown(hex(wire)));
});

/** A capture (OSDP.Net, MessageSpyParsingTest.cs). */
const PDID = hex('53 80 14 00 06 45 00 0E E3 10 10 00 00 74 97 23 06 06 1B 88');
/** libosdp, test-cp-phy.c. */
const ACK = hex('53 E5 07 00 01 40 80');
const CCRYPT = hex(
  '53 E5 2A 00 09 03 12 01 76 10 11 12 13 14 15 16 17 18 19 1A 1B 1C 1D 1E 1F 20 21 22 23 24 25 26 27 28 29 2A 2B 2C 2D 2E 2F 19',
);
const RMAC_I = hex('53 E5 1B 00 0D 03 14 01 78 A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 AA AB AC AD AE AF CA BA');

const frameOf = (bytes: Uint8Array): Frame => {
  const parsed = parseFrame(bytes);
  if (parsed.kind !== 'frame') throw new Error(`not a frame: ${JSON.stringify(parsed)}`);
  return parsed.frame;
};

it('reads replies as captured', () => {
  const identity = frameOf(PDID);
  expect(identity).toMatchObject({ address: 0, isReply: true, sequence: 2, check: 'crc', code: 0x45 });
  expect(shown(identity.data)).toBe('000ee31010000074972306 06'.replaceAll(' ', ''));
  expect(frameOf(ACK)).toMatchObject({ address: 0x65, sequence: 1, check: 'checksum', code: 0x40 });
  expect(frameOf(CCRYPT)).toMatchObject({ security: { type: 0x12, value: 1 }, code: 0x76 });
  expect(frameOf(RMAC_I)).toMatchObject({ security: { type: 0x14, value: 1 }, check: 'crc' });
  expect(frameOf(RMAC_I).data).toHaveLength(16);
});

it('waits at every byte but the last', () => {
  for (const whole of [PDID, ACK, CCRYPT, RMAC_I])
    for (let length = 0; length < whole.length; length += 1)
      expect(scan(whole.subarray(0, length))).toMatchObject({ frames: [], more: length > 0 });
});

it('refuses what the standard does not have', () => {
  const changed = (frame: Uint8Array, at: number, value: number) => {
    const bytes = Uint8Array.from(frame);
    bytes[at] = value;
    const crc = crc16(bytes.subarray(0, -2));
    bytes.set([crc & 0xff, crc >> 8], bytes.length - 2);
    return parseFrame(bytes);
  };
  expect(changed(PDID, 0, 0x54)).toEqual({ kind: 'bad', fault: 'framing' });
  // Reserved bits of the control byte.
  expect(changed(PDID, 4, 0x46)).toEqual({ kind: 'bad', fault: 'framing' });
  // Security blocks of no type, or of a length that their type does not have.
  for (const type of [0x10, 0x19, 0x15]) expect(changed(RMAC_I, 6, type).kind).toBe('bad');
  for (const length of [0, 1, 2, 4, 200]) expect(changed(RMAC_I, 5, length).kind).toBe('bad');
  // Too short for a code, and longer than any message.
  expect(parseFrame(hex('53 80 06 00 04 00 00')).kind).toBe('bad');
  expect(parseFrame(hex('53 80 A1 05')).kind).toBe('bad');
  const damaged = Uint8Array.from(PDID);
  damaged[9] = 0;
  expect(parseFrame(damaged)).toEqual({ kind: 'bad', fault: 'crc' });
});

it('finds frames among noise, marks and halves of frames', () => {
  const noise = hex('00 53 FF FF');
  const half = PDID.subarray(0, 9);
  const damaged = Uint8Array.from(PDID);
  damaged[12] = 1;
  for (const before of [noise, damaged, hex('53'), hex('53 53 53'), hex('FF FF FF FF')]) {
    const { frames } = scan(Buffer.concat([before, PDID, ACK]));
    expect(frames.map(({ code }) => code)).toEqual([0x45, 0x40]);
  }
  // The half swallows what follows, until it is long enough to be refused.
  expect(scan(Buffer.concat([half, PDID]))).toMatchObject({ fault: 'crc' });
  expect(scan(Buffer.concat([half, PDID])).frames).toHaveLength(1);
});

it('does not take the bits of a card for a frame', () => {
  // RAW of 56 bits, which are an ACK of the same device.
  const inner = hex('53 80 07 00 02 40 E4');
  expect(frameOf(inner).code).toBe(0x40);
  const body = hex(`53 80 14 00 04 50 00 01 38 00 ${shown(inner)}`);
  const outer = Buffer.concat([body, Buffer.alloc(3)]);
  outer.writeUInt16LE(outer.length, 2);
  outer.writeUInt16LE(crc16(outer.subarray(0, -2)), outer.length - 2);
  for (let length = 6; length < outer.length; length += 1)
    expect(scan(outer.subarray(0, length))).toMatchObject({ frames: [], more: true });
  expect(scan(outer).frames.map(({ code }) => code)).toEqual([0x50]);
});

it('looks at no more than two messages, whatever comes', () => {
  const flood = Buffer.alloc(1_000_000, 0x53);
  expect(scan(flood)).toMatchObject({ frames: [], fault: 'framing' });
  const traps = Buffer.alloc(100_000, hex('53 80 A0 05 04'));
  expect(scan(traps).frames).toEqual([]);
});

import { describe, expect, it } from 'vitest';
import { type AshFrame, encodeAsh, openAshReader } from './frame.ts';

/** The examples of UG101 (Silicon Labs, rev. 3.1), clause 2; but for that of DATA(5, 3, 0), whose CRC is not that of its bytes. */
const EXAMPLES: [name: string, frame: AshFrame, hex: string][] = [
  [
    'DATA(2, 5, 0), the command `version`',
    { kind: 'data', number: 2, ack: 5, isRepeated: false, data: Buffer.from('00000002', 'hex') },
    '254221a856a6097e',
  ],
  ['ACK(1)+', { kind: 'ack', ack: 1, isNotReady: false }, '8160597e'],
  ['ACK(6)-', { kind: 'ack', ack: 6, isNotReady: true }, '8e91b67e'],
  ['NAK(6)+', { kind: 'nak', ack: 6, isNotReady: false }, 'a634dc7e'],
  ['NAK(5)-', { kind: 'nak', ack: 5, isNotReady: true }, 'ad85b77e'],
  ['RST()', { kind: 'rst' }, 'c038bc7e'],
  ['RSTACK(2, 2)', { kind: 'rstack', version: 2, code: 2 }, 'c102029b7b7e'],
];

describe('a frame of ASH', () => {
  it.each(EXAMPLES)('%s is that of the manual, both ways', (_, frame, hex) => {
    expect(encodeAsh(frame).toString('hex')).toBe(hex);
    expect(openAshReader().read(Buffer.from(hex, 'hex'))).toEqual([{ kind: 'frame', frame }]);
  });

  it('comes in pieces, and its reserved bytes are stuffed', () => {
    const data = Buffer.from([0x7e ^ 0x42, 0x7d ^ 0x21, 0x11 ^ 0xa8, 1, 2]);
    const frame: AshFrame = { kind: 'data', number: 0, ack: 0, isRepeated: true, data };
    const bytes = encodeAsh(frame);
    expect(bytes.subarray(0, -1)).not.toContain(0x7e);
    const reader = openAshReader();
    const readings = [...bytes].flatMap((byte) => reader.read(Buffer.of(byte)));
    expect(readings).toEqual([{ kind: 'frame', frame }]);
  });

  it('is damaged when a bit of it is, and cancelled by CAN', () => {
    const reader = openAshReader();
    expect(reader.read(Buffer.from('254221a856a7097e', 'hex'))).toEqual([{ kind: 'damaged' }]);
    expect(reader.read(Buffer.from('254218a856a6097e', 'hex'))).toEqual([{ kind: 'damaged' }]);
    expect(reader.read(Buffer.from('2542211ac038bc7e', 'hex'))).toEqual([
      { kind: 'frame', frame: { kind: 'rst' } },
    ]);
    // Too long for any frame.
    const long = Buffer.concat([Buffer.alloc(100_000, 5), Buffer.of(0x7e)]);
    expect(reader.read(long)).toEqual([{ kind: 'damaged' }]);
  });
});

import { describe, expect, it } from 'vitest';
import { encodeTcp, openTcpFrames } from './frame.ts';

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'));
/** Register 5 of a remote server is read: the example of the Messaging on TCP/IP Implementation Guide 1.0b, 4.4.2.1. */
const EXAMPLE = hex('15 01 00 00 00 06 FF 03 00 04 00 01');
const EXAMPLE_FRAME = { transaction: 0x1501, body: hex('FF 03 00 04 00 01') };

describe('a frame of Modbus TCP', () => {
  it('has the bytes of the guide', () => {
    expect(encodeTcp(EXAMPLE_FRAME)).toEqual(EXAMPLE);
    expect(openTcpFrames()(EXAMPLE)).toEqual([EXAMPLE_FRAME]);
  });

  it('is put together from pieces, and taken apart from others', () => {
    const take = openTcpFrames();
    for (const byte of EXAMPLE.subarray(0, -1)) expect(take(Uint8Array.of(byte))).toEqual([]);
    const rest = Buffer.concat([EXAMPLE.subarray(-1), EXAMPLE, EXAMPLE.subarray(0, 3)]);
    expect(take(rest)).toEqual([EXAMPLE_FRAME, EXAMPLE_FRAME]);
    expect(take(EXAMPLE.subarray(3))).toEqual([EXAMPLE_FRAME]);
  });

  it.each([
    ['another protocol', '00 01 00 01 00 06 11 03 00 00 00 01'],
    ['no function', '00 01 00 00 00 01 11'],
    ['more than the longest', '00 01 00 00 00 FF 11 03'],
    ['a reply of a serial line', '11 03 02 00 07 B8 45'],
  ])('is none with %s, nor is what follows', (_, bytes) => {
    const take = openTcpFrames();
    expect(take(hex(bytes))).toBeUndefined();
    expect(take(EXAMPLE)).toBeUndefined();
  });
});

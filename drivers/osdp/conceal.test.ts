/** No key leaves the bus in a trace. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { concealKeys } from './conceal.ts';
import { checksum, crc16, encodeFrame, SCS, type SecurityBlock } from './protocol/frame.ts';
import { encodeCommand } from './protocol/messages.ts';

const KEY = Uint8Array.from({ length: 16 }, (_, index) => 0xa0 + index);
const keyset = (security: SecurityBlock | null = null) =>
  encodeFrame(
    { address: 3, sequence: 1, check: 'crc', security, ...encodeCommand({ kind: 'KEYSET', key: KEY }) },
    security ? () => Uint8Array.of(1, 2, 3, 4) : undefined,
  );
const POLL = encodeFrame({
  address: 3,
  sequence: 1,
  check: 'crc',
  security: null,
  ...encodeCommand({ kind: 'POLL' }),
});
/** osdp_ACK of address 3, with its CRC. */
const ack = () => {
  const message = Uint8Array.of(0x53, 0x83, 8, 0, 0x05, 0x40);
  const crc = crc16(message);
  return Uint8Array.of(...message, crc & 0xff, crc >> 8);
};
const holdsKey = (bytes: Uint8Array) => bytes.some((byte) => byte >= 0xa0 && byte <= 0xaf);
const sent = (bytes: Uint8Array) => concealKeys(bytes, bytes);

describe('what is told of a KEYSET', () => {
  it.each([
    ['in clear text', null],
    ['in the session of the default key', { type: SCS.commandEncrypted }],
  ])('%s ends with its code', (_, security) => {
    const bytes = keyset(security);
    const told = sent(bytes);
    const dataAt = 1 + 5 + (security ? 2 : 0) + 1;
    expect([...told.subarray(0, dataAt)]).toEqual([...bytes.subarray(0, dataAt)]);
    expect(told.subarray(dataAt).every((byte) => byte === 0)).toBe(true);
    expect(told.length).toBe(bytes.length);
  });

  it('is the same of its echo, whichever of its bytes is damaged, and of the reply everything', () => {
    const question = keyset();
    fc.assert(
      fc.property(fc.nat(question.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const heard = Uint8Array.of(...question, ...ack());
        heard[at] = (heard[at] ?? 0) ^ flip;
        const told = concealKeys(heard, question);
        const isFlipped = (index: number) => index === at;
        expect(told.some((byte, index) => !isFlipped(index) && byte >= 0xa0 && byte <= 0xaf)).toBe(false);
        expect([...told.subarray(question.length)]).toEqual([...ack()]);
      }),
    );
  });

  it('is the same of one by another control panel', () => {
    const heard = Uint8Array.of(0x00, ...keyset(), ...ack());
    expect(holdsKey(concealKeys(heard, POLL))).toBe(false);
    expect(holdsKey(concealKeys(heard, undefined))).toBe(false);
  });
});

it('tells everything else as it is, the bytes of a KEYSET within a reply included', () => {
  expect(sent(POLL)).toBe(POLL);
  const reply = ack();
  expect(concealKeys(reply, POLL)).toBe(reply);
  expect(concealKeys(reply, keyset())).toBe(reply);
  const marked = Uint8Array.of(0xff, ...reply);
  expect(concealKeys(marked, keyset())).toBe(marked);
  const message = Uint8Array.of(0x53, 0x83, 15, 0, 0x01, 0x90, 0x53, 3, 9, 0, 0, 0x75, 1, 2);
  const mfgrep = Uint8Array.of(...message, checksum(message));
  expect(concealKeys(mfgrep, POLL)).toBe(mfgrep);
});

/** No key leaves the bus in a trace. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checksum, crc16, encodeFrame, SCS, type SecurityBlock } from './protocol/frame.ts';
import { encodeCommand } from './protocol/messages.ts';
import { redactKeys } from './trace.ts';

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
const sent = (bytes: Uint8Array) => redactKeys(bytes, bytes);

describe('a redacted KEYSET', () => {
  it.each([
    ['in clear text', null],
    ['in the session of the default key', { type: SCS.commandEncrypted }],
  ])('%s is shown up to its code', (_, security) => {
    const bytes = keyset(security);
    const redacted = sent(bytes);
    const dataAt = 1 + 5 + (security ? 2 : 0) + 1;
    expect([...redacted.subarray(0, dataAt)]).toEqual([...bytes.subarray(0, dataAt)]);
    expect(redacted.subarray(dataAt).every((byte) => byte === 0)).toBe(true);
    expect(redacted.length).toBe(bytes.length);
  });

  it('is blanked in its echo too, whichever byte is damaged, and the reply is shown whole', () => {
    const question = keyset();
    fc.assert(
      fc.property(fc.nat(question.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const heard = Uint8Array.of(...question, ...ack());
        heard[at] = (heard[at] ?? 0) ^ flip;
        const redacted = redactKeys(heard, question);
        const isFlipped = (index: number) => index === at;
        expect(redacted.some((byte, index) => !isFlipped(index) && byte >= 0xa0 && byte <= 0xaf)).toBe(false);
        expect([...redacted.subarray(question.length)]).toEqual([...ack()]);
      }),
    );
  });

  it('is blanked also when another control panel sends it', () => {
    const heard = Uint8Array.of(0x00, ...keyset(), ...ack());
    expect(holdsKey(redactKeys(heard, POLL))).toBe(false);
    expect(holdsKey(redactKeys(heard, undefined))).toBe(false);
  });
});

it('shows everything else unchanged, the bytes of a KEYSET within a reply included', () => {
  expect(sent(POLL)).toBe(POLL);
  const reply = ack();
  expect(redactKeys(reply, POLL)).toBe(reply);
  expect(redactKeys(reply, keyset())).toBe(reply);
  const marked = Uint8Array.of(0xff, ...reply);
  expect(redactKeys(marked, keyset())).toBe(marked);
  const message = Uint8Array.of(0x53, 0x83, 15, 0, 0x01, 0x90, 0x53, 3, 9, 0, 0, 0x75, 1, 2);
  const mfgrep = Uint8Array.of(...message, checksum(message));
  expect(redactKeys(mfgrep, POLL)).toBe(mfgrep);
});

/** A trace of a bus on which a device is given its key. */
import { expect, it } from 'vitest';
import { tracePairing } from '../../test/drivers/osdp/pairing.ts';
import { scan } from './protocol/frame.ts';

it('has the frames as they are, and of the key nothing', async () => {
  const { packets } = await tracePairing();
  const keysets = packets.filter(({ concealed }) => concealed);
  expect(keysets.length).toBeGreaterThan(0);
  for (const { bytes, sent } of keysets) {
    expect(sent).toBe(true);
    // Mark, header, security block of SCS_17, code (annex D.1.3).
    expect([bytes[1], bytes[2], bytes[7], bytes[8]]).toEqual([0x53, 0, 0x17, 0x75]);
    expect(bytes.subarray(9).every((byte) => byte === 0)).toBe(true);
  }
  const codes = packets.flatMap(({ bytes }) => scan(bytes).frames.map(({ code }) => code));
  // ID and PDID; CHLNG, or CCRYPT which has the same code, and SCRYPT.
  for (const code of [0x61, 0x45, 0x76, 0x77]) expect(codes).toContain(code);
  expect(codes).not.toContain(0x75);
}, 60_000);

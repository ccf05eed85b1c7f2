/** A trace of a bus on which a device is given its key. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { openSimulatedBus } from '../../test/simulators/bus/bus.ts';
import { type Traced, traced } from '../rs485.ts';
import { scan } from './frame.ts';
import { keyAt, openTestLink, patience } from './test-link.ts';

it('has the frames as they are, and of the key nothing', async () => {
  const bus = await openSimulatedBus({
    ...{ protocol: 'osdp', baudRate: 115_200, parity: 'none', stopBits: 1, pacing: 'cheap' },
    devices: [{ address: 0, kind: 'osdp-io', hwId: '4700', osdp: {} }],
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const link = await openTestLink({ port: bus.port, more: { devices: [{ address: 0 }] } });
  const packets: Traced['packets'] = [];
  const gather = async (last: boolean) => {
    packets.push(...traced.parse(await link.execute('trace', { id: 'pairing', last })).packets);
  };
  await gather(false);
  await vi.waitFor(() => expect(link.report('0a4748-1-4700').security).toBe('unpaired'), patience);
  await link.execute('pair', { address: 0, key: keyAt(0), milliseconds: 20_000 }, 25_000);
  await gather(true);

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

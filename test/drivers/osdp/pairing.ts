/** For tests: a device of the factory on a simulated bus that is given its key, and the trace of that. */
import { expect, onTestFinished, vi } from 'vitest';
import { type Traced, traced } from '../../../drivers/contract/rs485.ts';
import { openSimulatedBus } from '../../simulators/bus/bus.ts';
import { keyAt, openTestLink, patience } from './link.ts';

const ADDRESS = 0;
const HW_ID = '0a4748-1-4700';
const WINDOW_MS = 20_000;
const COMMAND_MS = 25_000;

/** The key it was given, and what went over the bus from before the first question to the session under that key. */
export async function tracePairing(
  options: { decrypt?: boolean } = {},
): Promise<{ key: Uint8Array; packets: Traced['packets'] }> {
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: [{ address: ADDRESS, kind: 'osdp-io', hwId: '4700', osdp: {} }],
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const link = await openTestLink({ port: bus.port, more: { devices: [{ address: ADDRESS }] } });
  const packets: Traced['packets'] = [];
  const gather = async (last: boolean) => {
    const wanted = { id: 'pairing', last, ...options };
    packets.push(...traced.parse(await link.execute('trace', wanted)).packets);
  };
  await gather(false);
  await vi.waitFor(() => expect(link.report(HW_ID).security).toBe('unpaired'), patience);
  const key = keyAt(ADDRESS);
  await link.execute('pair', { address: ADDRESS, key, milliseconds: WINDOW_MS }, COMMAND_MS);
  await link.connected(HW_ID);
  await gather(true);
  return { key, packets };
}

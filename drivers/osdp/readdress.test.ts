/** Another address and baud rate on a real pty: where the device is, or may be, is found out. */
import { expect, it, onTestFinished } from 'vitest';
import { keyAt, openTestLink } from '../../test/drivers/osdp/link.ts';
import { openSimulatedBus } from '../../test/simulators/bus/bus.ts';

const NAME = (address: number) => `0a4748-1-${4_700 + address}`;
const BAUD = 115_200;

async function openPair(addresses: readonly number[], secure: 'required' | 'off' = 'required') {
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate: BAUD,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: addresses.map((address) => ({
      address,
      kind: 'osdp-io',
      hwId: String(4_700 + address),
      osdp: { key: Buffer.from(keyAt(address)).toString('hex') },
    })),
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const devices = [{ address: 0, secure }];
  const link = await openTestLink({ port: bus.port, keyed: [0], more: { devices } });
  await link.connected(NAME(0));
  const readdress = (address: number, baudRate = BAUD) =>
    link.execute('readdress', { hwId: NAME(0), address, baudRate }, 60_000);
  return { bus, link, readdress };
}

it('goes on with a device at its new address, under its key', async () => {
  const { link, readdress } = await openPair([0]);
  expect(await readdress(7)).toEqual({ answered: { address: 7, baudRate: BAUD }, found: 7 });
  expect(link.report(NAME(0))).toMatchObject({ connected: true, address: 7, security: 'secure' });
  await link.pulse(NAME(0));
});

it('finds a device whose answer was lost, for it has gone', async () => {
  const { bus, link, readdress } = await openPair([0]);
  await bus.set(0, { osdp: { break: { fault: 'mute' } } });
  expect(await readdress(7)).toEqual({ answered: null, found: 7 });
  await link.pulse(NAME(0));
});

it('changes nothing where somebody answers already', async () => {
  const { link, readdress } = await openPair([0, 7]);
  await expect(readdress(7)).rejects.toMatchObject({ code: 'REFUSED' });
  expect(link.report(NAME(0))).toMatchObject({ connected: true, address: 0 });
  await link.pulse(NAME(0));
});

it('loses sight of a device that has taken another baud rate', async () => {
  const { link, readdress } = await openPair([0]);
  expect(await readdress(0, 9_600)).toEqual({ answered: { address: 0, baudRate: 9_600 }, found: null });
  await link.connected(NAME(0), false);
});

it('takes no device in clear text to where the configuration would have a key', async () => {
  const { link, readdress } = await openPair([0], 'off');
  await expect(readdress(7)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  await link.pulse(NAME(0));
});

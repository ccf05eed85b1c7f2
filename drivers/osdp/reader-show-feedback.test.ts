/** What readers show and sound once a relay was fired, or was refused: as it comes over the wire to the device. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { keyAt, openTestLink, patience } from '../../test/drivers/osdp/link.ts';
import { openSimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { Plain } from '../contract/driver.ts';

const NAME = '0a4748-1-4700';

async function openReader(feedback?: { [key: string]: Plain }) {
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: [
      {
        address: 0,
        kind: 'osdp-io',
        hwId: '4700',
        osdp: { key: Buffer.from(keyAt(0)).toString('hex') },
      },
    ],
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const link = await openTestLink({
    port: bus.port,
    keyed: [0],
    more: { devices: [{ address: 0 }], ...(feedback && { feedback }) },
  });
  await link.connected(NAME);
  const shown = (lamp: string | undefined, buzzer: string) =>
    vi.waitFor(
      async () => expect(await bus.state(0)).toMatchObject({ lamps: lamp ? { '0.0': lamp } : {}, buzzer }),
      patience,
    );
  // While it is closed by the order before, a refusal does not say that this one has not closed it.
  const open = () =>
    vi.waitFor(
      async () => expect(await bus.state(0)).toMatchObject({ outputs: { output0: false } }),
      patience,
    );
  return { bus, link, shown, open };
}

/** osdp_LED of SIA OSDP 2.2: temporary code 2 (set), on, off, two colours, tenths; permanent code 0 (leave it). */
const led = (colour: number, tenths: number) =>
  Buffer.from([2, 1, 0, colour, colour, tenths & 0xff, tenths >> 8, 0, 0, 0, 0, 0]).toString('hex');
/** osdp_BUZ: reader, tone 2 (its own), on, off, count. */
const buzzer = (count: number) => Buffer.from([0, 2, 1, 1, count]).toString('hex');
const [RED, GREEN, AMBER] = [1, 2, 3];

it('shows green and beeps once when a relay was fired, and red and thrice when it was refused', async () => {
  const { bus, link, shown, open } = await openReader();
  await link.pulse(NAME, 0, 100);
  await shown(led(GREEN, 20), buzzer(1));
  await open();
  await bus.set(0, { osdp: { break: { fault: 'refused' } } });
  // So long that it would still be under way when its relay is read.
  await expect(link.pulse(NAME, 0, 5_000)).rejects.toMatchObject({ code: 'REFUSED' });
  await shown(led(RED, 10), buzzer(3));
});

it('shows what the configuration says', async () => {
  const granted = { led: 'amber', milliseconds: 30_000, beeps: 2 };
  const { bus, link, shown, open } = await openReader({ granted, denied: { led: 'none', beeps: 0 } });
  await link.pulse(NAME, 0, 100);
  await shown(led(AMBER, 300), buzzer(2));
  await open();
  await bus.set(0, { osdp: { break: { fault: 'refused' } } });
  // So long that it would still be under way when its relay is read.
  await expect(link.pulse(NAME, 0, 5_000)).rejects.toMatchObject({ code: 'REFUSED' });
  await link.pulse(NAME, 0, 100);
  await vi.waitFor(
    async () => expect((await bus.state(0)).deeds).toMatchObject({ '69': 2, '6a': 2 }),
    patience,
  );
  await shown(led(AMBER, 300), buzzer(2));
});

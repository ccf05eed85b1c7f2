/** Files to devices on a real pty: the pace is theirs, every other device has its turn, and what was lost goes on. */
import { createHash } from 'node:crypto';
import { expect, it, onTestFinished, vi } from 'vitest';
import { keyAt, openTestLink, patience } from '../../test/drivers/osdp/link.ts';
import { openSimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { BusPlan } from '../../test/simulators/bus/plan.ts';
import { FILE_PIECE_MAX, type FileSent, fileSent } from '../contract/osdp.ts';

const NAME = (address: number) => `0a4748-1-${4_700 + address}`;
/** What the simulated device calls 2.1.0. */
const FILE = Uint8Array.from({ length: 12_000 }, (_, index) => [2, 1, 0][index] ?? (index * index) >> 5);
const SHA256 = createHash('sha256').update(FILE).digest('hex');

type Files = NonNullable<BusPlan['devices'][number]['osdp']>['files'];

async function openPair(files: Files = {}, more: { baudRate?: number } = {}) {
  const { baudRate = 115_200 } = more;
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: [0, 1].map((address) => ({
      address,
      kind: 'osdp-io',
      hwId: String(4_700 + address),
      osdp: { key: Buffer.from(keyAt(address)).toString('hex'), ...(address === 0 && { files }) },
    })),
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const devices = [{ address: 0 }, { address: 1 }];
  const link = await openTestLink({ port: bus.port, keyed: [0, 1], more: { devices, baudRate } });
  for (const address of [0, 1]) await link.connected(NAME(address));

  async function send(offset: number, messageMax?: number): Promise<FileSent> {
    const data = new Uint8Array(FILE.subarray(offset, offset + FILE_PIECE_MAX));
    const wanted = { hwId: NAME(0), type: 1, total: FILE.length, offset, data };
    return fileSent.parse(
      await link.execute('sendFile', { ...wanted, ...(messageMax !== undefined && { messageMax }) }, 60_000),
    );
  }
  /** Until it is sent, or `isEnough`. */
  async function sendAll(
    from = 0,
    isEnough: (reported: FileSent) => boolean = () => false,
  ): Promise<FileSent> {
    for (let reported = await send(from); ; reported = await send(reported.offset, reported.messageMax))
      if (reported.stage !== 'sending' || isEnough(reported)) return reported;
  }
  return { bus, link, send, sendAll };
}

it('brings a file whole while other devices are polled and fired, and meets the device as a new one', async () => {
  const { bus, link, sendAll } = await openPair({ endsWith: 2, finishing: 2, delayMs: 20, messageMax: 256 });
  const before = await bus.state(1);
  const sending = sendAll();
  for (let count = 0; count < 5; count += 1) await link.pulse(NAME(1), count, 100);
  expect(await sending).toMatchObject({ stage: 'restarting', offset: FILE.length, messageMax: 256 });
  expect(await bus.state(0)).toMatchObject({ files: [{ type: 1, length: FILE.length, sha256: SHA256 }] });
  const after = await bus.state(1);
  expect(after.deeds).toMatchObject({ '68': 5 });
  // Every 5 ms where nothing else is to be done.
  expect(after.requests - before.requests).toBeGreaterThan(50);
  await vi.waitFor(
    () => expect(link.report(NAME(0))).toMatchObject({ connected: true, platform: { version: '2.1.0' } }),
    patience,
  );
});

it('says nothing else to a device that wants nothing else, and goes on with it afterwards', async () => {
  const { bus, link, sendAll } = await openPair({ isExclusive: true, delayMs: 100, messageMax: 1_400 });
  const sending = sendAll();
  const transfer = async () => (await bus.state(0)).transfer as { offset: number };
  // The second fragment: the answer to the first has shown us.
  await vi.waitFor(async () => expect((await transfer()).offset).toBeGreaterThan(1_500), patience);
  await expect(link.pulse(NAME(0))).rejects.toMatchObject({ code: 'BUSY' });
  await link.pulse(NAME(1));
  expect(await sending).toMatchObject({ stage: 'done' });
  // One POLL may have been due before the device said so.
  expect((await bus.state(0)).disturbances).toBeLessThanOrEqual(1);
  await link.pulse(NAME(0));
  const { requests } = await bus.state(0);
  await vi.waitFor(async () => expect((await bus.state(0)).requests).toBeGreaterThan(requests + 5), patience);
});

it('reports how far it got when the device is lost, and goes on from there', async () => {
  const { bus, link, sendAll } = await openPair({ keeps: true, delayMs: 100, messageMax: 256 });
  const half = await sendAll(0, ({ offset }) => offset > 1_000);
  const lost = sendAll(half.offset);
  await bus.set(0, { faults: { dead: true } });
  const broken = await lost;
  expect(broken).toMatchObject({ stage: 'interrupted', reason: expect.any(String) });
  expect(broken.offset).toBeGreaterThanOrEqual(half.offset);
  await link.connected(NAME(0), false);
  await expect(sendAll(broken.offset)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  await bus.set(0, { faults: null, restart: true });
  await link.connected(NAME(0));
  expect(await sendAll(broken.offset)).toMatchObject({ stage: 'done' });
  expect(await bus.state(0)).toMatchObject({ files: [{ sha256: SHA256 }] });
});

it('begins again with a device that has forgotten, and ends with one that takes no more', async () => {
  const { send, link } = await openPair({ refuses: { status: -2, at: 5_000 } });
  expect(await send(4_000)).toMatchObject({ stage: 'sending', offset: 0 });
  await expect(send(0)).rejects.toMatchObject({ code: 'REFUSED', message: expect.stringContaining('-2') });
  await link.pulse(NAME(0));
});

it('sends no message that takes a slow bus longer than a door can wait', async () => {
  const { send } = await openPair({ messageMax: 1_400 }, { baudRate: 19_200 });
  expect(await send(0)).toMatchObject({ stage: 'sending', messageMax: 192 });
});

it('has the device forget what it has', async () => {
  const { bus, link, sendAll } = await openPair({ delayMs: 200 });
  await sendAll(0, ({ offset }) => offset > 1_000);
  expect((await bus.state(0)).transfer).not.toBeNull();
  await link.execute('abortFile', { hwId: NAME(0) });
  expect((await bus.state(0)).transfer).toBeNull();
});

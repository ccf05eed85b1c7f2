/** What a trace shows of what went over a bus. */
import { expect, it } from 'vitest';
import { ask, command, forever, frame, openTestBus, outcomeOf, says } from '../../test/drivers/bus/bus.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { type Decrypt, openTap, type Redact } from './trace.ts';

const first = { id: 'first', last: false };
const end = { id: 'first', last: true };

function tapOf({
  redact = (bytes: Uint8Array) => bytes,
  decrypt,
}: {
  redact?: Redact;
  decrypt?: Decrypt;
} = {}) {
  const clock = manualClock();
  return { clock, tap: openTap(clock, 1, redact, decrypt) };
}

it('reports requests and replies, with their times and directions, and of what no one asked for', async () => {
  const { bus, clock, wire, soon } = await openTestBus(says(7));
  const epoch = clock.now();
  const begun = bus.trace(first, forever);
  const asked = bus.exchange(ask(1), command(soon()), forever);
  await clock.advance(10);
  await asked;
  // Too soon to be distinguished from the reply by its silence.
  wire.deliver(Uint8Array.of(0xff));
  await clock.advance(240);
  const { packets, dropped } = await begun;
  const traced = packets.map(({ sent, bytes }) => [sent, [...bytes]]);
  expect(traced).toEqual([
    [true, [...frame(1, 3, 0)]],
    [false, [...frame(1, 3, 7)]],
    [false, [0xff]],
  ]);
  expect(dropped).toBe(0);
  const [request, reply] = packets.map(({ at }) => at - 1_000 * epoch);
  // Eight characters of eleven bits at 19200 baud, and 1 ms between the two frames.
  expect((reply ?? 0) - (request ?? 0)).toBeGreaterThan(5_500);
  expect((reply ?? 0) - (request ?? 0)).toBeLessThan(6_500);
});

it('keeps nothing unless it is asked to, and nothing once it is over', async () => {
  const { bus, clock, soon } = await openTestBus(says(7));
  const exchange = async () => {
    const asked = bus.exchange(ask(1), command(soon()), forever);
    await clock.advance(100);
    await asked;
  };
  await exchange();
  expect((await bus.trace(end, forever)).packets).toEqual([]);
  await exchange();
  expect((await bus.trace(end, forever)).packets).toEqual([]);
});

it('puts the pieces of a frame together, and parts what comes after a silence', async () => {
  const { tap, clock } = tapOf();
  const traced = tap.trace(first, forever);
  tap.heard(Uint8Array.of(1));
  await clock.advance(30);
  tap.heard(Uint8Array.of(2));
  await clock.advance(40);
  tap.heard(Uint8Array.of(3));
  await clock.advance(250);
  expect((await traced).packets.map(({ bytes }) => [...bytes])).toEqual([[1, 2], [3]]);
});

it('drops the oldest of what no one comes for, counts it, and stays within its bounds', async () => {
  const { tap, clock } = tapOf();
  const begun = tap.trace(first, forever);
  await clock.advance(250);
  await begun;
  const total = 3_000;
  for (let n = 0; n < total; n += 1) tap.sent(new Uint8Array(100).fill(n % 251));
  let dropped = 0;
  const kept: number[] = [];
  for (let left = 1; left > 0; ) {
    const batch = await tap.trace(end, forever).catch(() => tap.trace(first, forever));
    dropped += batch.dropped;
    expect(batch.packets.length).toBeLessThanOrEqual(512);
    kept.push(...batch.packets.map(({ bytes }) => bytes[0] ?? -1));
    left = 0;
  }
  // 256 KiB of packets that cost 128 bytes more than the 100 they have.
  expect(dropped).toBe(total - Math.floor((256 * 1024) / 228));
  expect(kept[0]).toBe(dropped % 251);
});

it('cuts noise without end into packets', async () => {
  const { tap, clock } = tapOf();
  const traced = tap.trace(first, forever);
  for (let n = 0; n < 100; n += 1) tap.heard(new Uint8Array(100));
  await clock.advance(250);
  const { packets } = await traced;
  expect(Math.max(...packets.map(({ bytes }) => bytes.length))).toBe(2_000);
});

it('refuses a second one while the first goes on, and forgets one that no one comes for', async () => {
  const { tap, clock } = tapOf();
  const begun = tap.trace(first, forever);
  await clock.advance(250);
  await begun;
  expect(await outcome(tap.trace({ id: 'second', last: false }, forever))).toBe('BUSY');
  await clock.advance(30_001);
  tap.sent(Uint8Array.of(1));
  expect((await tap.trace({ id: 'second', last: true }, forever)).packets).toEqual([]);
});

it('is over when the command is cancelled', async () => {
  const { tap } = tapOf();
  const stop = new AbortController();
  const traced = outcomeOf(tap.trace(first, stop.signal));
  stop.abort(new Error('enough'));
  await expect.poll(traced).toBe('enough');
  expect((await tap.trace({ id: 'second', last: true }, forever)).packets).toEqual([]);
});

it('says where bytes were blanked', async () => {
  const { tap } = tapOf({ redact: (bytes) => (bytes[0] === 1 ? new Uint8Array(bytes.length) : bytes) });
  const begun = tap.trace({ id: 'x', last: false }, AbortSignal.timeout(5_000));
  tap.sent(Uint8Array.of(1, 2));
  tap.sent(Uint8Array.of(3));
  begun.catch(() => undefined);
  const { packets } = await tap.trace({ id: 'x', last: true }, forever);
  expect(packets.map(({ bytes, concealed }) => [[...bytes], concealed])).toEqual([
    [[0, 0], true],
    [[3], false],
  ]);
});

async function outcome(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error) => error.code ?? error.message);
}

it('shows in clear what is encrypted, while that is asked for, and nothing that has a key in it', async () => {
  const asked: number[] = [];
  const { tap, clock } = tapOf({
    redact: (bytes) => (bytes[0] === 9 ? Uint8Array.of(9, 0) : bytes),
    decrypt(bytes, sent) {
      asked.push(bytes[0] ?? 0);
      return bytes[0] === 1
        ? undefined
        : { bytes: Uint8Array.of(0xc1, sent ? 1 : 0), masked: bytes[0] === 3 };
    },
  });
  const pass = async (id: string, decrypt?: boolean) => {
    const begun = tap.trace({ id, last: false, ...(decrypt && { decrypt }) }, forever);
    for (const byte of [1, 2, 9]) tap.sent(Uint8Array.of(byte, 9));
    tap.heard(Uint8Array.of(3));
    tap.cut();
    await clock.advance(250);
    const { packets } = await begun;
    await tap.trace({ id, last: true }, forever);
    return packets.map(({ bytes, concealed, decrypted }) => [[...bytes], concealed, decrypted]);
  };
  expect(await pass('clear', true)).toEqual([
    [[1, 9], false, false],
    [[0xc1, 1], false, true],
    [[9, 0], true, false],
    [[0xc1, 0], true, true],
  ]);
  expect(asked).toEqual([1, 2, 3]);
  expect((await pass('wire')).every(([, , decrypted]) => decrypted === false)).toBe(true);
  expect(asked).toEqual([1, 2, 3]);
});

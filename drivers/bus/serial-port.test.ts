/** Serial ports on real ptys. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SerialPort } from 'serialport';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { silentLog } from '../../src/platform/log.ts';
import { optionsWith } from '../../test/drivers/bus/bus.ts';
import { openPty, type Pty } from '../../test/simulators/bus/pty.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import type { Port } from './port.ts';
import { latencyTimer, latencyWarnings, openSerialPort } from './serial-port.ts';

const signal = new AbortController().signal;
const context = { clock: systemClock, log: silentLog };
/** Each under traffic, for the defect this is about shows itself in about one of 25. */
const HANG_UPS = 200;
const CLOSES = 20;

interface Opened {
  port: Port;
  received: number[];
  lost: Error[];
}

async function open(path: string): Promise<Opened> {
  const received: number[] = [];
  const lost: Error[] = [];
  const port = await openSerialPort(
    optionsWith({ port: path }),
    { data: (bytes) => received.push(...bytes), lost: (error) => lost.push(error) },
    context,
    signal,
  );
  onTestFinished(() => port[Symbol.asyncDispose]());
  return { port, received, lost };
}

function pluggedIn(): Pty {
  const pty = openPty(join(temporaryFolder(), 'adapter'));
  onTestFinished(() => pty[Symbol.asyncDispose]());
  return pty;
}

/** More than a pty takes while no one reads. */
function writeALot(port: Port): void {
  for (let time = 0; time < 1_000; time += 1) port.write(new Uint8Array(256));
}

it('carries every byte there and back', async () => {
  const pty = pluggedIn();
  const { port, received } = await open(pty.path);
  pty.master.pipe(pty.master);
  const all = Uint8Array.from({ length: 256 }, (_, index) => index);
  port.write(all);
  await vi.waitFor(() => expect(received).toEqual([...all]));
  expect(port).toMatchObject({ warnings: [], paced: false, diesUnnoticed: false });
});

it('opens the device with the data bits of the options, and again so when it is retuned', async () => {
  const pty = pluggedIn();
  const opening = vi.spyOn(SerialPort.binding, 'open');
  onTestFinished(() => opening.mockRestore());
  const options = { ...optionsWith({ port: pty.path }), dataBits: 7 } as const;
  const listener = { data: () => undefined, lost: () => undefined };
  await using port = await openSerialPort(options, listener, context, signal);
  await port.retune?.({ baudRate: 9_600, parity: 'none', stopBits: 2 });
  expect(opening.mock.calls).toMatchObject([
    [{ baudRate: 19_200, parity: 'even', dataBits: 7 }],
    [{ baudRate: 9_600, parity: 'none', dataBits: 7 }],
  ]);
});

it(`notices ${HANG_UPS} of ${HANG_UPS} hang-ups under traffic`, async () => {
  const pty = pluggedIn();
  for (let time = 0; time < HANG_UPS; time += 1) {
    const { port, received, lost } = await open(pty.path);
    const { master } = pty;
    const noise = setInterval(() => master.write('0123456789abcdef'), 0);
    await vi.waitFor(() => expect(received.length).toBeGreaterThan(0), { interval: 1 });
    clearInterval(noise);
    master.write('while it is unplugged');
    await pty.hangUp();
    await vi.waitFor(() => expect(lost).toHaveLength(1), { interval: 1 });
    expect(() => port.write(Uint8Array.of(1))).toThrow('the port is closed');
    await port[Symbol.asyncDispose]();
    expect(lost).toHaveLength(1);
    await pty.replug();
  }
});

it('opens another device behind the same path after a replug', async () => {
  const pty = pluggedIn();
  const before = await open(pty.path);
  await pty.hangUp();
  await vi.waitFor(() => expect(before.lost).toHaveLength(1));
  expect(before.lost[0]?.message).toMatch(/^the adapter is gone \(.*\): it was unplugged/);
  await expect(open(pty.path)).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining('is the adapter plugged in'),
  });
  // Takes the name that became free.
  await using _other = openPty();
  await pty.replug();
  const after = await open(pty.path);
  pty.master.write('x');
  await vi.waitFor(() => expect(after.received).toEqual([0x78]));
  expect(after.port.name).not.toBe(before.port.name);
});

it('has the port for itself, and gives it back once, however often it is closed', async () => {
  const pty = pluggedIn();
  const { port, lost } = await open(pty.path);
  await expect(open(pty.path)).rejects.toMatchObject({
    message: expect.stringContaining('another process has it open'),
  });
  await port[Symbol.asyncDispose]();
  await port[Symbol.asyncDispose]();
  expect(lost).toEqual([]);
  await open(pty.path);
});

it('gives the port back when it is not wanted any more', async () => {
  const pty = pluggedIn();
  const ended = AbortSignal.abort(new Error('not wanted'));
  const listener = { data: () => {}, lost: () => {} };
  await expect(openSerialPort(optionsWith({ port: pty.path }), listener, context, ended)).rejects.toThrow(
    'not wanted',
  );
  await open(pty.path);
});

it('takes the port for lost when nothing leaves any more', async () => {
  const pty = pluggedIn();
  pty.master.pause();
  const { port } = await open(pty.path);
  expect(() => writeALot(port)).toThrow('does not take what is sent');
});

it('hears nothing of what came before it was opened', async () => {
  const pty = pluggedIn();
  // What a device said to the process that had the port before: it waits in the device, and would pass for a reply.
  pty.master.write('said long ago');
  await vi.waitFor(() => expect(pty.master.writableLength).toBe(0));
  const { received } = await open(pty.path);
  pty.master.write('now');
  await vi.waitFor(() => expect(Buffer.from(received).toString()).toBe('now'));
});

it('can be closed while bytes arrive: none is heard afterwards, and nothing is lost', async () => {
  const pty = pluggedIn();
  for (let time = 0; time < CLOSES; time += 1) {
    const { port, received, lost } = await open(pty.path);
    const noise = setInterval(() => pty.master.write('0123456789abcdef'), 0);
    await vi.waitFor(() => expect(received.length).toBeGreaterThan(0), { interval: 1 });
    const closed = port[Symbol.asyncDispose]();
    const heard = received.length;
    expect(() => port.write(Uint8Array.of(1))).toThrow('the port is closed');
    await closed;
    clearInterval(noise);
    expect([received.length, lost]).toEqual([heard, []]);
  }
});

it('is lost once when it vanishes while something waits to be sent', async () => {
  const pty = pluggedIn();
  pty.master.pause();
  const { port, lost } = await open(pty.path);
  expect(() => writeALot(port)).toThrow('does not take what is sent');
  await pty.hangUp();
  await vi.waitFor(() => expect(lost).toHaveLength(1));
  expect(() => port.write(Uint8Array.of(1))).toThrow('the port is closed');
  await port[Symbol.asyncDispose]();
  expect(lost).toHaveLength(1);
});

it('says of a write into a device that has just vanished that it is lost', async () => {
  const pty = pluggedIn();
  const { port, lost } = await open(pty.path);
  // Closes both ends before any listener is called.
  const gone = pty.hangUp();
  expect(() => port.write(Uint8Array.of(1))).toThrow();
  expect(lost).toHaveLength(1);
  await gone;
  await port[Symbol.asyncDispose]();
  expect(lost).toHaveLength(1);
});

it.each([
  ['1\n', 1, 0],
  ['16\n', 16, 1],
  ['none of it', undefined, 0],
])('reads the latency timer %j of an adapter', async (text, timer, warnings) => {
  const folder = temporaryFolder();
  await mkdir(join(folder, 'ttyUSB0', 'device'), { recursive: true });
  await writeFile(join(folder, 'ttyUSB0', 'device', 'latency_timer'), text);
  expect(await latencyTimer('/dev/ttyUSB0', folder)).toBe(timer);
  expect(latencyWarnings('/dev/ttyUSB0', timer ?? 0)).toHaveLength(warnings);
});

it('knows of no latency timer where there is none', async () => {
  expect(await latencyTimer('/dev/ttyS0', temporaryFolder())).toBeUndefined();
});

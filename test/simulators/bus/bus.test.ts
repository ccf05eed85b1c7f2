/** The simulated bus as a process, seen through its port: by mbpoll, and byte by byte. */
import { execFile, spawnSync } from 'node:child_process';
import { constants, existsSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ReadStream } from 'node:tty';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../temporary.ts';
import { openChild } from '../child.ts';
import { openSimulatedBus, type SimulatedBus } from './bus.ts';
import { framed } from './modbus/frame.ts';
import type { BusPlan, Faults } from './plan.ts';

const hasMbpoll = spawnSync('sh', ['-c', 'command -v mbpoll'], { stdio: 'ignore' }).status === 0;

const PLAN: BusPlan = {
  protocol: 'modbus',
  baudRate: 115_200,
  parity: 'even',
  stopBits: 1,
  pacing: 'none',
  devices: [
    { address: 1, kind: 'waveshare-io-8' },
    { address: 17, kind: 'gatehouse-io', hwId: 'GIO-0017' },
  ],
};
/** Read eight inputs of unit 1, and what an untouched board answers. */
const REQUEST = Buffer.from('010200000008' + '79cc', 'hex');
const REPLY = '01020100a188';

async function opened(changes: Partial<BusPlan> = {}): Promise<SimulatedBus> {
  const bus = await openSimulatedBus({ ...PLAN, ...changes });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  return bus;
}

interface Port {
  write(bytes: Uint8Array): void;
  /** All that came since it was opened, or last taken, in hex. */
  heard(): string;
  take(): string;
  /** Resolves when it is gone. */
  lost: Promise<unknown>;
}

function openPort(path: string): Port {
  const tcp = /^tcp:\/\/(.*):(\d+)$/.exec(path);
  const stream = tcp
    ? connect(Number(tcp[2]), tcp[1])
    : new ReadStream(openSync(path, constants.O_RDWR | constants.O_NOCTTY));
  onTestFinished(() => void stream.destroy());
  let chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('error', () => undefined);
  const heard = () => Buffer.concat(chunks).toString('hex');
  return {
    write: (bytes) => void stream.write(bytes),
    heard,
    take() {
      const text = heard();
      chunks = [];
      return text;
    },
    lost: new Promise((resolve) => stream.once('close', resolve)),
  };
}

async function mbpoll(port: string, ...args: string[]): Promise<string> {
  const flags = ['-m', 'rtu', '-b', '115200', '-P', 'even', '-0', '-1', '-o', '1'];
  const { stdout } = await promisify(execFile)('mbpoll', [...flags, ...args, port]).catch((error) => error);
  return stdout;
}

it.skipIf(!hasMbpoll)('is read by mbpoll over its pty, however it is paced', async () => {
  for (const pacing of ['none', 'cheap', 'exact'] as const) {
    const bus = await opened({ pacing });
    await bus.set(17, { inputs: { input0: true, input3: true }, tamper: true });
    const output = await mbpoll(bus.port, '-a', '17', '-r', '0', '-c', '7', '-t', '4:hex');
    const values = [...output.matchAll(/\[\d+\]:\s+0x([0-9A-F]{4})/g)].map(([, value]) => value);
    expect(values).toEqual(['0009', '0000', '0000', '0000', '0000', '0001', '0001']);
  }
});

it.skipIf(!hasMbpoll)('is read by mbpoll through a gateway of Modbus TCP', async () => {
  const bus = await opened({ transport: 'modbus-tcp' });
  const { hostname, port } = new URL(bus.port);
  const line = [
    '-m',
    'tcp',
    '-p',
    port,
    '-a',
    '17',
    '-0',
    '-1',
    '-r',
    '0',
    '-c',
    '7',
    '-t',
    '4:hex',
    hostname,
  ];
  const { stdout } = await promisify(execFile)('mbpoll', line);
  expect(stdout).toMatch(/^\[0\]:/m);
});

it.skipIf(!hasMbpoll)('has its coils written by mbpoll, and says when they switched', async () => {
  const bus = await opened();
  const before = Date.now();
  const coil = ['-a', '1', '-t', '0', '-r', '3', bus.port, '1'];
  const flags = ['-m', 'rtu', '-b', '115200', '-P', 'even', '-0', '-1'];
  await promisify(execFile)('mbpoll', [...flags, ...coil]);
  const { outputs, history } = await bus.state(1);
  expect(outputs).toMatchObject({ output2: false, output3: true });
  expect(history).toMatchObject([{ output: 3, on: true }]);
  expect(history[0]?.at).toBeGreaterThanOrEqual(before - 1);
  expect(history[0]?.at).toBeLessThanOrEqual(Date.now() + 1);
});

it('answers over TCP, one connection at a time', async () => {
  const bus = await opened({ transport: 'tcp' });
  const port = openPort(bus.port);
  port.write(REQUEST);
  await expect.poll(port.heard).toBe(REPLY);
  const second = openPort(bus.port);
  await second.lost;
  await bus.hangUp();
  await port.lost;
  await bus.replug();
  const third = openPort(bus.port);
  third.write(REQUEST);
  await expect.poll(third.heard).toBe(REPLY);
});

it('speaks DCON with checksums', async () => {
  const bus = await opened({
    protocol: 'dcon',
    devices: [{ address: 1, kind: 'i-7060' }],
  });
  const port = openPort(bus.port);
  // The sum of `$016` is BB, that of `!000000` is 41.
  port.write(Buffer.from('$016BB\r'));
  await expect.poll(() => Buffer.from(port.heard(), 'hex').toString()).toBe('!00000041\r');
});

const FAULTS: [string, Faults, string | RegExp][] = [
  ['has noise before replies', { noise: '00ff' }, `00ff${REPLY}`],
  ['has replies cut off', { truncate: 2 }, REPLY.slice(0, -4)],
  ['has replies with a wrong bit', { corrupt: true }, '01020100a189'],
  ['has so many replies with a wrong bit', { damage: { share: 1, seed: 1 } }, '01020100a189'],
  ['has a twin', { twin: { turnaroundMs: 20 } }, `${REPLY}${REPLY}`],
  ['is slow at times', { unsteady: { share: 1, fromMs: 20, toMs: 30, seed: 1 } }, REPLY],
  ['answers in the name of another', { wrongAddress: 2 }, framed(2, [2, 1, 0]).toString('hex')],
  ['refuses', { refuse: 3 }, framed(1, [0x82, 3]).toString('hex')],
  ['talks at the same time as another', { duplicate: true }, /^(?!01)(..)(?!02)(..)(?!01).*$/],
  ['answers slowly', { slowMs: 30 }, REPLY],
  ['answers late', { late: { milliseconds: 30, replies: 1 } }, REPLY],
];

it('breaks a device in every way there is, and mends it', async () => {
  const bus = await opened();
  const port = openPort(bus.port);
  for (const [name, faults, reply] of FAULTS) {
    expect((await bus.set(1, { faults })).faults, name).toEqual(faults);
    const sentAt = performance.now();
    port.write(REQUEST);
    if (typeof reply === 'string') await expect.poll(port.heard, { message: name }).toBe(reply);
    else await expect.poll(port.heard, { message: name }).toMatch(reply);
    port.take();
    const { slowMs = 0, late } = faults;
    expect(performance.now() - sentAt, name).toBeGreaterThanOrEqual(late?.milliseconds ?? slowMs);
    expect((await bus.set(1, { faults: null })).faults).toEqual({});
  }
  port.write(REQUEST);
  await expect.poll(port.heard).toBe(REPLY);
});

it('says nothing when it is dead, lost a request, or is silent for a while', async () => {
  const bus = await opened();
  const port = openPort(bus.port);
  const ask = async (requests: number) => {
    port.write(REQUEST);
    await expect.poll(async () => (await bus.stats()).requests['1']).toBe(requests);
  };
  await bus.set(1, { faults: { dead: true } });
  await ask(1);
  await bus.set(1, { faults: { dead: null, loss: { share: 1, seed: 7 } } });
  await ask(2);
  await bus.set(1, { faults: { loss: null, silent: 2 } });
  await ask(3);
  await ask(4);
  expect(port.heard()).toBe('');
  await ask(5);
  await expect.poll(port.heard).toBe(REPLY);
  expect(await bus.state(1)).toMatchObject({ requests: 5, faults: {} });
});

it('loses the same requests for the same seed', async () => {
  const bus = await opened();
  const port = openPort(bus.port);
  const answered = async () => {
    await bus.setBus({ resetStats: true });
    await bus.set(1, { faults: { loss: { share: 0.5, seed: 42 } } });
    const pattern: boolean[] = [];
    for (let request = 1; request <= 16; request += 1) {
      port.write(REQUEST);
      await expect.poll(async () => (await bus.stats()).requests['1']).toBe(request);
      const { exchanges } = await bus.stats();
      pattern.push(exchanges > pattern.filter(Boolean).length);
    }
    return pattern;
  };
  const first = await answered();
  expect(first).toContain(true);
  expect(first).toContain(false);
  expect(await answered()).toEqual(first);
});

it('counts as a collision what is sent before the wire is free', async () => {
  for (const pacing of ['cheap', 'exact'] as const) {
    // At 300 baud a request takes 293 ms.
    const bus = await opened({ pacing, baudRate: 300 });
    const port = openPort(bus.port);
    port.write(REQUEST);
    port.write(REQUEST);
    await expect.poll(async () => (await bus.stats()).badFrames).toBe(1);
    expect(await bus.stats()).toMatchObject({ collisions: 1, exchanges: 0, requests: {} });
    expect(port.heard()).toBe('');
  }
});

it('hangs up and comes back at the same path', async () => {
  for (const pacing of ['none', 'exact'] as const) {
    const link = join(temporaryFolder(), 'rs485');
    const bus = await opened({ link, pacing });
    const port = openPort(link);
    await bus.hangUp();
    await port.lost;
    expect(existsSync(link)).toBe(false);
    await bus.replug();
    expect(bus.port).toBe(link);
    const again = openPort(link);
    again.write(REQUEST);
    await expect.poll(again.heard).toBe(REPLY);
  }
});

it('echoes, and makes noise while no one speaks', async () => {
  const bus = await opened({ localEcho: true });
  const port = openPort(bus.port);
  port.write(REQUEST);
  await expect.poll(port.heard).toBe(REQUEST.toString('hex') + REPLY);
  port.take();
  await bus.setBus({ localEcho: false, idleNoise: { everyMs: 5, bytes: '00ff' } });
  await expect.poll(port.heard).toMatch(/^(00ff){3}/);
  await bus.setBus({ idleNoise: null });
});

it('stops reading, and goes on', async () => {
  const bus = await opened();
  const port = openPort(bus.port);
  await bus.setBus({ reading: false });
  port.write(REQUEST);
  await bus.stats();
  expect((await bus.stats()).bytesFromGateway).toBe(0);
  await bus.setBus({ reading: true });
  await expect.poll(port.heard).toBe(REPLY);
});

it('restarts devices, and swaps them', async () => {
  const bus = await opened();
  const port = openPort(bus.port);
  port.write(framed(17, Buffer.from('1001000007' + '0e030100020000' + '0bb8000100000007', 'hex')));
  await expect.poll(async () => (await bus.state(17)).settings).toMatchObject({ settingsVersion: 7 });
  expect(await bus.set(17, { restart: true })).toMatchObject({
    bootCount: 2,
    hwId: 'GIO-0017',
    settings: { settingsVersion: 7, useInputPinMemory: true, unlockDurationMilliseconds: 3_000 },
  });
  expect(await bus.set(17, { swap: { hwId: 'GIO-0018' } })).toMatchObject({
    bootCount: 1,
    hwId: 'GIO-0018',
    settings: { settingsVersion: 0, useInputPinMemory: false },
  });
  expect(await bus.set(17, { pulseInput: { input: 'input2', milliseconds: 60_000 } })).toMatchObject({
    inputs: { input2: true },
  });
});

it('refuses changes and plans that cannot be, with the reason', async () => {
  const bus = await opened();
  await expect(bus.set(2, { restart: true })).rejects.toThrow('no device is at 2');
  await expect(bus.set(17, { inputs: { input4: true } })).rejects.toThrow('has no input4');
  const post = (path: string, body: string) => fetch(`${bus.control}${path}`, { method: 'POST', body });
  for (const [path, body] of [
    ['/devices/1', '{"faults": {"sulky": true}}'],
    ['/devices/1', '{"faults": {"slowMs": -1}}'],
    ['/devices/1', '{"inputs": {"input9": true}}'],
    ['/', '{"idleNoise": {"everyMs": 0, "bytes": "00"}}'],
    ['/', 'no json'],
  ] as const) {
    const response = await post(path, body);
    expect(response.status, body).toBe(400);
    expect((await response.json()) as object).toEqual({ error: expect.any(String) });
  }
  for (const [plan, reason] of [
    [{ devices: [...(PLAN.devices ?? []), { address: 1, kind: 'gatehouse-io' }] }, 'two devices at 1'],
    [{ devices: [{ address: 1, kind: 'i-7060' }] }, 'i-7060 does not speak modbus'],
    [{ transport: 'tcp', pacing: 'exact' }, 'exact pacing needs a pty'],
    [{ transport: 'modbus-tcp', protocol: 'osdp', devices: [] }, 'no gateway of Modbus TCP for osdp'],
  ] as [Partial<BusPlan>, string][]) {
    await expect(opened(plan)).rejects.toThrow(reason);
  }
});

it('runs as a program, and ends with its parent', async () => {
  const file = join(temporaryFolder(), 'plan.json');
  await writeFile(file, JSON.stringify(PLAN));
  const child = openChild<{ port: string; control: string }>({
    args: [`${import.meta.dirname}/main.ts`, file],
  });
  const { control } = await child.waitFor(() => true);
  expect(await (await fetch(control)).json()).toMatchObject({
    protocol: 'modbus',
    devices: [{ address: 1 }, { address: 17 }],
  });
  await child[Symbol.asyncDispose]();
  expect(await child.exited).toEqual({ code: 0, signal: null });
});

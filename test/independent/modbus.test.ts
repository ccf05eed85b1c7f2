/**
 * The Modbus driver and peers that share nothing with it, over a real pseudo-terminal and over TCP: a controller on
 * libmodbus (modbus-slave.c), and mbpoll, which reads and writes the same registers.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Driver, DriverEvent, Plain } from '../../drivers/contract/driver.ts';
import type { Rs485Report } from '../../drivers/contract/settings.ts';
import { openModbus } from '../../drivers/modbus/driver.ts';
import { profileSchema } from '../../drivers/modbus/profile.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { settingsWith } from '../drivers/modbus/link.ts';

const works = (command: string) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
const hasPeers = works('mbpoll') && works('gcc') && existsSync('/usr/include/modbus/modbus.h');

const UNIT = 17;
const HW_ID = 'LIBMODBUS-0001';
const log = { debug() {}, info() {}, warn() {}, error() {} };
const never = new AbortController().signal;
const profileFile = join(import.meta.dirname, '../../config/profiles/gatehouse-io.yaml');
const profile = profileSchema.parse(parse(readFileSync(profileFile, 'utf8'))) as Plain;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-modbus-'));
  if (!hasPeers) return;
  const source = join(import.meta.dirname, 'modbus-slave.c');
  const options = [
    '-Wall',
    '-Werror',
    '-I/usr/include/modbus',
    '-o',
    join(folder, 'slave'),
    source,
    '-lmodbus',
  ];
  const { status, stderr } = spawnSync('gcc', options, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Slave extends AsyncDisposable {
  port: string;
  say(line: string): void;
}

async function openSlave(...more: 'tcp'[]): Promise<Slave> {
  const child: ChildProcess = spawn(join(folder, 'slave'), [String(UNIT), HW_ID, ...more], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  if (!child.stdout) throw new Error('the slave has no output');
  const [port] = await new Promise<string[]>((resolve, reject) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).once('line', (line) => resolve([line]));
    void ended.then(() => reject(new Error('the slave has ended')));
  });
  return {
    port: port ?? '',
    say: (line) => void child.stdin?.write(`${line}\n`),
    async [Symbol.asyncDispose]() {
      child.stdin?.end();
      await ended;
    },
  };
}

interface Link extends AsyncDisposable {
  report(): Rs485Report | undefined;
  events: DriverEvent[];
  execute(kind: string, data: Plain): Promise<Plain>;
}

async function openLink(port: string): Promise<Link> {
  const events: DriverEvent[] = [];
  const reports = new Map<string, Plain>();
  const driver: Driver = await openModbus(
    { port, devices: [{ unitId: UNIT }], pollEveryMs: 20, profiles: { 'gatehouse-io': profile } },
    {
      linkId: 'bus-1',
      clock: systemClock,
      log,
      report: ({ subject, state }) => void reports.set(subject, state),
      emit: async (event) => void events.push(event),
    },
    never,
  );
  const stop = new AbortController();
  const running = driver.run(stop.signal).catch(() => undefined);
  return {
    events,
    report: () => reports.get(`device:${HW_ID}`) as Rs485Report | undefined,
    execute: (kind, data) => driver.execute({ kind, data, deadline: systemClock.monotonic() + 5_000 }, never),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await driver[Symbol.asyncDispose]();
      await running;
    },
  };
}

it.skipIf(!hasPeers)('has its one connection again after it was taken by another', async () => {
  await using slave = await openSlave('tcp');
  for (let life = 0; life < 2; life += 1) {
    await using link = await openLink(`modbus-tcp://${slave.port}`);
    await expect.poll(link.report).toMatchObject({ connected: true });
  }
  const [host = '', port = ''] = slave.port.split(':');
  const line = [
    '-q',
    '-m',
    'tcp',
    '-p',
    port,
    '-a',
    String(UNIT),
    '-t',
    '4',
    '-0',
    '-r',
    '0',
    '-c',
    '4',
    '-1',
    host,
  ];
  expect(spawnSync('mbpoll', line, { encoding: 'utf8' }).stdout).toMatch(/^\[0\]:/m);
});

const MBPOLL = ['-q', '-m', 'rtu', '-a', String(UNIT), '-b', '19200', '-P', 'even', '-t', '4', '-0', '-r'];

/** Registers from `address` on, as mbpoll reads them. */
function read(port: string, address: number, count: number): number[] {
  const line = [...MBPOLL, String(address), '-c', String(count), '-1', port];
  const { stdout } = spawnSync('mbpoll', line, { encoding: 'utf8' });
  return [...stdout.matchAll(/^\[\d+\]:\s+(\d+)/gm)].map(([, value]) => Number(value));
}

function write(port: string, address: number, values: number[]) {
  return spawnSync('mbpoll', [...MBPOLL, String(address), port, '--', ...values.map(String)], {
    encoding: 'utf8',
  });
}

it.skipIf(!hasPeers).each([
  ['on a wire', []],
  ['by Modbus TCP', ['tcp']],
] as const)('reads, configures and fires a controller on libmodbus, %s', async (_, more) => {
  await using slave = await openSlave(...more);
  await using link = await openLink(more.length > 0 ? `modbus-tcp://${slave.port}` : slave.port);
  await expect.poll(link.report).toMatchObject({
    connected: true,
    type: 'libmodbus',
    reportedSettingsVersion: 0,
    apps: [{ name: 'slave', version: '1' }],
    settings: { unlockDurationMilliseconds: 5_000, useInputPinMemory: false },
  });
  const settings = settingsWith({ pins: ['input0', 'input2', 'output2'] });
  expect(await link.execute('applySettings', { hwId: HW_ID, settingsVersion: 66_000, settings })).toEqual({
    reportedSettingsVersion: 66_000,
  });
  expect(link.report()).toMatchObject({ reportedSettingsVersion: 66_000, settings });

  slave.say('input 5');
  await expect
    .poll(() => link.events.map(({ data }) => data))
    .toMatchObject([
      { hwId: HW_ID, input: 'input0', activations: 1 },
      { hwId: HW_ID, input: 'input2', activations: 1 },
    ]);
  slave.say('status 1');
  await expect.poll(link.report).toMatchObject({ tamper: true, levels: { input0: true, input2: true } });

  expect(
    await link.execute('pulse', { hwId: HW_ID, relay: 2, milliseconds: 1_500, settingsVersion: 66_000 }),
  ).toEqual({
    relay: 2,
    milliseconds: 1_500,
    timedBy: 'device',
  });
  await expect.poll(link.report).toMatchObject({ levels: { output2: true }, pulse: { relay: 2 } });
  await expect.poll(link.report).toMatchObject({ levels: { output2: false }, pulse: null });

  slave.say('restart');
  await expect.poll(link.report).toMatchObject({ connected: true, settings });
});

it.skipIf(!hasPeers)('and mbpoll understand the same registers', async () => {
  await using slave = await openSlave();
  {
    await using link = await openLink(slave.port);
    await expect.poll(link.report).toMatchObject({ connected: true });
    await link.execute('applySettings', { hwId: HW_ID, settingsVersion: 66_000, settings: settingsWith() });
  }
  expect(read(slave.port, 0x0100, 7)).toEqual([0, 2, 0, 3_000, 1, 1, 464]);
  expect(read(slave.port, 0x0003, 2)).toEqual([1, 464]);
  // All of a block, or none of it.
  expect(write(slave.port, 0x0100, [0x0401, 9, 0, 3_000, 0, 0, 7]).stderr).toMatch(/Illegal data value/);
  expect(write(slave.port, 0x0100, [0x0401, 7, 0, 4_000, 0, 0, 7]).status).toBe(0);
  await using link = await openLink(slave.port);
  await expect.poll(link.report).toMatchObject({
    reportedSettingsVersion: 7,
    settings: settingsWith({
      relayIndex: 7,
      unlockDurationMilliseconds: 4_000,
      useInputPinMemory: false,
      pins: ['input0', 'output2'],
    }),
  });
});

/** Two real gateways on three NATS servers: the second follows, takes over from one that is stopped while a server loses the others, and gives back while one is dead what it took. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openClient } from '../src/cli/client.ts';
import { systemClock } from '../src/platform/clock.ts';
import type { Status } from '../src/services/status/schema.ts';
import { AS_THE_SUITE } from './as-the-suite.ts';
import { type NatsCluster, openNatsCluster } from './nats-cluster.ts';
import { type Device, LOBBY } from './rs485-site.ts';
import { natsMissing } from './services/events/nats.ts';
import { testShell } from './shell.ts';
import { openSimulatedBus, type SimulatedBus } from './simulators/bus/bus.ts';
import { temporaryFolder } from './temporary.ts';

const PROGRAM = join(import.meta.dirname, '../src/start.js');
/** A lease is 12 s, and a start takes some seconds on a busy machine. */
const PATIENCE = { timeout: 60_000, interval: 100 };

interface Played {
  folder: string;
  /** What it has written since it was started last. */
  written(): string;
  start(): void;
  begin(): void;
  kill(): Promise<void>;
  /** To the daemon alone. */
  signal(signal: NodeJS.Signals): void;
  join(nats: NatsCluster, bucket?: string): void;
  run(...argv: string[]): Promise<string>;
}

function gateway(name: string, port: string): Played {
  const folder = temporaryFolder();
  const file = join(folder, 'gatehouse.yaml');
  const lines = [
    'dataDirectory: data',
    "http: { listen: '127.0.0.1:0', plain: true }",
    "encoders: { listen: '127.0.0.1:0' }",
    'links:',
    `  - { id: lobby, protocol: modbus, options: { port: ${port}, baudRate: 19200, parity: even, stopBits: 1, devices: [{ unitId: 1, profile: gatehouse-io }] } }`,
  ];
  writeFileSync(file, lines.join('\n'));
  let text = '';
  let running: ChildProcess | undefined;
  const program = (...argv: string[]) =>
    spawn(process.execPath, [PROGRAM, ...argv, '--config', file], { env: { ...AS_THE_SUITE } });
  const end = async (signal: NodeJS.Signals) => {
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill(signal);
    await exited;
  };
  onTestFinished(() => end('SIGKILL'));
  return {
    folder,
    written: () => text,
    begin() {
      text += '--- begun\n';
      this.start();
    },
    start() {
      running = program('serve');
      for (const stream of [running.stdout, running.stderr])
        stream?.on('data', (chunk) => {
          text += String(chunk);
        });
      // As systemd does.
      running.on('exit', (code) => {
        if (code === 1) this.start();
      });
    },
    kill: () => end('SIGKILL'),
    signal: (signal) => void running?.kill(signal),
    join: ({ urls }, bucket = 'site') =>
      appendFileSync(file, `\ncluster: ${JSON.stringify({ name, urls, bucket })}\n`),
    async run(...argv) {
      const child = program(...argv);
      let answer = '';
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk) => {
          answer += String(chunk);
        });
      await once(child, 'close');
      return answer;
    },
  };
}

const serves = (one: Played) =>
  vi.waitFor(() => expect(one.written().split('--- begun').at(-1)).toContain('ready at'), PATIENCE);

/** What its admin socket answers. */
const local = ({ folder }: Played) =>
  openClient({ socket: join(folder, 'data', 'admin.sock') }, testShell({ clock: systemClock }));
const follows = (one: Played, name: string) =>
  vi.waitFor(async () => {
    const { cluster } = await local(one).call<Status>('GET', '/local/status');
    expect(cluster?.standby).toMatchObject({ name, takesOver: true, behind: 0 });
  }, PATIENCE);

async function deviceOf(one: Played): Promise<Device> {
  const path = '/network/rs485?limit=100';
  return vi.waitFor(async () => {
    const { items } = await local(one).call<{ items: Device[] }>('GET', path);
    expect(items).toMatchObject([{ hwId: 'IO-1', connectionState: { connected: true } }]);
    return items[0] as Device;
  }, PATIENCE);
}

const closings = async (bus: SimulatedBus) => (await bus.state(1)).history.filter(({ on }) => on).length;
const pulse = (one: Played, { deviceId }: Device) =>
  local(one)
    .call<{ outcome: string }>('POST', `/network/rs485/${deviceId}/pulse`, undefined, 60_000)
    .then(
      ({ outcome }) => outcome,
      (error: Error) => `failed: ${error.message}`,
    );

/** What an archive brings to the second machine. */
function copyOf(from: string, to: string): void {
  for (const name of ['keys', 'pki', 'gatehouse.db', 'gatehouse.db-wal'])
    cpSync(join(from, 'data', name), join(to, 'data', name), { recursive: true });
  // As a restore makes them; a copy forgets it.
  for (const name of ['keys', 'pki']) chmodSync(join(to, 'data', name), 0o700);
}

/** Where no gateway has ever been. */
async function beginsByWord(one: Played, nats: NatsCluster): Promise<void> {
  one.join(nats, 'first');
  one.begin();
  // Again where its NATS servers choose a leader meanwhile, since the others are at them too.
  await vi.waitFor(
    async () => expect(await one.run('cluster', 'promote', '--yes')).toContain('first is active'),
    PATIENCE,
  );
  await serves(one);
  expect((await local(one).call<Status>('GET', '/local/status')).cluster).toMatchObject({ epoch: 1 });
  await one.kill();
}

/** It needs no word then. */
function wasActive({ folder }: Played): void {
  const state = { instance: randomUUID(), role: 'active', epoch: 0, standby: null };
  mkdirSync(join(folder, 'data', 'cluster'), { mode: 0o700 });
  writeFileSync(join(folder, 'data', 'cluster', 'state.json'), JSON.stringify(state));
}

it.skipIf(natsMissing)(
  'takes over from one that was stopped, of whose word no relay closes when it wakes, and gives back',
  { timeout: 180_000 },
  async () => {
    await using bus = await openSimulatedBus({ ...LOBBY, devices: LOBBY.devices.slice(0, 1) });
    const a = gateway('a', bus.port);
    // What is plugged into a is not plugged into b.
    const [b, first] = ['b', 'first'].map((name) => gateway(name, '/dev/gatehouse-plugged-elsewhere')) as [
      Played,
      Played,
    ];
    a.begin();
    await using nats = await openNatsCluster(temporaryFolder(), undefined, { canPart: true });
    await serves(a);
    await a.kill();
    for (const one of [b, first]) copyOf(a.folder, one.folder);
    // Beside the others, since it waits for the time of a lease.
    const promoted = beginsByWord(first, nats);
    for (const one of [a, b]) one.join(nats);
    wasActive(a);
    a.begin();
    b.begin();
    await serves(a);

    const device = await deviceOf(a);
    const settings = { relayIndex: 1, unlockDurationMilliseconds: 200 };
    await local(a).call('PUT', `/network/rs485/${device.deviceId}`, settings);
    await vi.waitFor(async () => expect(await pulse(a, device)).toBe('confirmed'), PATIENCE);
    await follows(a, 'b');
    const before = await closings(bus);

    // One order lies in the channel to the host, one in the socket of the daemon.
    const host = JSON.parse(readFileSync(join(a.folder, 'data/hosts/rs485.pid'), 'utf8')).pid as number;
    process.kill(host, 'SIGSTOP');
    const sent = pulse(a, device);
    await local(a).call('GET', '/healthz');
    a.signal('SIGSTOP');
    const asked = pulse(a, device);
    // Both gateways are at this one, which still answers them, without the others.
    nats.part(0);
    await serves(b);
    a.signal('SIGCONT');
    process.kill(host, 'SIGCONT');
    // Not known is true of what lay in the channel.
    expect([await sent, await asked]).not.toContain('confirmed');
    await vi.waitFor(() => expect(a.written()).toContain('standby: b is active'), PATIENCE);
    expect(await closings(bus)).toBe(before);

    expect((await local(b).call<{ items: Device[] }>('GET', '/network/rs485')).items).toMatchObject([
      settings,
    ]);
    await nats.join();
    await nats.kill(0);
    // On a busy machine its NATS servers may choose a leader for so long that a takes over: then b takes it back.
    await vi.waitFor(async () => {
      expect(await b.run('cluster', 'promote')).toContain('b is active');
      expect(await b.run('audit', 'verify')).toContain('✓');
    }, PATIENCE);
    const [status] = await Promise.all([b.run('status'), follows(b, 'a')]);
    expect(status).toMatch(/link lobby .*down/);
    await vi.waitFor(
      async () =>
        expect(await a.run('cluster', 'status')).toContain('a follows and takes over when b is gone'),
      PATIENCE,
    );
    const { cluster } = await local(b).call<Status>('GET', '/local/status');
    expect(await b.run('cluster', 'demote')).toContain(`a is active (epoch ${Number(cluster?.epoch) + 1})`);
    await serves(a);
    await deviceOf(a);
    await vi.waitFor(async () => expect(await pulse(a, device)).toBe('confirmed'), PATIENCE);
    await follows(a, 'b');

    // Without NATS it cannot know whether b is active meanwhile.
    await promoted;
    await Promise.all([nats.kill(1), nats.kill(2), a.kill()]);
    a.begin();
    await serves(a);
    expect((await local(a).call<{ items: Device[] }>('GET', '/network/rs485')).items).toMatchObject([
      settings,
    ]);
    expect(await pulse(a, device)).toContain('cannot renew its lease');
    await expect(local(a).call('GET', '/readyz')).rejects.toThrow('cannot renew its lease');
  },
);

/** `gatehouse bus scan` against a daemon whose configuration names another baud rate than the devices have. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import { systemClock } from '../src/platform/clock.ts';
import { testShell } from './shell.ts';
import { openSimulatedBus, type SimulatedBus } from './simulators/bus/bus.ts';
import { openTestSite, type TestSite } from './simulators/test-site.ts';

const LINE = { baudRate: 9_600, parity: 'none', stopBits: 1 } as const;
const RANGE = ['--from', '1', '--to', '3'];
let site: TestSite;
let bus: SimulatedBus;
let readers: SimulatedBus;
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-scan-'));
  const stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  bus = stack.use(
    await openSimulatedBus({
      ...LINE,
      protocol: 'modbus',
      pacing: 'cheap',
      strictBaudRate: true,
      link: join(folder, 'bus'),
      devices: [
        { address: 1, kind: 'gatehouse-io', hwId: 'IO-1' },
        { address: 3, kind: 'gatehouse-io', hwId: 'IO-3' },
      ],
    }),
  );
  readers = stack.use(
    await openSimulatedBus({
      protocol: 'osdp',
      baudRate: 38_400,
      parity: 'none',
      stopBits: 1,
      pacing: 'cheap',
      strictBaudRate: true,
      link: join(folder, 'readers'),
      devices: [{ address: 1, kind: 'osdp-io', hwId: '4701', osdp: { key: 'a0'.repeat(16) } }],
    }),
  );
  const options = { port: bus.port, baudRate: 19_200, parity: 'none', pollEveryMs: 2_000 };
  const links = [
    { id: 'lobby', protocol: 'modbus', options: { ...options, devices: [{ unitId: 1 }] } },
    { id: 'far', protocol: 'modbus', options: { port: 'tcp://127.0.0.1:9' } },
    { id: 'readers', protocol: 'osdp', options: { port: readers.port, baudRate: 9_600, pollEveryMs: 2_000 } },
  ];
  site = stack.use(await openTestSite({ more: { links } }));
  await vi.waitFor(
    async () =>
      expect(await gatehouse('status')).toMatchObject({ stdout: expect.stringMatching(/lobby.* up /) }),
    30_000,
  );
  return () => stack.disposeAsync();
}, 90_000);

async function gatehouse(...argv: string[]) {
  const shell = testShell({ clock: systemClock });
  const exitCode = await run(['bus', ...argv, '--socket', join(site.directory, 'admin.sock')], shell);
  return { exitCode, ...shell.written };
}

it('finds the devices, says what to configure, and leaves the bus as it was', async () => {
  const { exitCode, stdout, stderr } = await gatehouse(
    ...['scan', 'lobby', ...RANGE, '--baud-rates', '9600,38400', '--parities', 'none'],
  );
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^19200 +none +none +configured$/m);
  expect(stdout).toMatch(/^9600 +none +1 3$/m);
  expect(stdout).toMatch(/^38400 +none +none$/m);
  expect(stdout).toContain('Put baudRate: 9600 and parity: none into the options of link lobby');
  expect(stderr).toContain('its devices are read less often until this ends');
  // Nothing was written to a device, no one became a row, and the port is as it is configured.
  expect(await bus.state(1)).toMatchObject({ writes: 0 });
  const { body } = await site.daemon.callLocally('GET', '/network/rs485');
  expect(body.items).toEqual([]);
  const again = await gatehouse('scan', 'lobby', ...RANGE);
  expect(again.stdout).toBe(
    'No one answers with the settings of the configuration: gatehouse bus scan lobby --detect tries others.\n',
  );
});

it('finds OSDP devices too, which it asks nothing but who they are', async () => {
  const { exitCode, stdout, stderr } = await gatehouse(
    ...['scan', 'readers', '--from', '0', '--to', '2', '--baud-rates', '38400', '--parities', 'none'],
  );
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^9600 +none +none +configured$/m);
  expect(stdout).toMatch(/^38400 +none +1$/m);
  expect(stdout).toContain('Put baudRate: 38400 and parity: none into the options of link readers');
  expect(await readers.state(1)).toMatchObject({ writes: 0, sessions: 0 });
  const { body } = await site.daemon.callLocally('GET', '/network/rs485');
  expect(body.items).toEqual([]);
});

it('goes back when it is cancelled, and when the host is killed meanwhile', async () => {
  const speed = () => spawnSync('stty', ['-F', bus.port, 'speed'], { encoding: 'utf8' }).stdout.trim();
  const tried = (stopping?: AbortSignal) => {
    const shell = testShell({ clock: systemClock, ...(stopping && { stopping }) });
    const socket = join(site.directory, 'admin.sock');
    const argv = ['bus', 'scan', 'lobby', '--to', '16', '--baud-rates', '38400', '--socket', socket];
    return { ended: run(argv, shell), written: shell.written };
  };
  const stop = new AbortController();
  const cancelled = tried(stop.signal);
  await vi.waitFor(() => expect(speed()).toBe('38400'), { timeout: 30_000, interval: 20 });
  stop.abort();
  expect(await cancelled.ended).toBe(1);
  expect(cancelled.written.stderr).toContain('The scan was cancelled.');
  await vi.waitFor(() => expect(speed()).toBe('19200'), { timeout: 30_000 });

  const isOver = async () => {
    const { items } = (await site.daemon.callLocally('GET', '/jobs')).body as { items: { status: string }[] };
    expect(items.map(({ status }) => status)).not.toContain('running');
  };
  await vi.waitFor(isOver, 30_000);

  const failed = tried();
  await vi.waitFor(() => expect(speed()).toBe('38400'), { timeout: 30_000, interval: 20 });
  const pid = JSON.parse(readFileSync(join(site.directory, 'data/hosts/rs485.pid'), 'utf8')).pid;
  process.kill(pid, 'SIGKILL');
  expect(await failed.ended).toBe(1);
  expect(failed.written.stderr).toContain('The scan failed');
  await vi.waitFor(async () => {
    expect((await gatehouse('status')).stdout).toMatch(/lobby.* up /);
    expect(speed()).toBe('19200');
  }, 30_000);
}, 120_000);

it('says so where the baud rate is in no one else than a serial device server', async () => {
  const { exitCode, stderr } = await gatehouse('scan', 'far', '--detect');
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/behind a serial device server, which keeps its own baud rate/);
});

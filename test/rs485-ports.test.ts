/** Ports on the real daemon: a serial device server, one that somebody else has, and what the doctor says of a wire. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { run } from '../src/cli/program.ts';
import { systemClock } from '../src/platform/clock.ts';
import { CELLAR, LOBBY, openRs485Site, type Rs485Site, waitFor } from './rs485-site.ts';
import { testShell } from './shell.ts';
import { openDaemon } from './simulators/daemon.ts';
import { temporaryFolder } from './temporary.ts';

let all: Rs485Site;
beforeAll(async () => {
  all = await openRs485Site({ lobby: { ...LOBBY, transport: 'tcp' }, cellar: CELLAR });
}, 60_000);
afterAll(() => all[Symbol.asyncDispose]());

async function gatehouse(...argv: string[]) {
  const shell = testShell({ clock: systemClock });
  const socket = join(all.site.daemon.directory, 'admin.sock');
  const exitCode = await run(['bus', ...argv, '--socket', socket], shell);
  return { exitCode, ...shell.written };
}

it('works a bus behind a serial device server, and again after the server was away', async () => {
  expect(all.lobby.port).toMatch(/^tcp:/);
  await all.configure('IO-1', { relayIndex: 1, unlockDurationMilliseconds: 200 });
  expect((await all.post('IO-1', 'pulse')).body).toMatchObject({ outcome: 'confirmed', timedBy: 'device' });
  await all.lobby.hangUp();
  await waitFor(async () => expect(await all.bus('lobby')).toMatchObject({ up: false }));
  expect((await all.post('IO-1', 'pulse')).status).toBe(503);
  await all.lobby.replug();
  await waitFor(async () =>
    expect(await all.device('IO-1')).toMatchObject({ connectionState: { connected: true } }),
  );
  expect((await all.post('IO-1', 'pulse')).body).toMatchObject({ outcome: 'confirmed' });
});

it('a healthy bus is called so, and two devices at one address are', async () => {
  const well = await gatehouse('doctor', 'lobby', '--from', '1', '--to', '3');
  expect(well.stdout).toMatch(/^1 +IO-1 +\d+(\.\d)?–\d+(\.\d)? +22 +0 +0 +0 +0 +0/m);
  expect(well.exitCode).toBe(0);
  await all.lobby.set(2, { faults: { duplicate: true } });
  const { exitCode, stdout } = await gatehouse('doctor', 'lobby', '--from', '1', '--to', '3');
  expect(stdout).toMatch(/✗ +address 2 .*two devices may have this address/);
  expect(stdout).not.toMatch(/✗ +address 1/);
  expect(exitCode).toBe(1);
  await waitFor(async () => {
    const { devices } = (await all.bus('lobby')) as { devices: { address: number; alive: boolean }[] };
    expect(devices).toMatchObject([
      { address: 1, alive: true },
      { address: 2, alive: false },
    ]);
  });
  expect((await gatehouse('status')).stdout).toMatch(/^lobby +modbus +tcp:\S+ +up +\d+ % +\d+\.\d +1 of 2$/m);
});

it('says when another process has the port, and takes it when that one is gone', async () => {
  const second = await openDaemon({
    directory: temporaryFolder(),
    http: { host: '127.0.0.1', port: 0 },
    mqtt: { host: '127.0.0.1', port: 0 },
    vendorRoots: [],
    more: {
      links: [
        {
          id: 'cellar',
          protocol: 'dcon',
          options: { port: all.cellar.port, baudRate: 9_600, devices: [{ address: 1 }] },
        },
      ],
    },
  });
  await using _second = second;
  await second.start();
  const bus = async () =>
    ((await second.callLocally('GET', '/network/rs485/buses')).body.items as { up: boolean }[])[0];
  await waitFor(async () =>
    expect(await bus()).toMatchObject({
      up: false,
      lastError: `${all.cellar.port}: another process has it open`,
    }),
  );
  expect(await all.bus('cellar')).toMatchObject({ up: true });
  await all.site.daemon.kill();
  await waitFor(async () => expect(await bus()).toMatchObject({ up: true }));
  await all.site.daemon.start();
  await waitFor(async () => expect(await all.bus('cellar')).toMatchObject({ up: false }));
}, 90_000);

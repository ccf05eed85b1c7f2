/** `gatehouse bus` against a running daemon, over its admin socket. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import { systemClock } from '../src/platform/clock.ts';
import { testShell } from './shell.ts';
import { type Daemon, openDaemon } from './simulators/daemon.ts';

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
let daemon: Daemon;
const options = {
  reportEveryMs: 50,
  devices: [
    { kind: 'rs485', hwId: 'io-1', address: 1 },
    { kind: 'rs485', hwId: 'io-2', address: 2, quiet: true, delayMs: 100 },
    { kind: 'rs485', hwId: 'gone', address: 3, behaviour: 'silent' },
  ],
};
beforeAll(async () => {
  daemon = await openDaemon({
    directory,
    http: { host: '127.0.0.1', port: 0 },
    mqtt: { host: '127.0.0.1', port: 0 },
    vendorRoots: [],
    simulatesLinks: true,
    more: { links: [{ id: 'bus-1', protocol: 'loopback', options }] },
  });
  await daemon.start();
  const found = async () => (await daemon.callLocally('GET', '/network/rs485')).body.items;
  await vi.waitFor(async () => expect(await found()).toHaveLength(2));
}, 60_000);
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

async function gatehouse(...argv: string[]) {
  const shell = testShell({ clock: systemClock });
  const exitCode = await run(['bus', ...argv, '--socket', join(daemon.directory, 'admin.sock')], shell);
  return { exitCode, ...shell.written };
}

it('status and doctor show who is on a bus and what is wrong with it', async () => {
  expect((await gatehouse('status')).stdout).toMatch(/^bus-1 +loopback +- +up +0 % +0\.0 +2 of 3$/m);
  const { exitCode, stdout } = await gatehouse('doctor', 'bus-1', '--repeats', '3');
  expect(stdout).toMatch(/^1 +io-1 +0–0 +3 /m);
  expect(stdout).toMatch(/^2 +io-2 +100–100 +3 .*new$/m);
  expect(stdout).toMatch(/✗ +address 3 +a device is known to be here and does not answer/);
  expect(stdout).toMatch(/! +address 2 +it takes 100 ms/);
  expect(exitCode).toBe(1);
  // It has looked, and created nothing: address 2 says nothing by itself.
  const rows = (await daemon.callLocally('GET', '/network/rs485')).body.items as { hwId: string }[];
  expect(rows.map(({ hwId }) => hwId).toSorted()).toEqual(['gone', 'io-1']);
});

it('doctor prints JSON, and ends with 0 when nothing is bad', async () => {
  const { exitCode, stdout } = await gatehouse('doctor', 'bus-1', '--from', '1', '--to', '1', '--json');
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    bus: { id: 'bus-1', up: true },
    addresses: [{ address: 1, identity: { hwId: 'io-1' }, counters: { replies: 20 } }],
    findings: [{ severity: 'doubtful', subject: 'address 3' }, { severity: 'good' }],
  });
});

it('says which buses there are, and refuses what is no address', async () => {
  const unknown = await gatehouse('doctor', 'attic');
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    2,
    'There is no bus attic; the configuration has bus-1.\n',
  ]);
  expect((await gatehouse('doctor', 'bus-1', '--from', 'x')).exitCode).toBe(2);
  expect((await gatehouse('doctor', 'bus-1', '--from', '9', '--to', '8')).exitCode).toBe(1);
});

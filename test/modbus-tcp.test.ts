/** A Modbus TCP gateway on the real daemon: its devices, its loss, and what the commands of a bus do there. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { run } from '../src/cli/program.ts';
import { systemClock } from '../src/platform/clock.ts';
import { LOBBY, openRs485Site, type Rs485Site, waitFor } from './rs485-site.ts';
import { testShell } from './shell.ts';

let all: Rs485Site;
beforeAll(async () => {
  all = await openRs485Site({ lobby: { ...LOBBY, transport: 'modbus-tcp' } });
}, 60_000);
afterAll(() => all[Symbol.asyncDispose]());

async function gatehouse(...argv: string[]) {
  const shell = testShell({ clock: systemClock });
  const socket = join(all.site.daemon.directory, 'admin.sock');
  const exitCode = await run(['bus', ...argv, '--socket', socket], shell);
  return { exitCode, ...shell.written };
}

it('works devices behind a gateway, and again after the gateway was away', async () => {
  expect(all.lobby.port).toMatch(/^modbus-tcp:/);
  for (const hwId of ['IO-1', 'IO-2']) {
    await all.configure(hwId, { relayIndex: 1, unlockDurationMilliseconds: 200 });
    expect((await all.post(hwId, 'pulse')).body).toMatchObject({ outcome: 'confirmed', timedBy: 'device' });
  }
  await all.lobby.hangUp();
  await waitFor(async () => expect(await all.bus('lobby')).toMatchObject({ up: false }));
  expect((await all.post('IO-1', 'pulse')).status).toBe(503);
  await all.lobby.replug();
  await waitFor(async () =>
    expect(await all.device('IO-1')).toMatchObject({ connectionState: { connected: true } }),
  );
  expect((await all.post('IO-1', 'pulse')).body).toMatchObject({ outcome: 'confirmed' });
});

it('opens a door for its request to exit, though the board had nothing to report for longer than a press may be old', async () => {
  const { tokens, daemon } = all.site;
  const call = (method: string, path: string, body?: object) =>
    daemon.call(method, path, tokens['front-desk-admin'], body);
  const { id } = (await call('POST', '/access/doors', { name: 'lobby' })).body as { id: string };
  const ioPins = { input1: true };
  const settings = { doorId: id, relayIndex: 2, unlockDurationMilliseconds: 200, ioPins };
  const { deviceId } = await all.configure('IO-2', settings);
  const requestToExit = [{ deviceId, input: 'input1' }];
  expect((await call('PUT', `/access/doors/${id}/access-rules`, { requestToExit })).status).toBe(200);
  const polls = async () => {
    const { devices } = (await all.bus('lobby')) as {
      devices: { address: number; counters: { replies: number } }[];
    };
    return devices.find(({ address }) => address === 2)?.counters.replies ?? 0;
  };
  const before = await polls();
  // Five a second.
  await waitFor(async () => expect(await polls()).toBeGreaterThan(before + 30));
  await all.lobby.set(2, { inputs: { input1: true } });
  await waitFor(async () => {
    const { items } = (await call('GET', '/audit?action=door.access')).body as { items: object[] };
    expect(items).toMatchObject([{ outcome: 'accepted', detail: { by: 'requestToExit' } }]);
    const { history } = await all.lobby.state(2);
    expect(history.filter(({ output, on }) => output === 2 && on)).toHaveLength(1);
  });
});

it('is scanned and looked after like a wire, but for its baud rate', async () => {
  // On a busy machine a reply of the simulated device may take longer than its time-out.
  await waitFor(async () => {
    const { exitCode, stdout } = await gatehouse('doctor', 'lobby', '--from', '1', '--to', '3');
    expect(stdout).toMatch(/^1 +IO-1 .* 22 +0 +0 +0 +0 +0/m);
    expect(exitCode).toBe(0);
  });
  const beyond = await gatehouse('scan', 'lobby', '--from', '255', '--to', '255');
  expect(beyond.exitCode).toBe(0);
  const detect = await gatehouse('scan', 'lobby', '--detect');
  expect(detect.stderr).toMatch(/behind a Modbus TCP gateway, which keeps its own baud rate/);
  expect((await gatehouse('status')).stdout).toMatch(/^lobby +modbus +modbus-tcp:\S+ +up .* 2 of 2$/m);
});

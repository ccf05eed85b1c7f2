/** RS-485 on the real daemon: hosts that die or hang, adapters that are pulled, devices that are swapped or refuse. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openRs485Site, type Rs485Site, waitFor } from './rs485-site.ts';
import { LIFELIKE } from './simulators/encoder/commands.ts';
import { drawKeys } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';

const GATE = { relayIndex: 2, unlockDurationMilliseconds: 1_500, ioPins: { input0: true, output2: true } };

let all: Rs485Site;
beforeAll(async () => {
  all = await openRs485Site();
  await all.configure('IO-1', GATE);
  await all.configure('cellar-01', { relayIndex: 1 });
}, 60_000);
afterAll(() => all[Symbol.asyncDispose]());

const isConnected = async (hwId: string) => (await all.device(hwId)).connectionState.connected;
const isInForce = async (hwId: string) => (await all.state(hwId)).inForce === true;
/** Requests that a device gets from now on. */
async function polled(bus: 'lobby' | 'cellar', address: number): Promise<() => Promise<number>> {
  const before = (await all[bus].state(address)).requests;
  return async () => (await all[bus].state(address)).requests - before;
}

it.each(['SIGKILL', 'SIGSTOP'] as const)(
  'a host that gets %s is replaced; an encoder writes on, and devices keep what they have',
  async (signal) => {
    const encoder = await all.site.addEncoder(`desk-${signal}`, { timings: LIFELIKE });
    encoder.start();
    await encoder.process.waitFor(({ event }) => event === 'connected');
    const keys = drawKeys([randomUUID(), randomUUID(), randomUUID()]);
    const presence = async () => {
      const { body } = await all.site.daemon.call('GET', `/encoder/${encoder.id}`, all.site.tokens.pms);
      return body.connectionState;
    };
    await waitFor(async () => expect(await presence()).toMatchObject({ connected: true }));
    const [since, before] = [await presence(), await all.device('IO-1')];
    expect((await all.site.requestWrite(encoder.id, 'write', keys)).status).toBe(202);

    const pid = all.hostPid();
    process.kill(pid, signal);
    await waitFor(async () => expect(await isConnected('IO-1')).toBe(false));
    const gone = (await all.device('IO-1')).connectionState;
    expect(Date.parse(gone.changedOn)).toBeGreaterThan(Date.parse(before.connectionState.changedOn));
    await waitFor(async () => expect(await isConnected('IO-1')).toBe(true));
    await waitFor(async () => expect(await isConnected('cellar-01')).toBe(true));
    expect(all.hostPid()).not.toBe(pid);
    for (const [bus, address] of [
      ['lobby', 2],
      ['cellar', 1],
    ] as const) {
      const again = await polled(bus, address);
      await waitFor(async () => expect(await again()).toBeGreaterThan(2));
    }
    await waitFor(async () => expect(await isInForce('IO-1')).toBe(true));
    const { connectionState: _, ...after } = await all.device('IO-1');
    expect(before).toMatchObject(after);

    for (const { keyId } of keys) {
      const end = await all.site.upstream.waitFor(
        (event) => event.subject === keyId && isTerminalEvent(event),
      );
      expect(end.data.status).toBe('written');
    }
    expect(await presence()).toEqual(since);
  },
  60_000,
);

it('an adapter that is pulled under traffic is noticed and used again each time, and the other bus works on', async () => {
  const relay = await all.device('cellar-01');
  for (let time = 0; time < 20; time += 1) {
    const other = await polled('cellar', 1);
    await all.lobby.hangUp();
    await waitFor(async () => expect(await all.bus('lobby')).toMatchObject({ up: false }));
    expect(await isConnected('IO-1')).toBe(false);
    await all.lobby.replug();
    const again = await polled('lobby', 1);
    await waitFor(async () => expect(await again()).toBeGreaterThan(2));
    await waitFor(async () => expect(await other()).toBeGreaterThan(2));
  }
  await waitFor(async () => expect(await isInForce('IO-1')).toBe(true));
  expect((await all.device('cellar-01')).connectionState).toEqual(relay.connectionState);
}, 120_000);

it('a device that has forgotten its settings gets them back', async () => {
  const before = await all.device('IO-1');
  await all.lobby.set(1, { swap: { hwId: 'IO-1' } });
  expect((await all.lobby.state(1)).settings).toMatchObject({ settingsVersion: 0, relayIndex: 0 });
  await waitFor(async () =>
    expect((await all.lobby.state(1)).settings).toMatchObject({
      settingsVersion: before.settingsVersion,
      relayIndex: 2,
      unlockDurationMilliseconds: 1_500,
    }),
  );
  await waitFor(async () => expect(await isInForce('IO-1')).toBe(true));
  expect((await all.device('IO-1')).settingsVersion).toBe(before.settingsVersion);
});

it('another device in its place has a row of its own, until it takes over the one before it', async () => {
  const before = await all.configure('IO-2', { ...GATE, relayIndex: 5, name: 'Back door' });
  const { writes } = await all.lobby.set(2, { swap: { hwId: 'IO-NEW' } });
  await waitFor(async () => expect(await isConnected('IO-NEW')).toBe(true));
  expect(await isConnected('IO-2')).toBe(false);
  const found = await all.device('IO-NEW');
  expect(found).toMatchObject({ settingsVersion: 0, relayIndex: null });
  // No one wants anything of it yet.
  expect((await all.lobby.state(2)).writes).toBe(writes);
  const { status, body } = await all.post('IO-2', 'replace', { hwId: 'IO-NEW' });
  expect([status, body.deviceId, body.name]).toEqual([200, before.deviceId, 'Back door']);
  await waitFor(async () => expect(await isInForce('IO-NEW')).toBe(true));
  expect((await all.lobby.state(2)).settings).toMatchObject({ relayIndex: 5 });
  expect(await isConnected('IO-NEW')).toBe(true);
  await expect(all.device('IO-2')).rejects.toThrow('no device IO-2');
});

it('settings that the device refuses are shown with its reason, and not sent again', async () => {
  await all.lobby.set(1, { faults: { refuseWrites: 3 } });
  const { writes } = await all.lobby.state(1);
  const { deviceId } = await all.device('IO-1');
  const path = `/network/rs485/${deviceId}`;
  const put = (body: object) => all.site.daemon.call('PUT', path, all.site.tokens['service-tool'], body);
  await put({ relayIndex: 3 });
  await waitFor(async () =>
    expect((await all.state('IO-1')).failure).toMatchObject({
      code: 'REFUSED',
      permanent: true,
      message: expect.stringContaining('illegal data value'),
    }),
  );
  // Polls show that time has passed.
  const again = await polled('lobby', 1);
  await waitFor(async () => expect(await again()).toBeGreaterThan(30));
  expect((await all.lobby.state(1)).writes).toBe(writes + 1);
  expect(await all.state('IO-1')).toMatchObject({ inForce: false, nextAttempt: null });
  await all.lobby.set(1, { faults: null });
  await put({ relayIndex: 4 });
  await waitFor(async () => expect(await isInForce('IO-1')).toBe(true));
  expect((await all.state('IO-1')).failure).toBeNull();
});

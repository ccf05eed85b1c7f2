import { expect, it } from 'vitest';
import { testShell } from '../../test/shell.ts';
import type { Client } from './client.ts';
import { readdressDevice, updateFirmware } from './osdp.ts';
import { EXIT } from './shell.ts';

const ID = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
const DEVICE = { deviceId: ID, hwId: '0a4748-1-4711' };

/** A daemon whose jobs end at once with this. */
function openPair(result: object, items: object[] = [DEVICE, { deviceId: 'other', hwId: '0a4748-1-47110' }]) {
  const sent: { path: string; body: unknown }[] = [];
  const client: Client = {
    async call(method, path, body) {
      if (method === 'GET') return { items } as never;
      sent.push({ path, body });
      return { id: 'job', status: 'done', progress: { percent: null }, result } as never;
    },
    stream: () => {
      throw new Error('nothing is streamed');
    },
  };
  return { client, sent, shell: testShell() };
}

it('names the device by its hwId, and says what it runs then', async () => {
  const { client, sent, shell } = openPair({ version: '2.1.0', platformVersion: '2.1.0' });
  await updateFirmware(DEVICE.hwId, 'io.bin', {}, client, shell);
  expect(sent).toEqual([{ path: `/network/rs485/${ID}/firmware`, body: { file: 'io.bin' } }]);
  expect(shell.written.stdout).toBe('0a4748-1-4711 runs 2.1.0.\n');
  await expect(updateFirmware('0a4748-1-47', 'io.bin', {}, client, shell)).rejects.toThrow(
    'There is no device',
  );
});

it('says when a device that has the file reports another version', async () => {
  const { client, shell } = openPair({ version: '2.1.0', platformVersion: '1.0.0\u001b[2J' });
  await updateFirmware(ID, 'io.bin', {}, client, shell);
  expect(shell.written.stdout).toMatch(/reports 1\.0\.0\?\[2J, not 2\.1\.0/);
});

it.each([
  ['moved', true, 'answers at address 9'],
  ['left', true, '115200 baud now'],
  ['stayed', false, 'has not taken it, and answers at address'],
  ['lost', false, 'neither'],
])('says what became of a device that %s', async (outcome, isGood, text) => {
  const { client, sent, shell } = openPair({ outcome, bus: 'b', from: 3, address: 9, baudRate: 115_200 });
  expect(await readdressDevice(ID, { address: 9, yes: true }, client, shell)).toBe(isGood);
  expect(sent).toEqual([{ path: `/network/rs485/${ID}/communication`, body: { address: 9, confirm: true } }]);
  expect(shell.written.stdout).toContain(text);
});

it('changes nothing without a wish, or without a yes', async () => {
  const { client, sent, shell } = openPair({});
  await expect(readdressDevice(ID, { yes: true }, client, shell)).rejects.toMatchObject({
    exitCode: EXIT.usage,
  });
  await expect(readdressDevice(ID, { address: 9 }, client, shell)).rejects.toMatchObject({
    exitCode: EXIT.usage,
  });
  expect(sent).toEqual([]);
});

import { expect, it } from 'vitest';
import { testShell } from '../../test/shell.ts';
import { testWatchdog } from './bus-watchdog.ts';
import type { Client } from './client.ts';
import { EXIT } from './shell.ts';

const DEVICE = { deviceId: '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d', hwId: 'bus-1-3' };

function openPair(job: object) {
  const sent: { path: string; body: unknown }[] = [];
  const client: Client = {
    async call(method, path, body) {
      if (method === 'GET') return { items: [DEVICE] } as never;
      sent.push({ path, body });
      return { id: 'job', progress: { percent: null }, ...job } as never;
    },
    stream: () => {
      throw new Error('nothing is streamed');
    },
  };
  return { client, sent, shell: testShell() };
}

it('says that nothing may be connected, asks, and tells what was proved', async () => {
  const { client, sent, shell } = openPair({
    status: 'done',
    result: { relay: 2, waitedMilliseconds: 6_500 },
  });
  await expect(testWatchdog(DEVICE.hwId, {}, client, shell)).rejects.toMatchObject({ exitCode: EXIT.usage });
  expect(sent).toEqual([]);
  await testWatchdog(DEVICE.hwId, { yes: true }, client, shell);
  expect(sent).toEqual([
    { path: `/network/rs485/${DEVICE.deviceId}/watchdog-test`, body: { confirm: true } },
  ]);
  expect(shell.written.stdout).toBe(
    'bus-1-3 opened relay 2 by itself, seen 6.5 s after the last request: it may be fired.\n',
  );
});

it('fails with the reason when the relay stayed closed', async () => {
  const { client, shell } = openPair({
    status: 'failed',
    error: { code: 'REFUSED', message: 'output2 is still closed' },
  });
  await expect(testWatchdog(DEVICE.hwId, { yes: true }, client, shell)).rejects.toThrow(
    /not proved.*output2 is still closed/,
  );
});

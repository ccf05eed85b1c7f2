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

const TEST = { path: `/network/rs485/${DEVICE.deviceId}/watchdog-test`, body: { confirm: true } };
const DONE = { status: 'done', result: { relay: 2, waitedMilliseconds: 6_500 } };

it('says that nothing may be connected, asks, and asks what was seen', async () => {
  const { client, sent, shell } = openPair(DONE);
  await expect(testWatchdog(DEVICE.hwId, {}, client, shell)).rejects.toMatchObject({ exitCode: EXIT.usage });
  expect(sent).toEqual([]);
  await expect(testWatchdog(DEVICE.hwId, { yes: true }, client, shell)).rejects.toThrow(
    /Not proved yet.*--opened yes/,
  );
  expect(sent).toEqual([TEST]);
  shell.stdin.isTTY = true;
  shell.stdin.write('y\n');
  await testWatchdog(DEVICE.hwId, { yes: true }, client, shell);
  expect(sent).toEqual([TEST, TEST, { ...TEST, body: { openedByItself: true } }]);
  expect(shell.written.stdout).toContain('bus-1-3 showed relay 2 open 6.5 s after the last request, twice.');
  expect(shell.written.stdout).toContain('The watchdog of bus-1-3 is proved: its relay may be fired.');
});

it.each([
  ['yes', true],
  ['no', false],
])('takes what was seen afterwards: --opened %s', async (opened, openedByItself) => {
  const { client, sent, shell } = openPair(DONE);
  const tested = testWatchdog(DEVICE.hwId, { opened }, client, shell);
  if (openedByItself) await tested;
  else await expect(tested).rejects.toThrow(/is not proved, and its relay is not fired/);
  expect(sent).toEqual([{ ...TEST, body: { openedByItself } }]);
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

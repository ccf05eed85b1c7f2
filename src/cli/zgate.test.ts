import { expect, it } from 'vitest';
import { testShell } from '../../test/shell.ts';
import type { Client } from './client.ts';
import { EXIT } from './shell.ts';
import { restoreZgate } from './zgate.ts';

const ID = '4e1a2c0f-93b7-4b5e-8a44-5d3f0c6b7a01';

function openGateway() {
  const sent: { path: string; body: unknown }[] = [];
  const client: Client = {
    async call(method, path, body) {
      if (method === 'GET') return { items: [{ deviceId: ID, name: 'First floor', snapshots: [] }] } as never;
      sent.push({ path, body });
      return { snapshot: 3, takenAt: '2026-01-01T00:00:00.000Z', locks: 20 } as never;
    },
    stream: () => {
      throw new Error('nothing is streamed');
    },
  };
  return { client, sent, shell: testShell() };
}

it('puts a network on a coordinator only with a yes', async () => {
  const { client, sent, shell } = openGateway();
  const restore = (options: { yes?: boolean }) =>
    restoreZgate(ID, { snapshot: 3, ...options }, client, shell);
  await expect(restore({})).rejects.toMatchObject({
    exitCode: EXIT.usage,
    message: expect.stringMatching(/snapshot 3 on the coordinator of First floor\?.*add --yes/),
  });
  shell.stdin.isTTY = true;
  shell.stdin.write('n\n');
  await expect(restore({})).rejects.toThrow('Nothing was changed.');
  expect(sent).toEqual([]);
  await restore({ yes: true });
  expect(sent).toEqual([{ path: `/local/zgate/${ID}/restore`, body: { snapshot: 3 } }]);
  expect(shell.written.stdout).toContain('Snapshot 3 of 2026-01-01');
});

it('says what a new network costs', async () => {
  const { client, sent, shell } = openGateway();
  const restore = (yes: boolean) => restoreZgate(ID, { newNetwork: true, yes }, client, shell);
  await expect(restore(false)).rejects.toThrow(/a new network on the coordinator of First floor\?.*is lost/);
  await restore(true);
  expect(sent).toEqual([{ path: `/local/zgate/${ID}/restore`, body: { newNetwork: true } }]);
});

it('withdraws what was ordered, without asking', async () => {
  const { client, sent, shell } = openGateway();
  await restoreZgate(ID, { withdraw: true }, client, shell);
  expect(sent).toEqual([{ path: `/local/zgate/${ID}/restore`, body: undefined }]);
  expect(shell.written.stdout).toBe('Nothing was wanted.\n');
});

it('says where to look when there is no such gateway', async () => {
  const { client, shell } = openGateway();
  await expect(restoreZgate('First floor', { yes: true }, client, shell)).rejects.toThrow(
    'There is no Zigbee gateway First floor: gatehouse zgate list shows those there are.',
  );
});

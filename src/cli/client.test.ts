/** A daemon that takes a connection and stands still: no command waits for it for ever. */
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { type Client, openClient } from './client.ts';

const SILENT = 'The daemon did not answer within 10 s: see journalctl -u gatehouse.';

/** What it writes once it was asked. */
async function standingStill(begins: string) {
  const socket = join(temporaryFolder(), 'admin.sock');
  const sockets: Socket[] = [];
  const server = createServer((one) => {
    sockets.push(one);
    one.on('data', () => one.write(begins)).on('error', () => {});
  });
  onTestFinished(() => {
    for (const one of sockets) one.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const shell = testShell();
  return { client: openClient({ socket }, shell), clock: shell.clock, sockets };
}

async function drained(client: Client): Promise<void> {
  for await (const _text of client.stream('/events', new AbortController().signal));
}

it.each([
  ['nothing', ''],
  ['the beginning of an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"a'],
])('gives a question up after its deadline: %s comes', async (_what, begins) => {
  const { client, clock, sockets } = await standingStill(begins);
  const asked = expect(client.call('GET', '/healthz')).rejects.toThrow(SILENT);
  await vi.waitFor(() => expect(sockets[0]?.bytesRead).toBeGreaterThan(0));
  await vi.waitFor(() => expect(sockets[0]?.bytesWritten).toBe(begins.length));
  await clock.advance(10_000);
  await asked;
});

it('gives a stream up that does not begin', async () => {
  const { client, clock, sockets } = await standingStill('');
  const asked = expect(drained(client)).rejects.toThrow(SILENT);
  await vi.waitFor(() => expect(sockets[0]?.bytesRead).toBeGreaterThan(0));
  await clock.advance(10_000);
  await asked;
});

/** What ends peers that say nothing, or half of something. Each test waits for a deadline: they run side by side. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  opensslIsMissing,
  openTestAuthority,
  type TestAuthority,
} from '../../test/drivers/encoder/certificates.ts';
import { openEmbeddedSite, up } from '../../test/drivers/encoder/embedded.ts';
import type { Site } from '../../test/drivers/encoder/link-contract.ts';
import { identifierOf, TYPE } from '../../test/drivers/encoder/peer.ts';

/** What a TLS client says first. */
async function clientHello(): Promise<Buffer> {
  const hello = Promise.withResolvers<Buffer>();
  const socket = new Duplex({ read() {}, write: (chunk: Buffer) => hello.resolve(chunk) });
  connectTls({ socket }).on('error', () => undefined);
  return hello.promise;
}

async function secondsUntilClosed(socket: Socket): Promise<number> {
  const since = performance.now();
  await once(socket, 'close');
  return (performance.now() - since) / 1_000;
}

describe.skipIf(opensslIsMissing)('embedded broker: silence', () => {
  let authority: TestAuthority;
  let site: Site;
  beforeAll(async () => {
    authority = openTestAuthority();
    site = await openEmbeddedSite(authority);
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    authority[Symbol.dispose]();
  });

  it.concurrent.each([
    ['says nothing', async () => Buffer.alloc(0)],
    ['sends half a ClientHello', async () => (await clientHello()).subarray(0, 100)],
    ['does not go on with the handshake', clientHello],
  ])('ends a connection that %s after 5 s', async (_how, open) => {
    const { host, port } = site.link.address;
    const socket = connectTcp({ host, port }).resume();
    socket.write(await open());
    expect(await secondsUntilClosed(socket)).toBeGreaterThan(4.9);
  });

  it.concurrent('ends a connection that sends no CONNECT, and keeps serving', async () => {
    const idle = await site.dial(site.register('idle'));
    expect(await secondsUntilClosed(idle.socket)).toBeGreaterThan(4.9);
    await site.enter('next');
  });

  it.concurrent('ends a connection that pauses midway in a packet for 10 s', async () => {
    const peer = await site.enter('midway');
    peer.send(up('midway', 'x'.repeat(100)).subarray(0, 30));
    expect(await secondsUntilClosed(peer.socket)).toBeGreaterThan(9.9);
    expect((await site.host.wait('lost', 'midway'))[0]?.reason).toBe('a packet paused for 10000 ms');
  });

  it.concurrent('keeps one whose packet waits with us for those before it', async () => {
    const { promise: stored, resolve: store } = Promise.withResolvers<void>();
    site.host.store = (payload) => (payload.startsWith('slow') ? stored : Promise.resolve());
    const peer = await site.enter('patient');
    const sent = Array.from({ length: 20 }, (_, index) => up('patient', `slow ${index}`, index + 1));
    const bytes = Buffer.concat(sent);
    peer.send(bytes.subarray(0, -5));
    await site.host.wait('received', 'patient', 19);
    peer.send(bytes.subarray(-5));
    await new Promise((resolve) => peer.socket.setTimeout(12_000, () => resolve(undefined)));
    store();
    for (let id = 1; id <= 20; id += 1) expect(identifierOf(await peer.next(TYPE.puback))).toBe(id);
  });
});

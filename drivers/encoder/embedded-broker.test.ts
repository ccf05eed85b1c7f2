import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  opensslIsMissing,
  openTestAuthority,
  type TestAuthority,
} from '../../test/drivers/encoder/certificates.ts';
import { up } from '../../test/drivers/encoder/embedded.ts';
import { openSite, type Site } from '../../test/drivers/encoder/link-contract.ts';
import { PINGREQ, subscribePacket, type TestPeer, TYPE, WAIT } from '../../test/drivers/encoder/peer.ts';
import { openBroker } from './embedded.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** The broker alone, so that its end of each connection can be looked at; the latest is the first. */
async function openBrokerSite(authority: TestAuthority, sockets: TLSSocket[]): Promise<Site> {
  const { cert, key } = authority.server();
  const server = createServer({ cert, key, ca: authority.encoderIssuer + authority.root, requestCert: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo;
  return openSite(authority, async (host) => {
    const broker = await openBroker({ host, clock: systemClock, log: silent, admitted() {} });
    server.on('secureConnection', (socket) => {
      sockets.unshift(socket);
      broker.accept(socket);
    });
    return {
      address: { host: address, port },
      renew() {},
      kick: async () => undefined,
      send: async (encoderId, channel, payload) => broker.encoder(encoderId)?.send(channel, payload),
      async [Symbol.asyncDispose]() {
        await broker[Symbol.asyncDispose]();
        server.close();
      },
    };
  });
}

/** Makes the encoder deaf, and fills the buffers of both kernels and the socket's own with messages to it. */
async function deafen(site: Site, encoderId: string, { socket }: TestPeer, end?: TLSSocket): Promise<number> {
  socket.pause();
  for (let turn = 0; turn < 20; turn = end?.writableNeedDrain ? turn + 1 : 0) {
    if (turn === 0) site.link.send(encoderId, 'write', Buffer.alloc(200_000)).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return end?.writableLength ?? 0;
}

/** Sends as fast as the connection takes it, for so many turns; gives how often. */
async function flood(
  { socket }: TestPeer,
  bytes: Buffer,
  turns: number,
  each = (): void => undefined,
): Promise<number> {
  let sent = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    if (!socket.writableNeedDrain) {
      socket.write(bytes);
      sent += 1;
    }
    each();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sent;
}

describe.skipIf(opensslIsMissing)('an encoder that floods', () => {
  const sockets: TLSSocket[] = [];
  let authority: TestAuthority;
  let site: Site;
  beforeAll(async () => {
    authority = openTestAuthority();
    site = await openBrokerSite(authority, sockets);
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    authority[Symbol.dispose]();
  });

  it.each([
    ['pings', PINGREQ],
    ['publishes', up('publishes', '{}')],
    ['subscribes', subscribePacket(2, ['x', 1], ['y', 1], ['z', 1])],
  ])(
    'is not read while it %s and does not read its answers, and loses nothing when it reads again',
    async (encoderId, packet) => {
      const peer = await site.enter(encoderId);
      const [end] = sockets;
      const pending = await deafen(site, encoderId, peer, end);
      const sent = await flood(peer, Buffer.concat(Array(100).fill(packet)), 200);
      expect(end?.writableLength).toBeLessThanOrEqual(pending);
      expect(sent).toBeGreaterThan(10);
      peer.socket.resume();
      const answers = () => peer.packets.filter(({ type }) => type !== TYPE.publish).length;
      await vi.waitFor(() => expect(answers()).toBe(sent * 100), WAIT);
    },
  );

  it('is not read faster than it is answered', async () => {
    const peer = await site.enter('eager');
    const [end] = sockets;
    let most = 0;
    const sent = await flood(peer, Buffer.concat(Array(5_000).fill(PINGREQ)), 50, () => {
      most = Math.max(most, end?.readableLength ?? 0);
    });
    // A packet of the longest kind, what Node holds ready and what it fetches: 64 KiB each, and some more.
    expect(most).toBeLessThanOrEqual(4 * 64 * 1024);
    await vi.waitFor(() => expect(peer.packets.length).toBe(sent * 5_000), WAIT);
  });

  it('is closed when it does not read its answers for 10 s', async () => {
    const peer = await site.enter('deaf');
    const [end] = sockets;
    await deafen(site, 'deaf', peer, end);
    await new Promise((resolve) => end?.once('close', resolve));
    expect((await site.host.wait('lost', 'deaf'))[0]?.reason).toBe('drain timeout');
  });
});

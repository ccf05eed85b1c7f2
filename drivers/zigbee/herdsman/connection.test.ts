import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import {
  opensslIsMissing,
  openTestAuthority,
  type TestAuthority,
} from '../../../test/drivers/encoder/certificates.ts';
import { opened, simulated } from '../../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { connectionOptionsOf, openConnection } from './connection.ts';

const never = new AbortController().signal;

function optionsOf(port: string, cert: string | null = null) {
  const options = connectionOptionsOf(port, cert);
  if (!options) throw new Error(`${port} is no port on the network`);
  return options;
}

describe('a connection', () => {
  it('is for ports on the network only', () => {
    expect(connectionOptionsOf('/dev/ttyACM0', null)).toBeUndefined();
    expect(optionsOf('tls://[::1]:6638')).toMatchObject({ secure: true, host: '::1', port: 6_638 });
    expect(optionsOf('tcp://gateway.local:6638')).toMatchObject({ secure: false, host: 'gateway.local' });
  });

  it('gives up on a peer that does not take the connection', async () => {
    // A black hole by RFC 5737: no one answers there.
    const clock = manualClock();
    const opening = openConnection(optionsOf('tcp://192.0.2.1:6638'), clock, never).catch((error) => error);
    await clock.advance(5_000);
    expect(await opening).toMatchObject({ code: 'LINK_LOST' });
  });

  it('keeps what comes until it is read, and drops what is not sent when it is closed', async () => {
    const server = createServer();
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const arrived = once(server, 'connection');
    const port = (server.address() as { port: number }).port;
    const connection = await openConnection(optionsOf(`tcp://127.0.0.1:${port}`), systemClock, never);
    const [remote] = (await arrived) as [Socket];
    const reset = once(remote, 'error');
    remote.write('early');
    const read: string[] = [];
    const closed = new Promise<void>((resolve) =>
      connection.read((bytes) => read.push(bytes.toString()), resolve),
    );
    await vi.waitFor(() => expect(read).toEqual(['early']));
    connection.write(Buffer.from('there'));
    expect(String((await once(remote, 'data'))[0])).toBe('there');
    connection[Symbol.dispose]();
    await closed;
    expect((await reset)[0]).toMatchObject({ code: 'ECONNRESET' });
    expect(() =>
      connection.read(
        () => undefined,
        () => undefined,
      ),
    ).toThrow('closed the connection');
  });

  it('is cut when the other end takes nothing', async () => {
    const server = createServer((socket) => void socket.pause());
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const port = (server.address() as { port: number }).port;
    const connection = await openConnection(optionsOf(`tcp://127.0.0.1:${port}`), systemClock, never);
    let isClosed = false;
    connection.read(
      () => undefined,
      () => {
        isClosed = true;
      },
    );
    await vi.waitFor(() => {
      connection.write(Buffer.alloc(1_000_000));
      expect(isClosed).toBe(true);
    });
  });
});

describe.skipIf(opensslIsMissing)('a connection to a gateway with a certificate', () => {
  let authority: TestAuthority;
  let stranger: TestAuthority;
  beforeAll(() => {
    authority = openTestAuthority();
    stranger = openTestAuthority('Another Site');
  });
  afterAll(() => {
    authority[Symbol.dispose]();
    stranger[Symbol.dispose]();
  });

  /** TLS in front of a coordinator. */
  async function front(coordinator: string): Promise<{ port: string; cert: string }> {
    const { cert, key } = authority.server();
    const [, host, number] = /^tcp:\/\/(.*):(\d+)$/.exec(coordinator) ?? [];
    const server = createTlsServer({ cert, key }, (socket) => {
      const inner = connect(Number(number), host);
      for (const one of [socket, inner]) one.on('error', () => undefined);
      socket.on('close', () => inner.destroy());
      inner.on('close', () => socket.destroy());
      socket.pipe(inner).pipe(socket);
    });
    server.on('tlsClientError', () => undefined);
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { port: `tls://127.0.0.1:${(server.address() as { port: number }).port}`, cert };
  }

  it('carries a coordinator that is who the authority of its network says', async () => {
    const site = await simulated({});
    const { port } = await front(site.port);
    const gateway = await opened({ port }, { cert: authority.root });
    expect(gateway.reports.get('gateway')).toMatchObject({ connected: true });
  });

  it('takes the very certificate of the gateway too, and no other', async () => {
    const { port, cert } = await front('tcp://127.0.0.1:1');
    const open = async (anchor: string | null) => {
      using _ = await openConnection(optionsOf(port, anchor), systemClock, never);
      return 'open';
    };
    expect(await open(cert)).toBe('open');
    await expect(open(stranger.root)).rejects.toMatchObject({
      code: 'REFUSED',
      // Without what Node.js has to say to programmers.
      message: expect.stringMatching(
        /is not who the cert of its network says \([^;]*\): correct the cert or the port$/,
      ),
    });
    await expect(open(null)).rejects.toMatchObject({ code: 'REFUSED' });
    await expect(open('no certificate')).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('says what a far end means that refuses, whose certificate is not at fault', async () => {
    // RFC 8446, 6.2: fatal, certificate_required.
    const server = createServer((socket) =>
      socket.once('data', () => socket.end(Buffer.from([21, 3, 3, 0, 2, 2, 116]))),
    );
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    await expect(
      openConnection(optionsOf(`tls://127.0.0.1:${port}`, authority.root), systemClock, never),
    ).rejects.toMatchObject({
      code: 'LINK_LOST',
      message: `tls://127.0.0.1:${port}: TLS failed: it wants a client certificate (certificate required)`,
    });
  });
});

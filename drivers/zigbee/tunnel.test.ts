import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { opensslIsMissing, openTestAuthority, type TestAuthority } from '../encoder/test-certificates.ts';
import { opened, simulated } from './test-gateway.ts';
import { openTunnel, tunnelOptionsOf } from './tunnel.ts';

const never = new AbortController().signal;

function optionsOf(port: string, cert: string | null = null) {
  const options = tunnelOptionsOf(port, cert);
  if (!options) throw new Error(`${port} is no port of a tunnel`);
  return options;
}

describe('a tunnel', () => {
  it('is for ports on the network only', () => {
    expect(tunnelOptionsOf('/dev/ttyACM0', null)).toBeUndefined();
    expect(optionsOf('tls://[::1]:6638')).toMatchObject({ secure: true, host: '::1', port: 6_638 });
    expect(optionsOf('tcp://gateway.local:6638')).toMatchObject({ secure: false, host: 'gateway.local' });
  });

  it('gives up on a peer that does not take the connection', async () => {
    // A black hole by RFC 5737: nobody answers there.
    const clock = manualClock();
    const opening = openTunnel(optionsOf('tcp://192.0.2.1:6638'), clock, never).catch((error) => error);
    await clock.advance(5_000);
    expect(await opening).toMatchObject({ code: 'LINK_LOST' });
  });

  it('lets one connection through, and drops what is not sent when it is closed', async () => {
    const server = createServer();
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const arrived = once(server, 'connection');
    const port = (server.address() as { port: number }).port;
    const tunnel = await openTunnel(optionsOf(`tcp://127.0.0.1:${port}`), systemClock, never);
    const [remote] = (await arrived) as [Socket];
    remote.on('error', () => undefined);
    const ended = new Promise((resolve) => remote.once('close', resolve));
    const local = connect(Number(tunnel.path.split(':').at(-1)), '127.0.0.1');
    local.on('error', () => undefined);
    local.write('there');
    expect(String((await once(remote, 'data'))[0])).toBe('there');
    remote.write('back');
    expect(String((await once(local, 'data'))[0])).toBe('back');
    const second = connect(Number(tunnel.path.split(':').at(-1)), '127.0.0.1');
    const [error] = await once(second, 'error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    const cut = new Promise((resolve) => local.once('close', resolve));
    tunnel[Symbol.dispose]();
    await Promise.all([ended, cut]);
  });
});

describe.skipIf(opensslIsMissing)('a tunnel to a gateway with a certificate', () => {
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
      using tunnel = await openTunnel(optionsOf(port, anchor), systemClock, never);
      return tunnel.path;
    };
    expect(await open(cert)).toMatch(/^tcp:\/\/127\.0\.0\.1:\d+$/);
    await expect(open(stranger.root)).rejects.toMatchObject({
      ...{ code: 'REFUSED', message: expect.stringContaining('is not who the cert of its network says') },
    });
    await expect(open(null)).rejects.toMatchObject({ code: 'REFUSED' });
    await expect(open('no certificate')).rejects.toMatchObject({ code: 'REFUSED' });
  });
});

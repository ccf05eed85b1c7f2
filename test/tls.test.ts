/** TLS as it is seen from outside: what a running gateway accepts, by openssl, and what it offers where it is the client. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openConnection } from '../drivers/zigbee/herdsman/connection.ts';
import { checkSinks } from '../src/cli/doctor/network.ts';
import { systemClock } from '../src/platform/clock.ts';
import { configSchema } from '../src/platform/config/config.ts';
import { sinksOf } from '../src/platform/config/sinks.ts';
import { fetchKeySet } from '../src/services/auth/key-set.ts';
import { openTransport } from '../src/services/events/transports.ts';
import { openTestGateway } from './gateway.ts';
import { hasOpenssl } from './services/pki/openssl.ts';

vi.setConfig({ testTimeout: 120_000 });

const ANY = 'ALL:@SECLEVEL=0';
const CBC = 'ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA';

/** Protocol and suite, or "none". A server that wants a client certificate has agreed on both before it ends the handshake. */
async function agreed(url: string, ...options: string[]): Promise<string> {
  const argv = ['s_client', '-connect', new URL(url).host, ...options];
  const client = spawn('openssl', argv, { stdio: ['ignore', 'pipe', 'ignore'] });
  const [, protocol, suite] = /^New, (\S+), Cipher is (\S+)$/m.exec(await text(client.stdout)) ?? [];
  return suite === '(NONE)' ? 'none' : `${protocol} ${suite}`;
}

it.skipIf(!hasOpenssl)(
  'accepts TLS 1.3 for the interface, 1.2 where it is allowed, and CBC nowhere',
  async () => {
    const { gateway } = await openTestGateway({ http: { listen: '127.0.0.1:0' } });
    const lenient = await openTestGateway({ http: { listen: '127.0.0.1:0', tls12: true } });
    const [strict, allowed, encoders] = [gateway.baseUrl, lenient.gateway.baseUrl, gateway.encoderUrl];
    expect(await agreed(strict, '-tls1_3')).toBe('TLSv1.3 TLS_AES_256_GCM_SHA384');
    expect(await agreed(strict, '-tls1_2')).toBe('none');
    for (const url of [allowed, encoders]) {
      expect(await agreed(url)).toMatch(/^TLSv1\.3 /);
      expect(await agreed(url, '-tls1_2')).toBe('TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384');
      expect(await agreed(url, '-tls1_2', '-cipher', CBC)).toBe('none');
      expect(await agreed(url, '-tls1_1', '-cipher', ANY)).toBe('none');
    }
  },
);

/** RFC 8446, B.4 and RFC 5289, 3.2, RFC 7905, 2; and what is no suite: the SCSV of RFC 5746, 3.3. */
const AEAD = [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xc02f, 0xc030, 0xcca8, 0xcca9, 0x00ff];

/** Suites in the ClientHello of one connection, which then is closed (RFC 8446, 4.1.2; RFC 5246, 7.4.1.2). */
async function listenForSuites(): Promise<{ port: number; offered: Promise<number[]> }> {
  const server = createServer();
  onTestFinished(() => void server.close());
  const offered = once(server, 'connection').then(async ([socket]) => {
    let hello = Buffer.alloc(0);
    for await (const chunk of socket) {
      hello = Buffer.concat([hello, chunk]);
      // Record 5, handshake 4, version 2, random 32 bytes; then the session id, then the suites, each behind its length.
      const at = 44 + (hello[43] ?? 0);
      const end = at + 2 + (hello.length > at + 2 ? hello.readUInt16BE(at) : Number.POSITIVE_INFINITY);
      if (hello.length < end) continue;
      return Array.from({ length: (end - at - 2) / 2 }, (_, index) => hello.readUInt16BE(at + 2 + 2 * index));
    }
    return [];
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { port: (server.address() as AddressInfo).port, offered };
}

const signal = new AbortController().signal;
const configured = (port: number) => configSchema.parse({ upstream: { url: `mqtts://127.0.0.1:${port}` } });
const connections = (port: number) =>
  sinksOf(configured(port)).map((sink) => openTransport(sink, 'g', systemClock).connect(() => {}, signal));

it.each<[string, (port: number) => Promise<unknown>]>([
  ['the notification service', (port) => Promise.all(connections(port))],
  [
    'doctor asking for it',
    (port) => checkSinks({ config: configured(port), shell: { clock: systemClock } } as never),
  ],
  [
    'the identity provider',
    (port) => fetchKeySet({ url: `https://127.0.0.1:${port}/` }, systemClock, signal),
  ],
  [
    'a Zigbee gateway',
    (port) => openConnection({ secure: true, host: '127.0.0.1', port, cert: '' }, systemClock, signal),
  ],
])('offers %s nothing but authenticated encryption with forward secrecy', async (_peer, connect) => {
  const { port, offered } = await listenForSuites();
  const ended = Promise.allSettled([connect(port)]);
  expect(AEAD).toEqual(expect.arrayContaining(await offered));
  expect(await offered).toEqual(expect.arrayContaining([0x1302, 0xc02b]));
  await ended;
});

/**
 * How old requests count that come over a TLS connection which was made while the process stood still. Over sockets: when they are
 * accepted and read is the kernel's.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { turnOfEventLoop } from '../../../drivers/contract/waiting.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { systemClock } from '../clock.ts';
import { silentLog } from '../log.ts';
import { listenHttps } from './server.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const STOOD_MS = 13_000;
const READ = 'GET /access/doors HTTP/1.1\r\nHost: gate\r\n\r\n';
const UNLOCK = 'POST /access/doors/1/unlock HTTP/1.1\r\nHost: gate\r\nContent-Length: 0\r\n\r\n';

function identity() {
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(temporaryFolder(), name)) as [
    string,
    string,
  ];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=gate'];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return { chain: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

it.skipIf(!hasOpenssl)('each that is sent before the first answer is as old as its connection', async () => {
  let ahead = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
  const hasStood: [string, boolean][] = [];
  const app = {
    fetch({ method }: Request, { arrivedAt = clock.monotonic() } = {}) {
      hasStood.push([method, clock.monotonic() - arrivedAt >= STOOD_MS]);
      return new Response('{}');
    },
    drain: () => undefined,
  };
  const address = { host: '127.0.0.1', port: 0 };
  const server = await listenHttps({ app, clock, log: silentLog, ...address, ...identity() });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const socket = connect({ ...server.address, rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  // The kernel makes the connection; the server accepts it afterwards.
  ahead += STOOD_MS;
  await once(socket, 'secureConnect');
  socket.write(READ.repeat(3) + UNLOCK);
  let answers = '';
  while (answers.split('HTTP/1.1 200').length < 5) answers += String(await once(socket, 'data'));
  expect(hasStood).toEqual([...Array(3).fill(['GET', true]), ['POST', true]]);
  // The client has its answers, and none of what it sent waits.
  for (let turn = 0; turn < 5; turn += 1) await turnOfEventLoop();
  socket.write(UNLOCK);
  await once(socket, 'data');
  expect(hasStood.at(-1)).toEqual(['POST', false]);
});

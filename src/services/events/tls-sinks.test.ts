/** HTTPS and NATS with TLS: only a server that the authority names gets events, and a wrong certificate costs none. */
import { copyFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { makeCertificates } from '../../../test/services/events/certificates.ts';
import { openTestLog, until } from '../../../test/services/events/log.ts';
import { natsMissing, openNats } from '../../../test/services/events/nats.ts';
import { hasOpenssl } from '../../../test/services/pki/openssl.ts';
import { temporaryFolder } from '../../../test/temporary.ts';

function openFiles() {
  const folder = temporaryFolder();
  makeCertificates(folder);
  const file = (name: string) => join(folder, name);
  copyFileSync(file('other-ca.pem'), file('trusted.pem'));
  return {
    folder,
    file,
    settings: { caFile: file('trusted.pem'), certFile: file('client.pem'), keyFile: file('client.key') },
    trust: () => copyFileSync(file('ca.pem'), file('trusted.pem')),
  };
}

/** First with an authority that has not signed the server, then with the one that has. */
async function deliver(
  sink: { kind: 'https' | 'nats'; urls: string[] },
  trust: () => void,
  settings: object,
) {
  const log = await openTestLog();
  await log.record(1, 2);
  log.forward({ ...sink, ...settings });
  await until(() => /self.signed|unable to (get|verify)/i.test(log.events.backlog().lastError ?? ''));
  expect(log.events.backlog()).toMatchObject({ waiting: 2, deadLetters: 0 });
  trust();
  await until(() => log.events.backlog().waiting === 0);
}

it.skipIf(!hasOpenssl)('HTTPS', async () => {
  const { file, settings, trust } = openFiles();
  const posts: string[] = [];
  const [key, cert, ca] = ['server.key', 'server.pem', 'ca.pem'].map((name) => readFileSync(file(name)));
  const wanted = { requestCert: true, rejectUnauthorized: true };
  const server = createServer({ key, cert, ca, ...wanted }, async (request, response) => {
    posts.push(await text(request));
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  await deliver({ kind: 'https', urls: [`https://localhost:${port}/`] }, trust, settings);
  expect(posts).toHaveLength(2);
});

it.skipIf(!hasOpenssl || natsMissing)('NATS, and none is sent to a server without TLS', async () => {
  const { folder, file, settings, trust } = openFiles();
  const [plainFolder, tls] = [temporaryFolder(), ['--tls', '--tlsverify']];
  const further = [
    ...tls,
    '--tlscert',
    file('server.pem'),
    '--tlskey',
    file('server.key'),
    '--tlscacert',
    file('ca.pem'),
  ];
  await using nats = await openNats(folder, { further });
  await using plain = await openNats(plainFolder);
  const log = await openTestLog();
  await log.record(1, 1);
  const forwarding = log.forward({ kind: 'nats', urls: [`tls://localhost:${plain.port}`], ...settings });
  await until(() => log.events.backlog().lastError?.includes('it offers no TLS') === true);
  await forwarding.stop();
  const other = await openTestLog();
  await other.record(1, 1);
  other.forward({ kind: 'nats', urls: [`tls://localhost:${nats.port}`], ...settings });
  await until(() => /self.signed|unable to (get|verify)/i.test(other.events.backlog().lastError ?? ''));
  trust();
  // Its certificate is good now; it has no stream.
  await until(() => other.events.backlog().lastError?.includes('no stream takes') === true);
  expect(other.events.backlog()).toMatchObject({ waiting: 1, deadLetters: 0 });
});

/** The site's own HTTPS certificate beside the site CA's, in a whole gateway. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, expect, it, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import { openTestGateway } from './gateway.ts';
import { CA_EXTENSIONS, hasOpenssl, type Minted, openOpenssl } from './services/pki/openssl.ts';
import { testShell } from './shell.ts';
import { temporaryFolder } from './temporary.ts';

vi.setConfig({ testTimeout: 60_000 });

const openssl = openOpenssl();
afterAll(() => openssl[Symbol.dispose]());
const NAME = 'gate.hotel.example';

/** The subject's name and the issuer's of what a client gets that asks for `servername`. */
function shownTo(url: string, servername: string | undefined, ca?: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const trust = ca === undefined ? { rejectUnauthorized: false } : { ca };
    const name = servername === undefined ? {} : { servername };
    const socket = connect({ host, port: Number(port), ...name, ...trust }, () => {
      const { subject, issuer } = socket.getPeerCertificate();
      socket.destroy();
      resolve(`${subject.CN} of ${issuer.CN}`);
    });
    socket.on('error', reject);
  });
}

it.skipIf(!hasOpenssl)(
  'is for clients that ask for its name; the others, and encoders, get the one of the site CA',
  async () => {
    const folder = temporaryFolder();
    const root = openssl.mint({ subject: '/CN=Public Root', extensions: CA_EXTENSIONS });
    const mint = (CN: string) =>
      openssl.mint({
        subject: `/CN=${CN}`,
        issuer: root,
        key: 'RSA 2048',
        extensions: [`subjectAltName=DNS:${NAME}`],
      });
    const place = ({ certificateFile, keyFile }: Minted) => {
      copyFileSync(certificateFile, join(folder, 'site.pem'));
      copyFileSync(keyFile, join(folder, 'site.key'));
    };
    place(mint('first'));
    const http = {
      listen: '127.0.0.1:0',
      names: ['127.0.0.1', NAME],
      certFile: 'site.pem',
      keyFile: 'site.key',
    };
    const { gateway, local, configFile } = await openTestGateway({ http }, folder);
    const url = gateway.baseUrl;

    expect(await shownTo(url, NAME, root.pem)).toBe('first of Public Root');
    const siteCa = /^gatehouse of Gatehouse/;
    for (const servername of ['localhost', 'elsewhere.example', undefined])
      expect(await shownTo(url, servername), servername).toMatch(siteCa);
    // A client certificate is asked for after the server has shown its own.
    await expect(shownTo(gateway.encoderUrl.replace('mqtts:', 'https:'), NAME)).resolves.toMatch(siteCa);

    const second = mint('second');
    place(second);
    expect(JSON.parse(await local('POST', '/local/reload'))).toMatchObject({ needsRestart: [] });
    expect(await shownTo(url, NAME, root.pem)).toBe('second of Public Root');

    copyFileSync(mint('third').keyFile, join(folder, 'site.key'));
    await local('POST', '/local/reload');
    expect(await shownTo(url, NAME, root.pem)).toBe('second of Public Root');
    const { http: shown, certificates } = JSON.parse(await local('GET', '/local/status'));
    expect(shown.ownCertificate).toEqual({
      notAfter: '2045-01-01T00:00:00.000Z',
      error: expect.stringMatching(/site\.key is not the key of the certificate/),
    });
    expect(certificates.map(({ name }: { name: string }) => name)).toEqual(['server', 'own']);
    expect(await local('GET', '/metrics')).toMatch(/^gatehouse_own_certificate_fault 1$/m);

    const shell = testShell();
    expect(await run(['status', '--config', configFile], shell)).toBe(0);
    expect(shell.written.stdout).toMatch(/✗ {2}certificate own +not taken: .*site\.key is not the key/);
    expect(await run(['config', 'check', configFile], shell)).toBe(2);
    expect(shell.written.stderr).toMatch(/http\.keyFile: .*site\.key is not the key/);
  },
);

/** The revocation list of the site CA, as OpenSSL reads it: brokers do. */
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { hasOpenssl } from '../../../test/services/pki/openssl.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { silentLog } from '../../platform/log.ts';
import { openSiteCa } from './site-ca.ts';

const SYSTEM_ID = '11111111-2222-4333-8444-555555555555';

async function site() {
  const folder = temporaryFolder();
  const options = { directory: join(folder, 'pki'), systemId: SYSTEM_ID, knownRoot: null, log: silentLog };
  const ca = await openSiteCa({ ...options, clock: manualClock() });
  const register = async (encoderId: string, generation: number) => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const spki = publicKey.export({ type: 'spki', format: 'der' });
    const { certificate } = await ca.issueForEncoder({ encoderId, generation, spki });
    const spkiSha256 = createHash('sha256').update(spki).digest('hex');
    return { certificate, credential: { encoderId, generation, spkiSha256 } };
  };
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const openssl = (...argv: string[]) => execFileSync('openssl', argv, { encoding: 'utf8', stdio: 'pipe' });
  /** As a broker does with crlfile: by its own clock, which may be another one. */
  const verify = (certificate: string, list: string, at: number) =>
    openssl(
      'verify',
      ...['-x509_strict', '-crl_check', '-purpose', 'sslclient', '-no-CApath', '-attime', String(at / 1_000)],
      ...['-CAfile', file('root.pem', ca.root), '-untrusted', file('issuer.pem', ca.encoderIssuer)],
      ...['-CRLfile', file('list.pem', list), file('leaf.pem', certificate)],
    );
  return { ca, register, file, openssl, verify };
}

it.skipIf(!hasOpenssl)(
  'shuts out the encoders that it names, and no others, whatever the clock of the broker says',
  async () => {
    const { ca, register, verify } = await site();
    const [gone, there] = [await register('desk-1', 1), await register('desk-1', 2)];
    const list = await ca.revocationList([gone.credential]);
    for (const at of [Date.UTC(1971, 0, 1), Date.UTC(2026, 5, 1), Date.UTC(2035, 0, 1)]) {
      expect(verify(there.certificate, list, at)).toContain('OK');
      expect(() => verify(gone.certificate, list, at)).toThrow('certificate revoked');
    }
    expect(verify(gone.certificate, await ca.revocationList([]), Date.UTC(2030, 0, 1))).toContain('OK');
  },
);

it.skipIf(!hasOpenssl)('is later than each with fewer entries', async () => {
  const { ca, register, file, openssl } = await site();
  const credentials = [];
  const dates: number[] = [];
  for (let generation = 1; generation <= 3; generation += 1) {
    credentials.push((await register('desk-1', generation)).credential);
    const list = file('list.pem', await ca.revocationList(credentials));
    const text = openssl('crl', '-in', list, '-noout', '-lastupdate');
    dates.push(Date.parse(text.replace('lastUpdate=', '')));
  }
  expect(dates).toEqual([1_000, 2_000, 3_000]);
});

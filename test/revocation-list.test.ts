/** The daemon with a broker that reads a revocation list: the list names what has ended, also while the broker is away. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { opensslIsMissing } from './drivers/encoder/certificates.ts';
import { openTestSite } from './simulators/test-site.ts';

const SOON = { timeout: 20_000, interval: 50 };
/** Nothing listens there. */
const AWAY = 'mqtt://127.0.0.1:1';

it.skipIf(opensslIsMissing)(
  'names a certificate that another one has replaced, and one that is revoked',
  { timeout: 60_000 },
  async () => {
    const broker = { urls: [AWAY], administration: 'crl-file' };
    const encoders = { broker, endpoint: 'mqtts://broker.example:8883' };
    await using site = await openTestSite({ config: { encoders } });
    const file = join(site.directory, 'data', 'encoders.crl');
    const named = () => {
      const text = execFileSync('openssl', ['crl', '-in', file, '-noout', '-text'], { encoding: 'utf8' });
      return [...text.matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, serial]) => serial).toSorted();
    };
    const serialOf = ({ certificate }: { certificate: string }) =>
      new X509Certificate(certificate).serialNumber;
    await vi.waitFor(() => expect(named()).toEqual([]), SOON);
    const first = await site.register('desk-1');
    const second = await site.register('desk-1');
    expect(named()).toEqual([serialOf(first)]);
    await site.daemon.call('POST', '/encoder/desk-1/revoke', site.tokens['service-tool']);
    expect(named()).toEqual([serialOf(first), serialOf(second)].toSorted());
    await site.daemon.kill();
    await site.daemon.start();
    await site.register('desk-1');
    expect(named()).toHaveLength(2);
  },
);

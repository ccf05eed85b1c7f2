/** docs/operations.md, A broker of the site: mosquitto with a revocation list, and the units that bring it the list. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import type { Status } from '../src/services/status/schema.ts';
import { opensslIsMissing, openTestAuthority, type TestIdentity } from './drivers/encoder/certificates.ts';
import { freePort } from './free-port.ts';
import { blockWith } from './operations-page.ts';
import { openMachine } from './operations-page-machine.ts';
import { mosquittoMissing } from './services/events/mosquitto.ts';
import type { Bundle } from './simulators/encoder/registration.ts';
import { openTestSite, type TestSite } from './simulators/test-site.ts';

const SOON = { timeout: 30_000, interval: 200 };

/** The files of a block, each below a line with its path. */
function filesIn(block: string): [path: string, text: string][] {
  const parts = block.split(/^# (\/[^\s:]+).*\n/m).slice(1);
  return parts.flatMap((path, index) => (index % 2 === 0 ? [[path, parts[index + 1] ?? '']] : []));
}

async function openSite(gatewayPort: number, encoderPort: number, gateway: TestIdentity, caFile: string) {
  const { certFile, keyFile } = gateway;
  const urls = [`mqtts://127.0.0.1:${gatewayPort}`];
  const broker = { urls, caFile, certFile, keyFile, administration: 'crl-file' };
  return openTestSite({ config: { encoders: { broker, endpoint: `mqtts://127.0.0.1:${encoderPort}` } } });
}

const statusOf = async ({ daemon }: TestSite) =>
  (await daemon.callLocally('GET', '/local/status')).body.encoders as Status['encoders'];

it.skipIf(opensslIsMissing || mosquittoMissing)(
  'is brought the list by the units of the page, and does not let in what it names',
  { timeout: 120_000 },
  async () => {
    using authority = openTestAuthority('Broker');
    const [gatewayPort, encoderPort] = [await freePort(), await freePort()];
    const gateway = authority.client('/CN=gateway of the site');
    await using site = await openSite(gatewayPort, encoderPort, gateway, authority.rootFile);
    const machine = openMachine([
      // The gateway of this test has its data elsewhere.
      ['/var/lib/gatehouse/', `${site.directory}/data/`],
      ['listener 8883', `listener ${encoderPort} 127.0.0.1`],
      ['listener 8884', `listener ${gatewayPort} 127.0.0.1`],
    ]);
    const etc = join(machine.folder, 'etc');
    for (const [path, text] of filesIn(machine.here(blockWith('crlfile /etc/mosquitto')))) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `${text.trim()}\n`);
    }
    // As Debian has it, but for the user, who cannot read the folder.
    writeFileSync(join(etc, 'mosquitto/mosquitto.conf'), `user root\ninclude_dir ${etc}/mosquitto/conf.d\n`);
    const server = authority.server();
    copyFileSync(site.daemon.caFile, join(etc, 'mosquitto/site-root.pem'));
    copyFileSync(authority.rootFile, join(etc, 'mosquitto/gateway-ca.pem'));
    copyFileSync(server.certFile, join(etc, 'mosquitto/server.pem'));
    copyFileSync(server.keyFile, join(etc, 'mosquitto/server.key'));
    await vi.waitFor(() => readFileSync(join(site.directory, 'data/encoders.crl')), SOON);
    await machine.typed(blockWith('enable --now encoders-crl.path'));
    await vi.waitFor(async () => expect((await statusOf(site)).broker.url).not.toBeNull(), SOON);

    const letsIn = ({ certificate, key }: Bundle) => {
      const [certFile, keyFile] = ['encoder.pem', 'encoder.key'].map((name) => join(machine.home, name));
      writeFileSync(certFile ?? '', certificate);
      writeFileSync(keyFile ?? '', key);
      const argv = ['-h', '127.0.0.1', '-p', String(encoderPort), '--cafile', authority.rootFile];
      const own = ['--cert', certFile ?? '', '--key', keyFile ?? ''];
      return spawnSync('mosquitto_pub', [...argv, ...own, '-t', 'knock', '-m', '']).status === 0;
    };
    const [first, other] = [await site.register('desk-1'), await site.register('desk-2')];
    expect([letsIn(first), letsIn(other)]).toEqual([true, true]);
    await site.daemon.call('POST', '/encoder/desk-1/revoke', site.tokens['service-tool']);
    await vi.waitFor(() => expect(letsIn(first)).toBe(false), SOON);
    expect(letsIn(other)).toBe(true);
    const second = await site.register('desk-2');
    await vi.waitFor(() => expect(letsIn(other)).toBe(false), SOON);
    expect(letsIn(second)).toBe(true);
  },
);

/** mosquitto that reads a revocation list and an access control file as the broker of encoders; the test brings it the list. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeRevocationList } from '../../../src/services/pki/certificates.ts';
import { freePort } from '../../free-port.ts';
import { openMosquitto } from '../../services/events/mosquitto.ts';
import type { TestAuthority } from './certificates.ts';
import type { TestBroker } from './external.ts';

const DAY_MS = 86_400_000;

export interface CrlMosquitto extends TestBroker {
  /** What the gateway has it read. */
  revoke(certificates: readonly string[]): Promise<void>;
}

export async function openCrlMosquitto(
  folder: string,
  authority: TestAuthority,
  gateways: readonly string[],
): Promise<CrlMosquitto> {
  const server = authority.server();
  const [list, rights, clients] = ['encoders.crl', 'encoders.acl', 'clients-ca.pem'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const key = createPrivateKey(authority.encoderIssuerKey);
  const write = async (certificates: readonly string[]) => {
    const serials = certificates.map((pem) => new X509Certificate(pem).serialNumber);
    // Of two lists the later one counts.
    const content = { serials, thisUpdate: serials.length * 1_000, nextUpdate: Date.now() + DAY_MS };
    const next = `${list}.next`;
    writeFileSync(next, await writeRevocationList(content, { key, certificate: authority.encoderIssuer }));
    // It may be reading the one before just now.
    renameSync(next, list);
  };
  await write([]);
  writeFileSync(clients, authority.root);
  // As docs/operations.md has it.
  const gateway = (name: string) => `user ${name}\ntopic read enc/+/up/+\ntopic write enc/+/down/+\n`;
  writeFileSync(
    rights,
    `${gateways.map(gateway).join('')}pattern write enc/%u/up/+\npattern read enc/%u/down/#\n`,
  );
  const gatewayPort = await freePort();
  const listener = [
    `cafile ${clients}`,
    `certfile ${server.certFile}`,
    `keyfile ${server.keyFile}`,
    'require_certificate true',
    'use_identity_as_username true',
  ];
  const encoders = [...listener, 'use_username_as_clientid true', `crlfile ${list}`];
  const mosquitto = await openMosquitto({
    folder,
    lines: [`acl_file ${rights}`, ...encoders, `listener ${gatewayPort} 127.0.0.1`, ...listener],
  });
  return {
    addresses: () => [{ host: '127.0.0.1', port: mosquitto.port }],
    gatewayPort,
    refusesSubscriptions: false,
    async revoke(certificates) {
      await write(certificates);
      process.kill(mosquitto.pid, 'SIGHUP');
    },
    [Symbol.asyncDispose]: () => mosquitto[Symbol.asyncDispose](),
  };
}

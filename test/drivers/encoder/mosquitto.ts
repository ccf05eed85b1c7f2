/** mosquitto with dynamic security as the broker of encoders; the gateway administers it. */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openMosquitto } from '../../services/events/mosquitto.ts';
import type { TestAuthority, TestIdentity } from './certificates.ts';
import type { TestBroker } from './external.ts';

/** As Debian puts it, by architecture. */
const PLUGINS = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as Record<string, string>;
const PLUGIN = `/usr/lib/${PLUGINS[process.arch]}/mosquitto_dynamic_security.so`;
const CONTROL = '$CONTROL/dynamic-security/v1';

const allow = (acltype: string, topic: string) => ({ acltype, topic, allow: true });
/** As docs/operations.md has it. */
const GATEWAY_ACLS = [
  allow('publishClientSend', CONTROL),
  allow('subscribePattern', `${CONTROL}/response`),
  allow('publishClientReceive', `${CONTROL}/response`),
  allow('subscribePattern', 'enc/+/up/+'),
  allow('publishClientSend', 'enc/+/down/+'),
];

export interface EncoderMosquitto extends TestBroker {
  /** Kills it and starts it again. */
  restart(): Promise<void>;
  /** Started again, it takes clients of this authority too. */
  trust(root: string): Promise<void>;
}

export async function openEncoderMosquitto(
  folder: string,
  authority: TestAuthority,
  gateways: readonly string[],
): Promise<EncoderMosquitto> {
  const server: TestIdentity = authority.server();
  const accounts = join(folder, 'dynamic-security.json');
  writeFileSync(
    accounts,
    JSON.stringify({
      defaultACLAccess: {
        publishClientSend: false,
        publishClientReceive: true,
        subscribe: false,
        unsubscribe: true,
      },
      clients: gateways.map((name) => ({ username: `CN=${name}`, roles: [{ rolename: 'gateway' }] })),
      roles: [{ rolename: 'gateway', acls: GATEWAY_ACLS }],
    }),
  );
  const clients = join(folder, 'clients-ca.pem');
  writeFileSync(clients, authority.root);
  const lines = [
    `cafile ${clients}`,
    `certfile ${server.certFile}`,
    `keyfile ${server.keyFile}`,
    'require_certificate true',
    'use_subject_as_username true',
    'use_username_as_clientid true',
    `plugin ${PLUGIN}`,
    `plugin_opt_config_file ${accounts}`,
  ];
  let mosquitto = await openMosquitto({ folder, lines });
  const { port } = mosquitto;
  const restart = async () => {
    await mosquitto.kill();
    mosquitto = await openMosquitto({ folder, lines, port });
  };
  return {
    addresses: () => [{ host: '127.0.0.1', port }],
    restart,
    async trust(root) {
      appendFileSync(clients, root);
      await restart();
    },
    [Symbol.asyncDispose]: () => mosquitto[Symbol.asyncDispose](),
  };
}

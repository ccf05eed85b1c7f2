/** A cluster of NATS servers with their MQTT listener as the broker of encoders; the test is its operator. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type NatsCluster, openNatsCluster } from '../../nats-cluster.ts';
import type { TestAuthority } from './certificates.ts';
import type { TestBroker } from './external.ts';

export interface EncoderNats extends TestBroker, Pick<NatsCluster, 'kill' | 'start'> {}

export async function openEncoderNats(
  folder: string,
  authority: TestAuthority,
  gateways: readonly string[],
): Promise<EncoderNats> {
  const admitted = new Map(gateways.map((name) => [`CN=${name}`, GATEWAY_PERMISSIONS]));
  const writeUsers = () => writeFileSync(join(folder, 'users.conf'), usersOf(admitted));
  writeUsers();
  const { certFile, keyFile } = authority.server();
  // As docs/operations.md has it.
  const cluster = await openNatsCluster(
    folder,
    (port) => `mqtt {
  listen: "127.0.0.1:${port}"
  max_ack_pending: 1000
  tls { cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${authority.rootFile}", verify_and_map: true }
}
include "users.conf"`,
  );
  return {
    addresses: () => cluster.ports.map((port) => ({ host: '127.0.0.1', port })),
    bindsClientIds: false,
    async admit(encoderId, generation) {
      admitted.set(subjectOf(encoderId, generation), encoderPermissions(encoderId));
      writeUsers();
      await cluster.reload();
    },
    async shutOut(encoderId, generation) {
      admitted.delete(subjectOf(encoderId, generation));
      writeUsers();
      await cluster.reload();
    },
    kill: cluster.kill,
    start: cluster.start,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

/** As nats-server writes the subject of a certificate (RFC 2253): the last part first. */
const subjectOf = (encoderId: string, generation: number): string => `OU=g${generation},CN=${encoderId}`;

/** What is published with QoS 1 reaches a client on a subject of its own below $MQTT.sub. */
const GATEWAY_PERMISSIONS = 'publish: ["enc.*.down.*"], subscribe: ["enc.*.up.*", "$MQTT.sub.>"]';

function encoderPermissions(encoderId: string): string {
  const own = `enc.${encoderId}`;
  return `publish: ["${own}.up.*"], subscribe: ["${own}.down", "${own}.down.>", "$MQTT.sub.>"]`;
}

function usersOf(admitted: ReadonlyMap<string, string>): string {
  const users = [...admitted].map(
    ([subject, permissions]) =>
      `{ user: "${subject}", allowed_connection_types: [MQTT], permissions: { ${permissions} } }`,
  );
  return `authorization {\n  users: [\n    ${users.join('\n    ')}\n  ]\n}\n`;
}

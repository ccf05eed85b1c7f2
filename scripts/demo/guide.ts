/** What the demo tells at its end: for scripts demo.json, for people what to try next. */
import { randomUUID } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Role } from '../../test/simulators/daemon.ts';
import type { Rs485Device } from './buses.ts';
import type { DemoDoor } from './gateways.ts';

/** DIR/demo.json. File paths are absolute. */
export interface DemoFile {
  baseUrl: string;
  caFile: string;
  productSegment: string;
  vendorKey: string;
  systemId: string;
  /** Of the daemon. */
  pid: number;
  tokens: Record<Role, string>;
  factory: { caCert: string; caKey: string };
  mqtt: { url: string };
  /** Where events arrive; `topic` is a filter to subscribe to. */
  upstream: { url: string; topic: string };
  encoders: { id: string }[];
  /** With a lock on a Zigbee gateway; `simulatorControl` is the URL of the lock in its simulator. */
  doors: DemoDoor[];
  /** Those that answer; `simulatorControl` is the URL of the device in its simulator. */
  rs485: Rs485Device[];
  /** `simulatorControl` is the URL of the simulator of the gateway and its locks. */
  zgates: { deviceId: string; simulatorControl: string }[];
  networks: { id: string }[];
}

export const demoFile = (directory: string) => join(directory, 'demo.json');

/** Whole or not at all: a script may be waiting for it. */
export async function writeDemoFile(directory: string, demo: DemoFile): Promise<void> {
  const file = demoFile(directory);
  await writeFile(`${file}.new`, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

export function guide(directory: string, demo: DemoFile): string {
  const { baseUrl, caFile, tokens, upstream } = demo;
  const encoder = demo.encoders[0]?.id;
  const { hostname, port } = new URL(upstream.url);
  // A requestId means one request for good, also for the next demo in the same folder.
  const request = `${baseUrl}/encoder/${encoder}/write-request/try-${Date.now().toString(36)}`;
  const curl = (role: Role) => `curl --cacert ${quote(caFile)} -H 'Authorization: Bearer ${tokens[role]}'`;
  const entries = JSON.stringify({
    description: 'Room 214',
    data: [{ keyId: randomUUID(), blocks: ['6a1f09c2'] }],
  });
  return `
The interface    ${baseUrl}
Encoders         ${demo.mqtt.url}
Events           ${upstream.url}  ${upstream.topic}
Everything else  ${demoFile(directory)}

Ways in, one token for each role:
${Object.entries(tokens)
  .map(([role, token]) => `  ${role.padEnd(16)}  ${token}`)
  .join('\n')}

Try next, in another terminal:

  # the encoders, as the front desk's software sees them
  ${curl('pms')} ${baseUrl}/encoder

  # write a key; its progress shows here
  ${curl('front-desk')} \\
    -X PUT -H 'Content-Type: application/json' -d '${entries}' \\
    ${request}

  # what became of it
  ${curl('front-desk')} ${request}

  # follow the events with any MQTT client
  mosquitto_sub -h ${hostname} -p ${port} -t '${upstream.topic}'

${relay(demo, curl('service-tool'))}${door(demo, curl('front-desk-admin'))}
  # bring an encoder of your own: openssl, curl and Python with paho-mqtt
  test/independent/encoder.sh ${quote(demoFile(directory))} my-encoder

  # the installation at a glance
  npm run gatehouse -- status --config ${quote(join(directory, 'gatehouse.yaml'))}

Ctrl-C ends it.`;
}

/** The first device, its relay and its button. */
function relay({ baseUrl, rs485 }: DemoFile, curl: string): string {
  const [first] = rs485;
  if (!first) return '';
  const { deviceId, simulatorControl, bus, address } = first;
  const post = `curl -X POST ${simulatorControl} -d`;
  return `
  # fire the relay of the staff entrance, which is device ${address} on ${bus}, and see what the device did
  ${curl} -X POST ${baseUrl}/network/rs485/${deviceId}/pulse
  curl ${simulatorControl}

  # press its exit button, and see what the gateway has heard
  ${post} '{"pulseInput": {"input": "input0", "milliseconds": 300}}'; sleep 1
  ${curl} ${baseUrl}/network/rs485/${deviceId}/state

  # kill it, and see how the buses do (two devices of bus-1 are dead on purpose); null instead of true brings it back
  ${post} '{"faults": {"dead": true}}'; sleep 1
  ${curl} ${baseUrl}/network/rs485/buses

  # give the last reader of bus-3 its key (OSDP), and see that it is spoken to in a secure channel
  ${curl} -X POST ${baseUrl}/network/rs485/buses/bus-3/pair -H 'Content-Type: application/json' -d '{"address": 3}'
  ${curl} '${baseUrl}/network/rs485?bus=bus-3'
`;
}

/** The first door and its lock. */
function door({ baseUrl, productSegment, doors }: DemoFile, curl: string): string {
  const [first] = doors;
  if (!first) return '';
  const { id, name, simulatorControl } = first;
  const url = `${baseUrl}/${productSegment}/doors/${id}`;
  return `
  # unlock ${name}, and see what its lock did
  ${curl} -X POST ${url}/unlock
  curl ${simulatorControl}

  # change the door; a moment later \`applied\` has the frames that its lock acknowledged
  ${curl} -X PUT ${url} -H 'Content-Type: application/json' -d '{"name": "Suite 101"}'
  sleep 1
  ${curl} ${url}

  # let the signal of the lock fade, and see it in the connectionState of the door
  curl -X POST ${simulatorControl} -d '{"lqi": 40, "manual": "lock"}'
  ${curl} ${url}
`;
}

/** For a shell. */
function quote(path: string): string {
  return /^[A-Za-z0-9._/-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** What the demo prints at its end: for scripts demo.json, for people what to try next. */
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
  /** Good once, for ten minutes, for a session that may do everything. */
  loginCode: string;
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
const shellFile = (directory: string) => join(directory, 'demo.sh');
export const tryFile = (directory: string) => join(directory, 'try.txt');

/** Whole or not at all: a script may be waiting for it. */
export async function writeDemoFile(directory: string, demo: DemoFile): Promise<void> {
  await writeFile(shellFile(directory), shellFunction(demo), { mode: 0o600 });
  await writeFile(tryFile(directory), commands(directory, demo), { mode: 0o600 });
  const file = demoFile(directory);
  await writeFile(`${file}.new`, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** `as`, for a POSIX shell: without it each command to try would be three lines of options. */
function shellFunction({ baseUrl, caFile, tokens }: DemoFile): string {
  const roles = Object.entries(tokens).map(([role, token]) => `    ${role}) token=${token} ;;`);
  const usage = `as ROLE PATH [options of curl], where ROLE is one of ${Object.keys(tokens).join(', ')}`;
  return `# ${usage}
as() {
  role=$1
  path=$2
  [ $# -ge 2 ] && shift 2
  case $role in
${roles.join('\n')}
    *) echo '${usage}' >&2; return 2 ;;
  esac
  curl --silent --show-error --write-out '\\n' --cacert ${quote(caFile)} \\
    -H "Authorization: Bearer $token" -H 'Content-Type: application/json' "$@" "${baseUrl}$path"
}
`;
}

/** At most 24 lines of 80 columns, which is all that some terminals show; what else can be tried is in tryFile. */
export function guide(directory: string, demo: DemoFile): string {
  const { baseUrl, upstream } = demo;
  return `
The console      ${new URL('/', baseUrl).href}
                 login code ${demo.loginCode}, good for ten minutes
The interface    ${baseUrl}
Encoders         ${demo.mqtt.url}
Events           ${upstream.url}
Everything else  ${demoFile(directory)}, a token for each role too

Try next, in another terminal (as ROLE PATH is curl with the token of that role):

  . ${quote(shellFile(directory))}
  as pms /encoder

More to try: ${tryFile(directory)}

Ctrl-C ends it.`;
}

function commands(directory: string, demo: DemoFile): string {
  const { upstream } = demo;
  const encoder = demo.encoders[0]?.id;
  const { hostname, port } = new URL(upstream.url);
  // A requestId means one request for good, also for the next demo in the same folder.
  const request = `/encoder/${encoder}/write-request/try-${Date.now().toString(36)}`;
  const entries = JSON.stringify({
    description: 'Room 214',
    data: [{ keyId: randomUUID(), blocks: ['6a1f09c2'] }],
  });
  return `To try while the demo runs, in another terminal, after this line (as ROLE PATH is curl with the token of that role):

  . ${quote(shellFile(directory))}

  # the encoders, as the front desk's software sees them
  as pms /encoder

  # write a key; its progress shows in the terminal of the demo
  as front-desk ${request} -X PUT -d '${entries}'

  # what became of it
  as front-desk ${request}

  # follow the events with any MQTT client
  mosquitto_sub -h ${hostname} -p ${port} -t '${upstream.topic}'
${relay(demo)}${door(demo)}
  # bring an encoder of your own: openssl, curl and Python with paho-mqtt
  test/independent/encoder.sh ${quote(demoFile(directory))} my-encoder

  # in the console: let a lock join on the first floor (Zigbee). The one in its box, 00158d00010000ff, joins; name its room
${broken(demo)}
  # an encoder for the console to register (Encoders), and then to run; it waits for its two cards
  npm run gatehouse -- simulate encoder desk-3 --config ${quote(join(directory, 'gatehouse.yaml'))} --data ${quote(join(directory, 'simulated'))} --message desk-3.json
  npm run gatehouse -- simulate encoder desk-3 --config ${quote(join(directory, 'gatehouse.yaml'))} --data ${quote(join(directory, 'simulated'))} --credentials ~/Downloads/desk-3.credentials.json

  # the installation at a glance
  npm run gatehouse -- status --config ${quote(join(directory, 'gatehouse.yaml'))}
`;
}

/** What a technician then finds and mends in the console; the commands play the hand that breaks a thing, or mounts another one. */
function broken({ doors, rs485 }: DemoFile): string {
  const [, door] = doors;
  const [module] = rs485;
  if (!door || !module) return '';
  const post = 'curl -X POST';
  return `
  # a lock leaves its network; in the console (Now, Doors) find why ${door.name} is offline, and let locks join on its floor
  ${post} ${door.simulatorControl} -d '{"leave": true}'

  # once they may: the lock asks to join
  ${post} ${door.simulatorControl}/join

  # the I/O module of the staff entrance dies, and GIO-00004220 is mounted; in the console (Now) put that in its place
  ${post} ${module.simulatorControl} -d '{"faults": {"dead": true}}'
  ${post} ${new URL('20', module.simulatorControl)} -d '{"faults": {"dead": null}}'
`;
}

/** The first device, its relay and its button. */
function relay({ rs485 }: DemoFile): string {
  const [first] = rs485;
  if (!first) return '';
  const { deviceId, simulatorControl, bus, address } = first;
  const post = `curl -X POST ${simulatorControl} -d`;
  return `
  # fire the relay of the staff entrance, which is device ${address} on ${bus}, and see what the device did
  as service-tool /network/rs485/${deviceId}/pulse -X POST
  curl ${simulatorControl}

  # press its exit button, and see what the gateway has heard
  ${post} '{"pulseInput": {"input": "input0", "milliseconds": 300}}'; sleep 1
  as service-tool /network/rs485/${deviceId}/state

  # kill it, wait until it is missed, and see how the buses do (two devices of bus-1 are dead on purpose); null instead of true brings it back
  ${post} '{"faults": {"dead": true}}'
  until as service-tool /network/rs485/buses | grep -q '"address":${address},"alive":false'; do sleep 0.2; done
  as service-tool /network/rs485/buses

  # give the last reader of bus-3 its key (OSDP); "security":"secure" of its state is the secure channel
  as service-tool /network/rs485/buses/bus-3/pair -X POST -d '{"address": 3}'; sleep 3
  device=$(as service-tool /network/rs485/buses | sed 's/.*"deviceId":"\\([^"]*\\)".*/\\1/')
  as service-tool /network/rs485/$device/state
`;
}

/** The first door and its lock. */
function door({ productSegment, doors }: DemoFile): string {
  const [first] = doors;
  if (!first) return '';
  const { id, name, simulatorControl } = first;
  const path = `/${productSegment}/doors/${id}`;
  return `
  # unlock ${name}, and see what its lock did
  as front-desk-admin ${path}/unlock -X POST
  curl ${simulatorControl}

  # change the door; a moment later \`applied\` has the frames that its lock acknowledged
  as front-desk-admin ${path} -X PUT -d '{"name": "Suite 101"}'
  sleep 1
  as front-desk-admin ${path}

  # let the signal of the lock fade, and see it in the connectionState of the door
  curl -X POST ${simulatorControl} -d '{"lqi": 40, "manual": "lock"}'
  as front-desk-admin ${path}
`;
}

/** For a shell. */
function quote(path: string): string {
  return /^[A-Za-z0-9._/-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** Says before the tests which of the programs they talk to are missing; their tests are skipped, each by its name. */
import { spawnSync } from 'node:child_process';

/** What .ci/run installs, and how to see that it is there. */
const PEERS: Record<string, string> = {
  chromium: 'test -x /usr/bin/chromium',
  mosquitto: 'PATH=$PATH:/usr/sbin command -v mosquitto',
  'mosquitto-clients': 'command -v mosquitto_sub',
  'nats-server': 'PATH=$PATH:/usr/sbin command -v nats-server',
  openssl: 'command -v openssl',
  'python3-paho-mqtt': '/usr/bin/python3 -c "import paho.mqtt.client"',
  ser2net: 'PATH=$PATH:/usr/sbin command -v ser2net',
  socat: 'command -v socat',
  curl: 'command -v curl',
  jq: 'command -v jq',
  systemd: 'command -v systemd-analyze',
  gcc: 'command -v gcc',
  'libmodbus-dev': 'test -f /usr/include/modbus/modbus.h',
  mbpoll: 'command -v mbpoll',
  lintian: 'command -v lintian',
  minisign: 'command -v minisign',
  'apt-utils': 'command -v apt-ftparchive',
  gpg: 'command -v gpg',
  'the packages of test/clients': 'test -d test/clients/node_modules',
};

export function setup(): void {
  const missing = Object.entries(PEERS)
    .filter(([, command]) => spawnSync('sh', ['-c', command], { stdio: 'ignore' }).status !== 0)
    .map(([name]) => name);
  if (missing.length > 0)
    console.log(`not installed, so tests that need them are skipped: ${missing.join(', ')}`);
}

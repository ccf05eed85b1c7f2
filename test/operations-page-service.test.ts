/**
 * docs/operations.md, from a configuration by hand to a board on a bus: setup with a person at a terminal, and the service, whose
 * `systemctl` does here what systemd does with the unit.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { atTerminal, HAS_TERMINAL } from './at-terminal.ts';
import { blockWith } from './operations-page.ts';
import { waitFor } from './rs485-site.ts';
import { openSimulatedBus } from './simulators/bus/bus.ts';
import { temporaryFolder } from './temporary.ts';

const START = join(import.meta.dirname, '../src/start.js');
const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0;
/** What a test machine may lack, and the page does not promise. */
const OF_THE_MACHINE = /^✗ +(clock|fsync|disk)/;

/** A systemctl that knows one unit. */
const SYSTEMCTL = `#!/bin/bash
set -eu
gatehouse() { "$NODE" "$START" "$@" --config "$CONFIG"; }
case "$1" in
  start | restart | enable)
    [ "$*" != 'enable gatehouse' ] || exit 0
    [ "$1" != restart ] || "$0" stop gatehouse
    ! gatehouse status >/dev/null 2>&1 || exit 0
    # Not by the function: $! would be a shell, and what it started would outlive the test.
    "$NODE" "$START" serve --config "$CONFIG" >"$FOLDER/log" 2>&1 3>&- &
    echo $! >"$FOLDER/pid"
    until grep -q '"ready at ' "$FOLDER/log"; do kill -0 $!; sleep 0.1; done ;;
  stop) [ ! -e "$FOLDER/pid" ] || { kill "$(cat "$FOLDER/pid")" && tail --pid="$(cat "$FOLDER/pid")" -f /dev/null; rm "$FOLDER/pid"; } ;;
  reload) gatehouse reload ;;
  *) exit 1 ;;
esac
`;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function openMachine() {
  const folder = temporaryFolder();
  const etc = join(folder, 'etc');
  mkdirSync(etc);
  const config = join(etc, 'gatehouse.yaml');
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'systemctl'), SYSTEMCTL);
  chmodSync(join(bin, 'systemctl'), 0o755);
  const [https, mqtts] = [await freePort(), await freePort()];
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env.PATH}`,
    GATEHOUSE_CONFIG: config,
    CONFIG: config,
    FOLDER: folder,
    NODE: process.execPath,
    START,
  };
  const typing = (block: string) => {
    const script = [
      'sudo() { "$@"; }',
      // Whether this machine has a time server is not what the page is about.
      'gatehouse() { "$NODE" "$START" "$@" || [ "$1" = doctor ]; }',
      block
        .replaceAll('adminSocket: /run/gatehouse', `dataDirectory: ${folder}/data\nadminSocket: ${folder}`)
        .replaceAll('/etc/gatehouse', etc)
        .replaceAll(/0\.0\.0\.0:8443/g, `127.0.0.1:${https}`)
        .replaceAll(/0\.0\.0\.0:8883/g, `127.0.0.1:${mqtts}`)
        .replaceAll('-g gatehouse ', '')
        .replaceAll('chgrp gatehouse', 'test -e'),
    ].join('\n');
    return { script, cwd: folder, env };
  };
  const typed = async (block: string) => {
    const { script, ...options } = typing(block);
    return (await promisify(execFile)('bash', ['-euc', script], options)).stdout;
  };
  onTestFinished(() => typed('systemctl stop gatehouse').then(() => undefined));
  return { config, typing, typed };
}

it.skipIf(!HAS_TERMINAL || !HAS_OPENSSL)(
  'configures a machine by hand and by setup, starts it, and adds a bus while it runs, as the page says',
  async () => {
    const { config, typing, typed } = await openMachine();
    await typed(blockWith('CN=Trial vendor'));
    expect(await typed(blockWith('names: [gatehouse.hotel.example]'))).toContain('is valid');

    const { code, output } = await atTerminal(typing(blockWith('sudo gatehouse setup', 'alone')), [
      [/Name or address of this machine.*\[gatehouse\.hotel\.example\]/, 'door.hotel.example'],
      [/Serve the interface/, ''],
      [/Encoders connect to/, ''],
      [/notification service/, ''],
      [/Write this to .*\? \[y\/N\]/, 'y'],
    ]);
    expect([code, output]).toEqual([0, expect.stringContaining('sudo gatehouse doctor')]);
    expect(readFileSync(config, 'utf8')).toContain('door.hotel.example');

    for (const block of ['enable --now', 'systemctl start gatehouse\nsudo gatehouse doctor']) {
      const faults = (await typed(blockWith(block))).split('\n').filter((line) => line.startsWith('✗'));
      expect(faults.filter((line) => !OF_THE_MACHINE.test(line))).toEqual([]);
    }

    await using bus = await openSimulatedBus({
      protocol: 'modbus',
      baudRate: 19_200,
      parity: 'even',
      stopBits: 1,
      pacing: 'cheap',
      devices: [{ address: 1, kind: 'gatehouse-io', hwId: 'IO-1' }],
    });
    const lines = blockWith('id: bus-1')
      .replace('/dev/serial/by-id/NAME', bus.port)
      .replace('/dev/serial/by-id/', '/dev/pts/');
    expect(await typed(lines)).toContain('bus-1');
    const [status = ''] = lines.split('\n').slice(-1);
    await waitFor(async () => expect(await typed(status)).toMatch(/^bus-1 +modbus .* up .* 1 of 1$/m));
    expect(await typed(blockWith('systemctl reload gatehouse', 'alone'))).toContain('is valid');
  },
  120_000,
);

/** docs/operations.md, from a configuration by hand to a board on a bus: setup with a person at a terminal, and the service. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { atTerminal, HAS_TERMINAL } from './at-terminal.ts';
import { freePorts } from './nats-cluster.ts';
import { blockWith } from './operations-page.ts';
import { openMachine } from './operations-page-machine.ts';
import { waitFor } from './rs485-site.ts';
import { openSimulatedBus } from './simulators/bus/bus.ts';

const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0;
/** What a test machine may lack, and the page does not promise. */
const OF_THE_MACHINE = /^✗ +(clock|fsync|disk)/;

it.skipIf(!HAS_TERMINAL || !HAS_OPENSSL)(
  'configures a machine by hand and by setup, starts it, and adds a bus while it runs, as the page says',
  async () => {
    const [[https, mqtts] = []] = await freePorts(1);
    const { config, typing, typed } = openMachine([
      ['0.0.0.0:8443', `127.0.0.1:${https}`],
      ['0.0.0.0:8883', `127.0.0.1:${mqtts}`],
    ]);
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

    for (const block of [
      'enable --now gatehouse\n    sudo gatehouse doctor',
      'systemctl start gatehouse\nsudo gatehouse doctor',
    ]) {
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

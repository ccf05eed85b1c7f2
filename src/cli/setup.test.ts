import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openOpenssl } from '../../test/services/pki/openssl.ts';
import { mintVendor } from '../../test/services/pki/vendor.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { systemClock } from '../platform/clock.ts';
import { readConfig } from '../platform/config/config-file.ts';
import { type Client, openClient, Refused } from './client.ts';
import { run } from './program.ts';
import { type Machine, type SetupOptions, setUp } from './setup.ts';
import { CommandFailed, EXIT } from './shell.ts';

const FTDI = '/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0';
const STICK = '/dev/serial/by-id/usb-ITead_Sonoff_Zigbee_3.0_USB_Dongle_Plus_9a8b-if00-port0';

let file: string;
let shell: TestShell;
let systemctl: string[];
let machine: Machine;
beforeEach(() => {
  const folder = join(temporaryFolder(), 'etc');
  mkdirSync(folder);
  file = join(folder, 'gatehouse.yaml');
  shell = testShell({ clock: systemClock as TestShell['clock'] });
  systemctl = [];
  machine = {
    hostname: () => 'controller',
    adapters: () => [FTDI, STICK],
    hasSystemd: true,
    systemctl: async (...args) => void systemctl.push(args.join(' ')),
    openClient,
  };
});

const withoutQuestions = (more: Partial<SetupOptions> = {}) =>
  setUp({ config: file, start: true, yes: true, ...more }, shell, machine);

/** As a person would: each answer is typed once its question is there. */
async function answered(answers: readonly (readonly [question: RegExp, answer: string])[]): Promise<void> {
  shell.stdin.isTTY = true;
  const done = setUp({ config: file, start: true }, shell, machine);
  const failed = done.then(
    () => undefined,
    (error) => error,
  );
  for (const [question, answer] of answers) {
    await Promise.race([
      vi.waitFor(() => expect(shell.written.stderr).toMatch(question), { timeout: 30_000 }),
      failed.then((error) => Promise.reject(error ?? new Error(`it ended before ${question}`))),
    ]);
    shell.written.stderr = '';
    shell.stdin.write(`${answer}\n`);
  }
  await done;
}

it('asks for what a site needs, and writes a configuration that the daemon takes', async () => {
  const root = join(temporaryFolder(), 'vendor-root.pem');
  using openssl = openOpenssl();
  writeFileSync(root, mintVendor(openssl).root.pem);
  await answered([
    [/Name or address of this machine.*\[controller\]/, 'gatehouse.hotel.example'],
    [/Serve the interface.*\[0\.0\.0\.0:8443\]/, 'everywhere'],
    [/expected host:port.*\nServe the interface/, ''],
    [/Encoders connect.*\[0\.0\.0\.0:8883\]/, '0.0.0.0:8443'],
    [/same.*\nEncoders connect/, '127.0.0.1:8884'],
    [/root certificate of the vendor/, '/nowhere/root.pem'],
    [/root\.pem.*\nPEM file with the root certificate/, root],
    [/notification service/, 'notifications.example'],
    [/mqtts:\/\/.*\nURL of the notification service/, 'mqtts://notifications.example:8883'],
    [/A50285BI.*\n.*\[nothing\]/, 'Modbus'],
    [/Sonoff_Zigbee.*\n.*\[zigbee\]/, 'lora'],
    [/Sonoff_Zigbee.*\n.*\[zigbee\]/, ''],
    [/Write this to .*gatehouse\.yaml\? \[y\/N\]/, 'y'],
  ]);
  const { http, encoders, upstream, links, zgates, networks } = readConfig(file);
  expect(http).toMatchObject({ listen: { host: '0.0.0.0', port: 8443 }, names: ['gatehouse.hotel.example'] });
  expect(encoders).toMatchObject({
    listen: { port: 8884 },
    endpoint: 'mqtts://gatehouse.hotel.example:8884',
    vendorRoots: [join(file, '../vendor-root.pem')],
  });
  expect(upstream).toMatchObject({ url: 'mqtts://notifications.example:8883' });
  expect(links).toMatchObject([
    { id: 'bus-1', protocol: 'modbus', options: { port: FTDI } },
    { id: 'zigbee-1', protocol: 'zigbee', options: { port: STICK } },
  ]);
  expect(zgates).toMatchObject([{ link: 'zigbee-1', networkId: networks[0]?.id }]);
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(shell.written.stdout).toContain('sudo gatehouse bus scan bus-1\n');
});

it('run again, changes what is asked for, and keeps comments, order and mode', async () => {
  await withoutQuestions({ link: [{ protocol: 'modbus', port: FTDI }] });
  const text = readFileSync(file, 'utf8').replace('links:', '# The basement.\nlinks:');
  writeFileSync(file, text, { mode: 0o600 });
  await withoutQuestions({ name: 'gatehouse.example', link: [{ protocol: 'osdp', port: '/dev/ttyS0' }] });
  expect(shell.written.stdout).toMatch(/^\+ {4}- gatehouse\.example$|^\+.*gatehouse\.example/m);
  const after = readFileSync(file, 'utf8');
  expect(after).toContain('# The basement.\nlinks:');
  const { http, links, encoders } = readConfig(file);
  expect(http.names).toEqual(['gatehouse.example', 'controller']);
  expect(encoders.endpoint).toBe('mqtts://gatehouse.example:8883');
  expect(links.map(({ id }) => id)).toEqual(['bus-1', 'bus-2']);

  shell.written.stdout = '';
  await withoutQuestions({ name: 'gatehouse.example', link: [{ protocol: 'osdp', port: '/dev/ttyS0' }] });
  expect(shell.written.stdout).toBe(`${file} says all of this already: nothing is changed.\n`);
  expect(readFileSync(file, 'utf8')).toBe(after);
});

it('writes nothing that the daemon would refuse, and nothing without a yes', async () => {
  const noPem = join(temporaryFolder(), 'root.pem');
  writeFileSync(noPem, 'no certificate');
  await expect(withoutQuestions({ vendorRoot: [noPem] })).rejects.toThrow(/vendorRoots/);
  await expect(withoutQuestions({ listen: 'everywhere' })).rejects.toThrow(/expected host:port/);
  await expect(withoutQuestions({ vendorRoot: ['/nowhere/root.pem'] })).rejects.toThrow('There is no file');
  await expect(withoutQuestions({ yes: false })).rejects.toMatchObject({ exitCode: EXIT.usage });
  const rest = [/Serve/, /Encoders/, /vendor/, /notification/, /A502/, /Sonoff/].map(
    (one) => [one, ''] as const,
  );
  const no = answered([[/Name or address/, ''], ...rest, [/Write this/, 'n']]);
  await expect(no).rejects.toThrow('Nothing was written.');
  expect(existsSync(file)).toBe(false);
  expect(existsSync(join(file, '../root.pem'))).toBe(false);
  writeFileSync(file, 'http:\n  listn: 1\n');
  await expect(withoutQuestions()).rejects.toThrow(/listn/);
  expect(readFileSync(file, 'utf8')).toBe('http:\n  listn: 1\n');
});

it('starts the service as root, and says what to do where it does not start', async () => {
  await withoutQuestions();
  expect(systemctl).toEqual([]);
  expect(shell.written.stdout).toContain('sudo systemctl enable --now gatehouse');
  shell = testShell({ clock: systemClock as TestShell['clock'], become: () => ({ [Symbol.dispose]() {} }) });
  await withoutQuestions({ name: 'two', start: false });
  expect(systemctl).toEqual([]);
  await withoutQuestions({ name: 'three' });
  expect(systemctl).toEqual(['enable gatehouse', 'restart gatehouse']);
  expect(shell.written.stdout).toContain('The service runs.');
  machine.systemctl = () => Promise.reject(new Error('failed'));
  await expect(withoutQuestions({ name: 'four' })).rejects.toThrow('journalctl -u gatehouse');
});

it('has the service that it started ask who is on each new bus, once its link is up', async () => {
  const become = () => ({ [Symbol.dispose]() {} });
  const clock = manualClock();
  shell = testShell({ clock, become });
  const asked: string[] = [];
  const answers: Record<string, (() => object)[]> = {
    'bus-1': [
      () => {
        throw new Refused('The link bus-1 is down.', []);
      },
      () => ({
        addresses: [{ address: 17, answered: true, identity: { hwId: 'IO-1', type: 'io' }, isNew: true }],
      }),
    ],
    'bus-2': [() => ({ addresses: [] })],
    'bus-3': [
      () => {
        throw new CommandFailed('The scan failed: the bus was closed');
      },
    ],
  };
  const client = {
    async call(method: string, path: string, body: { bus: string }) {
      asked.push(`${method} ${path} ${body.bus}`);
      return { status: 'done', progress: { percent: null }, result: answers[body.bus]?.shift()?.() };
    },
  } as unknown as Client;
  machine.openClient = ({ config }) => {
    expect(config).toBe(file);
    return client;
  };
  const ports = [FTDI, '/dev/ttyS1', '/dev/ttyS2', STICK];
  const link = ports.map((port) => ({
    protocol: port === STICK ? ('zigbee' as const) : ('modbus' as const),
    port,
  }));
  const done = withoutQuestions({ link });
  await vi.waitFor(() => expect(clock.sleepers()).toBe(1));
  await clock.advance(500);
  await done;
  // A coordinator is sent no frame of a bus.
  expect(asked).toEqual(['bus-1', 'bus-1', 'bus-2', 'bus-3'].map((bus) => `POST /network/rs485/scan ${bus}`));
  expect(shell.written.stdout).toMatch(/Who is on bus-1\?\nADDRESS.*\n17 +IO-1 +io +new\n/);
  expect(shell.written.stdout).toMatch(
    /Who is on bus-2\?\nNo one answers.*bus scan bus-2 --detect tries others\.\n/,
  );
  expect(shell.written.stdout).toMatch(/Who is on bus-3\?\nThe scan failed: the bus was closed\n/);
  const [, steps = ''] = shell.written.stdout.split('Next:');
  expect(steps).toContain('gatehouse bus scan bus-3\n');
  expect(steps).not.toMatch(/bus scan bus-[12]/);
});

it('takes links on the command line, and refuses what is none', async () => {
  const link = ['--link', `modbus=${FTDI}`, '--link', 'osdp=tcp://10.0.0.7:4001'];
  expect(await run(['setup', '--config', file, '--yes', '--no-start', ...link], shell)).toBe(0);
  expect(readConfig(file).links).toMatchObject([{ protocol: 'modbus' }, { protocol: 'osdp' }]);
  expect(shell.written.stdout).toContain('sudo gatehouse setup --vendor-root FILE (without it');
  expect(await run(['setup', '--config', file, '--yes', '--link', FTDI], shell)).toBe(EXIT.usage);
  expect(shell.written.stderr).toContain('expected PROTOCOL=PORT');
});

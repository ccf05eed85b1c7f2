/** docs/operations.md: its commands for doors, encoders and buses, executed on a site with simulated buses and an encoder. */
import { execFile } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { blockWith } from './operations-page.ts';
import { readPcapng } from './pcapng-reader.ts';
import { LOBBY, openRs485Site, READERS, type Rs485Site, waitFor } from './rs485-site.ts';

const ROOT = join(import.meta.dirname, '..');
const TIMEOUT_MS = 120_000;
const READER = '0a4748-1-4711';

let rs485: Rs485Site;
beforeAll(async () => {
  rs485 = await openRs485Site({ lobby: LOBBY, readers: READERS });
  const encoder = await rs485.site.addEncoder('desk-1');
  encoder.start();
  await waitFor(() => Promise.all(['IO-1', 'IO-2', READER].map((name) => rs485.device(name))));
  return () => rs485[Symbol.asyncDispose]();
}, TIMEOUT_MS);

/** As typed at the controller, by someone who says yes; the page's buses are those of this site. */
async function typed(script: string, more: Record<string, string> = {}): Promise<string> {
  const { daemon, directory } = rs485.site;
  const inFolder = { cwd: directory, env: { ...process.env, ...more } };
  const lines = [
    'sudo() { "$@"; }',
    'wireshark() { cat >shown.pcapng; }',
    `gatehouse() { GATEHOUSE_CONFIG="${directory}/gatehouse.yaml" "${process.execPath}" "${ROOT}/src/start.js" "$@"; }`,
    script
      .replaceAll('bus-1', 'lobby')
      .replaceAll('bus-3', 'readers')
      .replaceAll('https://gatehouse.hotel.example:8443', daemon.baseUrl)
      .replaceAll('gatehouse-root.crt', daemon.caFile)
      .replaceAll('/run/gatehouse/admin.sock', join(directory, 'admin.sock')),
  ];
  return (await promisify(execFile)('bash', ['-euc', lines.join('\n')], inFolder)).stdout;
}

it(
  'a door is made, bound to its relay and opened, and a card is written, by the commands in short',
  async () => {
    const [doors = '', bind = '', unlock = '', write = ''] = blockWith('sudo gatehouse doors add')
      .split('\n')
      .slice(-4);
    const { deviceId } = await rs485.device('IO-1');
    const made = await typed(doors);
    const doorId = /[\da-f-]{36}/.exec(made)?.[0] ?? made;
    await typed(bind.replace('DEVICE', deviceId).replace('DOOR', doorId));
    await waitFor(async () => expect(await rs485.state('IO-1')).toMatchObject({ inForce: true }));
    expect(await typed(`${unlock} --yes`)).toMatch(/open|confirmed/i);
    expect(await typed(write)).toContain('written');
  },
  TIMEOUT_MS,
);

it(
  'a bus is shown, scanned and traced',
  async () => {
    const [, status = ''] = blockWith('bus doctor bus-1').split('\n');
    expect(await typed(status)).toContain('lobby');
    // All addresses with all baud rates take minutes.
    const scans = blockWith('bus scan bus-1 --detect')
      .replace('--detect', '--detect --from 1 --to 1')
      .replace('--to 16', '--to 2');
    expect((await typed(scans)).match(/IO-1/g)?.length).toBeGreaterThanOrEqual(2);
    const traces = blockWith('bus trace bus-1 --seconds 10')
      .replace('--seconds 10', '--seconds 1')
      .replace('--file bus-1.pcapng', '--file bus-1.pcapng --count 4')
      .replace('--file -', '--file - --count 4')
      .replace('--decrypt', '--decrypt --seconds 1');
    expect(await typed(traces)).toMatch(/^\S+ > /m);
    for (const file of ['lobby.pcapng', 'shown.pcapng'])
      expect(readPcapng(readFileSync(join(rs485.site.directory, file))).packets).toHaveLength(4);
  },
  TIMEOUT_MS,
);

it(
  'a reader is given its key, then another address',
  async () => {
    await typed('sudo gatehouse osdp pair bus-3 1');
    const [set = ''] = blockWith('gatehouse osdp set').split('  ');
    expect(await typed(`${set} --yes`)).toMatch(/address 9/);
  },
  TIMEOUT_MS,
);

it(
  'a device takes the place of another one; metrics are read; a profile is checked',
  async () => {
    const { deviceId } = await rs485.device('IO-1');
    const { SERVICE_TOKEN, DEVICE_ID } = {
      SERVICE_TOKEN: rs485.site.tokens['service-tool'],
      DEVICE_ID: deviceId,
    };
    const replaced = await typed(blockWith('/replace -d').replace('GIO-00004217', 'IO-2'), {
      SERVICE_TOKEN,
      DEVICE_ID,
    });
    expect(JSON.parse(replaced)).toMatchObject({ deviceId, hwId: 'IO-2' });
    const [metrics = ''] = blockWith('--unix-socket').split('\n');
    expect(await typed(metrics)).toContain('gatehouse_encoders_connected 1');
    const profile = join(rs485.site.directory, 'our-board.yaml');
    copyFileSync(join(ROOT, 'config/profiles/gatehouse-io.yaml'), profile);
    const check = blockWith('bus check-profile').replace('/etc/gatehouse/our-board.yaml', profile);
    expect(await typed(check)).toMatch(/valid/);
  },
  TIMEOUT_MS,
);

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { folder, LOCK, NETWORK, OTHER_LOCK } from '../../test/drivers/zigbee/gateway.ts';
import { ARCHIVE_MAX_BYTES } from '../contract/zgate.ts';
import { prepareFiles } from './state-files.ts';

const record = (id: number, ieee: string) =>
  JSON.stringify({ id, type: 'EndDevice', ieeeAddr: `0x${ieee}`, nwkAddr: id, endpoints: {} });
const END = { epId: 1, inClusterList: [257], outClusterList: [25], clusters: {} };
/** open-coordinator-backup v1, as far as it matters here. */
const backup = (networkKey = NETWORK.networkKey, change = {}) =>
  JSON.stringify({
    metadata: { format: 'zigpy/open-coordinator-backup', version: 1 },
    coordinator_ieee: '00124b0014d9a001',
    pan_id: '1a62',
    extended_pan_id: NETWORK.extPanId,
    channel: 20,
    channel_mask: [11, 20],
    network_key: { key: networkKey, sequence_number: 0, frame_counter: 1 },
    devices: [],
    ...change,
  });

const NOW = Date.UTC(2026, 10, 22);

function prepare(directory: string, more: Partial<Parameters<typeof prepareFiles>[0]> = {}) {
  const nothing = { snapshot: null, restore: false, knownLocks: [], now: NOW };
  return prepareFiles({ directory, ids: NETWORK, ...nothing, ...more });
}

function archived(database: string, coordinator = backup(), networkKey = NETWORK.networkKey): Uint8Array {
  const directory = folder();
  writeFileSync(join(directory, 'database.db'), database);
  writeFileSync(join(directory, 'coordinator_backup.json'), coordinator);
  return prepare(directory, { ids: { ...NETWORK, networkKey } }).archive();
}

describe('the files of a network', () => {
  it('are for no one else, and none at first', () => {
    const directory = join(folder(), 'zigbee', 'state');
    const files = prepare(directory);
    expect(files).toMatchObject({ devices: 0, hasBackup: false, repairs: [] });
    expect(files.channel()).toBeUndefined();
    files.keepChannel(25);
    expect(files.channel()).toBe(25);
    const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
    expect([mode(directory), mode(join(directory, 'channel'))]).toEqual(['700', '600']);
  });

  it('come back from a snapshot when they are gone', () => {
    const database = [record(2, LOCK), record(3, OTHER_LOCK)].join('\n');
    const files = prepare(folder(), { snapshot: archived(database), knownLocks: [LOCK] });
    expect(files).toMatchObject({ devices: 2, hasBackup: true });
    expect(files.channel()).toBe(20);
    expect(readFileSync(files.databaseFile, 'utf8')).toBe(database);
    // The library compares the channels of its configuration with these.
    expect(JSON.parse(files.backup.read() ?? '').channel_mask).toEqual([20]);
  });

  it('have a frame counter beyond all that the coordinator may have sent since, when they are restored', () => {
    const day = 86_400_000;
    const madeAt = (date?: number) => {
      const internal = date === undefined ? {} : { internal: { date: new Date(date).toISOString() } };
      const metadata = { format: 'zigpy/open-coordinator-backup', version: 1, ...internal };
      return archived(record(2, LOCK), backup(NETWORK.networkKey, { metadata }));
    };
    const counterOf = (snapshot: Uint8Array, restore: boolean): number => {
      const files = prepare(folder(), { snapshot, restore });
      return JSON.parse(files.backup.read() ?? '').network_key.frame_counter;
    };
    expect(counterOf(madeAt(NOW - day), true)).toBe(1 + 100_000 + 4 * 86_400);
    expect(counterOf(madeAt(NOW + day), true)).toBe(100_001);
    expect(counterOf(madeAt(), true)).toBe(100_001);
    expect(counterOf(madeAt(NOW - 100_000 * day), true)).toBe(0xff_00_00_00);
    expect(counterOf(madeAt(NOW - day), false)).toBe(1);
  });

  it('are refused when doors have locks and no one knows of them', () => {
    expect(() => prepare(folder(), { knownLocks: [LOCK] })).toThrow('holds no device');
  });

  it('lose a damaged line, not the lock of it', () => {
    const directory = folder();
    const snapshot = archived([record(2, LOCK), record(3, OTHER_LOCK)].join('\n'));
    writeFileSync(join(directory, 'database.db'), `${record(2, LOCK)}\n{"id":3,"type":"EndDev\0`);
    const files = prepare(directory, { snapshot });
    expect(files.devices).toBe(2);
    expect(files.repairs).toEqual([
      ...['1 damaged lines of the database were left out', '1 devices were put back from the snapshot'],
      'the backup of the coordinator was put back from the snapshot',
    ]);
    expect(readFileSync(files.databaseFile, 'utf8')).toContain(OTHER_LOCK);
  });

  it.each<[string, object]>([
    ['no endpoints', { endpoints: undefined }],
    ['endpoints that are none', { endpoints: { 1: {} } }],
    ['an endpoint without clusters', { endpoints: { 1: { ...END, clusters: undefined } } }],
    ['a list of clusters that is none', { endpoints: { 1: { ...END, inClusterList: null } } }],
    ['no address', { ieeeAddr: undefined }],
    ['an address that is none', { ieeeAddr: 7 }],
    ['a network address that is none', { nwkAddr: 'x' }],
    ['a type that is none', { type: 'EndDev' }],
    ['no number', { id: null }],
    ['the number of another', { id: 2 }],
    ['the address of another', { ieeeAddr: `0x${LOCK}` }],
  ])('get a record with %s from the snapshot: the library would not start on it', (_, change) => {
    const directory = folder();
    const whole = [record(2, LOCK), record(3, OTHER_LOCK)].join('\n');
    const broken = JSON.stringify({ ...JSON.parse(record(3, OTHER_LOCK)), ...change });
    writeFileSync(join(directory, 'database.db'), `${record(2, LOCK)}\n${broken}`);
    const files = prepare(directory, { snapshot: archived(whole) });
    expect(readFileSync(files.databaseFile, 'utf8')).toBe(whole);
  });

  it.each(['\0'.repeat(512), '{"id":2,"type":"EndDev', '[]\n7'])(
    'are refused when nothing of the database can be read, known locks or not',
    (text) => {
      const directory = folder();
      writeFileSync(join(directory, 'database.db'), text);
      expect(() => prepare(directory)).toThrow('is damaged and there is no snapshot');
      expect(prepare(directory, { snapshot: archived(record(2, LOCK)) }).devices).toBe(1);
    },
  );

  it('do not take a device back that has left since', () => {
    const directory = folder();
    const snapshot = archived([record(2, LOCK), record(3, OTHER_LOCK)].join('\n'));
    writeFileSync(join(directory, 'database.db'), record(2, LOCK));
    expect(prepare(directory, { snapshot }).devices).toBe(1);
  });

  it.each<[string, object]>([
    ['of no known form', { metadata: undefined }],
    ['without its devices', { devices: 'none' }],
    ['with a device that is none', { devices: [{ ieee_address: 7 }] }],
    ['with a counter that is none', { network_key: { key: NETWORK.networkKey, frame_counter: -5 } }],
  ])('get a backup %s from the snapshot: the library would not start on it', (_, change) => {
    const directory = folder();
    writeFileSync(join(directory, 'database.db'), record(2, LOCK));
    writeFileSync(join(directory, 'coordinator_backup.json'), backup(NETWORK.networkKey, change));
    const files = prepare(directory, { snapshot: archived(record(2, LOCK)) });
    expect(files.repairs).toEqual(['the backup of the coordinator was put back from the snapshot']);
    expect(JSON.parse(files.backup.read() ?? '')).toMatchObject({ devices: [] });
  });

  it('keep no key in clear: the backup that a former version has left is sealed, and its file removed', () => {
    const directory = folder();
    writeFileSync(join(directory, 'database.db'), record(2, LOCK));
    for (const name of ['coordinator_backup.json', 'coordinator_backup.json.tmp'])
      writeFileSync(join(directory, name), backup());
    expect(prepare(directory)).toMatchObject({ hasBackup: true, repairs: [] });
    const again = prepare(directory);
    expect(JSON.parse(again.backup.read() ?? '')).toMatchObject({ coordinator_ieee: '00124b0014d9a001' });
    const names = readdirSync(directory).sort();
    expect(names).toEqual(['coordinator_backup.sealed', 'database.db']);
    for (const name of names)
      expect(readFileSync(join(directory, name), 'latin1')).not.toContain(NETWORK.networkKey);
  });

  it('are refused beside the backup of another network, which stays as it is', () => {
    const directory = folder();
    writeFileSync(join(directory, 'coordinator_backup.json'), backup('00'.repeat(16)));
    expect(() => prepare(directory)).toThrow(expect.objectContaining({ code: 'REFUSED' }));
    expect(readdirSync(directory)).toEqual(['coordinator_backup.json']);
  });

  it('take no sealed backup that was changed, nor one under another key', () => {
    const directory = folder();
    const files = prepare(directory, { snapshot: archived(record(2, LOCK)) });
    const sealed = readFileSync(files.backup.file);
    const refusal = expect.objectContaining({ code: 'REFUSED' });
    const other = { ids: { ...NETWORK, networkKey: '00'.repeat(16) } };
    expect(() => prepare(directory, other)).toThrow(refusal);
    sealed.writeUInt8(sealed.readUInt8(40) ^ 1, 40);
    writeFileSync(files.backup.file, sealed);
    expect(() => prepare(directory)).toThrow(refusal);
    writeFileSync(files.backup.file, 'short');
    expect(() => prepare(directory)).toThrow(refusal);
  });

  it('take no backup of another network', () => {
    const other = archived(record(2, LOCK), backup('00'.repeat(16)), '00'.repeat(16));
    expect(prepare(folder(), { snapshot: other }).hasBackup).toBe(false);
  });

  it.each([Uint8Array.of(1, 2, 3), new Uint8Array()])('refuse a snapshot that is none', (snapshot) => {
    expect(() => prepare(folder(), { snapshot })).toThrow('cannot be read');
  });

  it('fit one event with a thousand locks', () => {
    const directory = folder();
    const entry = (id: number) => {
      const hex = (id * 2_654_435_761).toString(16).padStart(16, '0');
      const endpoints = {
        1: { epId: 1, inClusterList: [0, 1, 3, 9, 257, 0xfc11], outClusterList: [25], clusters: {} },
      };
      const known = { lastSeen: 1_790_000_000_000 + id * 7_919, meta: { gatehouse: { configuration: 1 } } };
      return JSON.stringify({
        id,
        type: 'EndDevice',
        ieeeAddr: `0x${hex}`,
        nwkAddr: id * 13,
        endpoints,
        ...known,
      });
    };
    const lines = Array.from({ length: 1_000 }, (_, index) => entry(index + 2));
    writeFileSync(join(directory, 'database.db'), lines.join('\n'));
    const { archive } = prepare(directory);
    expect(archive().length).toBeLessThan(ARCHIVE_MAX_BYTES / 2);
    expect(JSON.parse(gunzipSync(archive()).toString()).database.split('\n')).toHaveLength(1_000);
  });
});

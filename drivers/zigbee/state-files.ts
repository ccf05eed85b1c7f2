/**
 * The files of the network: the database of the library (one JSON record a line) and the backup of the coordinator, which
 * holds all keys and is sealed. They are archived into one snapshot, and put back from it when they are gone or damaged.
 */
import { chmodSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { DriverError } from '../contract/driver.ts';
import { channel as channelSchema } from '../contract/settings.ts';
import { ARCHIVE_MAX_BYTES } from '../contract/zgate.ts';
import {
  backupOf,
  belongs,
  type CoordinatorMake,
  extPanIdFor,
  type NetworkIds,
  seal,
  unseal,
} from './coordinator-backup.ts';
import { type KeptFile, keptFile, readFromDisk } from './kept-files.ts';

/**
 * A restored coordinator whose frame counter is not above its last one is acknowledged by every lock and obeyed by none
 * (Zigbee specification 05-3474-22, 4.3.1.2). So many frames a coordinator sends in a second at most, day and night:
 * link status, many-to-one routes and the commands to a hundred locks. The counter lasts for 34 years at this rate.
 */
const FRAMES_A_SECOND = 4;
/** For a clock that was wrong, and for the frames since the start of the restore before. */
const FRAMES_SPARE = 100_000;
const FRAME_COUNTER_MAX = 0xff_00_00_00;
const PRIVATE_FOLDER = 0o700;
/** The library's own file, which held every key in clear; versions before kept it. */
const CLEAR_BACKUP = 'coordinator_backup.json';
/** Of an archive: what a thousand locks unpack to, and twice that. */
const UNPACKED_MAX_BYTES = 8_000_000;

const packed = z.object({ database: z.string(), backup: z.string().nullable() });

const clusterIds = z.array(z.int());
const endpoint = z.looseObject({
  epId: z.int(),
  inClusterList: clusterIds,
  outClusterList: clusterIds,
  clusters: z.record(z.string(), z.looseObject({})),
});
/** The library takes any JSON for a record, and does not start on one without these. */
const deviceSchema = z.looseObject({
  id: z.int(),
  type: z.enum(['Coordinator', 'Router', 'EndDevice', 'Unknown', 'GreenPower']),
  ieeeAddr: z.string().regex(/^0x[0-9a-f]{16}$/),
  nwkAddr: z.int().min(0).max(0xff_ff).nullish(),
  endpoints: z.record(z.string(), endpoint),
});
const groupSchema = z.looseObject({ id: z.int(), type: z.literal('Group'), ieeeAddr: z.undefined() });
const recordSchema = z.union([deviceSchema, groupSchema]);
type DatabaseRecord = z.infer<typeof recordSchema>;

/** The backup of the coordinator: open-coordinator-backup v1, sealed in its file. */
export interface BackupStore {
  readonly file: string;
  /** Undefined when there is none that can be read. */
  read(): string | undefined;
  /** On the disk now, or when it takes it. Never throws. */
  write(text: string): void;
  /** On the disk when it returns. Throws REFUSED. */
  store(text: string): void;
}

export interface StateFiles {
  databaseFile: string;
  backup: BackupStore;
  /** The channel the network was on last, by the file that says so, else by the backup; undefined: none was formed. */
  channel(): number | undefined;
  /** The network is on it. Never throws. */
  keepChannel(channel: number): void;
  /** The network is to move to it. Throws REFUSED, with nothing changed, when that cannot be stored. */
  storeChannel(channel: number): void;
  /** The extended PAN id of the network as the library is to be given it for a coordinator of this make. */
  extPanId(make: CoordinatorMake): string;
  /** Both as they were written last. */
  archive(): Uint8Array<ArrayBuffer>;
}

export interface Prepared extends StateFiles {
  /** Locks and other devices in the database. */
  devices: number;
  /** There is a backup of this network's coordinator. */
  hasBackup: boolean;
  /** What was done, for the log. */
  repairs: string[];
}

/**
 * Readies the files for a start. Throws REFUSED when locks are known and the network would come up without any.
 * `restore`: what is on the disk gives way to the snapshot, and has to be on the disk before the coordinator is: if the
 * next attempt found the frame counter of before, locks would obey it no more. All else is stored later when the disk does
 * not take it now: the next start would do it again.
 */
export function prepareFiles(options: {
  directory: string;
  ids: NetworkIds;
  snapshot: Uint8Array | null;
  restore: boolean;
  knownLocks: readonly string[];
  /** Wall time, epoch milliseconds. */
  now: number;
}): Prepared {
  const { directory, ids, snapshot } = options;
  mkdirSync(directory, { recursive: true, mode: PRIVATE_FOLDER });
  if ((statSync(directory).mode & 0o777) !== PRIVATE_FOLDER) chmodSync(directory, PRIVATE_FOLDER);
  const files = stateFiles(directory, ids);
  const { backup, databaseFile } = files;
  const databaseKept = keptFile(databaseFile);
  const clearFile = join(directory, CLEAR_BACKUP);
  const archived = snapshot && unpack(snapshot);
  if (options.restore && !archived)
    throw new DriverError('INVALID_OPTIONS', 'there is no snapshot of this network that could be restored');
  const repairs: string[] = [];
  const found = options.restore ? undefined : databaseKept.read()?.toString('utf8');
  const database = mended(found, archived?.database, repairs);
  if (database.records.length === 0 && database.isDamaged)
    throw new DriverError(
      'REFUSED',
      `${databaseFile} is damaged and there is no snapshot of it: put the folder back from a backup, or delete the file and have every lock join again`,
    );
  if (database.records.length === 0 && options.knownLocks.length > 0) {
    throw new DriverError(
      'REFUSED',
      `${databaseFile} holds no device and there is no snapshot of it, but ${options.knownLocks.length} doors have locks on this gateway: put the folder back from a backup, or replace the locks of these doors`,
    );
  }
  const put = options.restore ? 'store' : 'write';
  if (database.changed) databaseKept[put](database.records.map((one) => JSON.stringify(one)).join('\n'));
  const kept = options.restore ? undefined : (backup.read() ?? readFromDisk(clearFile)?.toString('utf8'));
  const isOurs = (text: string | null | undefined) => text != null && belongs(text, ids);
  const hasBackup = isOurs(kept) || isOurs(archived?.backup);
  if (kept !== undefined && isOurs(kept) && backup.read() === undefined) backup.write(kept);
  if (!isOurs(kept) && archived?.backup != null && isOurs(archived.backup)) {
    backup[put](archived.backup);
    repairs.push('the backup of the coordinator was put back from the snapshot');
  }
  // Without a backup the library forms the network of the configuration on whatever stick it finds.
  const foreign = existsSync(backup.file) ? backup.file : kept && clearFile;
  if (!hasBackup && !options.restore && foreign)
    throw new DriverError(
      'REFUSED',
      `${foreign} is damaged, or of another network, and there is no snapshot of this network: put the folder and the vault key back from one backup, or move the file away to form this network on the coordinator`,
    );
  // The locks followed a move that the snapshot may be older than.
  if (hasBackup) setChannel(backup, options.restore ? files.channel() : undefined);
  if (hasBackup && options.restore) raiseFrameCounter(backup, options.now);
  const isSealed = existsSync(backup.file) && keptFile(backup.file).unstored() === undefined;
  if (hasBackup && isSealed) removeClear(clearFile, repairs);
  return { ...files, devices: database.records.length, hasBackup, repairs };
}

function removeClear(clearFile: string, repairs: string[]): void {
  try {
    for (const file of ['', '.tmp', '.new'].map((suffix) => clearFile + suffix))
      if (existsSync(file)) rmSync(file, { force: true });
  } catch {
    repairs.push(`${clearFile} holds every key in clear, and could not be removed: remove it`);
  }
}

function stateFiles(directory: string, ids: NetworkIds): StateFiles {
  const databaseFile = join(directory, 'database.db');
  const backup = backupStore(keptFile(join(directory, 'coordinator_backup.sealed')), ids.networkKey);
  const channelFile = keptFile(join(directory, 'channel'));
  let written = channelSchema.safeParse(Number(channelFile.read() ?? Number.NaN)).data;
  return {
    databaseFile,
    backup,
    channel: () => written ?? backupOf(backup.read())?.channel,
    keepChannel(channel) {
      if (channel === written) return;
      channelFile.write(String(channel));
      written = channel;
    },
    storeChannel(channel) {
      channelFile.store(String(channel));
      written = channel;
    },
    extPanId: (make) => extPanIdFor(make, backup.read(), ids),
    archive() {
      const both = {
        database: keptFile(databaseFile).read()?.toString('utf8') ?? '',
        backup: backup.read() ?? null,
      };
      const archive = gzipSync(JSON.stringify(both));
      if (archive.length <= ARCHIVE_MAX_BYTES) return archive;
      throw new RangeError(`a snapshot of ${archive.length} bytes is too large`);
    },
  };
}

function backupStore(file: KeptFile, networkKey: string): BackupStore {
  return {
    file: file.path,
    read() {
      const sealed = file.read();
      return sealed && unseal(sealed, networkKey);
    },
    write: (text) => file.write(seal(text, networkKey)),
    store: (text) => file.store(seal(text, networkKey)),
  };
}

/** The records that can be read; those of damaged lines come back from the snapshot where it has them. */
function mended(
  found: string | undefined,
  archived: string | undefined,
  repairs: string[],
): { records: DatabaseRecord[]; changed: boolean; isDamaged: boolean } {
  const lines = (found ?? '').split('\n').filter((line) => line !== '');
  const records = distinct(lines.flatMap((line) => recordOf(line) ?? []));
  const damaged = lines.length - records.length;
  if (found !== undefined && damaged === 0 && (records.length > 0 || !archived))
    return { records, changed: false, isDamaged: false };
  const ids = new Set(records.map(({ id }) => id));
  const addresses = new Set(records.map(({ ieeeAddr }) => ieeeAddr));
  const missing = (archived ?? '')
    .split('\n')
    .flatMap((line) => recordOf(line) ?? [])
    .filter(({ id, ieeeAddr }) => !ids.has(id) && !addresses.has(ieeeAddr));
  if (damaged > 0) repairs.push(`${damaged} damaged lines of the database were left out`);
  if (missing.length > 0) repairs.push(`${missing.length} devices were put back from the snapshot`);
  const changed = damaged > 0 || missing.length > 0;
  return { records: [...records, ...missing], changed, isDamaged: damaged > 0 };
}

/** Of two records with one number the library takes the later, and forgets the other lock. */
function distinct(records: readonly DatabaseRecord[]): DatabaseRecord[] {
  const taken = new Set<unknown>();
  return records.filter(({ id, ieeeAddr = id }) => {
    if (taken.has(id) || taken.has(ieeeAddr)) return false;
    taken.add(id).add(ieeeAddr);
    return true;
  });
}

function recordOf(line: string): DatabaseRecord | undefined {
  return recordSchema.safeParse(json(line)).data;
}

/** The library restores only a backup that lists the channels it is started with: the one the network is on. */
function setChannel(store: BackupStore, channelNow: number | undefined): void {
  const backup = backupOf(store.read());
  if (!backup) return;
  const channel = channelNow ?? backup.channel;
  if (channel === backup.channel && JSON.stringify(backup.channel_mask) === JSON.stringify([channel])) return;
  store.write(JSON.stringify({ ...backup, channel, channel_mask: [channel] }));
}

/** Beyond every frame that the coordinator may have sent since the backup was made. */
function raiseFrameCounter(store: BackupStore, now: number): void {
  const backup = backupOf(store.read());
  if (!backup) return;
  const madeAt = Date.parse(backup.metadata.internal?.date ?? '');
  const seconds = Number.isNaN(madeAt) ? 0 : Math.max(0, Math.floor((now - madeAt) / 1_000));
  const frames = FRAMES_SPARE + FRAMES_A_SECOND * seconds;
  const frame_counter = Math.min(backup.network_key.frame_counter + frames, FRAME_COUNTER_MAX);
  store.store(JSON.stringify({ ...backup, network_key: { ...backup.network_key, frame_counter } }));
}

function unpack(archive: Uint8Array): z.infer<typeof packed> {
  try {
    const text = gunzipSync(archive, { maxOutputLength: UNPACKED_MAX_BYTES }).toString('utf8');
    return packed.parse(JSON.parse(text));
  } catch (error) {
    throw new DriverError('INVALID_OPTIONS', 'the snapshot of this network cannot be read', { cause: error });
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

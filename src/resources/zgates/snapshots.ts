/**
 * What a gateway is started with, so that it is what it was: the secrets of its network, drawn once for good, and a
 * snapshot of all that the driver keeps in files. Both are sealed under a key that no backup of the database holds.
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { DriverEvent } from '../../../drivers/contract/driver.ts';
import { snapshot } from '../../../drivers/contract/zgate.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { ZgateContext } from './context.ts';
import { existing, type SnapshotRow } from './table.ts';

/** One an hour, and one for each lock that joins or leaves: a day, or an evening of commissioning. */
const SNAPSHOTS_KEPT = 20;
/** In the place of the number of a snapshot, which begin with 1: a new network goes on the coordinator. */
const NEW_NETWORK = 0;
/** IEEE 802.15.4: 0xffff is a broadcast; Zigbee specification R22, 3.6.1.3: 0xfffe is none. */
const PAN_ID_MAX = 0xff_fd;
const KEY_BYTES = 16;
const EXTENDED_PAN_ID_BYTES = 8;

const secretsSchema = z.object({ panId: z.int(), extPanId: z.string(), networkKey: z.string() });
export type NetworkSecrets = z.infer<typeof secretsSchema>;

export interface Snapshot {
  number: number;
  takenAt: string;
  locks: number;
  hwId: string;
  zigbeeChannel: number | null;
  bytes: number;
}

export interface RestoreWanted {
  /** Its number; absent: the newest. */
  snapshot?: number | undefined;
  /** Of one that was made with a coordinator of the other make, the link keys of locks are left out. */
  withoutKeys?: boolean | undefined;
  /** In the place of a snapshot: of a gateway that has none, also where the coordinator carries a network of another one. */
  newNetwork?: boolean | undefined;
}

/** Which snapshot goes to the coordinator. */
export interface Restored {
  deviceId: string;
  /** Null: a new network. */
  snapshot: number | null;
  takenAt: string | null;
  locks: number;
}

export interface Snapshots {
  /** For gateways that have none yet. */
  drawSecrets(declared: ZgateContext['declared']): Promise<void>;
  /** For the options of its link. */
  startOf(deviceId: string): {
    network: NetworkSecrets;
    snapshot: Uint8Array | null;
    restore: boolean;
    withoutKeys: boolean;
    newNetwork: boolean;
  };
  list(deviceId: string): Snapshot[];
  /** The network of a snapshot, the newest by default, goes to the coordinator that is there now. */
  restore(deviceId: string, wanted: RestoreWanted, caller: Caller): Promise<Restored>;
  /** The link is up: what was to be restored is. It starts once more, or it would restore again when it breaks. */
  linkUp(linkId: string): Promise<void>;
  /** Resolves when it is durable: true, or false when it is none of ours. */
  event(linkId: string, event: DriverEvent): Promise<boolean>;
}

export async function openSnapshots(options: ZgateContext): Promise<Snapshots> {
  const { database, table, audit, clock, log, vault } = options;
  await drawSecrets(options, options.declared);

  function secretsOf(deviceId: string): NetworkSecrets {
    const row = table.network.get(deviceId);
    if (!row) throw new Error(`gateway ${deviceId} has no network secrets`);
    return secretsSchema.parse(JSON.parse(vault.open(row.sealed, secretsContext(deviceId)).toString()));
  }

  function note(
    deviceId: string,
    { principal, correlationId }: Caller,
    outcome: string,
    detail: object,
  ): void {
    const entry = { action: 'zgate.restore', object: `zgate/${deviceId}`, outcome, detail: { ...detail } };
    audit.record({ ...entry, principal, correlationId });
  }

  return {
    drawSecrets: (declared) => drawSecrets(options, declared),

    startOf(deviceId) {
      const network = secretsOf(deviceId);
      const row = table.network.get(deviceId);
      const wanted = row?.restore_seq ?? null;
      const archive = readable(options, deviceId, wanted ?? undefined)?.archive ?? null;
      const withoutKeys = row?.restore_without_keys === 1;
      const restore = wanted !== null && archive !== null;
      return { network, snapshot: archive, restore, withoutKeys, newNetwork: wanted === NEW_NETWORK };
    },

    list: (deviceId) =>
      table.snapshots.all(deviceId).map(({ seq, taken_at, locks, hw_id, zigbee_channel, bytes }) => ({
        number: seq,
        takenAt: new Date(taken_at).toISOString(),
        locks,
        hwId: hw_id,
        zigbeeChannel: zigbee_channel,
        bytes,
      })),

    async restore(deviceId, { snapshot: number, withoutKeys = false, newNetwork = false }, caller) {
      const { link } = existing(table, deviceId);
      const one = newNetwork ? noneOf(options, deviceId) : chosen(options, deviceId, number);
      await database.commit(() => {
        table.setRestore.run(one?.seq ?? NEW_NETWORK, withoutKeys ? 1 : 0, deviceId);
        const of = one ? { snapshot: one.seq, locks: one.locks } : { newNetwork };
        note(deviceId, caller, 'accepted', { ...of, ...(withoutKeys && { withoutKeys }) });
      });
      options.field.restart(link);
      const takenAt = one ? new Date(one.taken_at).toISOString() : null;
      return { deviceId, snapshot: one?.seq ?? null, takenAt, locks: one?.locks ?? 0 };
    },

    async linkUp(linkId) {
      const deviceId = options.gatewayOfLink.get(linkId);
      const number = deviceId === undefined ? null : (table.network.get(deviceId)?.restore_seq ?? null);
      if (deviceId === undefined || number === null) return;
      const isRestored = await database.commit(() => {
        // Another one may be wanted by now.
        if (table.network.get(deviceId)?.restore_seq !== number) return false;
        table.setRestore.run(null, 0, deviceId);
        const of = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
        note(deviceId, of, 'done', number === NEW_NETWORK ? { newNetwork: true } : { snapshot: number });
        return true;
      });
      if (!isRestored) return;
      log.info(
        { gateway: deviceId, link: linkId },
        number === NEW_NETWORK ? 'a new network was formed' : 'the network of a gateway was restored',
      );
      options.field.restart(linkId);
    },

    async event(linkId, { id, kind, data }) {
      const deviceId = options.gatewayOfLink.get(linkId);
      if (deviceId === undefined || kind !== 'snapshot') return false;
      const { data: parsed } = snapshot.safeParse(data);
      if (!parsed) {
        log.warn({ link: linkId }, 'a gateway sent a snapshot of an unknown form; it was dropped');
        return true;
      }
      const { archive, locks, hwId, zigbeeChannel } = parsed;
      const sealed = vault.seal(archive, snapshotContext(deviceId));
      await database.commit(() => {
        const bytes = archive.length;
        table.insertSnapshot.run(deviceId, id, clock.now(), locks, hwId, zigbeeChannel, bytes, sealed);
        table.pruneSnapshots.run(deviceId, deviceId, SNAPSHOTS_KEPT, deviceId);
      });
      return true;
    },
  };
}

/** The newest without a number. One that a disk has damaged is as good as none, and no reason to leave a gateway down. */
function readable(
  { table, vault, log }: ZgateContext,
  deviceId: string,
  number: number | undefined,
): { row: SnapshotRow; archive: Uint8Array } | undefined {
  for (const row of table.snapshots.all(deviceId)) {
    const kept =
      number === undefined || row.seq === number ? table.sealedSnapshot.get(deviceId, row.seq) : undefined;
    if (!kept) continue;
    try {
      return { row, archive: new Uint8Array(vault.open(kept.sealed, snapshotContext(deviceId))) };
    } catch {
      log.warn(
        { gateway: deviceId, snapshot: row.seq },
        'a snapshot of a network is damaged: look at the disk',
      );
    }
  }
  return undefined;
}

/** Throws ALREADY_EXISTS. */
function noneOf({ table }: ZgateContext, deviceId: string): undefined {
  if (table.snapshots.all(deviceId).length > 0)
    throw new GatehouseError(
      'ALREADY_EXISTS',
      'The gateway has a network of its own: gatehouse zgate restore puts it on the coordinator.',
    );
}

/** Throws NOT_FOUND. */
function chosen(options: ZgateContext, deviceId: string, number: number | undefined): SnapshotRow {
  const found = readable(options, deviceId, number);
  if (found) return found.row;
  const which =
    number === undefined ? 'no snapshot that can be read' : `no snapshot ${number} that can be read`;
  throw new GatehouseError('NOT_FOUND', `The gateway has ${which}: gatehouse zgate list names those it has.`);
}

async function drawSecrets(
  { database, table, vault }: ZgateContext,
  declared: ZgateContext['declared'],
): Promise<void> {
  const without = declared.filter(({ deviceId }) => !table.network.get(deviceId));
  if (without.length === 0) return;
  await database.commit(() => {
    for (const { deviceId } of without) {
      const secrets: NetworkSecrets = {
        panId: randomInt(1, PAN_ID_MAX + 1),
        extPanId: randomBytes(EXTENDED_PAN_ID_BYTES).toString('hex'),
        networkKey: randomBytes(KEY_BYTES).toString('hex'),
      };
      const plain = Buffer.from(JSON.stringify(secrets));
      table.insertNetwork.run(deviceId, vault.seal(plain, secretsContext(deviceId)));
    }
  });
}

const secretsContext = (deviceId: string) => `zgate network ${deviceId}`;
const snapshotContext = (deviceId: string) => `zgate snapshot ${deviceId}`;

/**
 * What a gateway is started with, so that it is what it was: the secrets of its network, drawn once for good, and a
 * snapshot of all that the driver keeps in files. Both are sealed under a key that no backup of the database holds.
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { DriverEvent } from '../../../drivers/contract/driver.ts';
import { carriedNetwork, snapshot } from '../../../drivers/contract/zgate.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { ZgateContext } from './context.ts';
import { linkOf } from './reach.ts';
import type { ZgateState } from './schema.ts';
import { existing, type SnapshotRow, type ZgateRow } from './table.ts';

/** One an hour, and one for each lock that joins or leaves: a day, or an evening of commissioning. */
const SNAPSHOTS_KEPT = 20;
/** In the place of the number of a snapshot, which begin with 1: a new network goes on the coordinator. */
const NEW_NETWORK = 0;
/** An order stands for this time: the person who gave it is at the coordinator. */
const ORDER_MS = 15 * 60_000;
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

export interface Orders {
  /** What is to be put on the coordinator; null: nothing. */
  wanted(deviceId: string): ZgateState['restore'];
  /** The network of a snapshot, the newest by default, goes to the coordinator that is there now. */
  restore(deviceId: string, wanted: RestoreWanted, caller: Caller): Promise<Restored>;
  /** Throws NOT_FOUND. */
  withdrawRestore(deviceId: string, caller: Caller): Promise<{ deviceId: string; withdrawn: boolean }>;
}

export interface Snapshots extends Orders {
  /** Draws secrets for gateways that have none. Ends orders of gateways that left the configuration, and orders that an earlier version stored. */
  declare(declared: ZgateContext['declared']): Promise<void>;
  /** For the options of its link. */
  startOf(deviceId: string): {
    network: NetworkSecrets;
    snapshot: Uint8Array | null;
    restore: boolean;
    withoutKeys: boolean;
    newNetwork: string | null;
    askedUntil: number | null;
  };
  list(deviceId: string): Snapshot[];
  /** The link is up: what was to be restored is. It starts once more, or it would restore again when it breaks. */
  linkUp(linkId: string): Promise<void>;
  /** Resolves when it is durable: true, or false when it is none of ours. */
  event(linkId: string, event: DriverEvent): Promise<boolean>;
}

export async function openSnapshots(options: ZgateContext): Promise<Snapshots> {
  const { database, table, clock, log, vault } = options;
  await declare(options, options.declared);

  function secretsOf(deviceId: string): NetworkSecrets {
    const row = table.network.get(deviceId);
    if (!row) throw new Error(`gateway ${deviceId} has no network secrets`);
    return secretsSchema.parse(JSON.parse(vault.open(row.sealed, secretsContext(deviceId)).toString()));
  }

  return {
    ...openOrders(options),
    declare: (declared) => declare(options, declared),

    startOf(deviceId) {
      const network = secretsOf(deviceId);
      const order = orderOf(options, deviceId);
      const archive = readable(options, deviceId, order?.number)?.archive ?? null;
      return {
        network,
        snapshot: archive,
        restore: order !== undefined && archive !== null,
        withoutKeys: order?.withoutKeys ?? false,
        newNetwork: order?.newNetwork ?? null,
        askedUntil: order?.until ?? null,
      };
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

    async linkUp(linkId) {
      const deviceId = options.gatewayOfLink.get(linkId);
      const number = deviceId === undefined ? undefined : orderOf(options, deviceId)?.number;
      if (deviceId === undefined || number === undefined) return;
      const isRestored = await database.commit(() => {
        // Another one may be wanted by now.
        if (table.network.get(deviceId)?.restore_seq !== number) return false;
        table.endRestore.run(deviceId);
        const of = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
        record(
          options,
          deviceId,
          of,
          'done',
          number === NEW_NETWORK ? { newNetwork: true } : { snapshot: number },
        );
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

/** What somebody wants on a coordinator. */
function openOrders(options: ZgateContext): Orders {
  const { database, table, clock } = options;
  return {
    wanted(deviceId) {
      const order = orderOf(options, deviceId);
      if (!order) return null;
      const { number, newNetwork, until } = order;
      const snapshot = number === NEW_NETWORK ? null : number;
      return { snapshot, newNetwork, until: new Date(until).toISOString() };
    },

    async restore(deviceId, { snapshot: number, withoutKeys = false, newNetwork = false }, caller) {
      const row = existing(table, deviceId);
      const over = newNetwork ? foreignOn(options, row) : null;
      const one = over === null ? chosen(options, deviceId, number) : undefined;
      await database.commit(() => {
        const seq = one?.seq ?? NEW_NETWORK;
        table.setRestore.run(seq, withoutKeys ? 1 : 0, clock.now(), over, deviceId);
        const of = one ? { snapshot: one.seq, locks: one.locks } : { newNetwork, over };
        record(options, deviceId, caller, 'accepted', { ...of, ...(withoutKeys && { withoutKeys }) });
      });
      options.field.restart(row.link);
      const takenAt = one ? new Date(one.taken_at).toISOString() : null;
      return { deviceId, snapshot: one?.seq ?? null, takenAt, locks: one?.locks ?? 0 };
    },

    async withdrawRestore(deviceId, caller) {
      const { link } = existing(table, deviceId);
      if (!orderOf(options, deviceId)) return { deviceId, withdrawn: false };
      await database.commit(() => {
        table.endRestore.run(deviceId);
        record(options, deviceId, caller, 'withdrawn', {});
      });
      options.field.restart(link);
      return { deviceId, withdrawn: true };
    },
  };
}

function record(
  { audit }: ZgateContext,
  deviceId: string,
  { principal, correlationId }: Caller,
  outcome: string,
  detail: object,
): void {
  const entry = { action: 'zgate.restore', object: `zgate/${deviceId}`, outcome, detail: { ...detail } };
  audit.record({ ...entry, principal, correlationId });
}

interface Order {
  number: number;
  withoutKeys: boolean;
  newNetwork: string | null;
  /** Epoch milliseconds. */
  until: number;
}

/** Undefined: nothing is wanted, or no longer. A clock that was set back ends it as well. */
function orderOf({ table, clock }: ZgateContext, deviceId: string): Order | undefined {
  const row = table.network.get(deviceId);
  const { restore_seq: number = null, restore_at: at = null, restore_over: newNetwork = null } = row ?? {};
  const now = clock.now();
  if (number === null || at === null || at > now || now >= at + ORDER_MS) return undefined;
  return { number, withoutKeys: row?.restore_without_keys === 1, newNetwork, until: at + ORDER_MS };
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

/** The network of another gateway that its coordinator carries now. Throws ALREADY_EXISTS, DEVICE_OFFLINE. */
function foreignOn(options: ZgateContext, row: ZgateRow): string {
  const link = linkOf(row, options);
  if (link?.up || options.table.snapshots.all(row.device_id).length > 0)
    throw new GatehouseError(
      'ALREADY_EXISTS',
      'The gateway has a network of its own: gatehouse zgate restore puts it on the coordinator.',
    );
  const network = carriedNetwork(link?.lastError ?? '');
  if (network !== undefined) return network;
  throw new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was changed: link ${row.link} has found no coordinator with the network of another gateway. Connect the right one first; on one that carries no network the gateway forms its own by itself.`,
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

async function declare(options: ZgateContext, declared: ZgateContext['declared']): Promise<void> {
  await drawSecrets(options, declared);
  const { database, table } = options;
  const isDeclared = (deviceId: string) => declared.some((one) => one.deviceId === deviceId);
  const ended = table.restoring.all().flatMap(({ device_id: deviceId, restore_at }) => {
    // It was for the coordinator that was at its port.
    if (!isDeclared(deviceId))
      return [{ deviceId, outcome: 'withdrawn', reason: 'the gateway is not in the configuration any more' }];
    const reason = 'it was given to an earlier version, which did not keep when: give it again';
    return restore_at === null ? [{ deviceId, outcome: 'ended', reason }] : [];
  });
  if (ended.length === 0) return;
  const by = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
  await database.commit(() => {
    for (const { deviceId, outcome, reason } of ended) {
      table.endRestore.run(deviceId);
      record(options, deviceId, by, outcome, { reason });
    }
  });
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

/** Another lock takes the place of one that broke: the door stays, with its settings and history. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import type { Closings } from './closing.ts';
import type { Conditions } from './conditions.ts';
import { LAST_VERSION, type Relay } from './configuration.ts';
import type { Deliveries } from './deliveries.ts';
import { NOTHING_WANTED, wantedOf } from './edit.ts';
import { lockChanged } from './live-events.ts';
import type { LockReplacement } from './lock-schema.ts';
import type { Locks } from './locks.ts';
import { type DoorRow, type DoorTable, existing } from './table.ts';

export interface ReplaceLockOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  deliveries: Deliveries;
  locks: Pick<Locks, 'report'>;
  conditions: Pick<Conditions, 'lockChanged'>;
  relay(doorId: string): Relay | undefined;
  closings: Pick<Closings, 'lockedInWords' | 'retry'>;
  /** After the commit. */
  bound(doorId: string): void;
}

export type ReplaceLock = (
  doorId: string,
  body: LockReplacement,
  caller: Caller & { ifMatch: string | undefined },
) => Promise<void>;

export function openReplaceLock(options: ReplaceLockOptions): ReplaceLock {
  const { database, table, clock, deliveries, events } = options;
  return async (doorId, { mac }, { ifMatch, ...caller }) => {
    const isNews = await database.commit(() => {
      const row = existing(table, doorId);
      assertIfMatch(ifMatch, row.version);
      if (row.mac === mac) return false;
      const other = table.byMac.get(mac);
      const version = versionBefore(other ? [row, other] : [row], options);
      if (other) merge(other, options);
      table.setLock.run(mac, randomUUID(), doorId);
      if (other) table.setPlace.run(other.gateway_id, other.network_id, doorId);
      table.forgetPins.run();
      options.conditions.lockChanged(row);
      if (version > row.config_version) table.setConfigVersion.run(version, doorId);
      deliveries.changed(doorId, { fields: ['lock'], now: clock.now(), caller });
      options.audit.record({
        ...caller,
        action: 'door.replace-lock',
        object: `door/${doorId}`,
        outcome: 'done',
        detail: { from: row.mac, to: mac, merged: other?.id ?? null },
      });
      const gatewayId = other ? other.gateway_id : row.gateway_id;
      events.publish(lockChanged(doorId, 'replaced', { mac, gatewayId }));
      return true;
    });
    if (!isNews) return;
    options.bound(doorId);
    events.wake();
  };
}

/**
 * The configuration version after which the next is higher than that of any of these locks: a lock with another
 * configuration of the same version would take that for the one it has.
 */
export function versionBefore(
  doors: readonly DoorRow[],
  { locks }: Pick<ReplaceLockOptions, 'locks'>,
): number {
  const versions = doors.map((row) => locks.report(row)?.configVersion ?? 0);
  const credible = versions.filter((version) => version < LAST_VERSION);
  return Math.max(...doors.map(({ config_version }) => config_version), ...credible);
}

/**
 * Inside the commit job: the door that the new lock was found with goes. Throws ALREADY_EXISTS when it is in use, IN_PROGRESS
 * when the lock has to be locked: that and its alarm are of the door that goes.
 */
function merge(other: DoorRow, { table, relay, events, conditions, closings }: ReplaceLockOptions): void {
  const { id, mac, gateway_id: gatewayId } = other;
  const isFound =
    other.created_by === SYSTEM_PRINCIPAL.id && isDeepStrictEqual(wantedOf(other), NOTHING_WANTED);
  const isUsed = relay(id) !== undefined || table.isNamed.get(id, id) || table.standOpen.get(id);
  if (!isFound || isUsed) throw inUse(other);
  if (mac !== null && table.closing.get(mac))
    throw new GatehouseError(
      'IN_PROGRESS',
      `The lock ${mac} was unlocked at door ${id} and has not shown yet that it is locked${closings.lockedInWords(mac)}: try again then, or lock that door.`,
    );
  events.publish(lockChanged(id, 'merged', { mac, gatewayId }));
  table.delete.run(id);
  conditions.lockChanged(other);
}

function inUse({ id, name, mac }: DoorRow): GatehouseError {
  const who = name === null ? id : `${id} (${name})`;
  return new GatehouseError(
    'ALREADY_EXISTS',
    `${mac} is the lock of door ${who}, of which more is wanted than the lock: give that door another lock first, exchange the locks of both with swap-lock, or use it as it is.`,
    { details: [{ path: '/mac', code: 'ALREADY_EXISTS', message: `is the lock of door ${id}` }] },
  );
}

/** Another lock takes the place of one that broke: the door stays, with its settings and history. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { GatehouseError } from '../../platform/errors.ts';
import { assertIfMatch } from '../../platform/http/editing.ts';
import { type Caller, type Editor, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Closings } from './closing.ts';
import type { Conditions } from './conditions.ts';
import { LAST_VERSION } from './configuration.ts';
import type { DoorContext } from './context.ts';
import type { Deliveries } from './deliveries.ts';
import type { Doors } from './doors.ts';
import { NOTHING_WANTED, wantedOf } from './edit.ts';
import { doorEntry, lockChanged } from './live-events.ts';
import { formerLeft } from './lock-links.ts';
import type { LockReplacement } from './lock-schema.ts';
import type { Locks } from './locks.ts';
import { type DoorRow, existing } from './table.ts';

export interface ReplaceLockOptions extends DoorContext {
  deliveries: Deliveries;
  locks: Pick<Locks, 'report'>;
  conditions: Pick<Conditions, 'lockChanged'>;
  closings: Pick<Closings, 'lockedInWords' | 'retry'>;
  doors: Pick<Doors, 'get'>;
  /** After the commit. */
  bound(doorId: string): void;
}

export interface LockReplacements {
  /** Resolves with the door as it is then. */
  replaceLock(doorId: string, body: LockReplacement, caller: Editor): Promise<ReturnType<Doors['get']>>;
}

export function openLockReplacements(options: ReplaceLockOptions): LockReplacements {
  const { database, table, clock, deliveries, events, closings, doors } = options;

  /** Inside the commit job. Resolves with whether that is another lock. */
  function replace(row: DoorRow, mac: string, caller: Caller): boolean {
    if (row.mac === mac) return false;
    const { id: doorId } = row;
    const other = table.byMac.get(mac);
    const version = versionBefore(other ? [row, other] : [row], options);
    if (other) merge(other, options);
    table.setLock.run(mac, randomUUID(), doorId);
    if (other) table.setPlace.run(other.gateway_id, other.network_id, doorId);
    table.forgetPins.run();
    options.conditions.lockChanged(row);
    if (version > row.config_version) table.setConfigVersion.run(version, doorId);
    deliveries.changed(doorId, { fields: ['lock'], now: clock.now(), caller });
    const detail = { from: row.mac, to: mac, merged: other?.id ?? null };
    options.audit.record(doorEntry(doorId, 'door.replace-lock', detail, caller));
    const gatewayId = other ? other.gateway_id : row.gateway_id;
    events.publish(lockChanged(doorId, 'replaced', { mac, gatewayId }));
    return true;
  }

  return {
    async replaceLock(doorId, { mac }, { ifMatch, ...caller }) {
      const before = table.door.get(doorId)?.mac;
      const isNews = await database.commit(() => {
        const row = existing(table, doorId);
        assertIfMatch(ifMatch, row.version);
        return replace(row, mac, caller);
      });
      if (isNews) {
        options.bound(doorId);
        events.wake();
      }
      // A former lock that is gone is given up at once, and not at the end of a pause.
      if (before) closings.retry({ mac: before });
      if (isNews && before) await formerLeft(doorId, options);
      return doors.get(doorId);
    },
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
function merge(other: DoorRow, { table, rs485, events, conditions, closings }: ReplaceLockOptions): void {
  const { id, mac, gateway_id: gatewayId } = other;
  const isFound =
    other.created_by === SYSTEM_PRINCIPAL.id && isDeepStrictEqual(wantedOf(other), NOTHING_WANTED);
  const isUsed = rs485.relay(id) !== undefined || table.isNamed.get(id, id) || table.standOpen.get(id);
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

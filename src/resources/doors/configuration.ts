/**
 * Door configuration, wanted → applied: what travels to a lock, and what is kept once the lock acknowledged it. A door
 * on a relay has no lock: the gateway keeps what is wanted itself, so its configuration is in force as soon as the device has
 * its settings.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { LockApplied, LockApply, LockConfiguration } from '../../../drivers/contract/settings.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { Work } from '../../services/reconcile/reconcile.ts';
import type { Relay } from '../rs485/relays.ts';
import type { DoorContext } from './context.ts';
import type { Deliveries } from './deliveries.ts';
import { effectiveOf, travellingWantedOf, wantedOf } from './edit.ts';
import { configurationEnded, doorEntry } from './live-events.ts';
import { addressOf } from './lock-links.ts';
import type { Locks } from './locks.ts';
import { type Door, type DoorReference, doorId } from './schema.ts';
import type { DoorRow, DoorTable, DueRow } from './table.ts';

/** What stands in the place of a version of something that does not exist (drivers/contract/settings.ts). */
const NONE = 0;
/** Of the mask of a schedule, from bit 0 on. */
const WEEK = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
/** A configuration goes to a sleeping lock frame by frame. */
const LOCK_TIMEOUT_MS = 60_000;
/** Versions are unsigned 32-bit numbers in the lock; beyond this one there is no next. */
export const LAST_VERSION = 0xff_ff_ff_ff;

/** For the log. */
export const DOOR_CONFIGURATIONS = 'door configurations';

export interface Configuration extends Work {
  isInForce(row: DueRow, device?: Relay | null): boolean;
  isWaiting(row: DueRow, device?: Relay | null): boolean;
}

export function doorConfiguration(context: DoorContext, deliveries: Deliveries, locks: Locks): Configuration {
  const { database, table, clock, rs485, events } = context;
  const record = recordIn(context);
  const send = sendBy(context);

  /** Acknowledged, and the lock has not reported another version since. A door on a relay has no lock that reports one. */
  function isInForce(row: DueRow, device: Relay | null = rs485.relay(row.id) ?? null): boolean {
    if (row.config_version !== row.applied_config_version) return false;
    if (device) return true;
    const reported = locks.report(row)?.configVersion;
    return reported === undefined || reported === row.config_version;
  }

  /** It is to be sent, and there is somebody to send it to. */
  const isWaiting = (row: DueRow, device: Relay | null = rs485.relay(row.id) ?? null) =>
    (row.mac !== null || device !== null) && !isInForce(row, device);

  /** A lock takes no version older than its own: one from another site, or a restored database, needs a higher one. */
  async function overtake(row: DoorRow): Promise<boolean> {
    const reported = rs485.relay(row.id) ? undefined : locks.report(row)?.configVersion;
    if (reported === undefined || reported <= row.config_version || reported >= LAST_VERSION) return false;
    await database.commit(() => {
      const now = clock.now();
      if (table.door.get(row.id)?.config_version !== row.config_version) return;
      table.setConfigVersion.run(reported + 1, row.id);
      deliveries.queue(row.id, { fields: [], now, by: row.config_by });
      record(row, 'renumbered', { lockHas: reported, next: reported + 1 });
    });
    return true;
  }

  /** Each start tries again what was refused, since a lock may have got new firmware: the same answer is no news. */
  async function refuse(row: DoorRow, reason: string): Promise<void> {
    await database.commit(() => {
      const version = row.config_version;
      const before = table.deliveries.all(row.id).find(({ config_version }) => config_version === version);
      if (before?.refusal === reason) return;
      table.setRefusal.run(reason, row.id, version);
      record(row, 'refused', { reason });
      events.publish(configurationEnded(row, 'refused', reason));
    });
    events.wake();
  }

  async function keep(row: DoorRow, answer: LockApplied): Promise<void> {
    const { id, config_version: version } = row;
    // Now, because it may report another version while this is stored.
    locks.applied(row, version);
    const isNews = await database.commit(() => {
      const now = clock.now();
      const applied = JSON.stringify(appliedOf(row, answer, now));
      const wanted = JSON.stringify(travellingWantedOf(row));
      if (table.setApplied.run(version, applied, wanted, version, id).changes === 0) return false;
      table.setAcknowledged.run(now, id, version);
      record(row, 'done', {});
      events.publish(configurationEnded(row, 'applied'));
      return true;
    });
    if (isNews) events.wake();
  }

  return {
    isInForce,
    isWaiting,

    due(doorId) {
      const rows = doorId === undefined ? table.allDue.all() : table.oneDue.all(doorId);
      // Of all doors in one query.
      const all = doorId === undefined ? rs485.relays() : undefined;
      return rows
        .filter((row) => isWaiting(row, all && (all.get(row.id) ?? null)))
        .map(({ id, config_version }) => ({ id, version: config_version }));
    },

    unreachable(doorId) {
      const row = table.oneListed.get(doorId);
      // A relay has a device: `apply` covers that.
      if (!row || rs485.relay(doorId)) return undefined;
      return context.lockLinks.unreachable(addressOf(row));
    },

    async apply({ id, version }, signal) {
      const row = table.door.get(id);
      // Superseded meanwhile: the newer version is due as well.
      if (row?.config_version !== version || (await overtake(row))) return;
      const answer = await send(row, signal).catch(async (error: unknown) => {
        if (error instanceof DriverError && error.code === 'REFUSED') await refuse(row, error.message);
        throw error;
      });
      await keep(row, answer);
    },
  };
}

function recordIn({ audit }: DoorContext) {
  return (row: DoorRow, outcome: string, detail: Record<string, unknown>): void =>
    audit.record(
      doorEntry(
        row.id,
        'door.configure',
        { configVersion: row.config_version, ...detail },
        { principal: SYSTEM_PRINCIPAL, correlationId: row.config_correlation_id },
        outcome,
      ),
    );
}

function sendBy({ database, table, clock, rs485, catalogue, lockLinks }: DoorContext) {
  return async (row: DoorRow, signal: AbortSignal): Promise<LockApplied> => {
    const device = rs485.relay(row.id);
    if (device?.settled) {
      return { ...versionsOf(lockApply(row, catalogue)), payloads: [] };
    }
    if (device) throw new DriverError('NO_REPLY', `device ${device.deviceId} does not have its settings yet`);
    const lock = addressOf(row);
    const unreachable = lockLinks.unreachable(lock);
    if (unreachable !== undefined) throw new DriverError('LINK_LOST', unreachable);
    const apply = lockApply(row, catalogue);
    // Before it goes: from then on no one can say that the lock does not have it.
    if (isQueued(table, row)) {
      const { id, config_version: version } = row;
      const { changes } = await database.commit(() => table.setSent.run(clock.now(), id, version));
      // Cancelled or superseded meanwhile.
      if (changes === 0) throw new DriverError('BUSY', 'another configuration is wanted by now');
    }
    signal.throwIfAborted();
    const answer = await lockLinks.applyConfiguration(lock, apply, LOCK_TIMEOUT_MS, signal);
    if (answer.configVersion !== apply.configVersion) {
      throw new DriverError('BAD_REPLY', `the lock says it has configuration ${answer.configVersion}`);
    }
    return answer;
  };
}

function isQueued(table: DoorTable, { id, config_version }: DoorRow): boolean {
  const [newest] = table.deliveries.all(id);
  return newest?.config_version === config_version && newest.status === 'queued';
}

/** Ids that are no UUID name no door, and a lock could not hold them. */
function keysOf(references: readonly DoorReference[]): string[] {
  return references.map(({ id }) => id).filter((id) => doorId.safeParse(id).success);
}

function lockApply(row: DoorRow, catalogue: Catalogue): LockApply {
  const { schedule, template, standOpenEnabled } = effectiveOf(row, catalogue);
  const { name, number, options } = wantedOf(row);
  const { accessInternal, outputs } = options;
  const configuration: LockConfiguration = {
    name,
    number,
    type: template?.type ?? null,
    relaySetup: template?.relaySetup ?? null,
    standOpenEnabled,
    onlineEnabled: template?.onlineEnabled ?? false,
    accessInternal: {
      doors: keysOf(accessInternal.doors),
      interval: accessInternal.interval,
    },
    outputs: outputs.map(({ doorId, access }) => ({ doorId, doors: keysOf(access.doors) })),
    schedule: (schedule?.intervals ?? []).map(({ days, start, end }) => ({
      weekdays: WEEK.reduce((mask, day, bit) => (days.includes(day) ? mask | (1 << bit) : mask), 0),
      start,
      end,
    })),
  };
  return {
    hwId: row.mac ?? row.id,
    configVersion: row.config_version,
    doorVersion: row.version,
    scheduleVersion: schedule?.version ?? NONE,
    templateVersion: template?.version ?? NONE,
    systemConfigVersion: catalogue.systemConfigVersion(),
    configuration,
  };
}

function versionsOf({ hwId: _, configuration: __, ...versions }: LockApply) {
  return versions;
}

function appliedOf(row: DoorRow, answer: LockApplied, now: number): NonNullable<Door['applied']> {
  const named = (id: string | null, version: number) =>
    id === null || version === NONE ? null : { id, version };
  const keepsSchedule = !answer.unsupported?.includes('schedule');
  return {
    appliedBy: row.config_by,
    appliedOn: new Date(now).toISOString(),
    payloads: answer.payloads,
    versions: {
      doorVersion: answer.doorVersion,
      schedule: keepsSchedule ? named(row.schedule_id, answer.scheduleVersion) : null,
      systemConfigVersion: answer.systemConfigVersion,
      template: named(row.template_id, answer.templateVersion),
    },
  };
}

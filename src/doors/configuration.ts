/**
 * Door configuration, wanted → applied: what travels to a lock, and what is kept once the lock acknowledged it. A door
 * on a relay has no lock: the gateway keeps its schedule and stand-open itself, so its configuration is in force as
 * soon as the device has its settings.
 */
import { DriverError } from '../../drivers/driver.ts';
import type { LockApplied, LockApply, LockConfiguration } from '../../drivers/settings.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { SYSTEM_PRINCIPAL } from '../principal.ts';
import { wantedOf } from './edit.ts';
import type { Door } from './schema.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** The site's catalogue, as far as doors need it; undefined for an id it does not have. */
export interface Catalogue {
  groupName(id: string): string | undefined;
  schedule(id: string):
    | {
        id: string;
        version: number;
        intervals: readonly { days: readonly string[]; start: number; end: number }[];
      }
    | undefined;
  template(id: string):
    | {
        id: string;
        version: number;
        onlineEnabled: boolean | null;
        relaySetup: string | null;
        standOpenAllowed: boolean | null;
        type: string | null;
      }
    | undefined;
  systemConfigVersion(): number;
}

/** The RS-485 device whose doorId is this door; `settled`: it has reported the settings that are wanted. */
export interface Relay {
  deviceId: string;
  settled: boolean;
}

/** Where a lock is found, as far as is known. */
export interface LockAddress {
  doorId: string;
  gatewayId: string | null;
  networkId: string | null;
}

export interface ConfigurationOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  clock: Clock;
  catalogue: Catalogue;
  relay(doorId: string): Relay | undefined;
  /** Has the lock put the configuration in force. Rejects with a DriverError. */
  applyConfiguration(lock: LockAddress, apply: LockApply, signal: AbortSignal): Promise<LockApplied>;
}

/** What stands in the place of a version of something that does not exist (drivers/settings.ts). */
const NONE = 0;
const WEEK = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

/** The two functions src/reconcile.ts asks for. */
export function doorConfiguration(options: ConfigurationOptions) {
  const { database, table, audit, clock, catalogue, relay } = options;

  function record(row: DoorRow, outcome: string, detail: Record<string, unknown>): void {
    audit.record({
      principal: SYSTEM_PRINCIPAL,
      action: 'door.configure',
      object: `door/${row.id}`,
      outcome,
      detail: { configVersion: row.config_version, ...detail },
      correlationId: row.config_correlation_id,
    });
  }

  async function send(row: DoorRow, signal: AbortSignal): Promise<LockApplied> {
    const apply = lockApply(row, catalogue);
    const device = relay(row.id);
    if (device?.settled) return { ...versionsOf(apply), payloads: [] };
    if (device) throw new DriverError('NO_REPLY', `device ${device.deviceId} does not have its settings yet`);
    const lock = { doorId: row.id, gatewayId: row.gateway_id, networkId: row.network_id };
    const answer = await options.applyConfiguration(lock, apply, signal);
    if (answer.configVersion !== apply.configVersion) {
      throw new DriverError('BAD_REPLY', `the lock says it has configuration ${answer.configVersion}`);
    }
    return answer;
  }

  return {
    due: (doorId?: string) =>
      (doorId === undefined ? table.toConfigure.all() : table.toConfigureOne.all(doorId))
        .filter(({ id, mac }) => mac !== null || relay(id) !== undefined)
        .map(({ id, config_version }) => ({ id, version: config_version })),

    async apply({ id, version }: { id: string; version: number }, signal: AbortSignal): Promise<void> {
      const row = table.door.get(id);
      // Superseded meanwhile: the newer version is due as well.
      if (row?.config_version !== version) return;
      const answer = await send(row, signal).catch(async (error: unknown) => {
        if (error instanceof DriverError && error.code === 'REFUSED')
          await database.commit(() => record(row, 'refused', { reason: error.message }));
        throw error;
      });
      await database.commit(() => {
        const applied = JSON.stringify(appliedOf(row, answer, clock.now()));
        if (table.setApplied.run(version, applied, id, version).changes > 0) record(row, 'done', {});
      });
    },
  };
}

/** What goes to the lock: stand-open only where the template, if it is known, allows it. */
export function effectiveOf(row: DoorRow, catalogue: Catalogue) {
  const schedule = row.schedule_id === null ? undefined : catalogue.schedule(row.schedule_id);
  const template = row.template_id === null ? undefined : catalogue.template(row.template_id);
  const standOpenEnabled = row.stand_open_enabled === 1 && template?.standOpenAllowed !== false;
  return { schedule, template, standOpenEnabled };
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
      doors: accessInternal.doors.map(({ id }) => id),
      interval: accessInternal.interval,
    },
    outputs: outputs.map(({ doorId, access }) => ({ doorId, doors: access.doors.map(({ id }) => id) })),
    schedule: (schedule?.intervals ?? []).map(({ days, start, end }) => ({
      weekdays: days.reduce((mask, day) => mask | (1 << WEEK.indexOf(day)), 0),
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
  return {
    appliedBy: row.config_by,
    appliedOn: new Date(now).toISOString(),
    payloads: answer.payloads,
    versions: {
      doorVersion: answer.doorVersion,
      schedule: named(row.schedule_id, answer.scheduleVersion),
      systemConfigVersion: answer.systemConfigVersion,
      template: named(row.template_id, answer.templateVersion),
    },
  };
}

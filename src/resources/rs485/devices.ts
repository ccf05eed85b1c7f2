/** The RS-485 device resource: reads and edits (4.5). */

import type { Pin, Rs485Report } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import { storedJson, storedTime } from '../../platform/database/damaged-rows.ts';
import type { Database } from '../../platform/database/database.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import { unknownOf } from '../../platform/http/fields.ts';
import type { Editor } from '../../platform/principal.ts';
import type { LastActuation } from '../../services/actuations/actuations.ts';
import type { ApplyFailure } from '../../services/reconcile/reconcile.ts';
import type { Known } from '../../services/reconcile/reported.ts';
import type { Wire } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { FieldEvents, LastCredential } from './field-events.ts';
import type { Firmware } from './firmware.ts';
import { rs485Entries } from './import.ts';
import { PULSE, type Pulses } from './pulse.ts';
import {
  type Edit,
  type LastPulse,
  type ListQuery,
  lastPulseDetail,
  type Rs485Device,
  type Rs485DeviceState,
  rs485Device,
} from './schema.ts';
import type { Settings } from './settings.ts';
import type { Rs485Entry } from './site-entry.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';
import {
  changedFields,
  edited,
  isTravelling,
  refuseTakenDoor,
  refuseUnsupported,
  wantedOf,
  writeWanted,
} from './wanted.ts';
import type { Watchdogs } from './watchdog.ts';

export interface Devices {
  get(deviceId: string): { device: Rs485Device; revision: number };
  list(query: ListQuery): { items: Rs485Device[]; next: string | null };
  entries(): Rs485Entry[];
  countInGroup(groupId: string): number;
  /** Whether a pin is in use, or is wanted to be; undefined: there is no such device. One that has no such setting uses all. */
  usesPin(deviceId: string): ((pin: Pin) => boolean) | undefined;
  update(
    deviceId: string,
    edit: Edit & { deviceId?: string | undefined },
    caller: Editor,
  ): Promise<{ device: Rs485Device; revision: number }>;
}

export function openDevices(
  context: Rs485Context,
  settings: Settings,
  firmware: Firmware,
  pulses: Pulses,
): Devices {
  const { database, table, audit, clock } = context;
  const { reconciler } = settings;
  const toDevice = deviceFrom(context, settings, firmware);

  function get(deviceId: string): { device: Rs485Device; revision: number } {
    const row = existing(table, deviceId);
    return { device: toDevice(row), revision: row.revision };
  }

  return {
    get,
    list: (query) => page(database, (after, limit) => rows(table, query, after, limit), toDevice, query),
    entries: () => rs485Entries(table),
    countInGroup: (groupId) => table.countInGroup.get(groupId)?.count ?? 0,

    usesPin(deviceId) {
      const row = table.device.get(deviceId);
      if (!row) return undefined;
      const { ioPins } = wantedOf(row);
      const inForce = settings.reported.get(deviceId)?.state?.settings?.ioPins;
      return (pin) => ioPins[pin] || inForce?.[pin] !== false;
    },

    async update(deviceId, edit, { principal, correlationId, ifMatch }) {
      assertSameId('deviceId', edit.deviceId, deviceId);
      const { doors, released } = await database.commit(() => {
        const row = existing(table, deviceId);
        assertIfMatch(ifMatch, row.revision);
        const before = wantedOf(row);
        const after = edited(before, edit);
        const changed = changedFields(before, after);
        const doors = new Set([before.doorId, after.doorId]);
        const isElsewhere = changed.includes('relayIndex') || changed.includes('doorId');
        const released = isElsewhere ? pulses.releaseRelay(row) : undefined;
        if (changed.length === 0) return { doors, released };
        refuseTakenDoor(table, after.doorId, new Set([deviceId]));
        refuseUnsupported(before, after, settings.reported.get(deviceId)?.state?.carries);
        const write = { bumpSettings: isTravelling(changed), now: clock.now(), principalId: principal.id };
        // Orders go by these until the new ones are in force.
        if (write.bumpSettings && settings.isInForce(row))
          table.setReportedVersion.run(row.settings_version, deviceId);
        writeWanted(table, deviceId, after, write);
        const object = `rs485/${deviceId}`;
        const detail = { fields: changed };
        audit.record({ principal, action: 'rs485.update', object, outcome: 'done', detail, correlationId });
        return { doors, released };
      });
      reconciler.wake(deviceId);
      // The former door too: what stands open there ends.
      for (const doorId of doors) if (doorId !== null) context.relayChanged(doorId);
      await released?.();
      return get(deviceId);
    },
  };
}

function rows(
  table: Rs485Table,
  { bus, groupId, doorId, name }: ListQuery,
  after: string,
  limit: number,
): Rs485Row[] {
  return table.page.all(after, bus ?? null, groupId ?? null, doorId ?? null, name ?? '', limit);
}

/** Presence lives in memory, so the filter reads on, page by page, until enough devices match. */
function page(
  database: Pick<Database, 'legible'>,
  read: (after: string, limit: number) => Rs485Row[],
  toDevice: (row: Rs485Row) => Rs485Device,
  { cursor = '', limit, connected }: ListQuery,
): { items: Rs485Device[]; next: string | null } {
  const items: Rs485Device[] = [];
  for (let after = cursor; ; ) {
    const found = read(after, limit + 1);
    for (const row of found) {
      const [device] = database.legible(`rs485/${row.device_id}`, () => toDevice(row));
      if (!device) continue;
      if (connected !== undefined && String(device.connectionState.connected) !== connected) continue;
      if (items.length === limit) return { items, next: items.at(-1)?.deviceId ?? null };
      items.push(device);
    }
    if (found.length <= limit) return { items, next: null };
    after = found.at(-1)?.device_id ?? '';
  }
}

// What the interface shows of a device: the resource of the specification, and what is known beyond it.

const { shape } = rs485Device;

function deviceFrom({ catalogue }: Rs485Context, settings: Settings, firmware: Firmware) {
  return (row: Rs485Row): Rs485Device => {
    const known = settings.reported.get(row.device_id);
    const object = `rs485/${row.device_id}`;
    return {
      deviceId: row.device_id,
      ...wantedOf(row),
      group: row.group_id === null ? null : (catalogue.groupName(row.group_id) ?? null),
      hwId: row.hw_id,
      type: known?.state ? known.state.type : row.type,
      reportedSettingsVersion: settings.reportedVersion(row),
      settingsVersion: row.settings_version,
      apps: known?.state ? known.state.apps : storedJson(object, shape.apps, row.apps),
      platform: known?.state ? known.state.platform : storedJson(object, shape.platform, row.platform),
      connectionState: {
        changedOn: storedTime(object, known?.changedAt ?? row.connected_changed_at),
        connected: known?.connected ?? false,
      },
      upgradeJobInfo: firmware.upgradeOf(row.device_id),
    };
  };
}

/** What …/state shows. Throws NOT_FOUND. */
export function openState(
  { table, actuations, clock, catalogue, doorExists }: Rs485Context,
  settings: Settings,
  buses: Buses,
  watchdogs: Watchdogs,
  fieldEvents: FieldEvents,
): (deviceId: string) => Rs485DeviceState {
  const { reconciler, reported } = settings;
  return (deviceId) => {
    const row = existing(table, deviceId);
    const known = reported.get(deviceId);
    const failure = reconciler.failure(deviceId);
    const next = reconciler.nextAttempt(deviceId);
    const wire = buses.device(row.bus, known?.state?.address ?? row.address);
    return {
      deviceId,
      bus: row.bus,
      busUp: buses.isUp(row.bus) ?? null,
      address: row.address,
      inForce: settings.isInForce(row),
      failure: failure ? shown(failure) : null,
      nextAttempt: next === undefined ? null : new Date(next).toISOString(),
      unknown: unknownOf([
        ['groupId', row.group_id, (id) => catalogue.groupName(id) !== undefined],
        ['doorId', row.door_id, doorExists],
      ]),
      ...reportedBy(known, clock, wire),
      effectiveUnlockMilliseconds:
        (settings.forOrders(row) && known?.state?.effectiveUnlockMilliseconds) ?? null,
      watchdog: watchdogs.stateOf(row),
      lastCredential: lastCredentialOf(fieldEvents.lastCredential(deviceId)),
      lastPulse: lastPulseOf(actuations.last(PULSE, `rs485/${deviceId}`)),
      wire: wire ?? null,
    };
  };
}

/** Nothing of it is stored: it is what the device said last. */
function reportedBy(known: Known<Rs485Report> | undefined, clock: Clock, wire: Wire | undefined) {
  const state = known?.state;
  const age = known?.at === undefined ? null : Math.round(clock.monotonic() - known.at);
  return {
    reportAge: heardAge(known?.connected ?? false, age, wire),
    readAge: state?.readAt === undefined ? null : Math.max(0, Math.round(clock.monotonic() - state.readAt)),
    profile: state?.profile ?? null,
    levels: known?.connected ? { ...state?.levels } : {},
    edges: Object.fromEntries(
      Object.entries(state?.edges ?? {}).map(([input, edge]) => [
        input,
        { total: edge.total, at: new Date(edge.at).toISOString() },
      ]),
    ),
    tamper: state?.tamper ?? null,
    supplyFault: state?.supplyFault ?? null,
    security: state?.security ?? null,
    sessionFault: (known?.connected ? null : state?.sessionFault) ?? null,
    pulse: known?.connected ? pulseUnderWay(state?.pulse, age ?? 0) : null,
    relayFault: state?.relayFault
      ? { ...state.relayFault, at: new Date(state.relayFault.at).toISOString() }
      : null,
    unsupported: state?.unsupported ?? [],
  };
}

/**
 * Drivers report what is new, and repeat the rest every few seconds though the device says nothing: of one that is connected
 * the last reply dates what is shown. At the address of one that is not, another one may answer.
 */
function heardAge(connected: boolean, age: number | null, wire: Wire | undefined): number | null {
  if (age === null || !wire || wire.replyAge === null) return age;
  return connected || !wire.alive ? wire.replyAge : age;
}

function lastCredentialOf(last: LastCredential | undefined): Rs485DeviceState['lastCredential'] {
  return last ? { ...last, at: new Date(last.at).toISOString() } : null;
}

function lastPulseOf(last: LastActuation | undefined): LastPulse | null {
  if (!last) return null;
  const { relay, reason, outcome = 'failed' } = lastPulseDetail.parse(last.detail);
  return {
    at: new Date(last.at).toISOString(),
    by: last.principalId,
    relay,
    reason,
    outcome: last.outcome === null ? null : outcome,
  };
}

function pulseUnderWay(pulse: Rs485Report['pulse'], age: number): Rs485DeviceState['pulse'] {
  const remainingMilliseconds = (pulse?.remainingMilliseconds ?? 0) - age;
  return pulse && remainingMilliseconds > 0 ? { relay: pulse.relay, remainingMilliseconds } : null;
}

function shown({ at, ...failure }: ApplyFailure) {
  return { ...failure, at: new Date(at).toISOString() };
}

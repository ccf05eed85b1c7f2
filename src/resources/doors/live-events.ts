/** Live events of doors, and what is audited of them. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import { type Caller, systemCaller } from '../../platform/principal.ts';
import type { LastActuation } from '../../services/actuations/actuations.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import type { OfflineReason } from './schema.ts';
import type { DoorRow } from './table.ts';

/** `by`: who wanted it; the gateway itself when absent. */
export function doorEntry(
  doorId: string,
  action: string,
  detail: object,
  by: Pick<AuditEntry, 'principal' | 'correlationId'> = systemCaller(),
  outcome = 'done',
): AuditEntry {
  const { principal, correlationId } = by;
  return { principal, correlationId, action, object: `door/${doorId}`, outcome, detail: { ...detail } };
}

/** `fields`: what was given, or is another one now. */
export function doorChanged(
  doorId: string,
  change: 'created' | 'edited',
  fields: string[],
  { correlationId }: Pick<Caller, 'correlationId'>,
): LiveEvent {
  return { ...ofDoor(doorId, 'changed', { change, fields }), correlationId };
}

/** The lock put it in force · the lock said no. */
export type ConfigurationEnd = 'applied' | 'refused';

/** `row`: as it was when this configuration was wanted. */
export function configurationEnded(row: DoorRow, outcome: ConfigurationEnd, reason?: string): LiveEvent {
  const data = { configVersion: row.config_version, outcome, reason: reason ?? null };
  return { ...ofDoor(row.id, 'applied', data), correlationId: row.config_correlation_id };
}

/** Whether the lock of a door is there. */
export interface DoorConnection {
  id: string;
  name: string | null;
  accessPointId: number;
  status: string;
  /** Epoch milliseconds. */
  since: number;
  /** Why it is not; null: it is. */
  reason: OfflineReason | null;
}

export function presenceChanged({
  id,
  name,
  accessPointId,
  status,
  since,
  reason,
}: DoorConnection): LiveEvent {
  const at = new Date(since).toISOString();
  return ofDoor(id, 'connection', { name, accessPointId, status, since: at, reason });
}

/**
 * merged: the door is no more, its lock having taken the place of another one's · retired: the lock is at no door any more ·
 * removed: the door is no more
 */
export type LockChange = 'joined' | 'left' | 'moved' | 'replaced' | 'merged' | 'retired' | 'removed';

export function lockChanged(
  doorId: string,
  change: LockChange,
  { mac, gatewayId }: { mac: string | null; gatewayId: string | null },
): LiveEvent {
  return ofDoor(doorId, 'lock', { change, mac, gatewayId });
}

/**
 * begun: its lock or relay was seen open · lost: it is to stand open, and does not · ending: its lock is sent the lock command ·
 * ended: its lock was seen locked, or its relay is held no more · expired: it never began, and will not any more
 */
export type StandingChange = 'begun' | 'lost' | 'ending' | 'ended' | 'expired';

export function standingChanged(doorId: string, change: StandingChange, reason: string | null): LiveEvent {
  return ofDoor(doorId, 'standing-open', { change, reason });
}

/** notLocked: the gateway has to lock the door, and did not see it locked. */
type DoorAlarm = 'notLocked' | 'batteryLow';

export function doorAlarm(doorId: string, alarm: DoorAlarm, raised: boolean, reason: string): LiveEvent {
  return ofDoor(doorId, 'alarm', { alarm, raised, reason });
}

/** The bolt or the door moved. */
export function lockStateChanged(
  doorId: string,
  { lockState, doorState }: Pick<LockReport, 'lockState' | 'doorState'>,
): LiveEvent {
  const shown = (reported: { value: string; at: number } | undefined) =>
    reported ? { value: reported.value, at: new Date(reported.at).toISOString() } : null;
  return ofDoor(doorId, 'state', { lockState: shown(lockState), doorState: shown(doorState) });
}

/** Somebody came or went, or tried to. */
export function happenedAt(doorId: string, { hwId: _, at, heardAt: __, ...facts }: LockEvent): LiveEvent {
  return ofDoor(doorId, 'event', { ...facts, at: new Date(at).toISOString() });
}

/** The outcome of an unlock became known after its answer. `isLate`: false: it was carried out in time; null: not known. */
export function lateOutcomeEvent(
  doorId: string,
  { delayMs, isLate, at }: { delayMs: number | null; isLate: false | null; at: number },
  { correlationId }: Pick<LastActuation, 'correlationId'>,
): LiveEvent {
  const when = { at: new Date(at).toISOString(), delayMilliseconds: delayMs };
  return { ...ofDoor(doorId, 'late-outcome', { outcome: 'confirmed', isLate, ...when }), correlationId };
}

function ofDoor(doorId: string, what: string, data: Record<string, unknown>): LiveEvent {
  return {
    type: `gatehouse.door.${what}.v1`,
    source: `doors/${doorId}`,
    subject: doorId,
    data: { doorId, ...data },
  };
}

/** What is asked for when a door is to stand open: whether it may, until when, and by which lock or relay. */
import { isUnreadable } from '../database/last-read.ts';
import { GatehouseError } from '../errors.ts';
import type { Caller } from '../principal.ts';
import { type Catalogue, effectiveOf } from './catalogue.ts';
import type { Relay } from './configuration.ts';
import { noLock } from './lock-commands.ts';
import type { StandOpenBody } from './lock-schema.ts';
import type { Locks } from './locks.ts';
import type { KeptTime, StandOpenRow } from './openings-table.ts';
import { assertPin } from './rf-pin.ts';
import { STAND_OPEN_MAX_MS } from './stand-open-time.ts';
import type { DoorRow } from './table.ts';

/** What holds the door open. */
export type Target = Pick<StandOpenRow, 'mac' | 'gateway_id' | 'network_id' | 'device_id'>;

export interface TargetOptions {
  catalogue: Catalogue;
  locks: Pick<Locks, 'report'>;
  relay(doorId: string): Relay | undefined;
  pinOf(mac: string): string | null;
}

/** Why the door may not stand open; undefined: it may. */
function forbiddenBy(door: DoorRow, catalogue: Catalogue): string | undefined {
  if (door.stand_open_enabled === 0) return 'its standOpenEnabled is false';
  return effectiveOf(door, catalogue).standOpenEnabled ? undefined : 'its template does not allow it';
}

export function assertAllowed(door: DoorRow, catalogue: Catalogue): void {
  const reason = forbiddenBy(door, catalogue);
  if (reason === undefined) return;
  throw new GatehouseError(
    'STAND_OPEN_NOT_ALLOWED',
    `Nothing was sent: the door may not stand open (${reason}). Set standOpenEnabled, or give it another template.`,
  );
}

/** Throws NO_LOCK, NOT_SUPPORTED or PIN_REQUIRED. */
export function targetOf(door: DoorRow, { relay, locks, pinOf }: TargetOptions): Target {
  const device = relay(door.id);
  const { mac, gateway_id, network_id } = door;
  if (device) return { mac: null, gateway_id: null, network_id: null, device_id: device.deviceId };
  if (mac === null) throw noLock();
  const report = locks.report(door);
  if (report?.standOpen === 'none')
    throw new GatehouseError(
      'NOT_SUPPORTED',
      'Nothing was sent: the lock of this door cannot stand open, for it locks again by itself and does not let that be changed. Switch its auto-relock off at the lock and let it join again, or give the door another lock.',
    );
  assertPin(mac, report, pinOf);
  return { mac, gateway_id, network_id, device_id: null };
}

/** Epoch milliseconds. Throws VALIDATION_FAILED. */
export function untilOf({ until, seconds }: StandOpenBody, now: number): number {
  if (seconds !== undefined) return now + seconds * 1_000;
  const at = Date.parse(until ?? '');
  if (at > now && at <= now + STAND_OPEN_MAX_MS) return at;
  const [code, message] =
    at > now
      ? ['TOO_BIG', `expected a time ${STAND_OPEN_MAX_MS / 3_600_000} h ahead at most`]
      : ['TOO_SMALL', 'expected a time in the future'];
  throw new GatehouseError('VALIDATION_FAILED', `Not valid: /until: ${message}.`, {
    details: [{ path: '/until', code, message }],
  });
}

/** Why what stands open has to end now; undefined: it may go on. */
export function endedBy(
  { mac, device_id }: StandOpenRow,
  door: DoorRow | undefined,
  { catalogue, relay }: Pick<TargetOptions, 'catalogue' | 'relay'>,
): string | undefined {
  if (!door) return 'the door is no more';
  const forbidden = forbiddenBy(door, catalogue);
  if (forbidden !== undefined) return forbidden;
  const device = relay(door.id)?.deviceId;
  if (device_id !== null && device !== device_id)
    return device === undefined ? 'no RS-485 device opens the door' : 'another device opens the door now';
  if (mac !== null && device !== undefined) return 'an RS-485 device opens the door now';
  return mac !== null && mac !== door.mac ? 'the door was given another lock' : undefined;
}

export function isSameTarget(one: Target, other: Target): boolean {
  return one.mac === other.mac && one.device_id === other.device_id;
}

/** `before`: what stands open already, which gets another end. `now` in epoch milliseconds. */
export function orderedRow(
  door: DoorRow,
  target: Target,
  before: StandOpenRow | undefined,
  { principal, correlationId }: Caller,
  now: number,
  kept: KeptTime,
): StandOpenRow {
  return {
    ...target,
    ...kept,
    door_id: door.id,
    phase: before?.phase ?? 'waiting',
    requested_at: now,
    actor_id: principal.id,
    actor: principal.label,
    correlation_id: correlationId,
    since: before?.since ?? null,
  };
}

/** Why the relay is not fired, whether or not its device answers; undefined: nothing is known against it. */
export function notFiredBecause(
  { device_id }: StandOpenRow,
  { assertRelayProven }: { assertRelayProven(deviceId: string): void },
): string | undefined {
  if (device_id === null) return undefined;
  try {
    assertRelayProven(device_id);
    return undefined;
  } catch (error) {
    // One without a relay in force may have it again at any time, and what cannot be read now can be read again.
    if (!(error instanceof GatehouseError) || error.code === 'NO_RELAY' || isUnreadable(error))
      return undefined;
    return error.message;
  }
}

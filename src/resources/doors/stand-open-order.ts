/** What is asked for when a door is to stand open: whether it may, until when, and by which lock or relay. */
import { isUnreadable, whenUnreadable } from '../../platform/database/last-read.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { Relay, WiredRelay } from '../rs485/relays.ts';
import { effectiveOf } from './edit.ts';
import type { StandOpenBody } from './lock-schema.ts';
import type { OpeningContext } from './opening-context.ts';
import type { KeptTime, StandOpenRow } from './openings-table.ts';
import { noOpener } from './outcome.ts';
import { isSameRelay } from './relay-hold.ts';
import { assertPin } from './rf-pin.ts';
import { STAND_OPEN_MAX_MS } from './stand-open-time.ts';
import type { DoorRow } from './table.ts';

/** What holds the door open. */
export type Target = Pick<
  StandOpenRow,
  'mac' | 'gateway_id' | 'network_id' | 'device_id' | 'bus' | 'hw_id' | 'relay_index'
>;

/** Why the door may not stand open; undefined: it may. */
function forbiddenBy(door: DoorRow, catalogue: Catalogue): string | undefined {
  if (door.stand_open_enabled === 0) return 'its standOpenEnabled is false';
  return effectiveOf(door, catalogue).standOpenEnabled
    ? undefined
    : 'its template does not allow it, or is not in the catalogue';
}

export function assertAllowed(door: DoorRow, catalogue: Catalogue): void {
  const reason = forbiddenBy(door, catalogue);
  if (reason === undefined) return;
  throw new GatehouseError(
    'STAND_OPEN_NOT_ALLOWED',
    `Nothing was sent: the door may not stand open (${reason}). Set standOpenEnabled, or give it another template.`,
  );
}

/** In the end, as nothing has shown it open. A lock that was sent the command is asked until its time is over. */
export function isGivenUp({ phase, device_id }: StandOpenRow): boolean {
  return phase === 'waiting' || (phase === 'sent' && device_id !== null);
}

/** The relay that was ordered; undefined: a lock was. */
export function relayOf({
  device_id: deviceId,
  bus,
  hw_id: hwId,
  relay_index,
}: Target): WiredRelay | undefined {
  if (deviceId === null || bus === null || hwId === null || relay_index === null) return undefined;
  return { deviceId, bus, hwId, relayIndex: relay_index };
}

/** Throws NO_LOCK, NO_RELAY, NOT_SUPPORTED or PIN_REQUIRED. */
export function targetOf(door: DoorRow, { lastRead, locks, rfPins }: OpeningContext): Target {
  const device = lastRead.relay(door.id);
  const { mac, gateway_id, network_id } = door;
  if (device) return targetOfRelay(device);
  if (mac === null) throw noOpener();
  const report = locks.report(door);
  if (report?.standOpen === 'none')
    throw new GatehouseError(
      'NOT_SUPPORTED',
      'Nothing was sent: the lock of this door cannot stand open, for it locks again by itself and does not let that be changed. Switch its auto-relock off at the lock and let it join again, or give the door another lock.',
    );
  assertPin(mac, report, rfPins);
  return { mac, gateway_id, network_id, device_id: null, bus: null, hw_id: null, relay_index: null };
}

function targetOfRelay({ deviceId, bus, hwId, relayIndex }: Relay): Target {
  if (relayIndex === null)
    throw new GatehouseError(
      'NO_RELAY',
      `Nothing was sent: device ${deviceId} drives no relay. Set its relayIndex first.`,
    );
  const place = { device_id: deviceId, bus, hw_id: hwId, relay_index: relayIndex };
  return { mac: null, gateway_id: null, network_id: null, ...place };
}

/** As the audit names it, without what it does not have. */
export function auditedTarget(target: Target): Record<string, string | number> {
  const { mac, gateway_id: gatewayId, network_id: networkId, device_id: deviceId } = target;
  const { bus, hw_id: hwId, relay_index: relayIndex } = target;
  const all = { mac, gatewayId, networkId, deviceId, bus, hwId, relayIndex };
  return Object.fromEntries(
    Object.entries(all).filter((one): one is [string, string | number] => one[1] !== null),
  );
}

/** Epoch milliseconds; `ageMs`: since it may have arrived, and may be longer than what it asks for. Throws VALIDATION_FAILED. */
export function untilOf({ until, seconds }: StandOpenBody, now: number, ageMs: number): number {
  if (seconds !== undefined) return Math.floor(now - ageMs + seconds * 1_000);
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
  row: StandOpenRow,
  door: DoorRow | undefined,
  { catalogue, lastRead }: OpeningContext,
): string | undefined {
  if (!door) return 'the door is no more';
  const forbidden = forbiddenBy(door, catalogue);
  if (forbidden !== undefined) return forbidden;
  const device = lastRead.relay(door.id);
  if (row.device_id !== null) return relayLost(row, device);
  if (device !== undefined) return 'an RS-485 device opens the door now';
  return row.mac === door.mac ? undefined : 'the door was given another lock';
}

/** Why nothing is sent now: nothing opens a door of which it cannot be read that it may. */
export function endedStrictly(row: StandOpenRow, options: OpeningContext): string | undefined {
  return whenUnreadable(
    () => endedBy(row, options.table.door.get(row.door_id), options),
    () => 'the database cannot be read',
  );
}

/** The order was for one relay of one device: it holds for no other, whatever takes its place. */
function relayLost(row: Target, now: Relay | undefined): string | undefined {
  if (now === undefined) return 'no RS-485 device opens the door';
  if (now.deviceId !== row.device_id) return 'another device opens the door now';
  const ordered = relayOf(row);
  if (ordered && isSameRelay(ordered, now)) return undefined;
  if (now.bus !== row.bus || now.hwId !== row.hw_id)
    return `the device was replaced: it was ${row.hw_id} on bus ${row.bus}, and is ${now.hwId} on bus ${now.bus}`;
  return `the relayIndex of the device was changed from ${row.relay_index} to ${now.relayIndex}`;
}

export function isSameTarget(one: Target, other: Target): boolean {
  const isSameRelay =
    one.bus === other.bus && one.hw_id === other.hw_id && one.relay_index === other.relay_index;
  return one.mac === other.mac && one.device_id === other.device_id && isSameRelay;
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
export function notFiredBecause({ device_id }: StandOpenRow, { rs485 }: OpeningContext): string | undefined {
  if (device_id === null) return undefined;
  try {
    rs485.assertRelayProven(device_id);
    return undefined;
  } catch (error) {
    // One without a relay in force may have it again at any time, and what cannot be read now can be read again.
    if (!(error instanceof GatehouseError) || error.code === 'NO_RELAY' || isUnreadable(error))
      return undefined;
    return error.message;
  }
}

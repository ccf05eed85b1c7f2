/**
 * Fires a device's relay, now or not at all: an intent in the audit before, the outcome after. Each request fires once at
 * most; nothing is ever sent again, and what no one can know is said to be unknown.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type EndPulse, type Pulse, pulsed } from '../../../drivers/contract/rs485.ts';
import { type Rs485Report, UNLOCK_MAX_MS } from '../../../drivers/contract/settings.ts';
import { GatehouseError, ownFault } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { PulseResult } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import { noRelay, relayOf, type WiredRelay } from './relays.ts';
import type { Settings } from './settings.ts';
import { existing, type Rs485Row } from './table.ts';
import { unfedReason, type Watchdogs } from './watchdog.ts';
import { assertProven, type WatchdogProofs } from './watchdog-proofs.ts';

/** From the request to the wire. A person waits at the door: what comes later surprises somebody else. */
const DEADLINE_MS = 5_000;
/** Where neither the settings nor the device name one. */
const DURATION_MS = 5_000;

export interface PulseOptions extends Rs485Context {
  buses: Pick<Buses, 'isUp' | 'device'>;
  watchdogProofs: Pick<WatchdogProofs, 'of'>;
  reported: Pick<Reported<Rs485Report>, 'get'>;
  settings: Pick<Settings, 'forOrders' | 'isInForce' | 'reportedVersion'>;
  watchdogs: Pick<Watchdogs, 'assertNotTested'>;
}

/** How it ended: fired, perhaps fired (`reason`: what is known of that), or certainly not. */
type End = { result: PulseResult; reason: string | null } | { refusal: GatehouseError };

export const PULSE = 'rs485.pulse';

const LATE = 'the disk was too slow, or the gateway stood still, for it to come in time';
const HUNG_UP = 'the client hung up before it was sent';

export interface Pulses {
  pulse(deviceId: string, caller: Caller): Promise<PulseResult>;
  /**
   * Fires this relay for so long, or makes its pulse last so long, while it is the one in force. Nothing of it is audited here:
   * the caller that holds a relay this way says when that begins and ends. It keeps no other caller from a pulse, which follows it.
   */
  holdRelay(
    relay: WiredRelay,
    hold: { milliseconds: number; timeoutMs: number },
    signal: AbortSignal,
  ): Promise<PulseResult>;
  /** Throws WATCHDOG_NOT_PROVEN, NO_RELAY, or IN_PROGRESS during a watchdog test. A device that does not answer passes. */
  assertRelayProven(deviceId: string): void;
  /**
   * For a device that is given another relay or door, is replaced or removed; `row`: as it is before that. What is returned is called
   * once the change is stored, and does not reject: pulses that a host has are withdrawn, so that none fires the former relay
   * afterwards, and what an earlier one still keeps closed is opened, where the device can.
   */
  releaseRelay(row: Rs485Row): () => Promise<void>;
}

export function openPulses(options: PulseOptions): Pulses {
  const { table, actuations, clock } = options;
  const handedOver = openHandedOver();
  const send = ({ row, pulse }: Aim, timeoutMs: number, withdrawn: AbortSignal) =>
    handedOver.fire(row.device_id, withdrawn, (signal) => handOver(options, row, pulse, timeoutMs, signal));

  async function fire(
    aimed: Aim,
    { principal, correlationId, arrivedAt, isGone, hungUp = new AbortController().signal }: Caller,
  ): Promise<PulseResult> {
    const { row, pulse } = aimed;
    const startedAt = arrivedAt ?? clock.monotonic();
    const { relay, milliseconds } = pulse;
    const object = `rs485/${row.device_id}`;
    const asked = { way: 'rs485', arrivedAt: startedAt } as const;
    const intent = { principal, action: PULSE, object, correlationId, ...asked };
    await actuations.begin(intent, { relay, milliseconds, doorId: row.door_id });
    const hasHungUp = await isGone?.();
    // Last of all: whatever was waited for has to count.
    const timeoutMs = Math.floor(DEADLINE_MS - (clock.monotonic() - startedAt));
    const late = hasHungUp ? HUNG_UP : timeoutMs < 1 && LATE;
    const refusal = late ? unsent(late) : misaimed(options, aimed);
    const end = refusal ? { refusal } : await send(aimed, timeoutMs, hungUp);
    const [outcome, detail] =
      'result' in end
        ? [end.result.outcome === 'confirmed' ? 'done' : 'unknown', { ...end.result, reason: end.reason }]
        : ['failed', { relay, milliseconds, error: end.refusal.code, reason: end.refusal.message }];
    await actuations.end(intent, outcome, detail);
    if ('refusal' in end) throw end.refusal;
    return end.result;
  }

  return {
    releaseRelay(row) {
      const held = heldBy(row, options);
      return async () => {
        await handedOver.callOff(row.device_id);
        if (held) await endPulse(options, row, held);
      };
    },
    async pulse(deviceId, caller) {
      const aimed = aim(options, deviceId);
      return actuations.exclusive(`rs485/${deviceId}`, () => fire(aimed, caller));
    },
    assertRelayProven(deviceId) {
      const row = existing(table, deviceId);
      options.watchdogs.assertNotTested(deviceId);
      const known = options.reported.get(deviceId);
      if (!known?.connected) return;
      const { relayIndex } = relayOf(options.settings, row);
      assertProven(options.watchdogProofs, row, known.state, relayIndex);
    },
    async holdRelay(relay, { milliseconds, timeoutMs }, signal) {
      const { row, pulse } = aim(options, relay.deviceId);
      if (row.bus !== relay.bus || row.hw_id !== relay.hwId || pulse.relay !== relay.relayIndex)
        throw noRelay(
          `Nothing was fired: output${relay.relayIndex} of ${relay.hwId} on bus ${relay.bus} is not the relay in force of device ${row.device_id}.`,
        );
      const end = await send({ row, pulse: { ...pulse, milliseconds } }, timeoutMs, signal);
      if ('refusal' in end) throw end.refusal;
      return end.result;
    },
  };
}

interface Aim {
  row: Rs485Row;
  pulse: Pulse;
}

/** Throws what is known to be in the way before anything is sent. */
function aim(options: PulseOptions, deviceId: string): Aim {
  const row = existing(options.table, deviceId);
  options.watchdogs.assertNotTested(deviceId);
  const known = options.reported.get(deviceId);
  if (!options.buses.isUp(row.bus)) throw offline(row, 'its bus is down, and the state of the bus says why');
  const untrusted = known?.connected ? undefined : untrustedBy(row, known?.state);
  if (untrusted) throw untrusted;
  const pulse = pulseOf(options, row, known?.state);
  if (!known?.connected)
    throw offline(
      row,
      unfedReason(row, known?.state, options.buses) ??
        'it has left the last questions unanswered, or is being read after a start or a test of its watchdog',
    );
  assertProven(options.watchdogProofs, row, known.state, pulse.relay);
  return { row, pulse };
}

/** Why it is not to be fired any more: all that was known may change while the intent is stored. */
function misaimed(options: PulseOptions, aimed: Aim): GatehouseError | undefined {
  const { device_id: deviceId } = aimed.row;
  const { relay } = aimed.pulse;
  try {
    const { row, pulse } = aim(options, deviceId);
    const isSame =
      row.bus === aimed.row.bus &&
      row.hw_id === aimed.row.hw_id &&
      row.door_id === aimed.row.door_id &&
      row.relay_index === aimed.row.relay_index &&
      pulse.relay === relay;
    if (isSame) return undefined;
  } catch (error) {
    if (error instanceof GatehouseError) return error;
    throw error;
  }
  return changedMeanwhile(deviceId);
}

/** Throws NO_RELAY. */
function pulseOf({ settings }: PulseOptions, row: Rs485Row, report: Rs485Report | undefined): Pulse {
  const { relayIndex, unlockDurationMilliseconds } = relayOf(settings, row);
  const milliseconds = unlockDurationMilliseconds ?? report?.effectiveUnlockMilliseconds ?? DURATION_MS;
  return {
    hwId: row.hw_id,
    relay: relayIndex,
    milliseconds: Math.min(milliseconds, UNLOCK_MAX_MS),
    settingsVersion: settings.reportedVersion(row),
  };
}

async function handOver(
  { field, log }: PulseOptions,
  row: Rs485Row,
  pulse: Pulse,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<End> {
  const { relay, milliseconds } = pulse;
  const unknown = (reason: string): End => ({
    result: { relay, milliseconds, outcome: 'unknown', timedBy: null },
    reason,
  });
  try {
    const command = { kind: 'pulse', data: pulse, timeoutMs };
    const answer = pulsed.safeParse(await field.execute(row.bus, command, signal));
    return answer.data
      ? { result: { ...answer.data, outcome: 'confirmed' }, reason: null }
      : unknown('the driver answered what is no answer');
  } catch (error) {
    // Only what was not handed over to a driver rejects with the reason of the signal.
    if (signal.aborted && error === signal.reason)
      return { refusal: error instanceof GatehouseError ? error : unsent(HUNG_UP) };
    if (!(error instanceof DriverError)) {
      log.error({ device: row.device_id, err: error }, 'a relay pulse failed for a reason of ours');
      return unknown('the gateway itself failed; its log says why');
    }
    switch (error.code) {
      case 'LINK_LOST':
      case 'DEVICE_OFFLINE':
      case 'DEADLINE_PASSED':
        return { refusal: calledOff(signal) ?? offline(row, error.message) };
      case 'BUSY':
        return { refusal: new GatehouseError('QUEUE_FULL', `Nothing was fired: ${error.message}.`) };
      case 'REFUSED':
        return { refusal: noRelay(`The device fired nothing: ${error.message}.`) };
      case 'INVALID_COMMAND':
      case 'INVALID_OPTIONS':
        log.error({ device: row.device_id, err: error }, 'a driver did not take a pulse of ours');
        return { refusal: ownFault('Nothing was fired', error) };
      // It was sent, and what came back says nothing for certain.
      case 'NO_REPLY':
      case 'BAD_REPLY':
      case 'OUTCOME_UNKNOWN':
        return unknown(error.message);
    }
  }
}

/** The device was changed meanwhile. */
function calledOff({ reason }: AbortSignal): GatehouseError | undefined {
  return reason instanceof GatehouseError ? reason : undefined;
}

/** Neither the device nor its bus is in the way. */
function unsent(reason: string): GatehouseError {
  return new GatehouseError('DEVICE_OFFLINE', `Nothing was fired: ${reason}. Send it again.`);
}

function offline({ device_id, bus }: Rs485Row, reason: string): GatehouseError {
  return new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was fired: device ${device_id} cannot be reached (${reason}). See to its power and to bus ${bus}.`,
  );
}

/** It answers, and nothing may be said to it: not its power or its wires are in the way. */
function untrustedBy(
  { device_id, bus, address }: Rs485Row,
  report: Rs485Report | undefined,
): GatehouseError | undefined {
  const place = `address ${report?.address ?? address} of bus ${bus}`;
  const pairing = `gatehouse osdp pair ${bus} ${report?.address ?? address}`;
  const refuse = (what: string) =>
    new GatehouseError('DEVICE_OFFLINE', `Nothing was fired: device ${device_id} at ${place} ${what}.`);
  switch (report?.sessionFault) {
    case 'wrongKey':
      return refuse(
        `answers, but refuses the key that is stored for it. If it was swapped or reset, put it into its install mode and pair it (${pairing}); if not, another device may be at its address`,
      );
    case 'downgrade':
      return refuse(
        `answers, but offers no session under its own key, as after a reset. If it was swapped or reset, pair it (${pairing}); if not, somebody may be between it and the gateway`,
      );
    case 'securityRequired':
      return refuse(
        `answers, but requires a secure channel, and the configuration says secure: off. Take that out of the configuration, and pair it (${pairing})`,
      );
    case 'duplicateAddress':
      return refuse(
        'is not the only one that answers there. Disconnect one of the two devices, give the other one another address, and connect it again',
      );
    default:
  }
  if (report?.security === 'unpaired') return refuse(`has no key yet: pair it (${pairing})`);
  return undefined;
}

/**
 * Pulses that a host has and that are not settled yet. A device that is replaced, or given another relay or door, is no more the
 * one that they were aimed at: they are called off, and the change is answered when none of them can close a relay any more.
 */
function openHandedOver() {
  const underWay = new Map<string, Set<{ stop: AbortController; settled: Promise<unknown> }>>();
  return {
    /** Fires with a signal that also fires when the pulse is called off; its reason is then a GatehouseError. */
    async fire<Result>(
      deviceId: string,
      signal: AbortSignal,
      fire: (signal: AbortSignal) => Promise<Result>,
    ): Promise<Result> {
      const stop = new AbortController();
      const result = fire(AbortSignal.any([signal, stop.signal]));
      const one = { stop, settled: result.catch(() => undefined) };
      const all = underWay.get(deviceId) ?? new Set();
      underWay.set(deviceId, all.add(one));
      try {
        return await result;
      } finally {
        all.delete(one);
        if (all.size === 0) underWay.delete(deviceId);
      }
    },
    /** Resolves when each is settled, at the latest when its time is over. */
    async callOff(deviceId: string): Promise<void> {
      const all = [...(underWay.get(deviceId) ?? [])];
      for (const { stop } of all) stop.abort(changedMeanwhile(deviceId));
      await Promise.all(all.map(({ settled }) => settled));
    },
  };
}

function changedMeanwhile(deviceId: string) {
  return noRelay(
    `Nothing was fired: device ${deviceId} was replaced, or given another relay or door, before its relay was fired. Send it again.`,
  );
}

/** The change is answered after so long at the latest. */
const END_MS = 2_000;

async function endPulse({ field, log }: PulseOptions, row: Rs485Row, held: EndPulse): Promise<void> {
  try {
    const command = { kind: 'endPulse', data: held, timeoutMs: END_MS };
    await field.execute(row.bus, command, new AbortController().signal);
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    log.info(
      { device: row.device_id, relay: held.relay, err: error.message },
      'the former relay of a device is left to the end of its pulse',
    );
  }
}

/** undefined: there is none, or it cannot be reached. */
function heldBy(row: Rs485Row, { reported, settings }: PulseOptions): EndPulse | undefined {
  const now = reported.get(row.device_id);
  if (!now?.connected) return undefined;
  try {
    return { hwId: row.hw_id, relay: relayOf(settings, row).relayIndex };
  } catch (error) {
    if (error instanceof GatehouseError) return undefined;
    throw error;
  }
}

/**
 * One polled device. It is connected from the moment when its session is online and everything was read in it, until it is
 * silent for too long. Its policy says which security it must have; only a pairing window allows less (maintenance.ts).
 */

import type { Bus } from '../bus/bus.ts';
import type { Poll } from '../bus/exchange.ts';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Clock, DriverLog } from '../contract/driver.ts';
import { type Rs485Report, SESSION_FAULTS } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { assertAlone, MEET_EVERY_MS } from '../rs485/registry.ts';
import { type AddressConflict, openAddressConflict } from './address-conflict.ts';
import { type DeviceSession, openDeviceSession } from './device-session.ts';
import { type DeviceState, hwIdOf, openDeviceState } from './device-state.ts';
import type { LateReplies } from './late-replies.ts';
import { openEnforcement, type Policy, provenPending, securityOf } from './policy.ts';
import {
  type DeviceReadout,
  openDeviceReadout,
  openPresence,
  type Presence,
  type PresenceOptions,
} from './presence.ts';
import type { Alarm } from './protocol/alarms.ts';
import type { Check } from './protocol/frame.ts';
import type { Identity, Reply } from './protocol/messages.ts';
import { channelOf, type Effect, type Security } from './protocol/state.ts';

export interface Device extends Disposable {
  readonly address: number;
  readonly poll: Poll;
  readonly session: DeviceSession;
  readonly state: DeviceState;
  hwId(): string | undefined;
  connected(): boolean;
  /** No device answers there any more. */
  isGone(): boolean;
  /** Takes effect now, or at the end of a pairing window. The same policy again changes nothing. */
  setPolicy(policy: Policy): void;
  /** Opens a pairing window: starts a new session under this security. */
  beginPairing(security: Security): void;
  /** Ends the window. The session goes on if the device has proved the key of its policy; else a new one begins. */
  endPairing(): void;
  /** Starts a new session: the device may have moved to another address. */
  restart(): void;
  onPairing(listener: PairingListener | undefined): void;
  /** Replies have been garbled for some time. */
  isGarbled(): boolean;
  /** The security alarms that are raised now. */
  alarms(): readonly Alarm[];
  /** Reports the state to the daemon if it has changed, or in any case with `again`. */
  report(again?: boolean): void;
  /** The advice for a technician; undefined when nothing is wrong. */
  warning(): BusWarning | undefined;
}

export interface PairingListener {
  /** The device has taken its key, and has proved it. */
  paired(): void;
  /** Two devices answer: neither is given the key. */
  contested(): void;
  /** The device has a key already, and keeps it. */
  keyed(): void;
  /** The device has refused the key that it was given. */
  refused(): void;
}

export interface DeviceOptions
  extends Omit<PresenceOptions, 'state' | 'security' | 'sessionFault' | 'provenKey' | 'exchanged'> {
  check: Check;
  policy: Policy;
  everyMs: number;
  bus: Pick<Bus, 'exchange'>;
  lateReplies: LateReplies;
  clock: Clock;
  log: DriverLog;
  /** Fires when the driver closes. */
  closing: AbortSignal;
  /** The hwId that is expected here. */
  expected(): string | undefined;
  addEvent(event: DeviceEvent): void;
}

/** A device that receives no command for 8 s ends its session (SIA OSDP 2.2, 5.7); some commands may be lost. */
const KEPT_EVERY_MS = 2_000;
/** A device without a key is only identified. */
const LOOK_EVERY_MS = 1_000;

export function openDevice(options: DeviceOptions): Device {
  const { address, policy: first } = options;
  const state = openDeviceState(options);
  let pairing: PairingListener | undefined;
  const conflict = openAddressConflict();
  const { isLooking, policy, unproven, isAway, ...held } = openEnforcement(first, begin, () => session);
  const alarms = openSecurityAlarmEvents(options, state);
  const presence = openPresence({
    ...options,
    state,
    security: () => securityNow(session, policy(), isLooking()),
    sessionFault: () => SESSION_FAULTS.find((fault) => alarms.raised().includes(fault)) ?? null,
    provenKey: () => provenPending(session.state(), policy()),
    exchanged() {
      session.dismiss();
      readout.begin();
    },
  });

  const parts: Parts = {
    state,
    presence,
    alarms,
    conflict,
    isLooking,
    pairing: () => pairing,
    readout: () => readout,
    unproven,
  };
  const effect = openEffects(options, parts);

  /** After each exchange. */
  function exchanged(answered: boolean, garbled: boolean): void {
    conflict.exchanged(answered, garbled);
    const { stage } = session.state();
    if (stage.kind === 'cooldown') presence.disconnect();
    presence.exchanged(answered, stage.kind === 'online');
    if (presence.isGone()) {
      session.forget();
      conflict.forget();
      isAway();
    } else if (stage.kind === 'online' && stage.agenda.length === 0) readout.readDue();
  }

  const { isGone, report } = presence;
  const session = openDeviceSession({
    ...options,
    isLooking,
    isGone,
    effect,
    exchanged,
    security: securityOf(first),
  });
  const readout = openDeviceReadout(options, state, session, presence);

  function begin(security: Security): void {
    alarms.clear();
    session.begin(security);
    readout.end();
    presence.disconnect();
    report();
  }

  return {
    ...held,
    address,
    session,
    state,
    hwId: state.hwId,
    report,
    isGone,
    connected: presence.connected,
    alarms: alarms.raised,
    poll: openPoll(options, session, isLooking),
    onPairing(listener) {
      pairing = listener;
    },
    isGarbled: conflict.isGarbled,
    warning: () => warningOf(address, parts),
    [Symbol.dispose]() {
      session.close();
      readout.end();
      presence.disconnect();
    },
  };
}

interface Parts {
  state: DeviceState;
  presence: Presence;
  alarms: SecurityAlarmEvents;
  conflict: AddressConflict;
  isLooking(): boolean;
  pairing(): PairingListener | undefined;
  readout(): DeviceReadout;
  /** The device does not have the pending key. */
  unproven(): void;
}

function openEffects({ address, log }: Pick<DeviceOptions, 'address' | 'log'>, parts: Parts) {
  const { state, presence, alarms, conflict, isLooking, pairing, readout, unproven } = parts;
  function heard(reply: Reply, askedAt: number): void {
    state.heard(reply, askedAt);
    if (reply.kind === 'ISTATR') readout().inputsChanged();
    presence.report();
  }

  function alarmed(alarm: Alarm, raised: boolean): void {
    alarms.set(alarm, raised);
    presence.report();
    if (alarm === 'keyRefused' && raised) pairing()?.refused();
  }

  /** The device has named its identity in clear text. */
  function claimed(identity: Identity): void {
    conflict.identified(hwIdOf(identity));
    const isDuplicate = conflict.isDuplicate();
    if (isLooking() && isDuplicate !== alarms.raised().includes('duplicateAddress'))
      alarmed('duplicateAddress', isDuplicate);
    // While two identities alternate, neither counts as the device of this address.
    if (!isDuplicate) presence.identified(identity, true);
  }

  return (what: Effect, askedAt: number): void => {
    if (what.kind === 'identity' && what.isProven && !isLooking()) presence.identified(what.identity, false);
    else if (what.kind === 'identity') claimed(what.identity);
    else if (what.kind === 'capabilities' && what.isProven) state.able(what.capabilities);
    else if (what.kind === 'quiet') state.quiet(askedAt);
    else if (what.kind === 'reported') heard(what.reply, askedAt);
    else if (what.kind === 'alarm') alarmed(what.alarm, what.raised);
    else if (what.kind === 'online') readout().begin();
    else if (what.kind === 'paired') pairing()?.paired();
    else if (what.kind === 'contested') pairing()?.contested();
    else if (what.kind === 'keyed') pairing()?.keyed();
    else if (what.kind === 'unproven') unproven();
    else if (what.kind === 'restarted')
      log.info({ address, reason: what.reason }, 'a session with a device begins again');
    // `odd`: many devices answer under the security block of a command, and their MAC is good.
  };
}

function warningOf(
  address: number,
  { state, presence, alarms, conflict, ...parts }: Parts,
): BusWarning | undefined {
  const hwId = state.hwId();
  const raised = alarms.raised();
  const isLooking = parts.isLooking();
  if (raised.includes('duplicateAddress')) return busWarning('ADDRESS_TWICE', { address });
  if (conflict.isGarbled()) return busWarning('ADDRESS_UNREADABLE', { address });
  if (presence.isConflict()) return busWarning('NAME_TWICE', { hwId: hwId ?? '', address });
  // The device may be at another address now, under a key.
  if (isLooking && presence.isGone()) return undefined;
  if (isLooking) return hwId === undefined ? undefined : busWarning('NO_KEY', { address, hwId });
  if (raised.length === 0) return undefined;
  const isUnproven = raised.some((alarm) => alarm === 'wrongKey' || alarm === 'downgrade');
  return busWarning(isUnproven ? 'UNPROVEN_DEVICE' : 'DEVICE_ALARM', { address, alarms: raised.join(', ') });
}

function securityNow(
  session: DeviceSession,
  policy: Policy,
  isLooking: boolean,
): NonNullable<Rs485Report['security']> {
  if (isLooking) return 'unpaired';
  const { stage } = session.state();
  if (stage.kind === 'online' && stage.channel) return 'secure';
  if (policy.kind === 'unpaired') return 'unpaired';
  return policy.kind === 'off' ? 'clear' : 'none';
}

function openPoll(options: DeviceOptions, session: DeviceSession, isLooking: () => boolean): Poll {
  const { address } = options;
  const everyMs = Math.min(options.everyMs, KEPT_EVERY_MS);
  /** While a device answers, its session is set up as fast as the wire allows. */
  let hurries = true;
  return {
    address,
    get everyMs() {
      if (isLooking()) return Math.max(everyMs, LOOK_EVERY_MS);
      const { stage } = session.state();
      if (stage.kind === 'cooldown') return everyMs;
      if (stage.kind === 'online' && stage.agenda.length === 0) return everyMs;
      return hurries ? 0 : Math.min(everyMs, MEET_EVERY_MS);
    },
    begin: session.exchange,
    settle(outcome) {
      hurries = 'reply' in outcome;
      session.conclude();
    },
    // Three misses do not end a session: a command that was sent in it may still be answered (presence.ts).
    alive: session.conclude,
  };
}

interface SecurityAlarmEvents {
  set(alarm: Alarm, raised: boolean): void;
  /** Another session says what is wrong with it. */
  clear(): void;
  raised(): readonly Alarm[];
}

/** What is wrong with the wire to one device, published when it begins and when it ends. */
function openSecurityAlarmEvents(
  { address, log, addEvent, expected }: DeviceOptions,
  state: DeviceState,
): SecurityAlarmEvents {
  const names = new Set<Alarm>();

  function set(alarm: Alarm, raised: boolean): void {
    if (names.has(alarm) === raised) return;
    if (raised) names.add(alarm);
    else names.delete(alarm);
    const hwId = state.hwId() ?? expected();
    log.warn(
      { address, hwId, alarm, raised },
      raised ? 'the wire to a device is suspect' : 'the wire to a device is suspect no more',
    );
    if (hwId !== undefined) addEvent({ kind: 'alarm', hwId, alarm, raised });
  }

  return {
    set,
    clear() {
      for (const alarm of [...names]) set(alarm, false);
    },
    raised: () => [...names],
  };
}

/**
 * What changes a device is sent to one alone: two in clear text at one address would both carry it out. Under a key of its own
 * no other device does. Throws REFUSED.
 */
export function assertAloneInClear(bus: Pick<Bus, 'isContested'>, device: Device): void {
  if (channelOf(device.session.state())) return;
  const areTwo = bus.isContested(device.address) || device.alarms().includes('duplicateAddress');
  assertAlone(areTwo, device.address);
}

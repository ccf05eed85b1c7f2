/**
 * One polled device. It is connected from the moment when its session is online and everything was read in it (readout.ts), until it
 * is silent for too long. Its policy says which security it must have (policy.ts); only a pairing window allows less (pairing.ts).
 */

import type { Bus } from '../bus/bus.ts';
import type { Poll } from '../bus/exchange.ts';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Rs485Report } from '../contract/settings.ts';
import { assertAlone, MEET_EVERY_MS } from '../rs485/registry.ts';
import { type AddressConflict, openAddressConflict } from './address-conflict.ts';
import { type DeviceSession, openDeviceSession } from './device-session.ts';
import { type DeviceState, hwIdOf, openDeviceState, type StateOptions } from './device-state.ts';
import type { LateReplies } from './late-replies.ts';
import { type Enforcement, openEnforcement, type Policy, provenPending, securityOf } from './policy.ts';
import type { Alarm } from './protocol/alarms.ts';
import type { Check } from './protocol/frame.ts';
import type { Identity, Reply } from './protocol/messages.ts';
import { channelOf, type Effect, type Security } from './protocol/state.ts';
import { type DeviceReadout, openDeviceReadout } from './readout.ts';

export interface Device
  extends Disposable,
    Pick<Enforcement, 'setPolicy' | 'beginPairing' | 'endPairing' | 'restart'> {
  readonly address: number;
  readonly poll: Poll;
  readonly session: DeviceSession;
  readonly state: DeviceState;
  hwId(): string | undefined;
  connected(): boolean;
  /** No device answers there any more. */
  isGone(): boolean;
  onPairing(listener: PairingListener | undefined): void;
  /** Replies have been garbled for some time. */
  isGarbled(): boolean;
  /** The security alarms that are raised now. */
  alarms(): readonly Alarm[];
  /** Reports the state to the daemon if it has changed, or in any case with `again`. */
  report(again?: boolean): void;
  /** The advice for a technician; undefined when nothing is wrong. */
  warning(): BusWarning | undefined;
  /** It was met at another address (registry.ts). */
  moved(): void;
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

export interface DeviceOptions extends StateOptions {
  check: Check;
  policy: Policy;
  everyMs: number;
  bus: Pick<Bus, 'exchange'>;
  lateReplies: LateReplies;
  /** Fires when the driver closes. */
  closing: AbortSignal;
  pulse(): Rs485Report['pulse'];
  /** Takes the name for this device; false: another one that is connected has it. */
  claim(hwId: string): boolean;
  /** Another one that is connected has the name. */
  isTaken(hwId: string): boolean;
  reportState(report: Rs485Report): void;
  /** It is connected no more. */
  lost(): void;
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
  const enforcement = openEnforcement(first, begin, () => session);
  const { isLooking, policy, unproven, isAway } = enforcement;
  const presence = openPresence(options, state, {
    security: () => securityNow(session, policy(), isLooking()),
    provenKey: () => provenPending(session.state(), policy()),
    replaced() {
      session.dismiss();
      readout.begin();
    },
  });

  const parts: Parts = {
    state,
    presence,
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
    isThere: (hwId) => presence.connected() && state.hwId() === hwId,
    effect,
    exchanged,
    security: securityOf(first),
  });
  const readout = openDeviceReadout(options, state, session, presence);

  function begin(security: Security): void {
    state.clearAlarms();
    session.begin(security);
    readout.end();
    presence.disconnect();
    report();
  }

  return {
    setPolicy: enforcement.setPolicy,
    beginPairing: enforcement.beginPairing,
    endPairing: enforcement.endPairing,
    restart: enforcement.restart,
    address,
    session,
    state,
    hwId: state.hwId,
    report,
    isGone,
    connected: presence.connected,
    alarms: state.alarms,
    poll: openPoll(options, session, isLooking),
    onPairing(listener) {
      pairing = listener;
    },
    isGarbled: conflict.isGarbled,
    warning: () => warningOf(address, parts),
    moved: state.forgetCounters,
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
  conflict: AddressConflict;
  isLooking(): boolean;
  pairing(): PairingListener | undefined;
  readout(): DeviceReadout;
  /** The device does not have the pending key. */
  unproven(): void;
}

function openEffects({ address, log }: Pick<DeviceOptions, 'address' | 'log'>, parts: Parts) {
  const { state, presence, conflict, isLooking, pairing, readout, unproven } = parts;
  function heard(reply: Reply, askedAt: number): void {
    state.heard(reply, askedAt);
    if (reply.kind === 'ISTATR') readout().inputsChanged();
    presence.report();
  }

  function alarmed(alarm: Alarm, raised: boolean): void {
    state.alarm(alarm, raised);
    presence.report();
    if (alarm === 'keyRefused' && raised) pairing()?.refused();
  }

  /** The device has named its identity in clear text. */
  function claimed(identity: Identity): void {
    conflict.identified(hwIdOf(identity));
    const isDuplicate = conflict.isDuplicate();
    if (isLooking() && isDuplicate !== state.alarms().includes('duplicateAddress'))
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

function warningOf(address: number, { state, presence, conflict, ...parts }: Parts): BusWarning | undefined {
  const hwId = state.hwId();
  const raised = state.alarms();
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

// Whether it is connected, under which name, and what is reported of it.

interface Presence extends Pick<Device, 'connected' | 'isGone' | 'report'> {
  /** Everything was read in its session. False: another device that is connected has its name. */
  connect(): boolean;
  disconnect(): void;
  /** After each exchange: whether it answered, and whether a session stands. After some time without it counts as gone. */
  exchanged(answered: boolean, isOnline: boolean): void;
  /** `hearsay`: anybody may have said it. */
  identified(identity: Identity, hearsay: boolean): void;
  /** Another device that is connected has its name. */
  isConflict(): boolean;
}

/** What the session proves, for what is reported of the device. */
interface Standing {
  security(): NonNullable<Rs485Report['security']>;
  /** Names the pending key, once the session that stands proves it. */
  provenKey(): string | undefined;
  /** Another device is where one was that is known. */
  replaced(): void;
}

/** A device that is not heard of inside a session for so long is off-line (5.7). */
const OFFLINE_AFTER_MS = 8_000;
/** More than the bad luck of a bad wire: it is asked half a dozen times meanwhile. */
const GONE_AFTER_MS = 1_500;

function openPresence(options: DeviceOptions, state: DeviceState, standing: Standing): Presence {
  const { address, clock, log } = options;
  let connected = false;
  let isConflict = false;
  let withoutSince: number | undefined;
  let silentSince: number | undefined = Number.NEGATIVE_INFINITY;
  let reported = '';

  function report(again = false): void {
    const provenKey = standing.provenKey();
    const whole = state.report({
      connected,
      security: standing.security(),
      sessionFault: isGone() ? null : state.sessionFault(),
      pulse: connected ? options.pulse() : null,
      ...(provenKey !== undefined && { provenKey }),
    });
    // A device that only claims a name proves nothing about the device that has it.
    if (!whole || (!connected && options.isTaken(whole.hwId))) return;
    const { readAt: _, ...facts } = whole;
    const text = JSON.stringify(facts);
    if (text === reported && !again) return;
    reported = text;
    options.reportState(whole);
  }

  function disconnect(): void {
    if (!connected) return;
    connected = false;
    options.lost();
    report();
  }

  const isGone = () => silentSince !== undefined && clock.monotonic() - silentSince >= GONE_AFTER_MS;
  return {
    isGone,
    report,
    disconnect,
    connected: () => connected,
    isConflict: () => isConflict,
    connect() {
      const hwId = state.hwId();
      if (hwId === undefined) return false;
      isConflict = !options.claim(hwId);
      if (isConflict) return false;
      connected = true;
      report();
      return true;
    },
    exchanged(answered, isOnline) {
      silentSince = answered ? undefined : (silentSince ?? clock.monotonic());
      withoutSince = isOnline ? undefined : (withoutSince ?? clock.monotonic());
      const isLost = withoutSince !== undefined && clock.monotonic() - withoutSince >= OFFLINE_AFTER_MS;
      if (isLost || isGone()) disconnect();
    },
    identified(identity, hearsay) {
      // A name in clear text does not move a device from its address.
      if (hearsay && connected) return;
      const gone = state.report({ connected: false, security: 'none', sessionFault: null, pulse: null });
      const isOther = state.meet(identity);
      if (isOther && gone) standing.replaced();
      if (isOther && gone && connected) {
        connected = false;
        options.lost();
        options.reportState({ ...gone, levels: {} });
        log.warn(
          { address, before: gone.hwId, now: hwIdOf(identity) },
          'another device answers where one was',
        );
      }
      if (!connected) report();
    },
  };
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
    // Three misses do not end a session: a command that was sent in it may still be answered (OFFLINE_AFTER_MS).
    alive: session.conclude,
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

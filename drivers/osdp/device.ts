/**
 * One device as it is polled: connected once its session stands and everything was read in it, and as long as it is heard
 * of in one. Who may speak how is its policy; a pairing window is the only time when that is less (pairing.ts).
 */
import type { Bus } from '../bus/bus.ts';
import type { Poll } from '../bus/exchange.ts';
import type { Clock, DriverLog } from '../contract/driver.ts';
import { type Rs485Report, SESSION_FAULTS } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { MEET_EVERY_MS } from '../rs485/polling.ts';
import { type Alarms, openAlarms } from './alarms.ts';
import { type DeviceState, hwIdOf, openDeviceState } from './device-state.ts';
import type { Lateness } from './lateness.ts';
import { type Meeting, openMeeting } from './meeting.ts';
import { isSamePolicy, keyProvenUnder, type Policy, provenPending, securityOf } from './policy.ts';
import { openPresence, type Presence, type PresenceOptions } from './presence.ts';
import type { Check } from './protocol/frame.ts';
import type { Identity, Reply } from './protocol/messages.ts';
import type { Alarm } from './protocol/security-alarms.ts';
import type { Effect, Security } from './protocol/state.ts';
import { openTalk, type Talk } from './talk.ts';
import { garbledAt, openTwins, type Twins, twinsAt } from './twins.ts';

export interface Device extends Disposable {
  readonly address: number;
  readonly poll: Poll;
  readonly talk: Talk;
  readonly state: DeviceState;
  connected(): boolean;
  /** No device answers there. */
  isGone(): boolean;
  /** From now on, or from the end of a pairing window; the same again changes nothing. */
  police(policy: Policy): void;
  /** Opens a pairing window: starts a new session under this security. */
  loosen(security: Security): void;
  /** Ends it. A device that has proved the key it must have goes on as it is. */
  tighten(): void;
  /** Starts a new session: the device may be at another address by now. */
  restart(): void;
  onPairing(listener: PairingListener | undefined): void;
  /** Something answers, and for some time nothing of it was understood. */
  isGarbled(): boolean;
  /** What is wrong with it now, by name. */
  alarms(): readonly Alarm[];
  /** Reports what is known; only when something is new, unless `again`. */
  report(again?: boolean): void;
  /** What a technician should mend. */
  warning(): string | undefined;
}

export interface PairingListener {
  /** The device has taken its key, and has proved it. */
  paired(): void;
  /** Two devices answer, and neither is given the key. */
  contested(): void;
  /** The device insists on a key that it has already. */
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
  lateness: Lateness;
  clock: Clock;
  log: DriverLog;
  /** Fires when the driver closes. */
  closing: AbortSignal;
  /** The name that is expected here. */
  awaited(): string | undefined;
  tellEvent(event: DeviceEvent): void;
}

/** A device that is asked nothing for 8 s ends its session (SIA OSDP 2.2, 5.7); some questions may be lost. */
const KEPT_EVERY_MS = 2_000;
/** A device without a key is only looked for. */
const LOOK_EVERY_MS = 1_000;

export function openDevice(options: DeviceOptions): Device {
  const { address } = options;
  const state = openDeviceState(options);
  let pairing: PairingListener | undefined;
  const twins = openTwins();
  const { isLooking, policy, unproven, isAway, ...enforcement } = openEnforcement(options.policy, {
    talk: () => talk,
    begin,
  });
  const alarms = openAlarms({ ...options, hwId: () => state.hwId() ?? options.awaited() });
  const presence = openPresence({
    ...options,
    state,
    security: () => securityNow(talk, policy(), isLooking()),
    sessionFault: () => SESSION_FAULTS.find((fault) => alarms.raised().includes(fault)) ?? null,
    provenKey: () => provenPending(talk.session(), policy()),
    exchanged() {
      talk.dismiss();
      meeting.begin();
    },
  });

  const parts: Parts = {
    state,
    presence,
    alarms,
    twins,
    isLooking,
    pairing: () => pairing,
    meeting: () => meeting,
    unproven,
  };
  const effect = openEffects(options, parts);

  /** After each turn. */
  function turned(answered: boolean, garbled: boolean): void {
    twins.turned(answered, garbled);
    const { stage } = talk.session();
    if (stage.kind === 'cooldown') presence.disconnect();
    presence.turned(answered, stage.kind === 'online');
    if (presence.isGone()) {
      talk.forget();
      twins.forget();
      isAway();
    } else if (stage.kind === 'online' && stage.agenda.length === 0) meeting.go();
  }

  const { isGone } = presence;
  const talk = openTalk({
    ...options,
    isLooking,
    isGone,
    effect,
    turned,
    security: securityOf(options.policy),
  });
  const { report } = presence;
  const meeting = openMeeting({ ...options, talk, state, met: presence.connect, changed: report });

  function begin(security: Security): void {
    alarms.clear();
    talk.begin(security);
    meeting.end();
    presence.disconnect();
    report();
  }

  return {
    ...enforcement,
    address,
    talk,
    state,
    report,
    isGone,
    connected: presence.connected,
    alarms: alarms.raised,
    poll: openPoll(options, talk, isLooking),
    onPairing(listener) {
      pairing = listener;
    },
    isGarbled: twins.isGarbled,
    warning: () => warningOf(address, parts),
    [Symbol.dispose]() {
      talk.close();
      meeting.end();
      presence.disconnect();
    },
  };
}

interface Enforced {
  talk(): Talk;
  /** Starts a new session under this security. */
  begin(security: Security): void;
}

/** Keeps a device to its policy, and to less in a pairing window. */
function openEnforcement(first: Policy, { talk, begin }: Enforced) {
  let policy = first;
  let isLoose = false;
  /** A key that the device may have been given is tried, until a few handshakes have shown that it has not got it. */
  const hasTentativeKey = () => policy.kind === 'unpaired' && policy.pending !== undefined;
  let isTentative = hasTentativeKey();
  const isLooking = () => policy.kind === 'unpaired' && !isLoose && !isTentative;

  function enforce(): void {
    isTentative = hasTentativeKey();
    begin(securityOf(policy));
  }

  return {
    policy: () => policy,
    /** It is only ever asked who it is. */
    isLooking,
    police(next: Policy): void {
      const isSame = isSamePolicy(policy, next);
      policy = next;
      if (isSame || isLoose) return;
      if (keyProvenUnder(talk().session(), policy)) isTentative = policy.kind === 'unpaired';
      else enforce();
    },
    /** The device does not have the pending key. */
    unproven(): void {
      isTentative = false;
      begin({ secure: 'off' });
    },
    /** It may be another one when it is back, with the pending key. */
    isAway(): void {
      if (isLooking() && hasTentativeKey()) enforce();
    },
    loosen(security: Security): void {
      isLoose = true;
      begin(security);
    },
    tighten(): void {
      isLoose = false;
      const proven = keyProvenUnder(talk().session(), policy);
      if (proven) talk().keepTo({ secure: 'required', key: proven });
      else enforce();
    },
    restart: enforce,
  };
}

interface Parts {
  state: DeviceState;
  presence: Presence;
  alarms: Alarms;
  twins: Twins;
  isLooking(): boolean;
  pairing(): PairingListener | undefined;
  meeting(): Meeting;
  /** The device does not have the key that it may have been given. */
  unproven(): void;
}

function openEffects({ address, log }: Pick<DeviceOptions, 'address' | 'log'>, parts: Parts) {
  const { state, presence, alarms, twins, isLooking, pairing, meeting, unproven } = parts;
  function heard(reply: Reply, askedAt: number): void {
    state.told(reply, askedAt);
    if (reply.kind === 'ISTATR') meeting().inputsChanged();
    presence.report();
  }

  function alarmed(alarm: Alarm, raised: boolean): void {
    alarms.set(alarm, raised);
    presence.report();
    if (alarm === 'keyRefused' && raised) pairing()?.refused();
  }

  /** In clear text. */
  function claimed(identity: Identity): void {
    twins.said(hwIdOf(identity));
    const areTwins = twins.takeTurns();
    if (isLooking() && areTwins !== alarms.raised().includes('duplicateAddress'))
      alarmed('duplicateAddress', areTwins);
    // While two devices answer in turn, neither counts as the one that is there.
    if (!areTwins) presence.identified(identity, true);
  }

  return (what: Effect, askedAt: number): void => {
    if (what.kind === 'identity' && what.isProven && !isLooking()) presence.identified(what.identity, false);
    else if (what.kind === 'identity') claimed(what.identity);
    else if (what.kind === 'capabilities' && what.isProven) state.able(what.capabilities);
    else if (what.kind === 'reported') heard(what.reply, askedAt);
    else if (what.kind === 'alarm') alarmed(what.alarm, what.raised);
    else if (what.kind === 'online') meeting().begin();
    else if (what.kind === 'paired') pairing()?.paired();
    else if (what.kind === 'contested') pairing()?.contested();
    else if (what.kind === 'keyed') pairing()?.keyed();
    else if (what.kind === 'unproven') unproven();
    else if (what.kind === 'restarted')
      log.info({ address, reason: what.reason }, 'a session with a device begins again');
    // `odd`: many devices answer under the security block of a command, and their MAC is good.
  };
}

function warningOf(address: number, { state, presence, alarms, twins, ...parts }: Parts): string | undefined {
  const hwId = state.hwId();
  const raised = alarms.raised();
  const isLooking = parts.isLooking();
  if (raised.includes('duplicateAddress')) return twinsAt(address);
  if (twins.isGarbled()) return garbledAt(address);
  if (presence.isConflict())
    return `another device answers as ${hwId} too, besides the one at address ${address}`;
  // It is elsewhere now, perhaps under a key.
  if (isLooking && presence.isGone()) return undefined;
  if (isLooking)
    return hwId && `the device at address ${address} (${hwId}) has no key: pair it (gatehouse osdp pair)`;
  if (raised.length === 0) return undefined;
  const isUnproven = raised.some((alarm) => alarm === 'wrongKey' || alarm === 'downgrade');
  const advice = isUnproven ? '; if it was swapped or reset, pair it (gatehouse osdp pair)' : '';
  return `the device at address ${address}: ${raised.join(', ')}${advice}`;
}

function securityNow(talk: Talk, policy: Policy, isLooking: boolean): NonNullable<Rs485Report['security']> {
  if (isLooking) return 'unpaired';
  const { stage } = talk.session();
  if (stage.kind === 'online' && stage.channel) return 'secure';
  if (policy.kind === 'unpaired') return 'unpaired';
  return policy.kind === 'off' ? 'clear' : 'none';
}

function openPoll(options: DeviceOptions, talk: Talk, isLooking: () => boolean): Poll {
  const { address } = options;
  const everyMs = Math.min(options.everyMs, KEPT_EVERY_MS);
  /** A device that answers is met as fast as the wire lets. */
  let hurries = true;
  return {
    address,
    get everyMs() {
      if (isLooking()) return Math.max(everyMs, LOOK_EVERY_MS);
      const { stage } = talk.session();
      if (stage.kind === 'cooldown') return everyMs;
      if (stage.kind === 'online' && stage.agenda.length === 0) return everyMs;
      return hurries ? 0 : Math.min(everyMs, MEET_EVERY_MS);
    },
    begin: talk.exchange,
    settle(outcome) {
      hurries = 'reply' in outcome;
      talk.conclude();
    },
    // Three misses are no reason to give up a session: what was sent in it may still be answered (presence.ts).
    alive: talk.conclude,
  };
}

/**
 * One device as it is polled. First contact, a restart and the end of a spell offline are one thing: everything is read
 * again (who it is, its settings whole, its state), and only then is it connected, under the name it has given.
 */

import type { Exchange, Poll } from '../bus/exchange.ts';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { DriverLog } from '../contract/driver.ts';
import type { Rs485Settings } from '../contract/settings.ts';
import { MEET_EVERY_MS } from '../rs485/registry.ts';
import { foreignProduct, identificationStep, type Step } from './contact-steps.ts';
import { type DeviceState, openState, type StateOptions } from './device-state.ts';
import { readBits, readRegisters } from './messages.ts';
import { isRefusal, openPollFailures, openStandIn, type PollFailures } from './poll-failures.ts';
import { identitySpans, pollSpans, productSpans } from './profile-areas.ts';
import type { Profile } from './profile-shape.ts';
import {
  areVersionsTwo,
  FUNCTION_CODES,
  type Image,
  isBitTable,
  readsOf,
  type Span,
  settingsBlock,
  spanOf,
} from './registers.ts';
import type { WatchdogGuard } from './watchdog-guard.ts';

export interface Device extends Disposable {
  readonly unit: number;
  readonly profile: Profile;
  readonly poll: Poll;
  /** As it said last; undefined before the first contact. */
  hwId(): string | undefined;
  /** As it says now: another one may be in its place. */
  shownName(): string | undefined;
  /** When it was asked for what shows that it is still this one (device-state.ts). */
  namedAt(): number;
  connected(): boolean;
  /** Why nothing is sent to it while it is not connected. */
  absence(): string;
  image(): Image;
  /** Another one may be in its place: its name is read next. */
  doubt(): void;
  /** In force; null: not known. */
  settings(): Rs485Settings | null;
  /** Of the settings in force; undefined: other ones may be (device-state.ts). */
  version(): number | undefined;
  /** In force as of now; `registers` as read back, or undefined where the driver keeps the settings. */
  applied(settings: Rs485Settings, version: number, registers: readonly number[] | undefined): void;
  /** What was read besides polls. */
  read(span: Span, values: readonly (number | boolean)[], askedAt: number): void;
  /** Reports again what is known, so that its age can be seen. */
  report(): void;
  /** What a technician should mend. */
  warning(): BusWarning | undefined;
  /** It was met at another address (registry.ts). */
  moved(): void;
}

export interface DeviceOptions extends StateOptions {
  everyMs: number;
  log: DriverLog;
  guard: WatchdogGuard;
  /** Takes the name for this device; false: another one that is connected has it. */
  claim(hwId: string): boolean;
  /** Another one that is connected has the name. */
  isTaken(hwId: string): boolean;
  /** All that a poll reads has been read. */
  polled(): void;
  /** Contacts have not opened every relay for too long. */
  staysClosed(): void;
}

type Phase =
  /** `named`: all was read, between this name and the one that is read now. */
  { kind: 'contact'; steps: readonly Step[]; named?: string | undefined } | { kind: 'known'; next: number };

export function openDevice(options: DeviceOptions): Device {
  const { unit, profile, log, guard } = options;
  const state = openState(options);
  let connected = false;
  /** It has restarted, perhaps in another place: nothing is sent to it by its name until that was read. */
  let isInDoubt = false;
  /** It is read again: what was read last may be of another one. */
  let isReadAgain = false;
  let warning: BusWarning | undefined;

  function warn(fault: BusWarning | undefined): void {
    if (fault !== undefined && fault.message !== warning?.message)
      log.warn({ address: unit, profile: profile.name }, fault.message);
    warning = fault;
  }

  function disconnect(): void {
    const was = connected;
    connected = isInDoubt = isReadAgain = false;
    if (was) state.report(connected);
  }

  const tries = openPollFailures(options, state, readStep(unit, state));
  const poll = openPoll(options, state, tries, {
    met: contactEndOf(options, state, {
      warn,
      disconnect,
      connect(hwId) {
        state.adopt(hwId);
        connected = true;
        isInDoubt = false;
        isReadAgain = false;
      },
    }),
    whole() {
      state.settle();
      state.report(connected);
      options.polled();
    },
    doubted() {
      if (state.hasChanged())
        log.info({ address: unit }, 'a device has restarted, or has other settings: it is read again');
      // Other settings alone are those that were just written.
      isInDoubt = state.hasChanged('restart');
      isReadAgain = true;
    },
    hindered(fault, isOtherProduct) {
      warn(fault);
      if (isOtherProduct) disconnect();
    },
    refused: (reason) =>
      warn(busWarning('PROFILE_REFUSED', { address: unit, profile: profile.name, reason })),
    lost({ reason, isDead }) {
      if (isDead) options.versions.gone(unit);
      if (reason !== undefined) log.warn({ address: unit }, reason);
      disconnect();
    },
  });
  return {
    unit,
    profile,
    poll,
    hwId: state.hwId,
    shownName: state.identify,
    namedAt: state.namedAt,
    image: state.image,
    doubt: state.doubt,
    settings: state.settings,
    version: state.version,
    read: state.take,
    connected: () => connected && !isInDoubt,
    absence: () =>
      `device ${unit} ${isInDoubt ? 'was restarted, and is read again before anything is sent to it' : 'has left the last questions unanswered, or is being read after a start or a test of its watchdog'}; nothing was sent`,
    applied(settings, version, registers) {
      state.applied({ settings, version, registers });
      state.report(connected);
    },
    report() {
      const hwId = state.hwId();
      if (isReadAgain || (connected && state.isDoubted())) return;
      // It is elsewhere now.
      if (!connected && hwId !== undefined && options.isTaken(hwId)) return;
      state.report(connected, true);
    },
    warning: () => warning ?? guard.warning(),
    moved: state.forget,
    [Symbol.dispose]() {
      options.versions.gone(unit);
      disconnect();
    },
  };
}

interface Presence {
  warn(fault: BusWarning | undefined): void;
  disconnect(): void;
  connect(hwId: string): void;
}

/** Everything was read: whether the device may be used. */
function contactEndOf(
  { unit, profile, guard, claim }: DeviceOptions,
  state: DeviceState,
  { warn, disconnect, connect }: Presence,
): Listener['met'] {
  let isReadTwice = false;
  return (before) => {
    const fault = guard.fault(state.image());
    const hwId = state.identify();
    // Under the name of the one before, commands for another door would reach it.
    if (hwId !== state.hwId()) disconnect();
    if (hwId === undefined) {
      warn(busWarning('NO_NAME', { address: unit, profile: profile.name }));
      return 'unfit';
    }
    if (profile.identity.hwId && hwId !== before) return before === undefined ? 'unsure' : 'exchanged';
    // Once: a product may show the version of a write before that is in force.
    isReadTwice = !isReadTwice && areVersionsTwo(state.image(), profile);
    if (isReadTwice) return 'exchanged';
    const isFree = claim(hwId);
    warn(fault ?? (isFree ? undefined : busWarning('NAME_TWICE', { hwId, address: unit })));
    if (fault !== undefined || !isFree) {
      disconnect();
      return 'unfit';
    }
    connect(hwId);
    return 'met';
  };
}

interface Listener {
  /**
   * `unsure`: who it is has to be read again, as devices may have changed places while the rest was read. `before`: that has been done, and this was its
   * name. `exchanged`: everything has to be read again.
   */
  met(before: string | undefined): 'met' | 'unsure' | 'exchanged' | 'unfit';
  /** All that a poll reads has been read. */
  whole(): void;
  /** It has restarted, has other settings, or another one may be in its place. */
  doubted(): void;
  /** The contact has to begin again. */
  hindered(fault: BusWarning, isOtherProduct: boolean): void;
  refused(reason: string): void;
  lost(why: Loss): void;
}

interface Loss {
  /** What is to be logged of it. */
  reason?: string;
  /** It does not answer. */
  isDead?: true;
}

function openPoll(options: DeviceOptions, state: DeviceState, tries: PollFailures, listener: Listener): Poll {
  const { unit, profile, guard } = options;
  const reading = readStep(unit, state);
  const polls = readsOf(pollSpans(profile)).map(reading);
  const checks = readsOf(guard.spans).map(reading);
  const contact = (): Phase => ({ kind: 'contact', steps: contactSteps(options, state, reading, polls) });
  const standIn = openStandIn();
  let rounds = 0;
  let phase = contact();
  let asked: Step | undefined;
  /** A device that answers is met as fast as the wire lets; one that does not waits for its time. */
  let hurries = true;
  /** What is asked now reads; else it feeds the watchdog. */
  let isPoll = true;

  const stepOf = (now: Phase) =>
    now.kind === 'contact' ? now.steps[0] : (polls[now.next] ?? checks[rounds % checks.length]);

  function lost(why: Loss = {}): Phase {
    listener.lost(why);
    return contact();
  }

  function after(phase: Phase): Phase {
    if (phase.kind === 'contact') {
      const [done, ...rest] = phase.steps;
      const steps = [...(done?.more?.() ?? []), ...rest];
      const hindrance = done?.hindrance?.();
      if (hindrance !== undefined) listener.hindered(hindrance, done?.identifies === true);
      else if (steps.length > 0) return { ...phase, steps };
      const met = hindrance === undefined ? listener.met(phase.named) : 'unfit';
      if (met === 'exchanged') return contact();
      if (met === 'unsure') return nameAgain(state, profile, reading);
      if (met === 'unfit') {
        hurries = false;
        if ((hindrance && !done?.identifies) || guard.strayOutputs(state.image()).length > 0) tries.closed();
        return contact();
      }
    }
    tries.opened();
    const next =
      phase.kind === 'contact' ? 0 : (phase.next + 1) % (polls.length + Math.min(1, checks.length));
    if (next !== 0) return { kind: 'known', next };
    rounds += 1;
    if (phase.kind === 'known' && (state.hasChanged() || state.areInputsDoubtful())) {
      listener.doubted();
      return contact();
    }
    const lapse = phase.kind === 'known' ? guard.lapse(state.image()) : undefined;
    if (lapse !== undefined) return lost({ reason: lapse });
    listener.whole();
    return { kind: 'known', next };
  }

  return {
    address: unit,
    get everyMs() {
      return everyMsOf(options, phase.kind === 'contact', hurries);
    },
    begin() {
      const starved = phase.kind === 'known' ? guard.starved(state.image()) : undefined;
      if (starved !== undefined) phase = lost({ reason: starved });
      const due = phase.kind === 'known' ? (guard.due(state.image()) ?? tries.due()) : undefined;
      isPoll = due === undefined;
      asked = due ?? stepOf(phase);
      if (!asked) throw new Error(`profile ${profile.name} has neither inputs nor outputs to read`);
      return standIn.begin(guard.watched(asked.exchange()));
    },
    settle(outcome) {
      // A contact that has begun meanwhile asks for itself.
      if (!asked || (phase.kind === 'contact' && asked !== phase.steps[0])) return;
      hurries = 'reply' in outcome;
      if ('reply' in outcome) {
        asked.take(outcome.reply);
        const another = tries.answered(asked);
        if (another !== undefined) phase = lost({ reason: another });
        if (isPoll) phase = after(phase);
        return;
      }
      const isBorne = phase.kind === 'contact' && asked.bears?.(outcome.error);
      if (isBorne) phase = after(phase);
      if (isBorne) return;
      if (isRefusal(outcome.error) || standIn.reason() !== undefined) listener.refused(outcome.error.message);
      if (tries.failed(asked, phase.kind === 'contact', outcome.error)) phase = lost();
    },
    alive(isAlive) {
      if (!isAlive) phase = lost({ isDead: true });
    },
  };
}

function nameAgain(state: DeviceState, { identity }: Profile, reading: (span: Span) => Step): Phase {
  const steps = readsOf(identity.hwId ? [spanOf(identity.hwId)] : []).map(reading);
  return { kind: 'contact', steps, named: state.identify() };
}

function everyMsOf({ everyMs, guard }: DeviceOptions, isContact: boolean, hurries: boolean): number {
  if (isContact) return hurries ? 0 : Math.min(everyMs, MEET_EVERY_MS);
  return Math.min(everyMs, guard.everyMs ?? everyMs);
}

/** Which product it is comes first: what the others write means something else to another one. Its name comes before what is taken for its own. */
function contactSteps(
  { unit, profile, guard }: DeviceOptions,
  state: DeviceState,
  reading: (span: Span) => Step,
  polls: readonly Step[],
): Step[] {
  const named = readsOf(identitySpans(profile)).map(reading);
  const own = readsOf([...guard.spans, ...settingsBlock(profile.settings)]).map(reading);
  const product = readsOf(productSpans(profile)).map(
    (span): Step => ({
      ...reading(span),
      identifies: true,
      hindrance: () => foreignProduct(unit, profile, state.image(), span),
    }),
  );
  const standard = profile.identity.standard ? [identificationStep(unit, state.identified)] : [];
  return [...product, ...guard.steps(), ...named, ...standard, ...own, ...polls];
}

function readStep(unit: number, state: DeviceState) {
  return (span: Span): Step => {
    let askedAt = 0;
    const exchange: Exchange<unknown> = {
      ...exchangeOf(unit, span),
      replied(at) {
        askedAt = at;
      },
    };
    return {
      exchange: () => exchange,
      take: (values) => state.take(span, values as (number | boolean)[], askedAt),
    };
  };
}

export function exchangeOf(unit: number, { table, address, quantity }: Span): Exchange<(number | boolean)[]> {
  return isBitTable(table)
    ? readBits(unit, { functionCode: FUNCTION_CODES[table], address, quantity })
    : readRegisters(unit, { functionCode: FUNCTION_CODES[table], address, quantity });
}

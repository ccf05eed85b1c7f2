/**
 * One device as it is polled. First contact, a restart and the end of a spell offline are one thing: everything is read
 * anew (who it is, its settings whole, its state), and only then is it connected, under the name it has told.
 */
import type { Exchange, Poll } from '../bus/exchange.ts';
import type { DriverError, DriverLog } from '../driver.ts';
import type { Unfed } from '../rs485/watchdog-pauses.ts';
import type { Rs485Settings } from '../settings.ts';
import { type DeviceState, openState, type StateOptions } from './device-state.ts';
import { readBits, readRegisters } from './exchanges.ts';
import { identitySpans, pollSpans, settingsBlock } from './profile-areas.ts';
import type { Profile } from './profile-shape.ts';
import { FUNCTION_CODES, type Image, isBitTable, readsOf, type Span } from './registers.ts';
import { openStandIn } from './stand-in.ts';

export interface Device extends Disposable {
  readonly unit: number;
  readonly profile: Profile;
  readonly poll: Poll;
  /** As it told last; undefined before the first contact. */
  hwId(): string | undefined;
  connected(): boolean;
  image(): Image;
  /** In force; null: not known. */
  settings(): Rs485Settings | null;
  /** In force as of now; `registers` as read back, or undefined where the driver keeps the settings. */
  applied(settings: Rs485Settings, version: number, registers: readonly number[] | undefined): void;
  /** What was read besides polls. */
  read(span: Span, values: readonly (number | boolean)[]): void;
  /** Reports again what is known, so that its age can be seen. */
  report(): void;
  /** What a technician should mend. */
  warning(): string | undefined;
}

/** One exchange of a contact. */
export interface Step {
  /** Asked for when its turn has come, which may be long after the contact began. */
  exchange(): Exchange<unknown>;
  take(reply: unknown): void;
  /** Whether the contact goes on although the device answered with this error. */
  bears?(error: DriverError): boolean;
  /** What is to follow it at once, as its reply shows. */
  more?(): readonly Step[];
  /** Why the contact must begin again after this step; undefined: it goes on. */
  hindrance?(): string | undefined;
}

/** What must be so before a device is used, and as long as it is (safety.ts). */
export interface Safety {
  /** Between two polls at most, so that a watchdog is fed; undefined: it does not matter. */
  everyMs: number | undefined;
  /** To be done before anything is read. */
  steps(): Step[];
  /** To be read with everything else, and after each round of polls one of them again. */
  spans: readonly Span[];
  /** Why it may not be used; undefined: it may. */
  fault(image: Image): string | undefined;
  /** Why what was so is not so any more. */
  lapse(image: Image): string | undefined;
  /** The same exchange; what feeds the watchdog is noted. */
  watched<Reply>(exchange: Exchange<Reply>): Exchange<Reply>;
  /** Why the contact must begin again: the watchdog may have run out between two requests. */
  starved(image: Image): string | undefined;
  /** Why no relay may be closed at this moment; undefined: the watchdog was fed in time. */
  unarmed(): string | undefined;
  /** Why the watchdog would not be fed to the end of a pulse. */
  tooSlow(): string | undefined;
  /** When it was not fed in time, lately. */
  unfed(): Unfed | null;
  /** What of it a technician should mend. */
  warning(): string | undefined;
  /** What is due in place of the next poll. */
  due(image: Image): Step | undefined;
}

export interface DeviceOptions extends Omit<StateOptions, 'unfed'> {
  everyMs: number;
  log: DriverLog;
  safety: Safety;
  /** Takes the name for this device; false: another one that is connected has it. */
  claim(hwId: string): boolean;
  /** All that a poll reads has been read. */
  polled(): void;
}

type Phase = { kind: 'contact'; steps: readonly Step[] } | { kind: 'known'; next: number };

/** As many as it may miss before it is taken for dead (drivers/bus/breaker.ts). */
const REFUSALS_MAX = 3;

export function openDevice(options: DeviceOptions): Device {
  const { unit, profile, log, safety } = options;
  const state = openState({ ...options, unfed: safety.unfed });
  let connected = false;
  /** As it was read, but once: a name is believed when it was read twice. */
  let claimed: string | undefined;
  let warning: string | undefined;

  function warn(message: string | undefined): void {
    if (message !== undefined && message !== warning)
      log.warn({ address: unit, profile: profile.name }, message);
    warning = message;
  }

  function disconnect(): void {
    const was = connected;
    connected = false;
    if (was) state.report(connected);
  }

  const poll = openPoll(options, state, {
    /** Everything was read: whether the device may be used. */
    met() {
      const fault = safety.fault(state.image());
      const hwId = state.identify();
      if (hwId === undefined) {
        warn(
          `the device at address ${unit} tells no name where profile ${profile.name} has it: compare the two`,
        );
        return 'unfit';
      }
      const isSure = !profile.identity.hwId || hwId === claimed || hwId === state.hwId();
      claimed = hwId;
      if (!isSure) return 'unsure';
      const isFree = options.claim(hwId);
      warn(
        fault ??
          (isFree ? undefined : `another device answers as ${hwId} too, besides the one at address ${unit}`),
      );
      if (fault !== undefined || !isFree) return 'unfit';
      state.adopt(hwId);
      connected = true;
      return 'met';
    },
    whole() {
      state.settle();
      state.report(connected);
      options.polled();
    },
    hindered: warn,
    refused: (reason) =>
      warn(`the device at address ${unit} does not answer what profile ${profile.name} asks: ${reason}`),
    lost(reason) {
      if (reason !== undefined) log.warn({ address: unit }, reason);
      disconnect();
    },
  });
  return {
    unit,
    profile,
    poll,
    hwId: state.hwId,
    image: state.image,
    settings: state.settings,
    read: state.take,
    connected: () => connected,
    applied(settings, version, registers) {
      state.applied({ settings, version, registers });
      state.report(connected);
    },
    report: () => state.report(connected, true),
    warning: () => warning ?? safety.warning(),
    [Symbol.dispose]: disconnect,
  };
}

interface Listener {
  /** `unsure`: who it is has to be read again. */
  met(): 'met' | 'unsure' | 'unfit';
  /** All that a poll reads has been read. */
  whole(): void;
  /** The contact has to begin again. */
  hindered(reason: string): void;
  refused(reason: string): void;
  /** `reason`: what is to be logged of it. */
  lost(reason?: string): void;
}

function openPoll(options: DeviceOptions, state: DeviceState, listener: Listener): Poll {
  const { unit, profile, everyMs, log, safety } = options;
  const reading = readStep(unit, state);
  const polls = readsOf(pollSpans(profile)).map(reading);
  const checks = readsOf(safety.spans).map(reading);
  const turns = polls.length + Math.min(1, checks.length);
  let rounds = 0;
  let phase = contact();
  let asked: Step | undefined;
  /** A device that answers is met as fast as the wire lets; one that does not waits for its time. */
  let hurries = true;
  /** Polls in a row that were refused. */
  let refusals = 0;
  /** What is asked now reads; else it feeds the watchdog. */
  let isPoll = true;
  const standIn = openStandIn();

  function contact(): Phase {
    return { kind: 'contact', steps: [...contactSteps(options, reading), ...polls] };
  }

  function lost(reason?: string): Phase {
    listener.lost(reason);
    return contact();
  }

  function after(phase: Phase): Phase {
    if (phase.kind === 'contact') {
      const [done, ...rest] = phase.steps;
      const steps = [...(done?.more?.() ?? []), ...rest];
      const hindrance = done?.hindrance?.();
      if (hindrance !== undefined) listener.hindered(hindrance);
      else if (steps.length > 0) return { kind: 'contact', steps };
      const met = hindrance === undefined ? listener.met() : 'unfit';
      if (met === 'unsure') return { kind: 'contact', steps: readsOf(identitySpans(profile)).map(reading) };
      if (met === 'unfit') {
        hurries = false;
        return contact();
      }
    }
    const next = phase.kind === 'contact' ? 0 : (phase.next + 1) % turns;
    if (next !== 0) return { kind: 'known', next };
    rounds += 1;
    if (phase.kind === 'known' && state.hasChanged()) {
      log.info({ address: unit }, 'a device has restarted, or has other settings: it is read anew');
      return contact();
    }
    const lapse = phase.kind === 'known' ? safety.lapse(state.image()) : undefined;
    if (lapse !== undefined) return lost(lapse);
    listener.whole();
    return { kind: 'known', next };
  }

  /** What is known of a device that keeps refusing its polls grows old: it has to be read anew. */
  function refused(reason: string): void {
    listener.refused(reason);
    refusals += 1;
    if (phase.kind !== 'contact' && refusals >= REFUSALS_MAX) phase = lost();
  }

  return {
    address: unit,
    get everyMs() {
      return hurries && phase.kind === 'contact' ? 0 : Math.min(everyMs, safety.everyMs ?? everyMs);
    },
    begin() {
      const starved = phase.kind === 'known' ? safety.starved(state.image()) : undefined;
      if (starved !== undefined) phase = lost(starved);
      const due = phase.kind === 'known' ? safety.due(state.image()) : undefined;
      isPoll = due === undefined;
      if (due) asked = due;
      else if (phase.kind === 'contact') asked = phase.steps[0];
      else asked = polls[phase.next] ?? checks[rounds % checks.length];
      if (!asked) throw new Error(`profile ${profile.name} has neither inputs nor outputs to read`);
      return standIn.begin(safety.watched(asked.exchange()));
    },
    settle(outcome) {
      // A contact that has begun meanwhile asks for itself.
      if (!asked || (phase.kind === 'contact' && asked !== phase.steps[0])) return;
      hurries = 'reply' in outcome;
      if ('reply' in outcome) {
        refusals = 0;
        asked.take(outcome.reply);
        if (isPoll) phase = after(phase);
      } else if (phase.kind === 'contact' && asked.bears?.(outcome.error)) phase = after(phase);
      else if (['REFUSED', 'BUSY'].includes(outcome.error.code)) refused(outcome.error.message);
      else if (standIn.reason() !== undefined) listener.refused(outcome.error.message);
    },
    alive(isAlive) {
      if (!isAlive) phase = lost();
    },
  };
}

function contactSteps({ profile, safety }: DeviceOptions, reading: (span: Span) => Step): Step[] {
  const spans = [...safety.spans, ...identitySpans(profile), ...settingsBlock(profile.settings)];
  return [...safety.steps(), ...readsOf(spans).map(reading)];
}

function readStep(unit: number, state: DeviceState) {
  return (span: Span): Step => {
    const exchange = exchangeOf(unit, span);
    return { exchange: () => exchange, take: (values) => state.take(span, values as (number | boolean)[]) };
  };
}

export function exchangeOf(unit: number, { table, address, quantity }: Span): Exchange<(number | boolean)[]> {
  return isBitTable(table)
    ? readBits(unit, { functionCode: FUNCTION_CODES[table], address, quantity })
    : readRegisters(unit, { functionCode: FUNCTION_CODES[table], address, quantity });
}

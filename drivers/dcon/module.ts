/** One module of the bus: what is configured, watched or commanded comes in here. */

import type { Bus } from '../bus/bus.ts';
import type { BusWarning } from '../contract/bus-warnings.ts';
import { type DriverContext, DriverError } from '../contract/driver.ts';
import type { Pulse, Pulsed, WatchdogTested } from '../contract/rs485.ts';
import type { Rs485Apply } from '../contract/settings.ts';
import { openNotifier } from '../contract/waiting.ts';
import { areSame } from '../rs485/carries.ts';
import type { EventQueue } from '../rs485/event-queue.ts';
import type { Until } from '../rs485/link.ts';
import { openMutex } from '../rs485/mutex.ts';
import { openPolling, type Polling } from '../rs485/registry.ts';
import { openRelayFaults } from '../rs485/relay-faults.ts';
import { openWatchdogFeed, openWatchdogPauses } from '../rs485/watchdog-feed.ts';
import type { Framing } from './frame.ts';
import { openInputs } from './inputs.ts';
import { openLivePulses } from './live-pulses.ts';
import { aa } from './messages.ts';
import { keepUp, pulseOutput } from './outputs.ts';
import { pollOf } from './polling.ts';
import { reportOf } from './report.ts';
import { openScriptRunner } from './script-runner.ts';
import { type ModuleParts, newState, unsafeSince } from './state.ts';
import { abandonOutputs, closeOutputs, endPulse, keepOff, outputsGone } from './switch-off.ts';
import { testWatchdog, type WatchdogSilence } from './watchdog-test.ts';

/** What the modules of a link have in common. */
export interface ModuleLink
  extends Pick<ModuleParts, 'typeOf' | 'wasStarved' | 'assertFed' | 'bringUpMutex'>,
    Pick<WatchdogSilence, 'holdFeeds'> {
  bus: Bus;
  options: Framing & { pollEveryMs: number; hostWatchdogMs: number };
  context: DriverContext;
  events: EventQueue;
}

export interface Module {
  readonly address: number;
  readonly hwId: string;
  /** Works until the signal fires, and throws its reason; the outputs stay as they are. */
  run(signal: AbortSignal): Promise<never>;
  /** Throws DEVICE_OFFLINE and REFUSED. */
  apply(wanted: Rs485Apply): void;
  pulse(wanted: Pulse, until: Until): Promise<Pulsed>;
  /** Switches the output off at once. Resolves when it was read as off, or another pulse of it has begun. Throws NO_REPLY. */
  endPulse(relay: number, until: Until): Promise<void>;
  /** Throws REFUSED when its watchdog opens nothing. */
  testWatchdog(relay: number, signal: AbortSignal): Promise<WatchdogTested>;
  isTested(): boolean;
  /** Nothing may be asked of it: its watchdog is to switch an output off. */
  isLeftAlone(): boolean;
  /** An output is meant to be on now. */
  isPulsing(): boolean;
  /** Ends every pulse now, as far as the module can be reached; none begins any more. */
  close(signal: AbortSignal): Promise<void>;
  /** Where `close` did not reach it: until its outputs are off all the same. */
  outputsGone(signal: AbortSignal): Promise<void>;
  /** Says what becomes of pulses that cannot be ended, for the link is lost. */
  abandon(): void;
  /** Since when an output may be on that is not wanted, and that `~**` keeps on; undefined: that cannot be. */
  unsafeSince(): number | undefined;
  /** Its watchdog is armed, and fed by `~**`. */
  isFed(): boolean;
  /** What a technician should mend. */
  warning(): BusWarning | undefined;
  /** Again, though nothing changed. */
  report(): void;
}

/** Polls feed the watchdog where `~**` does not. Some may be lost, and some answers late ones of other modules. */
const POLLS_PER_WATCHDOG = 12;

export function openModule(link: ModuleLink, address: number, hwId: string): Module {
  const { bus, options, context } = link;
  const { parts, report } = openParts(link, address, hwId);
  const { state } = parts;
  let running: { polling: Polling; signal: AbortSignal } | undefined;
  let isTested = false;
  return {
    address,
    hwId,
    async run(signal) {
      const everyMs = Math.min(options.pollEveryMs, options.hostWatchdogMs / POLLS_PER_WATCHDOG);
      using polling = openPolling(bus, pollOf(parts, options, everyMs));
      running = { polling, signal };
      const failed = new AbortController();
      const working = AbortSignal.any([signal, failed.signal]);
      const loops = [keepOff(parts, polling, working), keepUp(parts, working)];
      try {
        return await Promise.race(loops);
      } catch (error) {
        failed.abort(error);
        throw error;
      } finally {
        await Promise.allSettled(loops);
        running = undefined;
        state.stage = { kind: 'silent' };
        if (state.known) report();
      }
    },
    apply: (wanted) => apply(parts, wanted),
    endPulse: (relay, until) => endPulse(parts, relay, until),
    pulse: (wanted, until) => pulseOutput(parts, wanted, until),
    async testWatchdog(relay, signal) {
      if (!running) throw new DriverError('DEVICE_OFFLINE', `module ${aa(address)} is not asked any more`);
      const { polling, signal: working } = running;
      const silence = { polling, holdFeeds: link.holdFeeds };
      isTested = true;
      try {
        return await testWatchdog(parts, relay, silence, AbortSignal.any([signal, working]));
      } finally {
        isTested = false;
      }
    },
    isTested: () => isTested,
    isLeftAlone: () => state.isLeftAlone,
    isPulsing: () => parts.pulses.live(context.clock.monotonic()) !== 0,
    close: (signal) => closeOutputs(parts, signal),
    outputsGone: (signal) => outputsGone(parts, signal),
    abandon: () => abandonOutputs(parts),
    unsafeSince() {
      const heeds = !state.known || state.known.type?.watchdog === 'host';
      return heeds ? unsafeSince(parts) : undefined;
    },
    isFed: () => state.guard.kind === 'armed' && state.known?.type?.watchdog === 'host',
    warning() {
      if (!state.known || state.guard.kind === 'armed') return undefined;
      const matters = state.known.type === null || state.applied?.settings.relayIndex != null;
      return matters ? state.guard.reason : undefined;
    },
    report: () => {
      if (state.known) report();
    },
  };
}

function openParts(
  { bus, options, typeOf, context, events, wasStarved, assertFed, bringUpMutex }: ModuleLink,
  address: number,
  hwId: string,
): { parts: ModuleParts; report: () => void } {
  const { clock, log } = context;
  const { hostWatchdogMs: watchdogMs } = options;
  const { add: addEvent } = events;
  const state = newState({ address, hwId }, clock.monotonic());
  const inUse = () => state.applied?.settings.ioPins ?? {};
  const inputs = openInputs({ hwId, clock, inUse, addEvent });
  const pulses = openLivePulses();
  const pauses = openWatchdogPauses(clock);
  /** What it was made of when it was last looked at: most polls bring nothing else. */
  let madeOf: readonly unknown[] = [];
  const changed = () => {
    const { pins, known, guard, applied } = state;
    const shown = [isConnected(state), known, guard, applied, pins?.inputs, pins?.outputs];
    const now = [...shown, inputs.edges(), livePulse()?.relay, faults.shown(), pauses.unfed()];
    if (areSame(now, madeOf)) return;
    madeOf = now;
    if (fingerprint(current()) !== reported) report();
  };
  const faults = openRelayFaults(clock, () => hwId, addEvent, changed);
  let reported = '';
  const livePulse = () => state.pins && pulses.current(clock.monotonic());
  const current = () =>
    reportOf({
      ...state,
      connected: isConnected(state),
      edges: inputs.edges(),
      pulse: livePulse(),
      relayFault: faults.shown(),
      watchdogMs,
      unfed: pauses.unfed(),
    });
  const report = () => {
    const now = current();
    reported = fingerprint(now);
    context.report({ subject: `device:${hwId}`, state: now });
  };
  const { feeding, armed, lapsedMs } = openWatchdogFeed(watchdogMs, clock, bus.outstanding);
  /** That of the other kind sets a flag, which is asked for (polling.ts), and commands are ignored (scripts.ts). */
  const unarmed = () => {
    const pausedMs = lapsedMs();
    return pausedMs !== undefined && state.known?.type?.watchdog === 'safety' && state.guard.kind === 'armed'
      ? `the safety time of module ${aa(address)} is ${watchdogMs} ms, and nothing was answered for ${Math.round(pausedMs)} ms: the gateway was held up, or the bus is too slow`
      : undefined;
  };
  const fedBus: Pick<Bus, 'exchange' | 'outstanding'> = {
    exchange: (exchange, order, signal) => bus.exchange(feeding(exchange), order, signal),
    outstanding: bus.outstanding,
  };
  const runner = openScriptRunner(fedBus, options, clock, armed, unarmed);
  const parts: ModuleParts = {
    state,
    pulses,
    inputs,
    runner,
    mutex: openMutex(),
    bringUpMutex,
    ...openNotifiers(clock),
    faults,
    watchdogMs,
    typeOf,
    clock,
    log,
    assertFed,
    wasStarved,
    unarmed,
    lapsedMs,
    pauses,
    feeding,
    outstanding: bus.outstanding,
    changed,
  };
  return { parts, report };
}

/** While a module that was known is looked at again, it is still there. */
function isConnected({ stage: { kind }, known }: ModuleParts['state']): boolean {
  return kind === 'ready' || (kind === 'heard' && known !== null);
}

function openNotifiers(
  clock: DriverContext['clock'],
): Pick<ModuleParts, 'notifier' | 'offNotifier' | 'upNotifier'> {
  const [offNotifier, upNotifier] = [openNotifier(clock), openNotifier(clock)];
  const notify = () => {
    offNotifier.notify();
    upNotifier.notify();
  };
  return { notifier: { notify }, offNotifier, upNotifier };
}

/** The time that is left of a pulse changes by itself; and each poll reads the pins. */
function fingerprint({ pulse, readAt: _, ...rest }: ReturnType<typeof reportOf>): string {
  return JSON.stringify([rest, pulse?.relay]);
}

/** The settings are in force as soon as they are known here; the module has no place for them. */
function apply({ state, changed }: ModuleParts, { settings, settingsVersion }: Rs485Apply): void {
  if (state.stage.kind !== 'ready')
    throw new DriverError('DEVICE_OFFLINE', `module ${aa(state.address)} does not answer`);
  const relays = state.stage.type?.outputs?.count ?? 0;
  if (settings.relayIndex !== null && settings.relayIndex >= relays) {
    const product = state.stage.type?.product ?? state.known?.name;
    const has = relays === 0 ? 'no relays' : `relays 0 to ${relays - 1}`;
    throw new DriverError('REFUSED', `${product} has ${has}, so relayIndex cannot be ${settings.relayIndex}`);
  }
  state.applied = { version: settingsVersion, settings };
  changed();
}

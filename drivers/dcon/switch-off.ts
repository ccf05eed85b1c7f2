/**
 * Switches outputs off: at the end of their pulse, and whenever one is on that is not wanted. This waits for nothing else that is
 * done with the module: a bring-up is interrupted, and the bus sends OFF before all other orders (drivers/bus/schedule.ts).
 */
import { DriverError } from '../contract/driver.ts';
import type { Until } from '../rs485/link.ts';
import type { Polling } from '../rs485/registry.ts';
import { OFF_RETRY_MS, OFF_TRIES_MS } from '../rs485/relay-faults.ts';
import { RUN_OUT_SHARE } from '../rs485/watchdog-feed.ts';
import { aa } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import { channelsOf, StaysOn, switchOff } from './scripts.ts';
import { type ModuleParts, strayOutputs, unsafeSince } from './state.ts';

/** A module that takes no OFF may be another product by now: it is brought up meanwhile. */
const FAILURES_TO_BRING_UP = 3;
/** Watchdogs: until one has run out for certain, with the last time that it was fed and a slow oscillator (driver.ts). */
const RAN_OUT = 1.5;
/** Between two looks whether an output is off. */
const LOOK_MS = 5;
/** Nothing is known of what its outputs do. */
const ALL = 0xff;

/** A bring-up, by an output that is to be switched off. */
export const INTERRUPTED = new DriverError(
  'DEVICE_OFFLINE',
  'nothing was sent, as another output of the module was switched off while it was set up: try again',
);
const NEW_PULSE = new DriverError('BUSY', 'a new pulse has begun');

/** Until the signal fires. */
export async function keepOff(
  parts: ModuleParts,
  polling: Pick<Polling, 'pause'>,
  signal: AbortSignal,
): Promise<never> {
  const { state, pulses, faults, offNotifier, clock } = parts;
  signal.addEventListener('abort', offNotifier.notify, { once: true });
  let tried = 0;
  let messages: string[] = [];
  let staysOnSince: number | undefined;
  for (;;) {
    signal.throwIfAborted();
    unsafeSince(parts);
    for (const relay of channelsOf(ALL & ~state.maybeOn)) faults.readOpen(relay);
    const stray = strayOutputs(parts);
    const type = state.known?.type;
    if (!type || stray === 0) {
      if (tried !== 0) parts.notifier.notify();
      tried = 0;
      staysOnSince = undefined;
      messages = [];
      state.offFailures = 0;
      const now = clock.monotonic();
      await offNotifier.wait(pulses.nextEnd(now) - now);
      parts.changed();
      continue;
    }
    if ((stray & ~tried) !== 0) {
      state.offFailures = 0;
      state.bringingUp?.abort(INTERRUPTED);
    }
    tried = stray;
    try {
      await switchedOff(parts, type, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof DriverError) || error.code === 'LINK_LOST') throw error;
      if (error === NEW_PULSE) continue;
      state.offFailures += 1;
      for (const relay of channelsOf(strayOutputs(parts))) {
        if (error instanceof StaysOn) faults.stillClosed(relay, false);
        else faults.notRead(relay);
      }
      if (!messages.includes(error.message)) logFailure(parts, error);
      messages = [...messages, error.message].slice(-FAILURES_TO_BRING_UP);
      if (state.offFailures === FAILURES_TO_BRING_UP) parts.upNotifier.notify();
      if (error instanceof StaysOn) staysOnSince ??= clock.monotonic();
      else staysOnSince = undefined;
      if (
        type.watchdog !== 'safety' ||
        clock.monotonic() - (staysOnSince ?? clock.monotonic()) < OFF_TRIES_MS
      ) {
        await offNotifier.wait(OFF_RETRY_MS);
        continue;
      }
      await leftToWatchdog(parts, polling, signal);
      staysOnSince = undefined;
      tried = 0;
    }
  }
}

/** Any request feeds a safety watchdog: none is sent until it has run out. */
async function leftToWatchdog(
  parts: ModuleParts,
  polling: Pick<Polling, 'pause'>,
  signal: AbortSignal,
): Promise<void> {
  const { state, clock, watchdogMs, log } = parts;
  log.warn(
    { hwId: state.hwId, milliseconds: watchdogMs },
    'an output does not go off: its module is asked nothing until its watchdog has run out',
  );
  using _ = polling.pause();
  state.bringingUp?.abort(INTERRUPTED);
  state.isLeftAlone = true;
  state.stage = { kind: 'silent' };
  state.pins = null;
  parts.changed();
  try {
    await clock.sleep(Math.ceil(RUN_OUT_SHARE * watchdogMs), signal);
  } finally {
    state.isLeftAlone = false;
  }
}

/** OFF comes before a module is brought up: each answer of that would feed the watchdog that is to open the output. */
export function isOffFirst(parts: ModuleParts): boolean {
  const { known, offFailures } = parts.state;
  return !!known?.type && strayOutputs(parts) !== 0 && offFailures < FAILURES_TO_BRING_UP;
}

async function switchedOff(parts: ModuleParts, type: ModuleType, signal: AbortSignal): Promise<void> {
  const { state, pulses, clock, runner } = parts;
  const keep = () => pulses.live(clock.monotonic()) | state.tested;
  const { pins, hadTimedOut } = await runner.perform(
    switchOff(state.address, type, keep, state.maybeOn),
    {
      class: 'command',
      insists: state.offFailures === 0,
      closing(outputs) {
        // A pulse that has begun while this waited for its turn.
        if ((outputs & keep()) !== 0) throw NEW_PULSE;
      },
    },
    signal,
  );
  state.maybeOn = (state.maybeOn & keep()) | pins.outputs;
  if (state.stage.kind === 'ready') {
    state.pins = pins;
    if (hadTimedOut) state.stage = { kind: 'heard' };
  }
  parts.notifier.notify();
  parts.changed();
}

/** Resolves when the output was read as off, or another pulse of it has begun. Throws NO_REPLY: it is switched off later. */
export async function endPulse(
  parts: ModuleParts,
  relay: number,
  { deadline, signal }: Until,
): Promise<void> {
  const { state, pulses, notifier, clock } = parts;
  pulses.drop(1 << relay);
  notifier.notify();
  while ((strayOutputs(parts) >> relay) & 1) {
    if (clock.monotonic() >= deadline)
      throw new DriverError('NO_REPLY', `output ${relay} of module ${aa(state.address)} was not read as off`);
    await clock.sleep(LOOK_MS, signal);
  }
}

/** Ends every pulse now, as far as the module can be reached; none begins any more. */
export async function closeOutputs(parts: ModuleParts, signal: AbortSignal): Promise<void> {
  const { state, pulses, notifier } = parts;
  state.isClosing = true;
  pulses.drop(ALL);
  notifier.notify();
  const type = state.known?.type;
  if (type && strayOutputs(parts) !== 0) await switchedOff(parts, type, signal);
}

/** Until its outputs are off: by OFF, sent again and again, or by its watchdog, which is not fed meanwhile (driver.ts). */
export async function outputsGone(parts: ModuleParts, signal: AbortSignal): Promise<void> {
  const { notifier, clock, watchdogMs } = parts;
  const ranOutAt = clock.monotonic() + RAN_OUT * watchdogMs;
  notifier.notify();
  while (strayOutputs(parts) !== 0 && clock.monotonic() < ranOutAt) await clock.sleep(OFF_RETRY_MS, signal);
}

/** The link is gone with the outputs on: only the log can say so. */
export function abandonOutputs({ state, pulses, clock, log, watchdogMs }: ModuleParts): void {
  if (pulses.live(clock.monotonic()) === 0 && state.maybeOn === 0) return;
  log.warn(
    { hwId: state.hwId, withinMs: watchdogMs },
    'the link broke during a pulse: the watchdog of the module ends it',
  );
}

function logFailure({ state, log }: ModuleParts, error: DriverError): void {
  // The report of a module says that it is away.
  if (state.stage.kind === 'silent' && error.code === 'DEVICE_OFFLINE') return;
  log.warn(
    { hwId: state.hwId, code: error.code, err: error.message },
    `an output of module ${aa(state.address)} could not be switched off, or not be read: this is tried again`,
  );
}

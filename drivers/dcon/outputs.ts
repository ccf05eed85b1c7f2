/**
 * Switches the outputs of one module. An output is on only while a pulse is live; whatever else may be on (left by a
 * gateway that died, switched by somebody else) is switched off, and until that is confirmed the module counts as unsafe
 * (feed.ts).
 */
import { DriverError } from '../driver.ts';
import type { Pulse, Pulsed } from '../rs485.ts';
import { aa } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import { bringUp, switchOff, switchOn } from './scripts.ts';
import { strayOutputs, type Works } from './state.ts';

/** Between two tries to bring a module up, or to switch its outputs off. */
const RETRY_MS = 250;
/** Bringing a module up is tried ever more slowly: each time takes twice as long, so often. */
const RETRIES_SLOWED = 5;
/** Watchdogs: until one has run out for certain, with the last time that it was fed and a slow oscillator (feed.ts). */
const RAN_OUT = 1.5;
/** Nothing is known of what its outputs do. */
const ALL = 0xff;

/** Brings the module up when it is heard, and its outputs off when their time is over, until the signal fires. */
export async function keepOutputs(works: Works, signal: AbortSignal): Promise<never> {
  const { state, pulses, bell, clock } = works;
  signal.addEventListener('abort', bell.ring, { once: true });
  let failures: string[] = [];
  for (;;) {
    signal.throwIfAborted();
    const work = nextWork(works);
    if (!work) {
      const now = clock.monotonic();
      await bell.wait(pulses.nextEnd(now) - now);
      works.changed();
      continue;
    }
    try {
      await work(signal);
      failures = [];
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof DriverError) || error.code === 'LINK_LOST') throw error;
      const urgent = strayOutputs(works) !== 0;
      if (urgent) state.unsafeSince ??= clock.monotonic();
      if (!failures.includes(error.message)) logFailure(works, error);
      failures = [...failures, error.message].slice(-RETRIES_SLOWED);
      await bell.wait(urgent ? RETRY_MS : RETRY_MS * 2 ** failures.length);
    }
  }
}

function nextWork(works: Works): ((signal: AbortSignal) => Promise<void>) | undefined {
  const { stage, known } = works.state;
  if (stage.kind === 'heard') return (signal) => inTurn(works, signal);
  const type = known?.type;
  if (type && strayOutputs(works) !== 0)
    return (signal) => works.mutex(() => switchedOff(works, type, signal), signal);
  return undefined;
}

/**
 * Side by side, a dozen modules on a slow bus would each wait for their next question until its time is over, and begin
 * anew. One whose outputs may be on waits for nobody.
 */
async function inTurn(works: Works, signal: AbortSignal): Promise<void> {
  const { state, mutex, turns } = works;
  const work = () => mutex(() => broughtUp(works, signal), signal);
  if (state.maybeOn !== 0) return await work();
  // A pulse may have brought it up meanwhile.
  await turns(async () => (state.stage.kind === 'heard' ? await work() : undefined), signal);
}

/** After this it is ready: nothing is on that nobody wants on, and its watchdog is armed, if it has one. */
async function broughtUp(works: Works, signal: AbortSignal): Promise<void> {
  const { state, pulses, watchdogMs, clock, talk, log } = works;
  // A poll may find out in between that it was reset: then it is to be brought up again.
  const before = state.stage;
  const live = pulses.live(clock.monotonic());
  const up = await talk.perform(
    bringUp(state.address, live, watchdogMs),
    { class: 'settings', opensBy: 0 },
    signal,
  );
  // Another product at the address: its settings are not those that were given to the one before.
  if (state.known && state.known.name !== up.name) state.applied = null;
  state.known = { name: up.name, version: up.version, type: up.type };
  const { reason } = { reason: '', ...state.guard };
  state.guard = up.guard;
  state.pins = up.type ? up.pins : null;
  state.maybeOn = up.pins.outputs;
  state.unsafeSince = undefined;
  if (state.stage === before) state.stage = { kind: 'ready', type: up.type };
  if (up.guard.kind === 'none' && up.type?.outputs && up.guard.reason !== reason)
    log.warn({ hwId: state.hwId }, up.guard.reason);
  works.inputs.forget();
  if (up.type) works.inputs.read(up.pins.inputs);
  works.changed();
}

async function switchedOff(works: Works, type: ModuleType, signal: AbortSignal): Promise<void> {
  const { state, pulses, clock, talk } = works;
  const keep = pulses.live(clock.monotonic());
  const { pins, hadTimedOut } = await talk.perform(
    switchOff(state.address, type, keep, state.maybeOn),
    { class: 'command', opensBy: 0 },
    signal,
  );
  state.pins = pins;
  state.maybeOn = (state.maybeOn & keep) | pins.outputs;
  if (hadTimedOut) state.stage = { kind: 'heard' };
  if (strayOutputs(works) === 0 && state.stage.kind === 'ready') state.unsafeSince = undefined;
  works.changed();
}

/** Throws REFUSED, DEVICE_OFFLINE, … (nothing was switched) or OUTCOME_UNKNOWN. */
export async function pulseOutput(
  works: Works,
  { relay, milliseconds }: Pulse,
  deadline: number,
  signal: AbortSignal,
): Promise<Pulsed> {
  const { state, pulses, clock, bell } = works;
  return await works.mutex(async () => {
    if (state.isClosing)
      throw new DriverError(
        'DEVICE_OFFLINE',
        `module ${aa(state.address)} is being let go; nothing was sent`,
      );
    // A command may find a module that is back before the next poll does.
    if (state.stage.kind !== 'ready' || works.unarmed() !== undefined) await broughtUp(works, signal);
    const type = pulsable(works, relay);
    works.assertFed();
    assertKept(works);
    const now = clock.monotonic();
    const takeBack = pulses.begin(relay, now + milliseconds, now);
    const wasOn = state.maybeOn;
    state.maybeOn |= 1 << relay;
    try {
      state.pins = await works.talk.perform(
        switchOn(state.address, type, relay, works.watchdogMs),
        { class: 'command', opensBy: deadline },
        signal,
      );
    } catch (error) {
      // Off at once, unless it was on before: whoever opened the door is told that nobody knows.
      takeBack();
      if (wasNotSwitched(error)) {
        state.maybeOn = wasOn;
        throw error;
      }
      throw new DriverError('OUTCOME_UNKNOWN', `switching output ${relay} on was not confirmed`, {
        cause: error,
      });
    } finally {
      bell.ring();
    }
    // Counted from when it is seen on: never shorter than was asked for.
    pulses.confirm(relay, clock.monotonic() + milliseconds);
    works.changed();
    return { relay, milliseconds, timedBy: 'gateway' as const };
  }, signal);
}

/** Throws DEVICE_OFFLINE where the watchdog would open the relay before the end of a pulse. */
function assertKept({ state, pauses, watchdogMs }: Works): void {
  if (!pauses.isTooSlow()) return;
  throw new DriverError(
    'DEVICE_OFFLINE',
    `nothing was sent, as the bus is too slow for the safety time of module ${aa(state.address)}, ${watchdogMs} ms: remove modules that are absent, poll fewer on this bus, or raise its baud rate`,
  );
}

export function pulsable({ state }: Works, relay: number): ModuleType {
  const { known, guard } = state;
  if (guard.kind === 'none') throw new DriverError('REFUSED', guard.reason);
  if (!known?.type?.outputs || relay >= known.type.outputs.count)
    throw new DriverError('REFUSED', `${known?.type?.product ?? 'the module'} has no relay ${relay}`);
  return known.type;
}

/** Ends every pulse now, as far as the module can be reached; none begins any more. */
export async function closeOutputs(works: Works, signal: AbortSignal): Promise<void> {
  const { state, pulses, mutex } = works;
  state.isClosing = true;
  // In its turn: one that is being switched on meanwhile is live only when it has been seen on.
  await mutex(async () => {
    pulses.drop(ALL);
    const type = state.known?.type;
    if (type && strayOutputs(works) !== 0) await switchedOff(works, type, signal);
  }, signal);
}

/** Until its outputs are off: told so, again and again, or by its watchdog, which is not fed meanwhile (feed.ts). */
export async function outputsGone(works: Works, signal: AbortSignal): Promise<void> {
  const { bell, clock, watchdogMs } = works;
  const ranOutAt = clock.monotonic() + RAN_OUT * watchdogMs;
  bell.ring();
  while (strayOutputs(works) !== 0 && clock.monotonic() < ranOutAt) await clock.sleep(RETRY_MS, signal);
}

/** The link is gone with the outputs on: nobody can be told but the log. */
export function abandonOutputs({ state, pulses, clock, log, watchdogMs }: Works): void {
  if (pulses.live(clock.monotonic()) === 0 && state.maybeOn === 0) return;
  log.warn(
    { hwId: state.hwId, withinMs: watchdogMs },
    'the link broke during a pulse: the watchdog of the module ends it',
  );
}

function wasNotSwitched(error: unknown): boolean {
  return (
    error instanceof DriverError &&
    ['DEVICE_OFFLINE', 'DEADLINE_PASSED', 'BUSY', 'LINK_LOST', 'REFUSED', 'NO_REPLY'].includes(error.code)
  );
}

function logFailure({ state, log }: Works, error: DriverError): void {
  const { hwId, stage } = state;
  // A module that is away is told of by its report.
  if (stage.kind === 'silent' && error.code === 'DEVICE_OFFLINE') return;
  log.warn(
    { hwId, code: error.code, err: error.message },
    `module ${aa(state.address)} is not as it should be`,
  );
}

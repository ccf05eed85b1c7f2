/** Brings one module up, and switches an output on for a pulse. An output is on only while a pulse is live (switch-off.ts). */

import { OUTSTANDING_MAX } from '../bus/reply-confirmation.ts';
import { DriverError } from '../contract/driver.ts';
import type { Pulse, Pulsed } from '../contract/rs485.ts';
import type { Until } from '../rs485/link.ts';
import { OtherSettings } from '../rs485/registry.ts';
import { aa } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import { bringUp, switchOn } from './scripts.ts';
import type { ModuleParts } from './state.ts';
import { INTERRUPTED, isOffFirst } from './switch-off.ts';

/** Bringing a module up is tried ever more slowly: each time takes twice as long, so often. */
const RETRY_MS = 250;
const RETRIES_SLOWED = 5;

/** Brings the module up when it is heard, until the signal fires. */
export async function keepUp(parts: ModuleParts, signal: AbortSignal): Promise<never> {
  const { state, upNotifier } = parts;
  signal.addEventListener('abort', upNotifier.notify, { once: true });
  let failures: string[] = [];
  for (;;) {
    signal.throwIfAborted();
    if (state.stage.kind !== 'heard' || isOffFirst(parts)) {
      await upNotifier.wait(Number.POSITIVE_INFINITY);
      continue;
    }
    try {
      await inTurn(parts, signal);
      failures = [];
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof DriverError) || error.code === 'LINK_LOST') throw error;
      if (error === INTERRUPTED) continue;
      if (!failures.includes(error.message)) logFailure(parts, error);
      failures = [...failures, error.message].slice(-RETRIES_SLOWED);
      await upNotifier.wait(RETRY_MS * 2 ** failures.length);
    }
  }
}

/**
 * Side by side, a dozen modules on a slow bus would each wait for their next question until its time is over, and begin
 * again. One whose outputs may be on waits for no one.
 */
async function inTurn(parts: ModuleParts, signal: AbortSignal): Promise<void> {
  const { state, mutex, bringUpMutex } = parts;
  const work = () => mutex(() => broughtUp(parts, signal), signal);
  if (state.maybeOn !== 0) return await work();
  // A pulse may have brought it up meanwhile.
  await bringUpMutex(async () => (state.stage.kind === 'heard' ? await work() : undefined), signal);
}

/**
 * After this it is ready: nothing is on that is not wanted, and its watchdog is armed, if it has one. Stops when an output is to be switched
 * off (switch-off.ts).
 */
async function broughtUp(parts: ModuleParts, signal: AbortSignal): Promise<void> {
  const { state, pulses, watchdogMs, clock, runner, log, typeOf } = parts;
  // A poll may find out in between that it was reset: then it is to be brought up again.
  const before = state.stage;
  const begunAt = clock.monotonic();
  const bringingUp = new AbortController();
  state.bringingUp = bringingUp;
  const outputs = {
    live: () => pulses.live(clock.monotonic()),
    maybeOn: state.maybeOn,
    before: state.known,
    typeOf,
  };
  const up = await runner
    .perform(
      bringUp(state.address, outputs, watchdogMs),
      { class: 'settings' },
      AbortSignal.any([signal, bringingUp.signal]),
    )
    .finally(() => {
      state.bringingUp = undefined;
    });
  // Another product at the address: its settings are not those that were given to the one before.
  if (state.known && state.known.name !== up.name) state.applied = null;
  state.known = { name: up.name, version: up.version, type: up.type };
  const reason = state.guard.kind === 'none' ? state.guard.reason.message : '';
  state.guard = up.guard;
  // Its pulse may have ended since they were read, and the output be off.
  state.maybeOn &= up.pins.outputs;
  state.pins = up.type ? { ...up.pins, outputs: state.maybeOn } : null;
  state.pinsAskedAt = begunAt;
  if (state.stage === before) {
    state.unknownSince = undefined;
    state.stage = { kind: 'ready', type: up.type };
  }
  if (up.guard.kind === 'none' && up.type?.outputs && up.guard.reason.message !== reason)
    log.warn({ hwId: state.hwId }, up.guard.reason.message);
  parts.inputs.forget();
  if (up.type) parts.inputs.read(up.pins.inputs);
  parts.notifier.notify();
  parts.changed();
}

/** Throws REFUSED, DEVICE_OFFLINE, … (nothing was switched) or OUTCOME_UNKNOWN. */
export async function pulseOutput(
  parts: ModuleParts,
  pulse: Pulse,
  { deadline, signal }: Until,
): Promise<Pulsed> {
  const { state, pulses } = parts;
  const { relay } = pulse;
  return await parts.mutex(async () => {
    assertMayOpen(parts);
    // A command may find a module that is back before the next poll does.
    if (state.stage.kind !== 'ready' || parts.unarmed() !== undefined) await broughtUp(parts, signal);
    const type = pulsable(parts, relay);
    assertFedInTime(parts);
    const firing = firingOf(parts, pulse);
    try {
      state.pins = await parts.runner.perform(
        switchOn(state.address, type, relay, parts.watchdogMs),
        { class: 'command', opensBy: deadline, opening: firing.begins, opened: firing.answered },
        signal,
      );
    } catch (error) {
      // It may have been restarted, and says that once (scripts.ts): its watchdog is to be armed again.
      const isUnknown = error instanceof DriverError && error.code === 'OUTCOME_UNKNOWN';
      if (isUnknown && state.stage.kind === 'ready' && !signal.aborted && !state.isClosing) {
        state.unknownSince ??= parts.clock.monotonic();
        state.stage = { kind: 'heard' };
      }
      // Off at once, unless it was on before: the caller gets OUTCOME_UNKNOWN.
      if (firing.takenBack(error)) throw error;
      throw new DriverError('OUTCOME_UNKNOWN', `switching output ${relay} on was not confirmed`, {
        cause: error,
      });
    }
    pulses.confirm(relay);
    parts.changed();
    return { relay, milliseconds: pulse.milliseconds, timedBy: 'gateway' as const };
  }, signal);
}

/**
 * The output may be on from the first request on. The time of the pulse is counted from the answer to that, so that it is not
 * shorter than was asked for; where that was lost, from the request itself, so that a repetition makes it no longer.
 */
function firingOf(parts: ModuleParts, { relay, milliseconds, settingsVersion }: Pulse) {
  const { state, pulses, clock, notifier } = parts;
  const bit = 1 << relay;
  const { suspectedResets } = state;
  let endsAt: number | undefined;
  /** Requests that may have switched it on. */
  let requests = 0;
  let takeBack: (() => void) | undefined;
  let wasOn = 0;
  const isLive = () => (pulses.live(clock.monotonic()) & bit) !== 0;
  return {
    /** The request has its turn. */
    begins(): void {
      assertMayOpen(parts);
      if (requests === 0 && settingsVersion !== (state.applied?.version ?? 0))
        throw new OtherSettings(state.address);
      const now = clock.monotonic();
      // It would switch it on again behind the request that has switched it off.
      if (endsAt !== undefined && now >= endsAt)
        throw new DriverError('NO_REPLY', 'it was sent, and not answered before the end of the pulse');
      // A poll has taken what the module says of a restart: it would switch it on a second time (scripts.ts).
      if (requests > 0 && state.suspectedResets !== suspectedResets)
        throw new DriverError('NO_REPLY', 'it was sent, and the module may have been restarted since');
      endsAt ??= now + milliseconds;
      requests += 1;
      if (!takeBack) wasOn = state.maybeOn & bit;
      const undo = pulses.begin(relay, endsAt, now);
      takeBack ??= undo;
      state.maybeOn |= bit;
      notifier.notify();
    },
    answered(reply: unknown): void {
      // Of several the first one may have switched it on, and one that is ignored has not.
      if (requests > 1 || !isLive()) return;
      if (reply === 'ignored') {
        requests = 0;
        endsAt = undefined;
        return;
      }
      const now = clock.monotonic();
      endsAt = now + milliseconds;
      pulses.begin(relay, endsAt, now);
    },
    /** Returns whether it is certain that nothing was switched. */
    takenBack(error: unknown): boolean {
      // Read as off when it was over: it may have been on before.
      const isCut = takeBack !== undefined && !isLive();
      takeBack?.();
      // A poll that finds a restart has taken what the module says of it (polling.ts); and what is read may be another's.
      const isDoubtful =
        isCut || state.suspectedResets !== suspectedResets || parts.outstanding() > OUTSTANDING_MAX;
      const isOff = wasNotSwitched(error) && !(isDoubtful && error.code === 'NO_REPLY');
      if (isOff && takeBack) state.maybeOn &= ~bit | wasOn;
      notifier.notify();
      return isOff;
    },
  };
}

/** Throws BUSY and DEVICE_OFFLINE. */
function assertMayOpen({ state, assertFed }: ModuleParts): void {
  if (state.isClosing)
    throw new DriverError('DEVICE_OFFLINE', `module ${aa(state.address)} is being let go; nothing was sent`);
  if (state.isLeftAlone)
    throw new DriverError(
      'DEVICE_OFFLINE',
      `nothing was sent: an output of module ${aa(state.address)} does not go off, and a request would keep it on`,
    );
  assertFed();
}

/** Throws DEVICE_OFFLINE where the watchdog would open the relay before the end of a pulse. */
function assertFedInTime({ state, pauses, watchdogMs }: ModuleParts): void {
  if (!pauses.isTooSlow()) return;
  throw new DriverError(
    'DEVICE_OFFLINE',
    `nothing was sent, as the bus is too slow for the safety time of module ${aa(state.address)}, ${watchdogMs} ms: remove modules that are absent, poll fewer on this bus, or raise its baud rate`,
  );
}

export function pulsable({ state }: ModuleParts, relay: number): ModuleType {
  const { known, guard } = state;
  if (guard.kind === 'none') throw new DriverError('REFUSED', guard.reason.message);
  if (!known?.type?.outputs || relay >= known.type.outputs.count)
    throw new DriverError('REFUSED', `${known?.type?.product ?? 'the module'} has no relay ${relay}`);
  return known.type;
}

function wasNotSwitched(error: unknown): error is DriverError {
  return (
    error instanceof DriverError &&
    ['DEVICE_OFFLINE', 'DEADLINE_PASSED', 'BUSY', 'LINK_LOST', 'REFUSED', 'NO_REPLY'].includes(error.code)
  );
}

function logFailure({ state, log }: ModuleParts, error: DriverError): void {
  const { hwId, stage } = state;
  // The report of a module says that it is away.
  if (stage.kind === 'silent' && error.code === 'DEVICE_OFFLINE') return;
  log.warn(
    { hwId, code: error.code, err: error.message },
    `module ${aa(state.address)} is not as it should be`,
  );
}

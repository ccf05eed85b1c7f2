/**
 * Proves that the watchdog of a module opens its outputs: switches one on, says nothing to the module, and nothing to all
 * (`~**`), for longer than its watchdog waits, and looks; then arms the watchdog and does the same again. The module is brought
 * up once more afterwards (outputs.ts).
 */
import { DriverError } from '../contract/driver.ts';
import { openDeadline } from '../contract/waiting.ts';
import type { Polling } from '../rs485/registry.ts';
import { proveWatchdog } from '../rs485/watchdog-proof.ts';
import { aa } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import { pulsable } from './outputs.ts';
import { proofOfModule } from './report.ts';
import { bringUp, lookAt, switchOff, switchOn, whyNotRunOut } from './scripts.ts';
import type { ModuleParts } from './state.ts';

/** To switch the output and see it. */
const SWITCH_MS = 3_000;

export interface WatchdogSilence {
  polling: Polling;
  /** No host watchdog of the bus is fed until what is returned is disposed. Throws BUSY while another module has a live pulse. */
  holdFeeds(): Disposable;
}

/** Throws REFUSED when the output is still on. */
export async function testWatchdog(
  parts: ModuleParts,
  relay: number,
  silence: WatchdogSilence,
  signal: AbortSignal,
) {
  const { state, pulses, mutex, clock, notifier, watchdogMs } = parts;
  const { address } = state;
  return await mutex(async () => {
    if (state.stage.kind !== 'ready')
      throw new DriverError('DEVICE_OFFLINE', `module ${aa(address)} does not answer; nothing was sent`);
    const type = pulsable(parts, relay);
    if (pulses.live(clock.monotonic()) !== 0)
      throw new DriverError(
        'BUSY',
        `a pulse of module ${aa(address)} is under way: test its watchdog when that is over`,
      );
    using _polls = silence.polling.pause();
    using _feeds = silence.holdFeeds();
    state.stage = { kind: 'silent' };
    state.maybeOn |= 1 << relay;
    state.tested = 1 << relay;
    parts.changed();
    try {
      const waitedMilliseconds = await proveWatchdog(watchdogMs, {
        expire: (silenceMs) => expired(parts, { type, relay, silenceMs }, signal),
        arm: () => armedAgain(parts, signal),
        openRelay: () => switchedOff(parts, type),
      });
      return { relay, waitedMilliseconds, proof: proofOfModule(type, watchdogMs)?.proof ?? '' };
    } finally {
      state.tested = 0;
      state.stage = { kind: 'heard' };
      notifier.notify();
    }
  }, signal);
}

/** Throws when the watchdog did not run out in silence, or left the output on. */
async function expired(
  { state, clock, runner, watchdogMs }: ModuleParts,
  { type, relay, silenceMs }: { type: ModuleType; relay: number; silenceMs: number },
  signal: AbortSignal,
): Promise<void> {
  const { address } = state;
  const opensBy = clock.monotonic() + SWITCH_MS;
  await runner.perform(switchOn(address, type, relay, watchdogMs), { class: 'command', opensBy }, signal);
  await clock.sleep(silenceMs, signal);
  const order = { class: 'command' } as const;
  const pins = await runner.perform(lookAt(address, type), order, signal);
  if (((pins.outputs >> relay) & 1) === 1)
    throw new DriverError(
      'REFUSED',
      `output ${relay} of module ${aa(address)} is still on ${silenceMs} ms after the last command: its watchdog opens nothing`,
    );
  const doubt = await runner.perform(whyNotRunOut(address, type), order, signal);
  if (doubt !== undefined)
    throw new DriverError(
      'OUTCOME_UNKNOWN',
      `output ${relay} of module ${aa(address)} is off, but ${doubt}. Nothing is proven: see to its power, and run the test again`,
    );
}

/** The watchdog of some modules runs out once, and not again before a restart. */
async function armedAgain(
  { state, runner, watchdogMs, typeOf }: ModuleParts,
  signal: AbortSignal,
): Promise<void> {
  const order = { class: 'command' } as const;
  const { guard } = await runner.perform(
    bringUp(state.address, { live: () => 0, maybeOn: 0, before: state.known, typeOf }, watchdogMs),
    order,
    signal,
  );
  if (guard.kind === 'none')
    throw new DriverError('REFUSED', `after it has run out once, ${guard.reason.message}`);
}

/** As far as it can be reached; nothing is connected to it. */
async function switchedOff({ state, runner, clock }: ModuleParts, type: ModuleType): Promise<void> {
  const late = () => new DriverError('NO_REPLY', 'the output could not be switched off in time');
  using deadline = openDeadline(SWITCH_MS, clock, late);
  const script = switchOff(state.address, type, () => 0);
  await runner.perform(script, { class: 'command' }, deadline.signal).catch(() => undefined);
}

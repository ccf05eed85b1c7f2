/**
 * Proves that a watchdog opens a relay: closes it, asks the device nothing for longer than its watchdog waits, and looks; then
 * arms the watchdog and does the same again. What answers its first question after the silence with an exception is released
 * first, as at each contact (watchdog-guard.ts).
 */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { WatchdogTest, WatchdogTested } from '../contract/rs485.ts';
import type { Mutex } from '../rs485/mutex.ts';
import type { Polling } from '../rs485/registry.ts';
import { proveWatchdog } from '../rs485/watchdog-proof.ts';
import { releaseSteps } from './contact-steps.ts';
import type { Device } from './device.ts';
import type { LivePulses } from './live-pulses.ts';
import { write } from './messages.ts';
import { isClosed, readBack, sent, sentByName } from './orders.ts';
import { watchdogSpans } from './profile-areas.ts';
import { numberAt, readsOf, type Span, spanOf } from './registers.ts';
import { proofOfProfile, type WatchdogGuard, whyNotRunOut } from './watchdog-guard.ts';

/** To close the relay and see it; the same to open it again where its watchdog did not. */
const SWITCH_MS = 3_000;
const ATTEMPTS = 3;

export interface WatchdogTestOptions {
  device: Device;
  bus: Pick<Bus, 'exchange' | 'outstanding'>;
  clock: Clock;
  live: LivePulses;
  mutex: Mutex;
  polling: Polling;
  guard: WatchdogGuard;
  /** Fires when the driver closes. */
  closing: AbortSignal;
}

export type TestWatchdog = (test: WatchdogTest, signal: AbortSignal) => Promise<WatchdogTested>;

export function openWatchdogTest(options: WatchdogTestOptions): TestWatchdog {
  const { device, live, mutex, polling, closing } = options;
  const { profile } = device;
  return async ({ relay }, signal) => {
    const required = proofOfProfile(profile);
    if (!required || relay >= (profile.outputs?.count ?? 0))
      throw new DriverError('INVALID_COMMAND', `${profile.product} has no output${relay} under a watchdog`);
    const until = AbortSignal.any([signal, closing]);
    return await mutex(async () => {
      if (!device.connected())
        throw new DriverError('DEVICE_OFFLINE', 'the device does not answer; nothing was sent');
      const outputs = Array.from({ length: profile.outputs?.count ?? 0 }, (_, output) => output);
      const busy = outputs.find((output) => live.endsAt(output) !== undefined);
      // The silence would end it.
      if (busy !== undefined)
        throw new DriverError(
          'BUSY',
          `a pulse of output${busy} is under way: test the watchdog when that is over`,
        );
      using _ = polling.pause();
      device.poll.alive(false);
      const waitedMilliseconds = await proveWatchdog(required.milliseconds, {
        expire: (silenceMs) => expired(options, relay, silenceMs, until),
        arm: () => armedAgain(options, until),
        openRelay: () => openAgain(options, relay),
      });
      return { relay, waitedMilliseconds, proof: required.proof };
    }, signal);
  };
}

/** Throws when the watchdog did not run out in silence, or left the relay closed. */
async function expired(
  options: WatchdogTestOptions,
  relay: number,
  waitedMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { device, clock } = options;
  const boots = await bootCount(options, signal);
  await switched(options, relay, true, signal);
  await clock.sleep(waitedMs, signal);
  await look(options, relay, waitedMs, signal);
  const { pulse } = device.profile;
  if (pulse?.way !== 'switched') return;
  for (const span of readsOf(watchdogSpans(pulse.watchdog))) await readSpan(options, span, signal);
  const doubt =
    boots === (await bootCount(options, signal))
      ? whyNotRunOut(pulse.watchdog, device.image())
      : 'the device was restarted during the test';
  if (doubt !== undefined)
    throw new DriverError(
      'OUTCOME_UNKNOWN',
      `output${relay} is open, but ${doubt}. Nothing is proven: see to its power, and run the test again`,
    );
}

async function bootCount(options: WatchdogTestOptions, signal: AbortSignal): Promise<number | undefined> {
  const { device } = options;
  const place = device.profile.bootCount;
  if (!place) return undefined;
  await readSpan(options, spanOf(place), signal);
  return numberAt(device.image(), place);
}

async function readSpan({ device, bus, clock }: WatchdogTestOptions, span: Span, signal: AbortSignal) {
  await readBack(bus, device, span, { deadline: clock.monotonic() + SWITCH_MS, signal });
}

/** As at a contact (watchdog-guard.ts): the watchdog of some products runs out once, and not again before a restart. */
async function armedAgain(options: WatchdogTestOptions, signal: AbortSignal): Promise<void> {
  const { device, bus, clock, guard } = options;
  for (const step of guard.steps()) {
    const order = { class: 'command', deadline: clock.monotonic() + SWITCH_MS, attempts: ATTEMPTS } as const;
    try {
      step.take(await bus.exchange(step.exchange(), order, signal));
    } catch (error) {
      if (!(error instanceof DriverError) || !step.bears?.(error)) throw error;
    }
    const hindrance = step.hindrance?.();
    if (hindrance !== undefined) throw new DriverError('REFUSED', hindrance.message);
  }
  for (const span of readsOf(guard.spans)) await readSpan(options, span, signal);
  const fault = guard.fault(device.image());
  if (fault !== undefined) throw new DriverError('REFUSED', `after it has run out once, ${fault.message}`);
}

async function switched(
  { device, bus, clock }: WatchdogTestOptions,
  relay: number,
  on: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { outputs } = device.profile;
  if (!outputs) return;
  const coil = write(device.unit, { functionCode: 5, address: outputs.address + relay, value: on });
  const order = { deadline: clock.monotonic() + SWITCH_MS, signal };
  const switching = { ...order, attempts: ATTEMPTS, hwId: device.hwId() ?? '' };
  await (on ? sentByName({ bus, device, clock }, coil, switching) : sent(bus, coil, switching));
  await readBack(bus, device, spanOf(outputs), order);
  if (isClosed(device, relay) !== on)
    throw new DriverError(
      'REFUSED',
      `output${relay} did not ${on ? 'close' : 'open'} when it was ordered to`,
    );
}

/** Throws when the relay is still closed, or does not show what it is. */
async function look(
  { device, bus, clock }: WatchdogTestOptions,
  relay: number,
  waitedMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { profile, unit } = device;
  if (!profile.outputs) return;
  const outputs = spanOf(profile.outputs);
  const order = () => ({ deadline: clock.monotonic() + SWITCH_MS, signal });
  try {
    await readBack(bus, device, outputs, order());
  } catch (error) {
    signal.throwIfAborted();
    // Release may open relays itself. Only a device that answers with an exception until it is released is released unseen.
    if (!isReadRefused(error))
      throw new DriverError(
        'OUTCOME_UNKNOWN',
        `output${relay} could not be read after the expiry: nothing is proven; run the test again`,
        { cause: error },
      );
    for (const { exchange } of releaseSteps(unit, profile))
      await sent(bus, exchange(), { ...order(), attempts: ATTEMPTS });
    await readBack(bus, device, outputs, order());
  }
  if (isClosed(device, relay))
    throw new DriverError(
      'REFUSED',
      `output${relay} is still closed ${waitedMs} ms after the last request: its watchdog opens nothing. Compare the pulse of profile ${profile.name} with the manual of the product`,
    );
}

/** As far as it can be reached; nothing is connected to it. */
async function openAgain(options: WatchdogTestOptions, relay: number): Promise<void> {
  if (options.closing.aborted) return;
  const open = () => switched(options, relay, false, options.closing);
  const failure = await open().catch((error: unknown) => error);
  // Release stops the watchdog: not while the relay may be closed under it.
  if (!isReadRefused(failure)) return;
  for (const { exchange } of releaseSteps(options.device.unit, options.device.profile))
    await sent(options.bus, exchange(), {
      deadline: options.clock.monotonic() + SWITCH_MS,
      attempts: ATTEMPTS,
      signal: options.closing,
    }).catch(() => undefined);
  await open().catch(() => undefined);
}

/** The device answers reads with an exception, as one does whose watchdog has run out. */
function isReadRefused(error: unknown): boolean {
  return error instanceof DriverError && error.cause instanceof DriverError && error.cause.code === 'REFUSED';
}

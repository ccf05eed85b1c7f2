/**
 * Proves that a watchdog opens a relay: closes it, asks the device nothing for longer than its watchdog waits, and looks. What
 * answers its first question after that with an exception is released first, as at each contact (safety.ts).
 */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError } from '../driver.ts';
import type { Mutex } from '../rs485/mutex.ts';
import type { Polling } from '../rs485/polling.ts';
import { silenceMs } from '../rs485/watchdog-proof.ts';
import type { WatchdogTest, WatchdogTested } from '../rs485.ts';
import type { Device } from './device.ts';
import { write } from './exchanges.ts';
import type { LivePulses } from './live-pulses.ts';
import { isClosed, readBack, sent } from './orders.ts';
import { proofOfProfile } from './profile-proof.ts';
import { spanOf } from './registers.ts';
import { releaseSteps } from './release.ts';

/** To close the relay and see it; the same to open it again where its watchdog did not. */
const SWITCH_MS = 3_000;
const ATTEMPTS = 3;

export interface WatchdogTestOptions {
  device: Device;
  bus: Pick<Bus, 'exchange'>;
  clock: Clock;
  live: LivePulses;
  mutex: Mutex;
  polling: Polling;
  /** Fires when the driver closes. */
  closing: AbortSignal;
}

export type TestWatchdog = (test: WatchdogTest, signal: AbortSignal) => Promise<WatchdogTested>;

export function openWatchdogTest(options: WatchdogTestOptions): TestWatchdog {
  const { device, clock, live, mutex, polling, closing } = options;
  const { profile } = device;
  return async ({ relay }, signal) => {
    const required = proofOfProfile(profile);
    if (!required || relay >= (profile.outputs?.count ?? 0))
      throw new DriverError('INVALID_COMMAND', `${profile.product} has no output${relay} under a watchdog`);
    const until = AbortSignal.any([signal, closing]);
    return await mutex(async () => {
      if (!device.connected())
        throw new DriverError('DEVICE_OFFLINE', 'the device does not answer; nothing was sent');
      if (live.endsAt(relay) !== undefined)
        throw new DriverError('BUSY', 'a pulse of this relay is under way: test it when that is over');
      const waitedMilliseconds = silenceMs(required.milliseconds);
      using _ = polling.pause();
      device.poll.alive(false);
      try {
        await switched(options, relay, true, until);
        await clock.sleep(waitedMilliseconds, until);
        await look(options, relay, waitedMilliseconds, until);
      } catch (error) {
        await openAgain(options, relay);
        throw error;
      }
      return { relay, waitedMilliseconds, proof: required.proof };
    }, signal);
  };
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
  await sent(bus, coil, { ...order, attempts: ATTEMPTS });
  await readBack(bus, device, spanOf(outputs), order);
  if (isClosed(device, relay) !== on)
    throw new DriverError('REFUSED', `output${relay} did not ${on ? 'close' : 'open'} when it was told to`);
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
        `output${relay} could not be read after the silence: nothing is proven; run the test again`,
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

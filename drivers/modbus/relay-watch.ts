/**
 * Sees that a relay opens at the end of its pulse. Where the gateway times the pulse, it opens the relay. Where the device does,
 * the relay is read when the pulse is over: a board that takes any value of function 5 as ON closes it for ever, and
 * acknowledges the same. Such a relay is opened at once and reported (drivers/rs485/relay-faults.ts).
 */
import type { Bus } from '../bus/bus.ts';
import { type OrderClass, whenAsked } from '../bus/exchange.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Mutex } from '../rs485/mutex.ts';
import { OFF_RETRY_MS, OFF_TRIES_MS, type RelayFaults } from '../rs485/relay-faults.ts';
import type { Device } from './device.ts';
import type { LivePulses } from './live-pulses.ts';
import { readIdentification } from './messages.ts';
import { isClosed, offRequest, readBack, sent } from './orders.ts';
import { spanOf } from './registers.ts';
import type { WatchdogExpiry } from './watchdog-expiry.ts';
import type { WatchdogGuard } from './watchdog-guard.ts';

/** To switch a relay off and read it. */
const OFF_DEADLINE_MS = 2_000;
const OFF_ATTEMPTS = 3;
/** The oscillator of a device may be slow, and its time begins after its answer. */
const LATENESS = 1.05;
const MARGIN_MS = 1_000;
/**
 * What an earlier life of this host may have fired, and what it still leaves closed: a hold of a relay lasts 20 s
 * (src/resources/doors/relay-hold.ts), a pulse as long as the settings say, or the 5 s of src/resources/rs485/pulse.ts.
 */
const INHERITED_MIN_MS = 20_000;

export interface RelayWatchOptions {
  device: Device;
  bus: Pick<Bus, 'exchange'>;
  clock: Clock;
  log: DriverLog;
  live: LivePulses;
  faults: RelayFaults;
  mutex: Mutex;
  expiry: WatchdogExpiry;
  guard: Pick<WatchdogGuard, 'strayOutputs' | 'heardAt'>;
  /** Of this link, by hwId, also from before it was lost. */
  fired: FiredRelays;
  /** Fires when the driver closes. */
  closing: AbortSignal;
}

/** The relays of devices that time their pulses, until each was read open. */
export type FiredRelays = Map<string, Map<number, FiredRelay>>;

interface FiredRelay {
  /** Monotonic: the device has opened it by then for certain. */
  overAt: number;
  /** How long it closes, while its request may still be delivered, as nothing has acknowledged it. */
  unacknowledged: number | undefined;
}

/** A link that is lost and opened again in this process is another life of its driver. By the clock whose times these are, and linkId. */
const fired = new WeakMap<Clock, Map<string, FiredRelays>>();

export function firedRelaysOf(clock: Clock, linkId: string): FiredRelays {
  const links = fired.get(clock) ?? new Map<string, FiredRelays>();
  fired.set(clock, links);
  const relays = links.get(linkId) ?? new Map();
  links.set(linkId, relays);
  return relays;
}

export interface RelayWatch {
  /** A request that closes the relay for so long is being sent. */
  fired(relay: number, milliseconds: number): void;
  /** That request was acknowledged, or the relay was read closed after it: its time runs. */
  began(relay: number, milliseconds: number): void;
  /** What was to fire it has ended. A pulse that was taken back is over before its time. */
  settled(relay: number): void;
  /** The device has shown its whole state. */
  polled(): void;
}

export function openRelayWatch(options: RelayWatchOptions): RelayWatch {
  const { device, clock, log, live, faults, mutex, expiry, guard, closing } = options;
  const isTimedByDevice = device.profile.pulse?.way !== 'switched';
  const watched = new Set<number>();
  const times = openDeviceTimes(options);
  /** What ends the wait for the end of its pulse, by relay. */
  const wake = new Map<number, () => void>();
  const inherited = openInherited(options);
  const dueAt = (relay: number) => (isTimedByDevice ? times.overAt(relay) : (live.endsAt(relay) ?? 0));

  /** Returns whether the relay was read open; false also where a pulse is still live. */
  async function look(relay: number, isOwn: boolean, isRepeated: boolean): Promise<boolean> {
    if (dueAt(relay) > clock.monotonic()) return false;
    if (isRepeated) await settleReplies(options);
    await read(options, relay);
    const late = times.unacknowledged(relay);
    if (isTimedByDevice && isClosed(device, relay) && late !== undefined) {
      // An adapter may have delivered the request late. From this reading on the time of the device runs.
      times.began(relay, late);
      return false;
    }
    if (isTimedByDevice && isClosed(device, relay)) {
      log.warn({ address: device.unit, relay }, 'a relay is closed after its pulse: it is switched off');
      faults.stillClosed(relay, isOwn);
      await switchedOff(options, relay, { class: 'command' });
      await read(options, relay);
    }
    if (isClosed(device, relay)) {
      faults.stillClosed(relay, isTimedByDevice && isOwn);
      return false;
    }
    watched.delete(relay);
    times.opened(relay);
    faults.readOpen(relay);
    return true;
  }

  async function untilOpen(relay: number, isOwn: boolean): Promise<void> {
    const isDue = () => dueAt(relay) <= clock.monotonic();
    using tries = openSwitchOffRetries(options);
    for (;;) {
      const left = dueAt(relay) - clock.monotonic();
      const woken = new Promise<void>((resolve) => wake.set(relay, resolve));
      if (left > 0) await Promise.race([clock.sleep(Math.ceil(left), closing), woken]);
      await expiry.over();
      if (!isDue()) {
        tries.reset();
        continue;
      }
      try {
        // Beside the mutex: what is sent to another relay of the device may wait seconds for its answer.
        if (!isTimedByDevice)
          await switchedOff(options, relay, { class: 'off', insists: tries.failures() === 0, isDue });
        if (await mutex(() => look(relay, isOwn, tries.failures() > 0), closing)) return;
        tries.closed();
      } catch (error) {
        closing.throwIfAborted();
        if (!isDue()) continue;
        if (tries.failures() === 0) logFailure(options, relay, error);
        tries.failed();
        faults.notRead(relay);
      }
      if (!isDue()) continue;
      await tries.pause();
    }
  }

  function watch(relay: number, isOwn: boolean): void {
    if (watched.has(relay)) return;
    watched.add(relay);
    // Ends with an error only when the driver closes.
    void untilOpen(relay, isOwn).catch(() => undefined);
  }

  /** Closed by a request that came late, or by somebody else: polls may feed the watchdog behind it. */
  function strayed(relay: number): void {
    if (watched.has(relay)) return;
    log.warn({ address: device.unit, relay }, 'a relay is closed without a pulse: it is switched off');
    watch(relay, false);
  }

  return {
    fired(relay, milliseconds) {
      times.fired(relay, milliseconds);
      watch(relay, true);
    },
    began: times.began,
    settled: (relay) => wake.get(relay)?.(),
    polled() {
      for (const relay of times.relays()) watch(relay, true);
      const left = inherited((one) => watched.has(one));
      if (left !== undefined) watch(left, false);
      for (const stray of guard.strayOutputs(device.image())) strayed(stray);
    },
  };
}

/** Of pulses that the device times. */
function openDeviceTimes({ device, clock, fired }: RelayWatchOptions) {
  const isTimedByDevice = device.profile.pulse?.way !== 'switched';

  function own(): Map<number, FiredRelay> {
    const hwId = device.hwId() ?? '';
    const relays = fired.get(hwId) ?? new Map<number, FiredRelay>();
    if (isTimedByDevice) fired.set(hwId, relays);
    return relays;
  }

  function lasts(relay: number, milliseconds: number, unacknowledged: number | undefined): void {
    const overAt = Math.max(own().get(relay)?.overAt ?? 0, clock.monotonic() + spanMs(milliseconds));
    own().set(relay, { overAt, unacknowledged });
  }

  return {
    relays: () => [...own().keys()],
    overAt: (relay: number) => own().get(relay)?.overAt ?? 0,
    unacknowledged: (relay: number) => own().get(relay)?.unacknowledged,
    fired: (relay: number, milliseconds: number) => lasts(relay, milliseconds, milliseconds),
    began: (relay: number, milliseconds: number) => lasts(relay, milliseconds, undefined),
    opened: (relay: number) => void own().delete(relay),
  };
}

/** Returns the relay of the settings once it is closed for longer than an earlier life of this host can have fired it. */
function openInherited({ device, clock }: RelayWatchOptions) {
  const way = device.profile.pulse?.way;
  const isTimed = way === 'flash' || way === 'command';
  let inherited: { relay: number; since: number } | undefined;
  return (isWatched: (relay: number) => boolean): number | undefined => {
    // Other outputs may be switched by the board itself, from its inputs.
    const settings = device.settings();
    const relay = settings?.relayIndex ?? null;
    if (!isTimed || relay === null || isWatched(relay) || !isClosed(device, relay)) {
      inherited = undefined;
      return undefined;
    }
    if (inherited?.relay !== relay) inherited = { relay, since: clock.monotonic() };
    const longest = Math.max(INHERITED_MIN_MS, settings?.unlockDurationMilliseconds ?? 0);
    const isOver = clock.monotonic() - inherited.since > longest * LATENESS + MARGIN_MS;
    return isOver ? relay : undefined;
  };
}

function logFailure({ device, log }: RelayWatchOptions, relay: number, error: unknown): void {
  log.warn(
    { address: device.unit, relay, err: String(error) },
    'a relay could not be opened after its pulse, or not be read: this is tried again',
  );
}

/** After so long the device has opened the relay for certain. */
function spanMs(milliseconds: number): number {
  return Math.ceil(milliseconds * LATENESS) + MARGIN_MS;
}

/**
 * After missed replies each answer to a reading may belong to a reading before it (drivers/bus/outstanding-requests.ts), and polls ask the same. The
 * answer to a question of another kind, be it an exception, ends that.
 */
async function settleReplies({ device, bus, clock, closing }: RelayWatchOptions): Promise<void> {
  const order = { class: 'check', deadline: clock.monotonic() + OFF_DEADLINE_MS, attempts: 1 } as const;
  await bus.exchange(readIdentification(device.unit, 0), order, closing).catch(() => undefined);
}

async function read({ device, bus, clock, closing }: RelayWatchOptions, relay: number): Promise<void> {
  const { outputs } = device.profile;
  if (!outputs) throw new Error(`profile ${device.profile.name} fires output${relay}, and has no outputs`);
  const order = { class: 'check', deadline: clock.monotonic() + OFF_DEADLINE_MS, signal: closing } as const;
  await readBack(bus, device, spanOf(outputs), order);
}

/** Switches the relay off where the product has a command for that. */
async function switchedOff(
  { device, bus, clock, closing }: RelayWatchOptions,
  relay: number,
  { isDue = () => true, ...more }: { class: OrderClass; insists?: boolean; isDue?: () => boolean },
): Promise<void> {
  const off = offRequest(device.unit, device.profile, relay);
  if (!off) return;
  const watched = whenAsked(off, () => {
    if (!isDue()) throw new DriverError('DEADLINE_PASSED', 'a new pulse of the relay has begun');
  });
  const deadline = clock.monotonic() + OFF_DEADLINE_MS;
  await sent(bus, watched, { deadline, attempts: OFF_ATTEMPTS, signal: closing, ...more });
}

/** Between two readings of a relay whose device does not answer, at most: each costs the wire its time-out. */
const UNREAD_RETRY_MAX_MS = 8_000;

/** The tries to open one relay, and the pauses between them: the device is polled no more, and then its watchdog is to do it. */
function openSwitchOffRetries({ device, clock, expiry, guard, closing }: RelayWatchOptions) {
  const isTimedByDevice = device.profile.pulse?.way !== 'switched';
  let failures = 0;
  /** When the first of them failed, monotonic milliseconds. */
  let since: number | undefined;
  /** No polls meanwhile: they may feed the watchdog that is to open the relay. */
  let hold: Disposable | undefined;

  function release(): void {
    since = undefined;
    hold?.[Symbol.dispose]();
    hold = undefined;
  }

  /** A device that says nothing is left to its contact, which opens every relay before it does anything else (watchdog-guard.ts). */
  async function untilWatchdog(): Promise<void> {
    since ??= clock.monotonic();
    if (device.connected()) hold ??= expiry.hold();
    const isOver = clock.monotonic() - since >= OFF_TRIES_MS;
    if (isOver && guard.heardAt() >= since) await expiry.keep();
    else await clock.sleep(OFF_RETRY_MS, closing);
    if (!isOver) return;
    if (hold) device.poll.alive(false);
    release();
  }

  return {
    failures: () => failures,
    failed(): void {
      failures += 1;
    },
    /** It was read, and is closed. */
    closed(): void {
      failures = 0;
    },
    async pause(): Promise<void> {
      if (!isTimedByDevice) return await untilWatchdog();
      const slowed = OFF_RETRY_MS * 2 ** Math.max(0, failures - 1);
      await clock.sleep(Math.min(UNREAD_RETRY_MAX_MS, slowed), closing);
    },
    /** A new pulse has begun. */
    reset(): void {
      failures = 0;
      release();
    },
    [Symbol.dispose]: release,
  };
}

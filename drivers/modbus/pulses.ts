/**
 * Closes a relay for a time, at most once. What the device shows afterwards decides, not its acknowledgement: an adapter
 * with local echo acknowledges for a device that is dead.
 */
import type { Bus } from '../bus/bus.ts';
import { whenAsked } from '../bus/exchange.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Pulse, Pulsed } from '../contract/rs485.ts';
import type { Until } from '../rs485/link.ts';
import type { Mutex } from '../rs485/mutex.ts';
import { assertAlone } from '../rs485/registry.ts';
import type { RelayFaults } from '../rs485/relay-faults.ts';
import type { Device } from './device.ts';
import type { LivePulses } from './live-pulses.ts';
import { write } from './messages.ts';
import {
  assertSame,
  isClosed,
  isRefusal,
  offRequest,
  readBack,
  seenNow,
  sent,
  sentByName,
  sentOnce,
} from './orders.ts';
import { pollSpans } from './profile-areas.ts';
import {
  effectiveMs,
  longestPulseMs,
  numberAt,
  pulseBlock,
  putNumber,
  readsOf,
  readsWithin,
  relayCount,
  spanOf,
} from './registers.ts';
import type { RelayWatch } from './relay-watch.ts';
import type { ShownVersions } from './shown-versions.ts';
import type { WatchdogGuard } from './watchdog-guard.ts';

/** Pulse ids are registers; 0 is what a device shows that never had one. */
const ID_MAX = 0xffff;

export interface PulsesOptions {
  device: Device;
  bus: Pick<Bus, 'exchange' | 'outstanding' | 'isContested'>;
  clock: Clock;
  live: LivePulses;
  /** Sees each relay open again. */
  relays: RelayWatch;
  faults: RelayFaults;
  guard: Pick<WatchdogGuard, 'unarmed' | 'tooSlow'>;
  versions: Pick<ShownVersions, 'isShared'>;
  /** What is sent to one relay is not mixed with what is sent to another of the same device. */
  mutex: Mutex;
}

export type Fire = (pulse: Pulse, until: Until) => Promise<Pulsed>;

type Firing = Pulse & Until;

export function openPulse(options: PulsesOptions): Fire {
  const { device, relays, mutex } = options;
  const { profile } = device;
  const way = wayOf(options);
  return async ({ hwId, relay, milliseconds, settingsVersion }, until) => {
    const count = profile.outputs?.count ?? 0;
    if (profile.outputs?.readOnly)
      throw new DriverError(
        'REFUSED',
        `${profile.product} fires no relay: its profile ${profile.name} has its outputs as readOnly, since nothing that can be read back opens them when the gateway is dead`,
      );
    if (!way || relay >= relayCount(profile))
      throw new DriverError('REFUSED', `${profile.product} has ${count} outputs, and no output${relay}`);
    if (milliseconds > longestPulseMs(profile))
      throw new DriverError(
        'REFUSED',
        `${profile.product} closes a relay for ${longestPulseMs(profile)} ms at most`,
      );
    return mutex(async () => {
      if (!device.connected()) throw new DriverError('DEVICE_OFFLINE', device.absence());
      assertTrusted(options);
      assertAlone(options.bus.isContested(device.unit), device.unit);
      // Never shorter than a pulse under way, as another caller was promised.
      const left = await leftOf(options, { relay, milliseconds, ...until });
      const effective = effectiveMs(profile, Math.min(longestPulseMs(profile), Math.max(milliseconds, left)));
      const firing = { hwId, relay, milliseconds: effective, settingsVersion, ...until };
      await way(firing).finally(() => relays.settled(relay));
      const timedBy = profile.pulse?.way === 'switched' ? 'gateway' : 'device';
      return { relay, milliseconds: effectiveMs(profile, milliseconds), timedBy };
    }, until.signal);
  };
}

/**
 * Milliseconds that a longer pulse of this relay still has. One whose relay is open is over: the device was restarted, or has done
 * nothing. What cannot be read lengthens nothing.
 */
async function leftOf(
  { device, bus, clock, live }: PulsesOptions,
  { relay, milliseconds, ...order }: Pick<Pulse, 'relay' | 'milliseconds'> & Until,
): Promise<number> {
  const { outputs, pulse } = device.profile;
  const left = () => Math.ceil((live.endsAt(relay) ?? 0) - clock.monotonic());
  if (!outputs || pulse?.way === 'switched' || left() <= milliseconds) return left();
  const isRead = await readBack(bus, device, spanOf(outputs), order).then(
    () => true,
    () => false,
  );
  if (isRead && isClosed(device, relay)) return left();
  live.ended(relay);
  return 0;
}

/** Throws REFUSED where the device was to open a relay by itself, and did not. */
function assertTrusted({ device: { profile }, faults }: PulsesOptions): void {
  const relay = faults.distrusted();
  if (relay === undefined) return;
  throw new DriverError(
    'REFUSED',
    `output${relay} was still closed after its pulse, which ${profile.product} was to end by itself; it would stay closed if the gateway died. Compare the pulse of profile ${profile.name} with the manual of the product, mend it or exchange the device, and restart the gateway`,
  );
}

/** The relay that was read after a request may be that of another device. Throws OUTCOME_UNKNOWN. */
async function assertSameAfter(
  options: PulsesOptions,
  { hwId, deadline }: { hwId: string; deadline: number },
): Promise<void> {
  const { signal } = new AbortController();
  await assertSame(options, { hwId, deadline, signal }).catch((cause: unknown) => {
    throw new DriverError('OUTCOME_UNKNOWN', 'it was sent, and the device does not say its name after it', {
      cause,
    });
  });
}

/** Also when the client has hung up: the relay may be closed, and its outcome is to be known. */
const untilDeadline = ({ deadline }: { deadline: number }) => ({ deadline });

function wayOf(options: PulsesOptions) {
  switch (options.device.profile.pulse?.way) {
    case 'block':
      return byBlock(options);
    case 'flash':
    case 'command':
      return byTimedWrite(options);
    case 'switched':
      return bySwitching(options);
    default:
      return undefined;
  }
}

/**
 * The device shows by its id which pulse it has taken last, until it is restarted. That it has taken one closes no relay: that is
 * seen at its outputs alone.
 */
function byBlock(options: PulsesOptions) {
  const { device, bus, clock, live, relays, versions } = options;
  const { unit, profile } = device;
  const { pulse, outputs, settings } = profile;
  const block = pulseBlock(profile);
  if (pulse?.way !== 'block' || !block || !outputs) return undefined;
  const version = () => settings && numberAt(device.image(), settings.inForce);
  let drawn: number | undefined;

  /** Neither the last one the device shows nor one that it may have taken without our knowing. */
  function draw(): number {
    const shown = numberAt(device.image(), pulse?.way === 'block' ? pulse.lastId : { address: 0 }) ?? 0;
    let id = drawn ?? shown;
    do id = id >= ID_MAX ? 1 : id + 1;
    while (id === shown);
    drawn = id;
    return id;
  }

  return async ({ relay, milliseconds, ...order }: Firing) => {
    const id = draw();
    const values: number[] = [];
    putNumber(values, block.address, pulse.id, id);
    putNumber(values, block.address, pulse.relay, relay);
    putNumber(values, block.address, pulse.milliseconds, milliseconds);
    const begin = write(unit, { functionCode: 16, address: block.address, values });
    // From its first byte on the relay may be closed, though the caller waits for no answer any more.
    const request = whenAsked(begin, () => relays.fired(relay, milliseconds));
    const before = live.endsAt(relay);
    const versionBefore = version();
    const spans = readsWithin(
      readsOf(pollSpans(profile)),
      [pulse.lastId, pulse.remaining, outputs].map(spanOf),
    );
    const { failure, isTaken, isDoubtful } = await sentOnce(options, request, order, async () => {
      live.began(relay, clock.monotonic() + milliseconds, id);
      const see = () => [numberAt(device.image(), pulse.lastId) === id, isClosed(device, relay)];
      const [isShown = false] = await seenNow(bus, device, spans, untilDeadline(order), see);
      return isShown;
    }).catch((error: unknown) => {
      if (isRefusal(error)) {
        live.refused(id);
        lasts(live, relay, before);
      }
      throw error;
    });
    if (isTaken) {
      relays.began(relay, milliseconds);
      if (version() !== versionBefore)
        throw new DriverError(
          'OUTCOME_UNKNOWN',
          `another device may have taken it: ${unit} shows other settings`,
        );
      if (version() && versions.isShared(unit)) await assertSameAfter(options, order);
      if (isClosed(device, relay)) return;
      throw new DriverError('OUTCOME_UNKNOWN', 'the device took the pulse, but its relay is open', {
        cause: failure,
      });
    }
    lasts(live, relay, isDoubtful ? undefined : before);
    if (isDoubtful)
      throw new DriverError('OUTCOME_UNKNOWN', 'the device was restarted, or does not say whether it was', {
        cause: failure,
      });
    throw failure
      ? new DriverError('NO_REPLY', 'the device did not take the pulse, as it shows', { cause: failure })
      : new DriverError('OUTCOME_UNKNOWN', 'the device acknowledged the pulse and shows another one');
  };
}

/** One attempt: again would be a second pulse. */
function byTimedWrite(options: PulsesOptions) {
  const { device, bus, clock, live, relays } = options;
  const { unit, profile } = device;
  const { pulse, outputs } = profile;
  if ((pulse?.way !== 'flash' && pulse?.way !== 'command') || !outputs) return undefined;
  return async ({ relay, milliseconds, ...order }: Firing) => {
    const wasClosed = isClosed(device, relay) || live.endsAt(relay) !== undefined;
    const value = milliseconds / pulse.unitMilliseconds;
    const address = pulse.address + relay;
    const close =
      pulse.way === 'flash'
        ? write(unit, { functionCode: 5, address, value })
        : write(unit, { functionCode: 6, address, value: pulse.on + value });
    const request = whenAsked(close, () => relays.fired(relay, milliseconds));
    const begunAt = clock.monotonic();
    const begun = () => live.began(relay, clock.monotonic() + milliseconds);
    const before = live.endsAt(relay);
    const failure = await sentByName(options, request, { ...order, attempts: 1 }).catch((error: unknown) => {
      // What was refused may have been carried out by a damaged device: the relay decides.
      if (isRefusal(error)) return error;
      // The relay may be closed by it, and then confirms no later pulse.
      if (error instanceof DriverError && error.code === 'OUTCOME_UNKNOWN') begun();
      throw error;
    });
    begun();
    if (!failure) relays.began(relay, milliseconds);
    let readAt = begunAt;
    await seenNow(bus, device, [spanOf(outputs)], { ...untilDeadline(order), clock }, (sentAt) => {
      readAt = sentAt;
      return isClosed(device, relay);
    });
    if (failure && !isRefusal(failure)) await assertSameAfter(options, order);
    if (isClosed(device, relay) && (!failure || !wasClosed)) {
      // Late delivery may have begun its time at this reading; an acknowledged one runs already.
      if (failure) relays.began(relay, milliseconds);
      return;
    }
    if (isClosed(device, relay) || readAt - begunAt >= milliseconds)
      throw new DriverError(
        'OUTCOME_UNKNOWN',
        'what the relay shows does not prove whether this pulse was taken',
        {
          cause: failure,
        },
      );
    lasts(live, relay, isRefusal(failure) ? before : undefined);
    throw isRefusal(failure) ? failure : readOpen(failure);
  };
}

/** The gateway opens the relay again; the watchdog of the device does when the gateway is dead (watchdog-guard.ts). */
function bySwitching(options: PulsesOptions) {
  const { device, bus, clock, live, relays, guard } = options;
  const { unit, profile } = device;
  const { outputs, pulse } = profile;
  if (pulse?.way !== 'switched' || !outputs) return undefined;
  const { watchdog } = pulse;
  /** When the request has its turn: the watchdog may have run out while it waited. */
  function assertInForce(): void {
    if (!device.connected()) throw new DriverError('DEVICE_OFFLINE', device.absence());
    const unarmed = guard.unarmed() ?? guard.tooSlow();
    if (unarmed !== undefined) throw new DriverError('DEVICE_OFFLINE', `nothing was sent, as ${unarmed}`);
  }

  /** A contact opens each relay before `release`. */
  function goesOn(): boolean {
    return guard.unarmed() === undefined && (device.connected() || watchdog.release.length === 0);
  }

  return async ({ relay, milliseconds, ...order }: Firing) => {
    const close = write(unit, { functionCode: 5, address: outputs.address + relay, value: true });
    const before = live.endsAt(relay);
    /** Counted from the first request that may have closed it, so that a repetition makes the pulse no longer. */
    let end: number | undefined;
    const isOver = () => end !== undefined && clock.monotonic() >= end;
    const watched = whenAsked(close, () => {
      assertInForce();
      // It would close the relay again behind the request that has opened it.
      if (isOver())
        throw new DriverError('NO_REPLY', 'it was sent, and not answered before the end of the pulse');
      end ??= clock.monotonic() + milliseconds;
      // A contact that begins from here on opens no relay with a live pulse (watchdog-guard.ts).
      live.began(relay, end);
      relays.fired(relay, milliseconds);
    });
    const isCut = () => live.endsAt(relay) === undefined && !isOver();
    let isReadBack = false;
    const { failure, isTaken, isDoubtful } = await sentOnce(options, watched, order, async () => {
      isReadBack = true;
      if (!isCut()) lasts(live, relay, end);
      const see = () => isClosed(device, relay);
      return await seenNow(bus, device, [spanOf(outputs)], untilDeadline(order), see);
    }).catch((error: unknown) => {
      const isUnfired = !isReadBack || isRefusal(error);
      if (isUnfired && live.endsAt(relay) !== undefined) lasts(live, relay, before);
      throw error;
    });
    if (isCut() || !goesOn()) {
      live.ended(relay);
      throw new DriverError(
        'OUTCOME_UNKNOWN',
        'the device was lost while its relay was closed, and the relay is opened',
        { cause: failure },
      );
    }
    if (isTaken) return;
    if (isOver())
      throw new DriverError('OUTCOME_UNKNOWN', 'the relay was read after its pulse was over', {
        cause: failure,
      });
    live.ended(relay);
    if (failure && !isDoubtful)
      throw new DriverError('NO_REPLY', 'the device did not close the relay, as it shows', {
        cause: failure,
      });
    throw readOpen(failure);
  };
}

/** Until `end`, monotonic milliseconds; undefined: it is over. */
function lasts(live: LivePulses, relay: number, end: number | undefined): void {
  live.ended(relay);
  if (end !== undefined) live.began(relay, end);
}

/** Without a boot count nothing shows that the device was not restarted since: a power cut opens a relay that has fired. */
function readOpen(failure: DriverError | undefined): DriverError {
  return failure
    ? new DriverError(
        'OUTCOME_UNKNOWN',
        'the pulse was not acknowledged; its relay is open now, and may have been closed before a restart of the device',
        { cause: failure },
      )
    : new DriverError('BAD_REPLY', 'the device acknowledged the pulse, but its relay is open');
}

const OFF_ATTEMPTS = 3;

/**
 * Opens a relay before its pulse is over; it is watched to the end of its time all the same (relay-watch.ts). Throws a DriverError;
 * REFUSED: the product has no way to do so.
 */
export type EndPulse = (relay: number, until: Until) => Promise<void>;

export function openEndPulse({ device, bus, live, relays, mutex }: PulsesOptions): EndPulse {
  const { unit, profile } = device;
  const { outputs, pulse, product } = profile;
  /** Boards are known that acknowledge the command to open, and keep the relay closed to the end of its time. */
  async function assertOpen(relay: number, deadline: number): Promise<void> {
    if (pulse?.way !== 'command' || !outputs) return;
    await readBack(bus, device, spanOf(outputs), { deadline });
    if (isClosed(device, relay))
      throw new DriverError('REFUSED', `${product} keeps a relay closed to the end of its pulse`);
  }

  return (relay, { deadline, signal }) =>
    mutex(async () => {
      const off = offRequest(unit, profile, relay);
      if (!off || outputs?.readOnly)
        throw new DriverError('REFUSED', `${product} has no way to open a relay before its pulse is over`);
      if (!device.connected()) throw new DriverError('DEVICE_OFFLINE', device.absence());
      const failure = await sent(bus, off, { class: 'off', deadline, attempts: OFF_ATTEMPTS, signal });
      if (failure) throw failure;
      await assertOpen(relay, deadline);
      live.ended(relay);
      relays.settled(relay);
    }, signal);
}

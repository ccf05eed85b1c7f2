/** What is sent to a relay, and what the relay shows of it afterwards. */
import type { Bus } from '../bus/bus.ts';
import {
  type Attempt,
  type Exchange,
  FAULTS,
  type Order,
  type OrderClass,
  whenAsked,
} from '../bus/exchange.ts';
import { confirmedReply } from '../bus/reply-confirmation.ts';
import { type Clock, DriverError, type DriverErrorCode } from '../contract/driver.ts';
import { OtherSettings } from '../rs485/registry.ts';
import { type Device, exchangeOf } from './device.ts';
import { NAMED_FOR_MS } from './device-state.ts';
import { write } from './messages.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, numberAt, type Span, spanOf } from './registers.ts';

const READ_BACK_ATTEMPTS = 3;

export function isClosed({ profile, image }: Device, relay: number): boolean {
  return profile.outputs !== undefined && bitsAt(image(), profile.outputs)?.[relay] === 1;
}

/** Opens a relay: by its coil, or by the command for that. undefined: the product has neither. */
export function offRequest(
  unit: number,
  { outputs, pulse }: Profile,
  relay: number,
): Exchange<null> | undefined {
  if (pulse?.way === 'command')
    return write(unit, { functionCode: 6, address: pulse.address + relay, value: pulse.off });
  if (outputs?.table !== 'coil' || pulse?.way === 'block') return undefined;
  return write(unit, { functionCode: 5, address: outputs.address + relay, value: false });
}

/** The request may have been carried out. After all other codes it certainly was not. */
const UNCLEAR: readonly DriverErrorCode[] = ['NO_REPLY', 'BAD_REPLY'];
/** Of a reading: it was not asked, and why. */
const UNSENT: readonly DriverErrorCode[] = ['DEADLINE_PASSED', 'DEVICE_OFFLINE', 'BUSY', 'LINK_LOST'];
/**
 * The same of one attempt. Devices are known that answer with exception 06 what they have carried out, and gateways with
 * exception 0A what they have passed on: the relay decides.
 */
const MAY_BE_DONE: readonly Attempt['outcome'][] = [
  'failed',
  'unanswered',
  'unreached',
  'busy',
  'timeout',
  'collision',
  ...FAULTS,
];

/** Undefined: acknowledged. An error returned: it may have been carried out. Throws when it was not. */
export async function sent(
  bus: Pick<Bus, 'exchange'>,
  exchange: Exchange<unknown>,
  order: Pick<Order, 'deadline' | 'attempts' | 'insists'> & { class?: OrderClass; signal: AbortSignal },
): Promise<DriverError | undefined> {
  const { signal, ...asked } = order;
  let left = false;
  /** An earlier attempt may have been carried out, whatever the answer to the last one. */
  let isUnclear = false;
  const observe = ({ outcome }: Attempt) => {
    isUnclear ||= MAY_BE_DONE.includes(outcome);
  };
  const watched: Exchange<unknown> = {
    ...exchange,
    request() {
      const request = exchange.request();
      left = true;
      return request;
    },
  };
  try {
    await bus.exchange(watched, { class: 'command', ...asked, observe, isFresh: true }, signal);
    return undefined;
  } catch (error) {
    if (signal.aborted)
      throw left
        ? new DriverError('OUTCOME_UNKNOWN', 'there was no time to see what came of it', { cause: error })
        : new DriverError('DEADLINE_PASSED', 'nothing was sent in time', { cause: error });
    if (!(error instanceof DriverError) || (!isUnclear && !UNCLEAR.includes(error.code))) throw error;
    return error;
  }
}

export interface Named {
  bus: Pick<Bus, 'exchange' | 'outstanding'>;
  device: Device;
  clock: Clock;
}

/** To the device of this name; `settingsVersion`: and where that is the one in force alone. */
type NamedOrder = Parameters<typeof sent>[2] & { hwId: string; settingsVersion?: number };

/**
 * As `sent`, to the device of this name alone, where the profile has one: its name is read right before, unless a poll has just shown
 * that it is there. Boards that were exchanged may have equal boot counts, and no reply may have been missed. Throws
 * DEVICE_OFFLINE and OtherSettings besides; then nothing was sent.
 */
export async function sentByName(
  named: Named,
  exchange: Exchange<unknown>,
  order: NamedOrder,
): Promise<DriverError | undefined> {
  const { bus, device, clock } = named;
  const { hwId, settingsVersion, ...sending } = order;
  const hasSettings = () => settingsVersion === undefined || device.version() === settingsVersion;
  for (;;) {
    const shownAt = device.namedAt();
    const isShown = clock.monotonic() - shownAt < NAMED_FOR_MS && device.hwId() === hwId && hasSettings();
    const namedAt = isShown ? shownAt : await assertSame(named, order);
    if (!hasSettings()) throw new OtherSettings(device.unit);
    const deadline = Math.min(order.deadline, namedAt + NAMED_FOR_MS);
    let isOutdated = false;
    const inTime = whenAsked(exchange, () => {
      isOutdated = !hasSettings();
      if (isOutdated) throw new DriverError('DEADLINE_PASSED', 'settings were sent before it had its turn');
    });
    try {
      return await sent(bus, inTime, { ...sending, deadline });
    } catch (error) {
      // The bus had other work since, or this process stood still.
      const isLate =
        error instanceof DriverError && error.code === 'DEADLINE_PASSED' && deadline !== order.deadline;
      if (!isLate && !isOutdated) throw error;
    }
  }
}

/**
 * Returns when the device was asked for its name, which is that of the order; Infinity: it has none. `settingsVersion`: the version in force is read as well,
 * where that is not known. Throws as `sentByName` does.
 */
export async function assertSame(
  { bus, device, clock }: Named,
  { hwId, settingsVersion, deadline, signal, class: orderClass }: Omit<NamedOrder, 'attempts'>,
): Promise<number> {
  const { unit, profile } = device;
  const { hwId: name } = profile.identity;
  const inForce =
    settingsVersion !== undefined && device.version() === undefined && profile.settings?.inForce;
  const spans = [inForce, name].filter((place) => place !== undefined && place !== false).map(spanOf);
  if (spans.length === 0) return Number.POSITIVE_INFINITY;
  let askedAt = 0;
  const order = { deadline, signal, clock, ...(orderClass && { class: orderClass }) };
  await seenNow(bus, device, spans, order, (sentAt) => {
    askedAt = sentAt;
    return device.shownName();
  }).catch(({ cause }: DriverError) => {
    if (signal.aborted) throw new DriverError('DEADLINE_PASSED', 'nothing was sent in time', { cause });
    if (cause instanceof DriverError && UNSENT.includes(cause.code)) throw cause;
    throw new DriverError('DEVICE_OFFLINE', `device ${unit} does not say its name; nothing was sent`, {
      cause,
    });
  });
  if (!name) return Number.POSITIVE_INFINITY;
  if (device.shownName() === hwId) return askedAt;
  throw new DriverError(
    'DEVICE_OFFLINE',
    `another device answers at address ${unit} than ${hwId}; nothing was sent: its door can be opened once the gateway has found it again`,
  );
}

/** By the device. */
export function isRefusal(error: unknown): error is DriverError {
  return error instanceof DriverError && error.code === 'REFUSED' && !(error instanceof OtherSettings);
}

/** Each is followed by a look at the device. */
const FIRING_ATTEMPTS = 3;

/** What came of a request that closes a relay. */
export interface SentOnce {
  /** Undefined: the last attempt was acknowledged. */
  failure: DriverError | undefined;
  isTaken: boolean;
  /** The device was restarted meanwhile, or does not say: what it shows as not taken may have been carried out before. */
  isDoubtful: boolean;
}

/**
 * Carried out once at most, though its reply may be lost. A power dip opens the relay and lets the device forget the pulse, so that
 * a repetition would close it a second time. So it is sent again only while the device shows that it has not taken it, and
 * by its boot count that it was not restarted since; a device that counts no restarts is sent it once. A refusal is believed when
 * the device shows that it has not taken it: a damaged device may refuse what it has carried out. Throws as `sent` and `isTaken`
 * do, and then nothing is sent again.
 */
export async function sentOnce(
  named: Named,
  exchange: Exchange<unknown>,
  order: Omit<NamedOrder, 'attempts'>,
  isTaken: () => Promise<boolean>,
): Promise<SentOnce> {
  const { bus, device, clock } = named;
  const { bootCount, identity } = device.profile;
  const boots = () => bootCount && numberAt(device.image(), bootCount);
  const before = boots();
  let { deadline } = order;
  let failure: DriverError | undefined;
  let refusal: DriverError | undefined;
  for (let attempt = 1; ; attempt += 1) {
    let isOver = attempt === FIRING_ATTEMPTS;
    try {
      failure = await sentByName(named, exchange, { ...order, deadline, attempts: 1 });
      isOver ||= failure === undefined;
    } catch (error) {
      // What became of the attempts before, and of one that was refused, the device shows.
      if (!(error instanceof DriverError) || (!failure && !isRefusal(error))) throw error;
      if (!failure) refusal = error;
      failure = error;
      isOver = true;
    }
    // A line may deliver the request after that look, and the device may be restarted then: an old look proves nothing.
    deadline = Math.min(order.deadline, clock.monotonic() + NAMED_FOR_MS);
    const isShown = await isTaken();
    if (isShown && (!failure || refusal)) return { failure, isTaken: true, isDoubtful: false };
    if (refusal) throw refusal;
    // After that look: a restart before it made the device forget what it had taken.
    for (const area of [isShown ? undefined : bootCount, identity.hwId])
      if (area) await readBack(bus, device, spanOf(area), { deadline: order.deadline });
    // Another device may be in its place, with the same count, and its relay closed.
    const isOther = device.shownName() !== order.hwId;
    if (isShown && !isOther) return { failure, isTaken: true, isDoubtful: false };
    const isDoubtful = before === undefined || boots() !== before || isOther || !device.connected();
    if (isOver || isDoubtful) return { failure, isTaken: false, isDoubtful };
  }
}

/**
 * What `see` finds in the image, after the spans were read into it; `sentAt`: when the last of them was asked. They are read again as
 * long as that may be what was asked before: some lines do not keep the order of replies, and a reading does not say when it was asked.
 * Throws OUTCOME_UNKNOWN.
 */
export async function seenNow<Seen>(
  bus: Pick<Bus, 'exchange' | 'outstanding'>,
  device: Device,
  spans: readonly Span[],
  { clock, ...order }: Parameters<typeof readBack>[3] & { clock?: Clock },
  see: (sentAt: number) => Seen,
): Promise<Seen> {
  const missed = () => Math.max(...spans.map((span) => bus.outstanding(exchangeOf(device.unit, span))));
  async function look(): Promise<Seen> {
    let sentAt = 0;
    for (const span of spans) sentAt = await readBack(bus, device, span, order, clock);
    return see(sentAt);
  }
  try {
    return await confirmedReply(look, missed);
  } catch (error) {
    if (!(error instanceof DriverError) || error.code !== 'BAD_REPLY') throw error;
    throw new DriverError('OUTCOME_UNKNOWN', 'the device shows now this and now that', { cause: error });
  }
}

/** Reads what the device shows now into its image; returns when it was asked. Throws OUTCOME_UNKNOWN. */
export async function readBack(
  bus: Pick<Bus, 'exchange'>,
  device: Device,
  span: Span,
  {
    deadline,
    signal = new AbortController().signal,
    class: orderClass = 'command',
  }: { deadline: number; signal?: AbortSignal; class?: OrderClass },
  clock?: Clock,
): Promise<number> {
  const exchange = exchangeOf(device.unit, span);
  let sentAt = 0;
  let askedAt = 0;
  const watched: typeof exchange = {
    ...exchange,
    request() {
      sentAt = clock?.monotonic() ?? 0;
      return exchange.request();
    },
    replied(at) {
      askedAt = at;
    },
  };
  try {
    const order = { class: orderClass, deadline, attempts: READ_BACK_ATTEMPTS, isFresh: true };
    const values = await bus.exchange(watched, order, signal);
    device.read(span, values, askedAt);
    return sentAt;
  } catch (error) {
    throw new DriverError('OUTCOME_UNKNOWN', 'it was sent, and the device does not show what came of it', {
      cause: error,
    });
  }
}

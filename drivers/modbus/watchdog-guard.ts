/**
 * What must be so before a product that does not time pulses itself is used, and as long as it is: every output without a
 * live pulse is off, and its watchdog, which opens what a dead gateway leaves closed, shows that it is in force.
 */
import { type Exchange, whenRead } from '../bus/exchange.ts';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Clock, Plain } from '../contract/driver.ts';
import { openWatchdogFeed, openWatchdogPauses, RUN_OUT_SHARE, type Unfed } from '../rs485/watchdog-feed.ts';
import { proofOf } from '../rs485/watchdog-proof.ts';
import { offUnlessLive, releaseWhenOpen, type Step, step, writeStep } from './contact-steps.ts';
import type { LivePulses } from './live-pulses.ts';
import { write } from './messages.ts';
import { watchdogSpans } from './profile-areas.ts';
import type { Profile, Watchdog } from './profile-shape.ts';
import { bitsAt, type Image, numberAt, type Span } from './registers.ts';

export interface WatchdogGuard {
  /** Between two polls at most, so that a watchdog is fed; undefined: it does not matter. */
  everyMs: number | undefined;
  /** To be done before anything is read. */
  steps(): Step[];
  /** To be read with everything else, and after each round of polls one of them again. */
  spans: readonly Span[];
  /** Why it may not be used; undefined: it may. */
  fault(image: Image): BusWarning | undefined;
  /** Why what was so is not so any more. */
  lapse(image: Image): string | undefined;
  /** The same exchange; what feeds the watchdog is noted. */
  watched<Reply>(exchange: Exchange<Reply>): Exchange<Reply>;
  /** Why the contact must begin again: the watchdog may have run out between two requests. */
  starved(image: Image): string | undefined;
  /** Why no relay may be closed at this moment; undefined: the watchdog was fed in time. */
  unarmed(): string | undefined;
  /** Outputs that it shows as on, and that no one wants on. */
  strayOutputs(image: Image): readonly number[];
  /** Monotonic: its last answer, of whatever kind. */
  heardAt(): number;
  /** Why the watchdog would not be fed to the end of a pulse. */
  tooSlow(): string | undefined;
  /** When it was not fed in time, lately. */
  unfed(): Unfed | null;
  /** What of it a technician should mend. */
  warning(): BusWarning | undefined;
  /** What is due in place of the next poll. */
  due(image: Image): Step | undefined;
}

const NOTHING: WatchdogGuard = {
  everyMs: undefined,
  spans: [],
  steps: () => [],
  fault: () => undefined,
  lapse: () => undefined,
  watched: (exchange) => exchange,
  starved: () => undefined,
  unarmed: () => undefined,
  strayOutputs: () => [],
  heardAt: () => Number.NEGATIVE_INFINITY,
  tooSlow: () => undefined,
  unfed: () => null,
  warning: () => undefined,
  due: () => undefined,
};
/** One lost request must not let it run out. */
const POLLS_PER_WATCHDOG = 4;
const FEEDS_PER_WATCHDOG = 3;

export function watchdogGuardOf(
  unit: number,
  profile: Profile,
  pulses: LivePulses,
  clock: Clock,
): WatchdogGuard {
  const { outputs, pulse, product } = profile;
  if (pulse?.way !== 'switched' || !outputs) return NOTHING;
  const { watchdog } = pulse;
  const { release, time, enable, feed, milliseconds } = watchdog;
  const relays = Array.from({ length: outputs.count }, (_, relay) => relay);
  const where = `${product} at address ${unit}`;
  const feeding = openWatchdogFeed(milliseconds, clock);
  let fedAt = Number.NEGATIVE_INFINITY;
  let feeds = 0;
  const { heard, heardAt } = openHeard(clock);
  const pauses = openWatchdogPauses(clock);
  let starved: BusWarning | undefined;

  const allOff = () =>
    write(unit, { functionCode: 15, address: outputs.address, values: relays.map(() => false) });
  const strayOutputs = (image: Image) => {
    const levels = bitsAt(image, outputs);
    return relays.filter((relay) => levels?.[relay] === 1 && pulses.endsAt(relay) === undefined);
  };
  function feedStep(): Step | undefined {
    if (!feed) return undefined;
    const value = feed.values[feeds % feed.values.length] ?? 0;
    return {
      exchange: () => feeding.feeding(write(unit, { functionCode: 6, address: feed.address, value })),
      take() {
        fedAt = clock.monotonic();
        feeds += 1;
      },
    };
  }
  const timeStep: Step = {
    exchange: () =>
      feeding.feeding(write(unit, { functionCode: 6, address: time.address, value: unitsOf(watchdog) })),
    take: feeding.armed,
  };
  function pauseWarning(): BusWarning | undefined {
    const pausedMs = feeding.lapsedMs();
    if (pausedMs === undefined) return undefined;
    const figures = { timeoutMs: milliseconds, pausedMs: Math.round(pausedMs) };
    return busWarning('WATCHDOG_UNFED', { device: where, ...figures });
  }

  return {
    everyMs: milliseconds / POLLS_PER_WATCHDOG,
    spans: watchdogSpans(watchdog),
    steps() {
      const arm = [
        timeStep,
        ...enable.map((one) => writeStep(unit, one)),
        ...[feedStep()].filter((one) => one !== undefined),
      ];
      if (release.length > 0) return [...releaseWhenOpen(unit, profile, pulses), ...arm, step(allOff)];
      return [offUnlessLive(unit, outputs, pulses), ...arm];
    },
    fault(image) {
      const absent = whyNotInForce(where, watchdog, image);
      const [on] = strayOutputs(image);
      if (absent || on === undefined) return absent ?? pauseWarning();
      return busWarning('OUTPUT_STAYS_ON', { output: `output${on}`, device: where });
    },
    lapse(image) {
      const absent = whyNotInForce(where, watchdog, image);
      return absent && `${absent.message}. It has run out, or the device was restarted`;
    },
    watched: (exchange) => heard(feed ? exchange : feeding.feeding(exchange)),
    starved(image) {
      const warning = pauseWarning();
      // An output that is on without a live pulse is left to the watchdog: armed again, it would not open it.
      const isLeft = feed !== undefined && strayOutputs(image).length > 0;
      if (!warning || (isLeft && clock.monotonic() - fedAt < milliseconds * RUN_OUT_SHARE)) return undefined;
      starved = warning;
      pauses.paused(feeding.lapsedMs() ?? 0);
      return warning.message;
    },
    unarmed: () => pauseWarning()?.message,
    strayOutputs,
    heardAt,
    tooSlow: () => (pauses.isTooSlow() ? starved?.message : undefined),
    unfed: pauses.unfed,
    warning: () => (pauses.unfed() ? starved : undefined),
    due(image) {
      // An output that is on without a live pulse is left to the watchdog.
      const isDue = clock.monotonic() - fedAt >= milliseconds / FEEDS_PER_WATCHDOG;
      return isDue && strayOutputs(image).length === 0 ? feedStep() : undefined;
    },
  };
}

/** When a device answered last. */
function openHeard(clock: Clock) {
  let at = Number.NEGATIVE_INFINITY;
  return {
    heardAt: () => at,
    heard: <Reply>(exchange: Exchange<Reply>): Exchange<Reply> =>
      whenRead(exchange, ({ kind }) => {
        if (kind !== 'more') at = clock.monotonic();
      }),
  };
}

/** What a device shows of its watchdog while nothing is asked of it for long enough: it has run out, or it was not running. */
export function whyNotRunOut(watchdog: Watchdog, image: Image): string | undefined {
  const shown = numberAt(image, { address: watchdog.time.address });
  if (shown !== unitsOf(watchdog))
    return `its watchdog has another time than was set (${shown}): the device was restarted during the test`;
  const { inForce } = watchdog;
  const isRunning =
    inForce.length > 0 && inForce.every(({ table, address, value }) => image[table].get(address) === value);
  return isRunning
    ? 'its watchdog shows that it has not run out: the device was without power during the test, or nothing that inForce of its profile names changes when the watchdog runs out'
    : undefined;
}

function unitsOf({ milliseconds, time }: Watchdog): number {
  return Math.ceil(milliseconds / time.unitMilliseconds);
}

function whyNotInForce(device: string, watchdog: Watchdog, image: Image): BusWarning | undefined {
  const { milliseconds, time, inForce } = watchdog;
  if (numberAt(image, { address: time.address }) !== unitsOf(watchdog))
    return busWarning('WATCHDOG_TIME', { device, timeoutMs: milliseconds });
  const other = inForce.find(({ table, address, value }) => image[table].get(address) !== value);
  if (!other) return undefined;
  const { table, address } = other;
  const value = image[table].get(address) ?? '?';
  return busWarning('WATCHDOG_NOT_IN_FORCE', { device, place: `${table} ${address}`, value });
}

/** What must have been proved before a relay of this product is fired; null: the device opens it by itself. */
export function proofOfProfile({ pulse, outputs }: Profile): { proof: string; milliseconds: number } | null {
  if (pulse?.way !== 'switched') return null;
  const { milliseconds } = pulse.watchdog;
  const tested = { ...pulse, watchdog: asSent(pulse.watchdog) };
  return { proof: proofOf({ pulse: tested, outputs } as Plain), milliseconds };
}

/** Without what only helps to check a profile: a change of that makes no proof void. */
function asSent({ time, inForce, ...watchdog }: Watchdog) {
  const { unitsMax: _, ...sent } = time;
  return { ...watchdog, time: sent, inForce: inForce.map(({ shows: __, ...place }) => place) };
}

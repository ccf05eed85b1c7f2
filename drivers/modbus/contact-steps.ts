/**
 * What is asked of a device when it is met, and in its polls: steps that open relays, set its watchdog up, stop it (`release` of its
 * profile), and clear one that has run out.
 */
import type { Exchange, Reading } from '../bus/exchange.ts';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { DriverError } from '../contract/driver.ts';
import type { LivePulses } from './live-pulses.ts';
import { readBits, write } from './messages.ts';
import type { Profile, Watchdog } from './profile-shape.ts';

/** One exchange of a contact. */
export interface Step {
  /** Asked for when its turn has come, which may be long after the contact began. */
  exchange(): Exchange<unknown>;
  take(reply: unknown): void;
  /** Whether the contact goes on although the device answered with this error. */
  bears?(error: DriverError): boolean;
  /** What is to follow it at once, as its reply shows. */
  more?(): readonly Step[];
  /** Why the contact must begin again after this step; undefined: it goes on. */
  hindrance?(): BusWarning | undefined;
  /** It opens relays, or sees that they are open. */
  opens?: true;
  /** It sees which product is there. */
  identifies?: true;
}

type Outputs = NonNullable<Profile['outputs']>;

/** Decided when it is sent: a pulse may have begun since the contact did. */
export function offUnlessLive(unit: number, { address, count }: Outputs, pulses: LivePulses): Step {
  const relays = Array.from({ length: count }, (_, relay) => relay);
  let isAnyLive = false;
  return {
    opens: true,
    exchange() {
      isAnyLive = relays.some((relay) => pulses.endsAt(relay) !== undefined);
      return isAnyLive
        ? readBits(unit, { functionCode: 1, address, quantity: count })
        : write(unit, { functionCode: 15, address, values: relays.map(() => false) });
    },
    take: () => undefined,
    more: () => (isAnyLive ? relays.map((relay) => oneOff(unit, { address, relay }, pulses)) : []),
  };
}

/** Never on: a device that was away for the rest of a pulse would get the order late. */
function oneOff(
  unit: number,
  { address, relay }: { address: number; relay: number },
  pulses: LivePulses,
): Step {
  const coil = { address: address + relay };
  let isRead = false;
  return {
    opens: true,
    exchange() {
      isRead = pulses.endsAt(relay) !== undefined;
      return isRead
        ? readBits(unit, { functionCode: 1, ...coil, quantity: 1 })
        : write(unit, { functionCode: 5, ...coil, value: false });
    },
    take(reply) {
      if (isRead && (reply as boolean[])[0] === false) pulses.ended(relay);
    },
  };
}

/**
 * `release` stops the watchdog: what is closed then stays closed for ever if the gateway dies before it is armed again. So
 * each relay is opened first, also one with a live pulse, and read. A device whose watchdog has run out may answer every
 * request but `release` with exception 04: that is taken for open, and the watchdog is armed before anything else.
 */
export function releaseWhenOpen(unit: number, profile: Profile, pulses: LivePulses): Step[] {
  const { outputs, pulse, product } = profile;
  if (pulse?.way !== 'switched' || !outputs) return [];
  const { address, count } = outputs;
  const relays = Array.from({ length: count }, (_, relay) => relay);
  const where = `${product} at address ${unit}`;
  const allOff = () => write(unit, { functionCode: 15, address, values: relays.map(() => false) });
  let answered: Reading<unknown>['kind'] | undefined;
  let hasFailed = false;
  let hindrance: BusWarning | undefined;
  const heard = <Reply>(exchange: Exchange<Reply>): Exchange<Reply> => ({
    ...exchange,
    read(received) {
      const reading = exchange.read(received);
      answered = reading.kind;
      return reading;
    },
  });
  const off: Step = {
    exchange() {
      answered = undefined;
      for (const relay of relays) pulses.ended(relay);
      return heard(allOff());
    },
    opens: true,
    take: () => undefined,
    bears() {
      hasFailed = answered === 'failed';
      return hasFailed;
    },
  };
  const look: Step = {
    opens: true,
    exchange() {
      answered = undefined;
      return heard(readBits(unit, { functionCode: 1, address, quantity: count }));
    },
    take(values) {
      const closed = (values as boolean[]).indexOf(true);
      hindrance =
        closed < 0 ? undefined : busWarning('OUTPUT_STAYS_ON', { output: `output${closed}`, device: where });
    },
    bears: () => hasFailed && answered === 'refused',
    hindrance: () => hindrance,
  };
  /** A pulse that was under way when the contact began may have closed its relay meanwhile. */
  function unlessLive(written: Watchdog['release'][number]): Step {
    let isHindered = false;
    return {
      exchange() {
        isHindered = relays.some((relay) => pulses.endsAt(relay) !== undefined);
        return isHindered ? allOff() : writeStep(unit, written).exchange();
      },
      take: () => undefined,
      hindrance: () => (isHindered ? busWarning('PULSE_AT_SET_UP', { device: where }) : undefined),
    };
  }

  return [off, look, ...pulse.watchdog.release.map(unlessLive)];
}

/** What stops it, or clears it once it has run out. */
export function releaseSteps(unit: number, { pulse }: Profile): Step[] {
  return pulse?.way === 'switched' ? pulse.watchdog.release.map((one) => writeStep(unit, one)) : [];
}

export function step(exchange: Step['exchange']): Step {
  return { exchange, take: () => undefined };
}

export function writeStep(unit: number, { table, address, count, value }: Watchdog['enable'][number]): Step {
  const values = Array.from({ length: count }, () => value);
  if (table === 'coil')
    return step(() =>
      count === 1
        ? write(unit, { functionCode: 5, address, value: value === 1 })
        : write(unit, { functionCode: 15, address, values: values.map((one) => one === 1) }),
    );
  return step(() =>
    count === 1
      ? write(unit, { functionCode: 6, address, value })
      : write(unit, { functionCode: 16, address, values }),
  );
}

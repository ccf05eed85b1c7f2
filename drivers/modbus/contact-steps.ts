/**
 * What is asked of a device when it is met, and in its polls: steps that open relays, set its watchdog up, stop it (`release` of its
 * profile), and clear one that has run out.
 */
import { type Exchange, type Reading, whenRead } from '../bus/exchange.ts';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { DriverError } from '../contract/driver.ts';
import type { LivePulses } from './live-pulses.ts';
import { type Identification, readBits, readIdentification, write } from './messages.ts';
import type { Profile, Watchdog } from './profile-shape.ts';
import { type Image, numberAt, type Span } from './registers.ts';

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
  const heard = <Reply>(exchange: Exchange<Reply>): Exchange<Reply> =>
    whenRead(exchange, ({ kind }) => {
      answered = kind;
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

// Which product a device is: by the registers that name one, and by what the standard has for that.

/** Why it is another one; undefined: it is this one, or nothing of `span` says so. */
export function foreignProduct(
  unit: number,
  { identity, product, name }: Profile,
  image: Image,
  span?: Span,
): BusWarning | undefined {
  const within = ({ table, address }: { table: string; address: number }) =>
    span === undefined ||
    (table === span.table && address >= span.address && address < span.address + span.quantity);
  const other = identity.shown?.filter(within).find((place) => numberAt(image, place) !== place.value);
  if (!other) return undefined;
  const { table, address, value } = other;
  return busWarning('OTHER_PRODUCT', {
    address: unit,
    product,
    register: `${table} register ${address}`,
    value: numberAt(image, other) ?? '?',
    profile: name,
    wanted: value,
  });
}

/** Objects of the basic identification: vendor, product code, revision (application protocol 1.1b3, 6.21). */
export const PRODUCT_CODE = 1;
export const REVISION = 2;
const OBJECT_MAX = 2;
const TEXT_MAX = 128;

/** Reads the basic identification, in as many exchanges as the device wants; one that refuses it has none. */
export function identificationStep(
  unit: number,
  identified: (objects: ReadonlyMap<number, string>) => void,
  object = 0,
): Step {
  let next: number | undefined;
  return {
    exchange: () => readIdentification(unit, object),
    take(reply) {
      const { objects, next: more } = reply as Identification;
      identified(new Map([...objects].map(([id, text]) => [id, text.slice(0, TEXT_MAX)])));
      // Each one later than the one before, so that a device that goes round in a ring ends.
      next = more !== undefined && more > object && more <= OBJECT_MAX ? more : undefined;
    },
    bears: ({ code }) => code === 'REFUSED',
    more: () => (next === undefined ? [] : [identificationStep(unit, identified, next)]),
  };
}

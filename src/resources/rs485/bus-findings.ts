/** What the figures of a bus say to anyone who has to mend it. Pure: a scan and the state of its bus in, findings out. */
import { type BusWarningCode, filled, type NamesIn } from '../../../drivers/contract/bus-warnings.ts';
import type { Probed } from '../../../drivers/contract/rs485.ts';
import type { BusOverview } from './bus-schema.ts';

/** By code. Exported for the tests of other languages. */
export const FINDING_TEXTS = {
  BUS_IS_DOWN: 'down: {reason}. Check the adapter and port {port}',
  LATE_BYTES:
    '{count} bytes came after their time, as do replies of address {addresses}: raise turnaroundMaxMs of the bus first, and look for noise only if bytes still come then',
  NOISE:
    '{count} bytes came while no one was asked: no bias resistors, noise on the cable, or a second master',
  DEAD_DEVICE: 'a device is known to be here and does not answer: its power, its address switch, its branch',
  DAMAGED_EVERYWHERE:
    'damaged frames at most addresses: 120 ohm at both ends of the cable and nowhere else, bias at one place, a cable too long for the baud rate, or no common ground',
  NO_FRAMES_EVERYWHERE:
    'characters that are none at most addresses: compare baudRate, parity and stopBits of the bus with what the devices are set to',
  NONE_IN_RANGE: 'no one answers in this range; on the bus, address {addresses} does',
  NONE_UNDERSTOOD:
    'no one can be understood, though something answers: compare baudRate, parity and stopBits with the devices; then see whether A and B are swapped',
  NONE_ANSWERS:
    'no one answers at all: see whether A and B are swapped (makers name them differently), whether the devices have power, and whether baudRate is theirs',
  TWO_ANSWER:
    '{percent} % damaged, at times that differ: two devices may have this address. Unplug one and scan again',
  DAMAGED:
    '{percent} % of its frames are damaged: its terminals, the branch to it, a missing or extra 120 ohm near it',
  NO_FRAMES:
    '{percent} % of what comes is no frame, though the bus is fine elsewhere: two devices may have this address. Unplug one and scan again; then compare its parity and stop bits',
  ANSWERS_MISSING: 'no answer to {percent} %: a loose terminal, or a supply that breaks down',
  ANSWERS_LATE:
    '{count} of its replies came too late: raise turnaroundMaxMs of the bus, or look for a delay setting in it or in the device server',
  ANSWERS_UNASKED:
    'answers that belong to no question: a second device with this address, a second master, or an adapter with local echo (localEcho)',
  ANSWERS_WITH_ERROR:
    'it answers {percent} % with an error, which the warnings of the bus name: compare its product with its profile',
  ANSWERS_SLOWLY: 'it takes {milliseconds} ms to answer, the others less: look for a delay setting',
  NAMELESS: 'it answers and cannot say who it is: name its address and profile in the configuration',
  ANSWERING: 'devices that answer: {count} ({added} new), the slowest within {milliseconds} ms',
} as const;

export type FindingCode = keyof typeof FINDING_TEXTS;

export interface Finding {
  severity: 'bad' | 'doubtful' | 'good';
  /** The bus or the address, which is one of the parameters too. */
  subject: string;
  /** The code in English, filled with its parameters. */
  text: string;
  code: FindingCode | BusWarningCode;
  parameters: Readonly<Record<string, string | number>>;
}

type Severity = Finding['severity'];
type BusOrAddress = { bus: string } | { address: number };

const subjectOf = (place: BusOrAddress): string =>
  'bus' in place ? `bus ${place.bus}` : `address ${place.address}`;

function finding<Code extends FindingCode>(
  severity: Severity,
  place: BusOrAddress,
  code: Code,
  about: Record<NamesIn<(typeof FINDING_TEXTS)[Code]>, string | number>,
): Finding {
  const parameters = { ...about, ...place };
  return { severity, subject: subjectOf(place), text: filled(FINDING_TEXTS[code], about), code, parameters };
}

/** Of one address, in the result of a scan. */
export interface ScannedAddress extends ProbedAddress {
  answered: boolean;
  /** null: no one is known to be there. */
  deviceId: string | null;
  isNew: boolean;
}
type ProbedAddress = Probed['results'][number];

/** As GET /network/rs485/buses shows it, and how that changed during the scan. */
export interface BusState
  extends Pick<BusOverview, 'id' | 'protocol' | 'port' | 'up' | 'lastError' | 'strayBytes' | 'warnings'> {
  /** Devices that are polled and replied too late since the scan began. */
  lateAddresses: readonly number[];
  /** Those that are polled. */
  devices: readonly { address: number; alive: boolean }[];
}

/** Of the exchanges with an address; less is what any cable loses now and then. */
const MANY = 0.02;
/** Of the addresses that say something: from there on it is the bus and not a device. */
const EVERYWHERE = 0.5;
/** A device that needs so many times as long as the others, and long enough to matter, milliseconds. */
const SLOW_TIMES = 4;
const SLOW_FROM_MS = 20;
/** A second device at an address answers at another time than the first, milliseconds. */
const TWO_VOICES_MS = 10;

type Kind = keyof ScannedAddress['counters'];

/** The state after a scan, with what came during it; what came before may be a fault that was mended. */
export function duringScan(before: BusOverview | undefined, after: BusOverview): BusState {
  const earlier = before?.strayBytes ?? 0;
  const late = new Map(before?.devices.map(({ address, counters }) => [address, counters.late]));
  const { strayBytes } = after;
  return {
    ...after,
    // A restarted host counts from 0.
    strayBytes: strayBytes !== null && strayBytes >= earlier ? strayBytes - earlier : strayBytes,
    lateAddresses: after.devices
      .filter(({ address, counters }) => counters.late > (late.get(address) ?? 0))
      .map(({ address }) => address),
  };
}

export function busFindings(bus: BusState, scanned: readonly ScannedAddress[]): Finding[] {
  const place = { bus: bus.id };
  if (!bus.up) {
    const reason = bus.lastError ?? 'it has not come up yet';
    return [finding('bad', place, 'BUS_IS_DOWN', { reason, port: bus.port ?? '' })];
  }
  const isNoisy = (bus.strayBytes ?? 0) > 0;
  // Noise is heard at every address that is asked, also where no one is.
  const addresses = scanned.filter(({ answered, deviceId }) => !isNoisy || answered || deviceId !== null);
  const general = [
    ...bus.warnings.map(({ code, message, parameters }): Finding => {
      const subject = subjectOf(place);
      return { severity: 'doubtful', subject, text: message, code, parameters: { ...place, ...parameters } };
    }),
    ...strayFindings(bus, scanned),
  ];
  const answering = addresses.filter(({ answered }) => answered);
  const dead = deadOutside(bus, scanned, addresses);
  if (answering.length === 0) return [...noAnswers(bus, scanned, addresses), ...dead, ...general];
  const common = (['crc', 'framing'] as const).filter((kind) => isEverywhere(kind, addresses));
  return [
    ...common.map((kind) => finding('bad', place, EVERYWHERE_CODES[kind], {})),
    ...general,
    ...addresses.flatMap((one) => deviceFindings(one, addresses, common)),
    ...dead,
    summary(place, answering),
  ];
}

function strayFindings({ id: bus, strayBytes, lateAddresses }: BusState, scanned: readonly ScannedAddress[]) {
  const count = strayBytes ?? 0;
  if (count === 0) return [];
  // Bytes of replies that came too late are heard by the next listener, when no one is asked: they are no noise.
  const late = new Set(scanned.filter(({ counters }) => counters.late > 0).map(({ address }) => address));
  for (const address of lateAddresses) late.add(address);
  if (late.size === 0) return [finding('doubtful', { bus }, 'NOISE', { count })];
  const addresses = [...late].toSorted((a, b) => a - b).join(', ');
  return [finding('doubtful', { bus }, 'LATE_BYTES', { count, addresses })];
}

/** Devices that are polled in vain and that the other findings do not name: outside the range, or left out as noise. */
function deadOutside(
  { devices }: BusState,
  scanned: readonly ScannedAddress[],
  named: readonly ScannedAddress[],
) {
  const isIn = (list: readonly ScannedAddress[], address: number) =>
    list.some((one) => one.address === address);
  return devices
    .filter(({ address, alive }) => !alive && !isIn(named, address))
    .map(({ address }) =>
      finding(isIn(scanned, address) ? 'bad' : 'doubtful', { address }, 'DEAD_DEVICE', {}),
    );
}

const EVERYWHERE_CODES = { crc: 'DAMAGED_EVERYWHERE', framing: 'NO_FRAMES_EVERYWHERE' } as const;

function noAnswers(
  { id: bus, devices }: BusState,
  scanned: readonly ScannedAddress[],
  addresses: readonly ScannedAddress[],
): Finding[] {
  // The wire is well where others answer: a range was asked in which no one is.
  const alive = devices.filter((device) => device.alive).map(({ address }) => address);
  if (alive.length > 0)
    return [
      ...addresses.flatMap((one) => deviceFindings(one, addresses, [])),
      finding('doubtful', { bus }, 'NONE_IN_RANGE', { addresses: alive.join(', ') }),
    ];
  const isGarbled = scanned.some(({ counters }) => counters.crc + counters.framing > 0);
  return [finding('bad', { bus }, isGarbled ? 'NONE_UNDERSTOOD' : 'NONE_ANSWERS', {})];
}

function isEverywhere(kind: Kind, addresses: readonly ScannedAddress[]): boolean {
  const heard = addresses.filter(({ answered, counters }) => answered || share(counters, kind) > 0);
  const affected = heard.filter(({ counters }) => share(counters, kind) >= MANY);
  return affected.length > 1 && affected.length / heard.length >= EVERYWHERE;
}

function share(counters: ScannedAddress['counters'], kind: Kind): number {
  const all = Object.values(counters).reduce((sum, count) => sum + count, 0);
  return all === 0 ? 0 : counters[kind] / all;
}

function deviceFindings(
  one: ScannedAddress,
  addresses: readonly ScannedAddress[],
  common: readonly Kind[],
): Finding[] {
  const { address, counters, identity, answered, turnaroundMs } = one;
  const found: Finding[] = [];
  const say = <Code extends FindingCode>(
    severity: Severity,
    code: Code,
    about: Parameters<typeof finding<Code>>[3],
  ) => found.push(finding(severity, { address }, code, about));
  const shareOf = (kind: Kind) => ({ percent: Math.max(1, Math.round(100 * share(counters, kind))) });
  const isMany = (kind: Kind) => share(counters, kind) >= MANY && !common.includes(kind);
  const isHeard = answered || counters.crc + counters.framing + counters.collisions + counters.late > 0;

  if (!isHeard) {
    say('bad', 'DEAD_DEVICE', {});
    return found;
  }
  if (speaksTwice(one)) say('bad', 'TWO_ANSWER', shareOf('crc'));
  else if (isMany('crc')) say('bad', 'DAMAGED', shareOf('crc'));
  // One that is set to another baud rate does not understand the question, and keeps silent.
  if (isMany('framing') && !speaksTwice(one)) say('bad', 'NO_FRAMES', shareOf('framing'));
  if (answered && isMany('timeouts')) say('doubtful', 'ANSWERS_MISSING', shareOf('timeouts'));
  if (counters.late > 0) say('doubtful', 'ANSWERS_LATE', { count: counters.late });
  if (counters.collisions > 0 && !speaksTwice(one)) say('bad', 'ANSWERS_UNASKED', {});
  if (isMany('refusals')) say('doubtful', 'ANSWERS_WITH_ERROR', shareOf('refusals'));
  if (isSlow(one, addresses)) say('doubtful', 'ANSWERS_SLOWLY', { milliseconds: turnaroundMs?.median ?? 0 });
  if (answered && identity === null) say('doubtful', 'NAMELESS', {});
  return found;
}

/** Two at one address: damage where both speak at once, and replies at two different times where they do not. */
function speaksTwice({ counters, turnaroundMs }: ScannedAddress): boolean {
  const isDamaged = share(counters, 'crc') >= MANY || counters.collisions > 0;
  const spread = turnaroundMs ? turnaroundMs.max - turnaroundMs.min : 0;
  return isDamaged && (spread >= TWO_VOICES_MS || (counters.crc > 0 && counters.collisions > 0));
}

function isSlow(one: ScannedAddress, addresses: readonly ScannedAddress[]): boolean {
  const median = one.turnaroundMs?.median ?? 0;
  const others = addresses
    .flatMap(({ address, turnaroundMs }) =>
      turnaroundMs && address !== one.address ? [turnaroundMs.median] : [],
    )
    .toSorted((a, b) => a - b);
  const usual = others[Math.floor(others.length / 2)];
  return usual !== undefined && median >= SLOW_FROM_MS && median >= SLOW_TIMES * usual;
}

function summary(place: BusOrAddress, answering: readonly ScannedAddress[]): Finding {
  return finding('good', place, 'ANSWERING', {
    count: answering.length,
    added: answering.filter(({ isNew }) => isNew).length,
    milliseconds: Math.max(...answering.map(({ turnaroundMs }) => turnaroundMs?.median ?? 0)),
  });
}

/** What the figures of a bus say to anyone who has to mend it. Pure: a scan and the state of its bus in, findings out. */
import type { BusOverview } from './bus-schema.ts';

export interface Finding {
  severity: 'bad' | 'doubtful' | 'good';
  subject: string;
  text: string;
}

/** Of one address, in the result of a scan. */
export interface ScannedAddress {
  address: number;
  answered: boolean;
  identity: { hwId: string; type: string | null; version: string | null; profile: string | null } | null;
  turnaroundMs: { min: number; median: number; max: number } | null;
  counters: {
    replies: number;
    timeouts: number;
    crc: number;
    framing: number;
    refusals: number;
    collisions: number;
    late: number;
  };
  /** null: no one is known to be there. */
  deviceId: string | null;
  isNew: boolean;
}

/** As GET /network/rs485/buses shows it, and how that changed during the scan. */
export interface BusState {
  id: string;
  protocol: string;
  port: string | null;
  up: boolean;
  lastError: string | null;
  /** Since the scan began. */
  strayBytes: number | null;
  /** Devices that are polled and replied too late since then. */
  lateAddresses: readonly number[];
  warnings: readonly { message: string }[];
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
  const subject = `bus ${bus.id}`;
  if (!bus.up) {
    const why = bus.lastError ?? 'it has not come up yet';
    return [{ severity: 'bad', subject, text: `down: ${why}. Check the adapter and port ${bus.port ?? ''}` }];
  }
  const isNoisy = (bus.strayBytes ?? 0) > 0;
  // Noise is heard at every address that is asked, also where no one is.
  const addresses = scanned.filter(({ answered, deviceId }) => !isNoisy || answered || deviceId !== null);
  const general: Finding[] = bus.warnings.map(({ message }) => ({
    severity: 'doubtful',
    subject,
    text: message,
  }));
  // Bytes of replies that came too late are heard by the next listener, when no one is asked: they are no noise.
  const late = new Set(scanned.filter(({ counters }) => counters.late > 0).map(({ address }) => address));
  for (const address of bus.lateAddresses) late.add(address);
  if (isNoisy && late.size > 0)
    general.push({
      severity: 'doubtful',
      subject,
      text: `${bus.strayBytes} bytes came after their time, as do replies of address ${[...late].toSorted((a, b) => a - b).join(', ')}: raise turnaroundMaxMs of the bus first, and look for noise only if bytes still come then`,
    });
  else if (isNoisy)
    general.push({
      severity: 'doubtful',
      subject,
      text: `${bus.strayBytes} bytes came while no one was asked: no bias resistors, noise on the cable, or a second master`,
    });
  const answering = addresses.filter(({ answered }) => answered);
  const dead = deadOutside(bus, scanned, addresses);
  if (answering.length === 0) return [...noAnswers(subject, bus, scanned, addresses), ...dead, ...general];
  const common = (['crc', 'framing'] as const).filter((kind) => isEverywhere(kind, addresses));
  return [
    ...common.map((kind): Finding => ({ severity: 'bad', subject, text: EVERYWHERE_TEXT[kind] })),
    ...general,
    ...addresses.flatMap((one) => deviceFindings(one, addresses, common)),
    ...dead,
    summary(subject, answering),
  ];
}

const DEAD = 'a device is known to be here and does not answer: its power, its address switch, its branch';

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
    .map(({ address }): Finding => {
      const severity = isIn(scanned, address) ? 'bad' : 'doubtful';
      return { severity, subject: `address ${address}`, text: DEAD };
    });
}

const EVERYWHERE_TEXT = {
  crc: 'damaged frames at most addresses: 120 ohm at both ends of the cable and nowhere else, bias at one place, a cable too long for the baud rate, or no common ground',
  framing:
    'characters that are none at most addresses: compare baudRate, parity and stopBits of the bus with what the devices are set to',
} as const;

function noAnswers(
  subject: string,
  bus: BusState,
  scanned: readonly ScannedAddress[],
  addresses: readonly ScannedAddress[],
): Finding[] {
  // The wire is well where others answer: a range was asked in which no one is.
  const alive = bus.devices.filter((device) => device.alive).map(({ address }) => address);
  if (alive.length > 0) {
    const text = `no one answers in this range; on the bus, address ${alive.join(', ')} does`;
    return [
      ...addresses.flatMap((one) => deviceFindings(one, addresses, [])),
      { severity: 'doubtful', subject, text },
    ];
  }
  const isGarbled = scanned.some(({ counters }) => counters.crc + counters.framing > 0);
  const text = isGarbled
    ? 'no one can be understood, though something answers: compare baudRate, parity and stopBits with the devices; then see whether A and B are swapped'
    : 'no one answers at all: see whether A and B are swapped (makers name them differently), whether the devices have power, and whether baudRate is theirs';
  return [{ severity: 'bad', subject, text }];
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
  const { counters, identity, answered, turnaroundMs } = one;
  const subject = `address ${one.address}`;
  const found: Finding[] = [];
  const say = (severity: Finding['severity'], text: string) => found.push({ severity, subject, text });
  const percent = (kind: Kind) => `${Math.max(1, Math.round(100 * share(counters, kind)))} %`;
  const isMany = (kind: Kind) => share(counters, kind) >= MANY && !common.includes(kind);
  const isHeard = answered || counters.crc + counters.framing + counters.collisions + counters.late > 0;

  if (!isHeard) {
    say('bad', DEAD);
    return found;
  }
  if (speaksTwice(one))
    say(
      'bad',
      `${percent('crc')} damaged, at times that differ: two devices may have this address. Unplug one and scan again`,
    );
  else if (isMany('crc'))
    say(
      'bad',
      `${percent('crc')} of its frames are damaged: its terminals, the branch to it, a missing or extra 120 ohm near it`,
    );
  // One that is set to another baud rate does not understand the question, and keeps silent.
  if (isMany('framing') && !speaksTwice(one))
    say(
      'bad',
      `${percent('framing')} of what comes is no frame, though the bus is fine elsewhere: two devices may have this address. Unplug one and scan again; then compare its parity and stop bits`,
    );
  if (answered && isMany('timeouts'))
    say('doubtful', `no answer to ${percent('timeouts')}: a loose terminal, or a supply that breaks down`);
  if (counters.late > 0)
    say(
      'doubtful',
      `${counters.late} of its replies came too late: raise turnaroundMaxMs of the bus, or look for a delay setting in it or in the device server`,
    );
  if (counters.collisions > 0 && !speaksTwice(one))
    say(
      'bad',
      'answers that belong to no question: a second device with this address, a second master, or an adapter with local echo (localEcho)',
    );
  if (isMany('refusals'))
    say(
      'doubtful',
      `it answers ${percent('refusals')} with an error, which the warnings of the bus name: compare its product with its profile`,
    );
  if (isSlow(one, addresses))
    say(
      'doubtful',
      `it takes ${turnaroundMs?.median} ms to answer, the others less: look for a delay setting`,
    );
  if (answered && identity === null)
    say('doubtful', 'it answers and cannot say who it is: name its address and profile in the configuration');
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

function summary(subject: string, answering: readonly ScannedAddress[]): Finding {
  const added = answering.filter(({ isNew }) => isNew).length;
  const slowest = Math.max(...answering.map(({ turnaroundMs }) => turnaroundMs?.median ?? 0));
  const devices = answering.length === 1 ? '1 device answers' : `${answering.length} devices answer`;
  const text = `${devices}${added > 0 ? ` (${added} new)` : ''}, the slowest within ${slowest} ms`;
  return { severity: 'good', subject, text };
}

/**
 * Asks addresses who is there, and how well it can be heard. A device that is polled is asked nothing else than what its
 * session asks anyway: a question from outside would end it.
 */
import type { Bus } from '../bus/bus.ts';
import type { Attempt, Exchange } from '../bus/exchange.ts';
import { type Clock, DriverError } from '../driver.ts';
import type { Probe, Probed, WireCounters } from '../rs485.ts';
import type { Device } from './device.ts';
import { hwIdOf, typeOf } from './device-state.ts';
import type { Check } from './frame.ts';
import type { Identity } from './messages.ts';
import { openTalk } from './talk.ts';

type Result = Probed['results'][number];

/** One that never answers holds up the others as long as its turnaround may be. */
const SILENT_ATTEMPTS = 2;

export interface ProbeOptions {
  bus: Pick<Bus, 'exchange'>;
  check: Check;
  clock: Clock;
  deviceAt(address: number): Device | undefined;
  deadline: number;
  signal: AbortSignal;
}

export async function probeAddresses({ addresses, repeats }: Probe, options: ProbeOptions): Promise<Probed> {
  const results: Result[] = [];
  for (const address of addresses) results.push(await probeAddress(address, repeats, options));
  return { results };
}

async function probeAddress(address: number, repeats: number, options: ProbeOptions): Promise<Result> {
  const known = options.deviceAt(address);
  let met: Identity | undefined;
  const talk =
    known?.talk ??
    openTalk({
      ...{ address, check: options.check, bus: options.bus, clock: options.clock },
      security: { secure: 'off' },
      isLooking: () => true,
      effect: (effect) => {
        if (effect.kind === 'identity') met = effect.identity;
      },
      turned: () => undefined,
      isGone: () => true,
    });
  const ears = openEars(options, talk.conclude);
  for (let asked = 0; asked < repeats; asked += 1) {
    if (!ears.hasAnswered() && asked >= SILENT_ATTEMPTS) break;
    await ears.ask(talk.exchange());
  }
  const identity = known ? knownIdentity(known) : identityOf(met);
  return {
    ...{ address, counters: ears.counters, turnaroundMs: ears.turnaround() },
    identity: ears.hasAnswered() ? identity : null,
  };
}

function identityOf(met: Identity | undefined): Result['identity'] {
  return met
    ? { hwId: hwIdOf(met), type: typeOf(met), version: met.firmware.join('.'), profile: null }
    : null;
}

function knownIdentity({ state }: Device): Result['identity'] {
  const report = state.report({ connected: true, pulse: null });
  return report
    ? { hwId: report.hwId, type: report.type, version: report.platform?.version ?? null, profile: null }
    : null;
}

/** Counts what comes of the exchanges with one address. */
function openEars({ bus, deadline, signal }: ProbeOptions, conclude: () => void) {
  const counters = { replies: 0, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0 };
  const turnarounds: number[] = [];
  const observe = ({ outcome, turnaroundMs }: Attempt) => {
    conclude();
    counters[COUNTER_OF[outcome]] += 1;
    if (turnaroundMs !== null) turnarounds.push(turnaroundMs);
  };
  return {
    counters,
    hasAnswered: () => counters.replies + counters.refusals > 0,
    turnaround(): Result['turnaroundMs'] {
      const sorted = turnarounds.toSorted((a, b) => a - b);
      const [min] = sorted;
      const median = sorted[Math.floor(sorted.length / 2)];
      const max = sorted.at(-1);
      return min === undefined || median === undefined || max === undefined ? null : { min, median, max };
    },
    async ask(exchange: Exchange<null>): Promise<void> {
      try {
        await bus.exchange(exchange, { class: 'settings', deadline, attempts: 1, observe }, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof DriverError && SILENCE.includes(error.code))) throw error;
      }
    },
  };
}

/** What says something of the device rather than of the bus. */
const SILENCE: readonly DriverError['code'][] = ['NO_REPLY', 'BAD_REPLY', 'REFUSED', 'DEVICE_OFFLINE'];

const COUNTER_OF = {
  reply: 'replies',
  refused: 'refusals',
  busy: 'refusals',
  timeout: 'timeouts',
  collision: 'collisions',
  foreign: 'collisions',
  crc: 'crc',
  framing: 'framing',
} as const satisfies Record<Attempt['outcome'], keyof WireCounters>;

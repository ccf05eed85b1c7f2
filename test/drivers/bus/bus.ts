/** A protocol as small as can be, for tests of the bus: four bytes there, four back: address, question, number, sum. */
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { openBus } from '../../../drivers/bus/bus.ts';
import type { Exchange, Order, Poll, Reading } from '../../../drivers/bus/exchange.ts';
import { type BusOptions, busOptions } from '../../../drivers/bus/options.ts';
import { manualClock } from '../../manual-clock.ts';
import { type Answer, openTestPort, type TestPortTraits } from './port.ts';

export const REFUSAL = 0x80;
export const BUSY = 0x90;
const LENGTH = 4;

export function frame(address: number, question: number, number: number): Uint8Array {
  return Uint8Array.of(address, question, number, (address + question + number) & 0xff);
}

/** Reads `number` of the device. */
export function ask(address: number, question = 3): Exchange<number> {
  return {
    address,
    operation: String(question),
    replyLength: LENGTH,
    request: () => frame(address, question, 0),
    read(received): Reading<number> {
      const [from, about, number = 0, sum] = received;
      if (received.length < LENGTH) return { kind: 'more' };
      if (sum !== (((from ?? 0) + (about ?? 0) + number) & 0xff)) return { kind: 'more', fault: 'crc' };
      if (from !== address) return { kind: 'more', fault: 'foreign' };
      if (about === REFUSAL) return { kind: 'refused', reason: 'no' };
      if (about === BUSY) return { kind: 'busy' };
      return about === question ? { kind: 'reply', reply: number } : { kind: 'more', fault: 'foreign' };
    },
  };
}

export function command(deadline: number, attempts = 1): Order {
  return { class: 'command', deadline, attempts };
}

/** The calls that a poll has had, in words. */
export interface TestPoll extends Poll {
  calls: string[];
}

export function pollOf(address: number, everyMs = 0): TestPoll {
  const calls: string[] = [];
  return {
    address,
    everyMs,
    calls,
    begin: () => ask(address),
    settle: (outcome) => calls.push('error' in outcome ? outcome.error.code : `reply ${outcome.reply}`),
    alive: (isAlive) => calls.push(isAlive ? 'alive' : 'dead'),
  };
}

const defaults = z.object(busOptions).parse({ port: '/dev/ttyTest' });

export function optionsWith(options: Partial<BusOptions> = {}): BusOptions {
  return { ...defaults, ...options };
}

export const forever = new AbortController().signal;

/** A device that has this number. */
export const says =
  (number: number) =>
  ([address = 0, question = 0]: Uint8Array): Uint8Array =>
    frame(address, question, number);

function senders(received: Uint8Array): number[] {
  const addresses: number[] = [];
  for (let at = 0; at + LENGTH <= received.length; at += 1) {
    const [from = 0, about = 0, number = 0, sum] = received.subarray(at, at + LENGTH);
    if (sum !== ((from + about + number) & 0xff)) continue;
    addresses.push(from);
    at += LENGTH - 1;
  }
  return addresses;
}

/** A bus on a manual clock, with devices that answer so. */
export async function openTestBus(
  answer: (request: Uint8Array) => Answer,
  options: Partial<BusOptions> = {},
  traits: TestPortTraits = {},
) {
  const clock = manualClock();
  const wire = openTestPort(clock, answer, traits);
  const { openPort, log } = wire;
  const bus = await openBus({ options: optionsWith(options), openPort, clock, log, senders }, forever);
  onTestFinished(() => bus[Symbol.asyncDispose]());
  return { bus, clock, wire, soon: (milliseconds = 1_000) => clock.monotonic() + milliseconds };
}

/** What a promise came to, as a word: `pending`, its value, or the code of its error. */
export function outcomeOf(promise: Promise<unknown>): () => unknown {
  let outcome: unknown = 'pending';
  promise.then(
    (value) => {
      outcome = value;
    },
    (error) => {
      outcome = error.code ?? error.message;
    },
  );
  return () => outcome;
}

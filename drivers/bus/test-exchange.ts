/** A protocol as small as can be, for tests of the bus: four bytes there, four back: address, question, number, sum. */

import { z } from 'zod';
import type { Exchange, Order, Poll, Reading } from './exchange.ts';
import { type BusOptions, busOptions } from './options.ts';

export const REFUSAL = 0x80;
export const BUSY = 0x90;
const LENGTH = 4;

export function frame(address: number, question: number, number: number): Uint8Array {
  return Uint8Array.of(address, question, number, (address + question + number) & 0xff);
}

/** Reads `number` of the device. */
export function ask(address: number, question = 3): Exchange<number> {
  return {
    ...{ address, operation: String(question), replyLength: LENGTH },
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

/** What a poll was told, in words. */
export interface TestPoll extends Poll {
  told: string[];
}

export function pollOf(address: number, everyMs = 0): TestPoll {
  const told: string[] = [];
  return {
    ...{ address, everyMs, told },
    begin: () => ask(address),
    settle: (outcome) => told.push('error' in outcome ? outcome.error.code : `reply ${outcome.reply}`),
    alive: (isAlive) => told.push(isAlive ? 'alive' : 'dead'),
  };
}

const defaults = z.object(busOptions).parse({ port: '/dev/ttyTest' });

export function optionsWith(options: Partial<BusOptions> = {}): BusOptions {
  return { ...defaults, ...options };
}

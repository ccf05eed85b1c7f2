/** What a test or a demo can do to a simulated encoder, and what the encoder reports about itself. */
import type { Card } from './cards.ts';
import type { EntryError, EntryStatus } from './journal.ts';

/** A point in the life of an entry: before the journal has the status, after, or when the gateway's PUBACK for it came. */
export interface Moment {
  status: EntryStatus;
  when: 'before' | 'after' | 'acknowledged';
}

export interface Timings {
  /** From started to the request for a card. */
  startMs: number;
  /** From the request until the clerk has put a card down. */
  placeMs: number;
  /** From the card's detection to the first byte. */
  detectMs: number;
  writeMs: number;
  /** How long a card is awaited before the entry fails with NO_CARD. */
  cardTimeoutMs: number;
  /** Pause before a new connection; grows to ten times itself. */
  reconnectMs: number;
  /** An up message without an acknowledgement for so long is sent again. */
  repeatMs: number;
}

/** A card about every 0.4 seconds. */
export const LIFELIKE: Timings = {
  startMs: 30,
  placeMs: 120,
  detectMs: 50,
  writeMs: 200,
  cardTimeoutMs: 30_000,
  reconnectMs: 200,
  repeatMs: 5_000,
};

export const INSTANT: Timings = {
  ...LIFELIKE,
  startMs: 0,
  placeMs: 0,
  detectMs: 0,
  writeMs: 0,
  reconnectMs: 20,
};

export interface Upgrade {
  id: string;
  apps: { name: string; version: string }[];
  platform: { name: string; version: string };
  versions: { name: string; version: string }[];
}

/** A fault without `at` happens at once; with it, once, when an entry comes to that moment. */
export type Command =
  /** The clerk gets ready one more card. */
  | { do: 'card'; card?: Partial<Card> }
  /** Whether the clerk never runs out of blank cards. */
  | { do: 'endless'; on: boolean }
  /** Ends the encoder without a word to anyone. */
  | { do: 'crash'; at?: Moment }
  /** Cuts the connection and stays away for `forMs`. */
  | { do: 'disconnect'; at?: Moment; forMs?: number }
  /** Keeps the socket but neither reads, answers nor pings any more. */
  | { do: 'silence'; at?: Moment }
  /** So many connections in a row, each cut as soon as its birth was sent. */
  | { do: 'storm'; connections: number }
  | { do: 'timings'; timings: Partial<Timings> }
  | { do: 'alarm'; raised: boolean }
  | { do: 'upgrade'; job: Upgrade | null }
  /** Sends every up message twice. */
  | { do: 'duplicate'; on: boolean }
  /** Sends up messages in swapped pairs. */
  | { do: 'reorder'; on: boolean }
  /** Takes no notice of the next `count` write messages. */
  | { do: 'ignoreWrites'; count: number }
  /** Never acknowledges (PUBACK) what the gateway sends. */
  | { do: 'withholdPuback'; on: boolean };

export type EncoderEvent =
  | { event: 'started'; encoderId: string; boot: string; journal: string }
  /** The gateway has stored the birth. */
  | { event: 'connected'; session: string; epoch: number }
  | { event: 'refused'; reason: string }
  | { event: 'disconnected'; reason: string }
  | { event: 'write'; jobId: string; requestId: string; repeated: boolean; ttlMs: number }
  | { event: 'cancel'; jobId: string; known: boolean }
  | { event: 'entry'; jobId: string; keyId: string; status: EntryStatus; error?: EntryError }
  /** Everything reported so far is stored by the gateway. */
  | { event: 'acknowledged' }
  /** A message with an epoch lower than the highest seen. */
  | { event: 'outdated'; channel: string; epoch: number }
  /** The simulator itself is wrong; nothing works from here on. */
  | { event: 'defect'; message: string };

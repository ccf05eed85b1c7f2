/**
 * Who is there behind an external broker, where no socket says it. An encoder is present once it has answered a question
 * of this gateway: the probe has a number that no one can know before, so that neither a retained message, nor one that is
 * repeated from an earlier session, nor one that a broker kept, makes anybody present. The answer also proves that what
 * goes down arrives.
 *
 * | state | input | next |
 * |---|---|---|
 * | absent | any message | probed; the message is held |
 * | probed | message | held, up to a bound |
 * | probed | the answer | present; what is held is delivered |
 * | probed | no answer in time | absent; what is held is dropped, the encoder repeats it |
 * | present | message of its session | delivered |
 * | present | status of another session | asked again; it and what follows is held |
 * | present | silence | asked again |
 * | present | the answer with its session | present; what is held is delivered |
 * | present | the answer with another session | lost, and present as another connection |
 * | present | no answer in time, its will, a kick | lost |
 */
import { randomUUID } from 'node:crypto';
import type { Clock, DriverLog } from '../contract/driver.ts';
import { openDampedLog } from './damped-log.ts';
import { BadMessage, type EncoderConnection, type EncoderLinkHost, type UpChannel } from './link.ts';
import { type Birth, parsePresence, parseStatus, type Will } from './messages.ts';
import type { BrokeredChannel } from './topics.ts';

/** As long as an encoder may be silent before it is asked whether it is still there: the keep-alive it gets by default. */
const ASKED_AFTER_MS = 20_000;
/** With the silence before it, 1.5 times the default keep-alive, as the embedded broker has it. */
const ANSWER_WITHIN_MS = 10_000;
/** One that is not there and speaks is asked again after so long. */
const ASKED_AGAIN_MS = 1_000;
/** Messages of one encoder that may wait for its answer. It repeats what is dropped. */
const HELD_MAX = 64;
/** Bytes of all that is held: what 1,000 encoders repeat after an outage. */
const HELD_BYTES_MAX = 16 * 1024 * 1024;
/** Messages the host has not settled; beyond that the broker has to wait. As many as fit the queue of the group commit. */
const IN_HAND_MAX = 512;

interface Message {
  channel: UpChannel;
  payload: Buffer;
}

interface Place {
  encoderId: string;
  connection: EncoderConnection | undefined;
  /** Monotonic milliseconds. */
  heardAt: number;
  /** `isPrompted`: asked because of a message, and not because the gateway has come. */
  probe: { id: string; at: number; isPrompted: boolean } | undefined;
  held: Message[];
  hasFailed: boolean;
}

export interface PresenceOptions {
  host: EncoderLinkHost;
  clock: Clock;
  log: DriverLog;
  /** Asks an encoder; it does not have to be there. */
  ask(encoderId: string, message: { probe: string; birth: boolean }): void;
  /** A message that can be none of this protocol came on this connection. */
  misbehaved(connection: EncoderConnection, reason: string): void;
}

export interface PresenceTable {
  /** What came from the broker. */
  received(encoderId: string, channel: BrokeredChannel, payload: Buffer): void;
  connection(encoderId: string): EncoderConnection | undefined;
  present(): number;
  /** Asks all that are expected. */
  probeAll(): void;
  /** Asks the silent, and gives up who has not answered; call it each second. */
  tick(): void;
  lose(encoderId: string, reason: string): void;
  loseAll(reason: string): void;
  /** Resolves when the host can take more. */
  room(): Promise<void>;
}

interface Table extends PresenceOptions {
  places: Map<string, Place>;
  heldBytes: number;
  inHand: number;
  waiting: PromiseWithResolvers<void> | undefined;
  ignored(subject: string, fields: Record<string, unknown>): void;
}

export function openPresence(options: PresenceOptions): PresenceTable {
  const { clock, log, host } = options;
  const ignored = openDampedLog(clock, (fields) => log.warn(fields, 'a message of an encoder is ignored'));
  const table: Table = {
    ...options,
    places: new Map(),
    heldBytes: 0,
    inHand: 0,
    waiting: undefined,
    ignored,
  };
  const { places } = table;
  return {
    received: (encoderId, channel, payload) => receive(table, encoderId, { channel, payload }),
    connection: (encoderId) => places.get(encoderId)?.connection,
    present: () => [...places.values()].filter(({ connection }) => connection).length,
    probeAll() {
      for (const { encoderId } of host.expected()) probe(table, placeOf(table, encoderId), true, false);
    },
    tick() {
      for (const place of [...places.values()]) check(table, place);
    },
    lose(encoderId, reason) {
      const place = places.get(encoderId);
      if (place) lose(table, place, reason);
    },
    loseAll(reason) {
      for (const place of [...places.values()]) lose(table, place, reason);
    },
    async room() {
      if (table.inHand < IN_HAND_MAX) return;
      table.waiting ??= Promise.withResolvers<void>();
      await table.waiting.promise;
    },
  };
}

function placeOf({ places, clock }: Table, encoderId: string): Place {
  const known = places.get(encoderId);
  if (known) return known;
  const heardAt = clock.monotonic();
  const place = { encoderId, connection: undefined, heardAt, probe: undefined, held: [], hasFailed: false };
  places.set(encoderId, place);
  return place;
}

type Arrived = { channel: BrokeredChannel; payload: Buffer };

function receive(table: Table, encoderId: string, { channel, payload }: Arrived): void {
  const { host, places, clock, ignored } = table;
  const verdict = host.standing(encoderId);
  if (!verdict.ok) {
    // Also what encoders of other gateways say, where several share a broker.
    if (verdict.reason !== 'unknown')
      ignored(encoderId, { encoderId, reason: `its credential is ${verdict.reason}` });
    const place = places.get(encoderId);
    if (place) lose(table, place, `its credential is ${verdict.reason}`);
    return;
  }
  try {
    if (channel === 'presence') {
      const { probe: answered, session } = parsePresence(payload);
      const place = placeOf(table, encoderId);
      if (place.probe?.id === answered) welcome(table, place, session, verdict.generation);
      else if (!place.connection) probe(table, place, true);
      return;
    }
    const status = channel === 'status' ? parseStatus(payload) : undefined;
    if (status?.online === false) part(table, encoderId, status);
    else take(table, placeOf(table, encoderId), { channel, payload }, status);
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    const connection = places.get(encoderId)?.connection;
    if (connection) table.misbehaved(connection, error.message);
    else ignored(encoderId, { encoderId, reason: error.message });
    return;
  }
  const place = places.get(encoderId);
  if (place) place.heardAt = clock.monotonic();
}

/** Its will. One of an earlier session says nothing. */
function part(table: Table, encoderId: string, { session }: Will): void {
  const place = table.places.get(encoderId);
  if (place?.connection?.session === session) lose(table, place, 'the broker lost its connection');
}

function take(table: Table, place: Place, message: Message, status: Birth | undefined): void {
  const { connection } = place;
  const isOther = status !== undefined && connection !== undefined && status.session !== connection.session;
  if (connection && !isOther && place.held.length === 0) {
    deliver(table, place, connection, message);
    return;
  }
  // A status is its birth, or one of before that its birth follows.
  probe(table, place, status === undefined);
  const { payload } = message;
  if (place.held.length >= HELD_MAX || table.heldBytes + payload.length > HELD_BYTES_MAX) return;
  place.held.push(message);
  table.heldBytes += payload.length;
}

/** `birth`: nothing has come that may be its birth, or that its birth follows by itself. */
function probe({ clock, ask }: Table, place: Place, birth: boolean, isPrompted = true): void {
  const now = clock.monotonic();
  const { probe: open, connection } = place;
  // It may have connected after it was asked. The same question, so that the answer to either counts.
  const isMissed = !connection && isPrompted && (!open?.isPrompted || now - open.at >= ASKED_AGAIN_MS);
  if (open && !isMissed) return;
  place.probe = { id: open?.id ?? randomUUID(), at: now, isPrompted };
  ask(place.encoderId, { probe: place.probe.id, birth });
}

function welcome(table: Table, place: Place, session: string, generation: number): void {
  const { encoderId, held } = place;
  place.probe = undefined;
  place.heardAt = table.clock.monotonic();
  if (place.connection && place.connection.session !== session) {
    const { connection } = place;
    place.connection = undefined;
    table.host.lost(connection, 'a newer connection of the same encoder took its place');
  }
  const known = place.connection;
  const connection = known ?? {
    encoderId,
    connectionId: randomUUID(),
    generation,
    remoteAddress: undefined,
    session,
  };
  place.connection = connection;
  place.held = [];
  if (!known) {
    place.hasFailed = false;
    table.host.subscribed(connection);
  }
  for (const message of held) {
    table.heldBytes -= message.payload.length;
    if (place.connection === connection) deliver(table, place, connection, message);
  }
}

function deliver(
  table: Table,
  place: Place,
  connection: EncoderConnection,
  { channel, payload }: Message,
): void {
  const { host, log } = table;
  const { encoderId, connectionId } = connection;
  table.inHand += 1;
  host
    .received(connection, channel, payload)
    .catch((error: unknown) => {
      if (place.connection !== connection) return;
      if (error instanceof BadMessage) return table.misbehaved(connection, error.message);
      // One line a connection: the encoder repeats the message every few seconds.
      if (!place.hasFailed)
        log.warn({ encoderId, connectionId, channel, err: error }, 'a message could not be stored');
      place.hasFailed = true;
    })
    .finally(() => {
      table.inHand -= 1;
      if (table.inHand < IN_HAND_MAX) table.waiting?.resolve();
      if (table.inHand < IN_HAND_MAX) table.waiting = undefined;
    });
}

function check(table: Table, place: Place): void {
  const now = table.clock.monotonic();
  if (place.probe) {
    if (now - place.probe.at < ANSWER_WITHIN_MS) return;
    const { encoderId, held } = place;
    const reason = 'it does not answer probes';
    if (held.length > 0) table.ignored(encoderId, { encoderId, reason });
    lose(table, place, reason);
  } else if (now - place.heardAt >= ASKED_AFTER_MS) probe(table, place, false);
}

/** Also of one that is not present: what it said is dropped. */
function lose(table: Table, place: Place, reason: string): void {
  const { encoderId, connection, held } = place;
  table.places.delete(encoderId);
  for (const { payload } of held) table.heldBytes -= payload.length;
  place.connection = undefined;
  place.held = [];
  if (connection) table.host.lost(connection, reason);
}

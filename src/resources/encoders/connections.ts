/**
 * The live side of encoders: who is connected, and what they say (docs/encoder-protocol.md, Connection and Messages).
 *
 * An encoder is connected once down/# was granted to it and its birth is stored, until that same connection is lost.
 * Every up message is stored in one commit together with what follows from it; only then is it acknowledged.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import type {
  CredentialVerdict,
  EncoderConnection,
  EncoderLink,
  EncoderLinkHost,
  UpChannel,
} from '../../../drivers/encoder/link.ts';
import {
  type Birth,
  type DownMessages,
  encodeDown,
  type JobReport,
  type ProgressReport,
  parseJob,
  parseProgress,
  parseStatus,
} from '../../../drivers/encoder/messages.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import { connectionChanged } from './live-events.ts';
import { writeReported } from './reported.ts';
import { BOOTS_KEPT, type EncoderTable, storeOnce } from './table.ts';

/**
 * After a status of another session than the will's, the birth must follow within so long: what is left from before is
 * repeated directly in front of it (docs/encoder-protocol.md, Connection). Without one that status was meant as the birth.
 */
export const BIRTH_DEADLINE_MS = 10_000;

/**
 * What write requests learn of their encoder: upwards, so src/resources/writes/writes.ts carries it out (openEncoderReports). The
 * first three run inside the commit that stores the message.
 */
export interface EncoderReports {
  born(encoderId: string, journal: string): void;
  job(encoderId: string, report: JobReport): void;
  progress(encoderId: string, report: ProgressReport): void;
  wake(encoderId: string, cause: 'fresh-connection' | 'report'): void;
}

/** Presence as the connections show it; the row is only its memory across a restart. */
export interface Presence {
  connected: boolean;
  /** Epoch milliseconds of the last real change. */
  changedAt: number;
  /** Monotonic milliseconds; null while disconnected. */
  connectedAt: number | null;
  lastMessageAt: number | null;
}

export interface ConnectionsOptions {
  database: Database;
  table: EncoderTable;
  events: LiveEvents;
  clock: Clock;
  log: Log;
  epoch: number;
  /** Opened later, as is the link: nothing comes in before. */
  reports(): EncoderReports;
  link(): Pick<EncoderLink, 'send' | 'kick'>;
}

interface LiveEncoder {
  connection: EncoderConnection;
  granted: boolean;
  /** The newest status that is about this connection; set inside the commit that stores it. */
  born: { boot: string; seq: number } | undefined;
  birthStored: boolean;
  /** When its birth is waited for; aborted when it comes, or when the connection ends. */
  awaitsBirth: AbortController | undefined;
  /** How far each boot is stored, by boot, where the encoder has not received it yet. */
  owed: Map<string, number>;
  connectedAt: number | null;
  lastMessageAt: number | null;
}

type Up =
  | { channel: 'status'; message: Birth }
  | { channel: 'job'; message: JobReport }
  | { channel: 'progress'; message: ProgressReport };

/** Opened with `openConnections`; what the link reports comes in through the four methods of EncoderLinkHost. */
export class EncoderConnections implements EncoderLinkHost {
  readonly #options: ConnectionsOptions;
  readonly #live = new Map<string, LiveEncoder>();
  /** Connections that were replaced or dropped and are not yet reported lost: nothing they say counts any more. */
  readonly #ended = new Set<string>();
  /** When each encoder's presence last changed, epoch milliseconds. */
  readonly #changedAt = new Map<string, number>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    for (const row of options.table.all.all()) this.#changedAt.set(row.id, row.connected_changed_at);
  }

  credential(encoderId: string, fingerprint256: string): CredentialVerdict {
    const credential = this.#options.table.byFingerprint.get(fingerprint256);
    if (!credential || credential.encoder_id !== encoderId) return { ok: false, reason: 'unknown' };
    if (credential.status !== 'active') return { ok: false, reason: credential.status };
    return { ok: true, generation: credential.generation };
  }

  standing(encoderId: string): CredentialVerdict {
    const row = this.#options.table.encoder.get(encoderId);
    const credential = row && this.#options.table.byGeneration.get(encoderId, row.generation);
    if (!credential) return { ok: false, reason: 'unknown' };
    const { status, generation } = credential;
    return status === 'active' ? { ok: true, generation } : { ok: false, reason: status };
  }

  expected(): { encoderId: string; generation: number }[] {
    return this.#options.table.all.all().flatMap(({ id }) => {
      const verdict = this.standing(id);
      return verdict.ok ? [{ encoderId: id, generation: verdict.generation }] : [];
    });
  }

  subscribed(connection: EncoderConnection): void {
    const live = this.#liveOf(connection);
    if (!live) return;
    live.granted = true;
    this.#connectIfReady(live);
    this.#acknowledge(live);
  }

  async received(connection: EncoderConnection, channel: UpChannel, payload: Buffer): Promise<void> {
    const up = decode(channel, payload);
    // A last will says nothing that the lost connection itself does not say better.
    if (!up) return;
    const { encoderId } = connection;
    const live = this.#liveOf(connection);
    if (!live) throw new DriverError('LINK_LOST', `encoder ${encoderId} has been cut off`);
    live.lastMessageAt = this.#options.clock.monotonic();
    if (up.channel === 'status') this.#awaitBirth(live, up.message);
    const acked = await this.#options.database.commit(() => this.#store(live, up));
    owe(live, up.message.boot, acked);
    if (up.channel === 'status' && counts(live, up.message)) live.birthStored = true;
    this.#connectIfReady(live);
    this.#acknowledge(live);
    this.#options.reports().wake(encoderId, 'report');
    if (up.channel === 'status') this.#options.events.wake();
  }

  lost(connection: EncoderConnection, reason: string): void {
    const live = this.#live.get(connection.encoderId);
    if (live?.connection.connectionId === connection.connectionId) this.#end(live, reason);
    this.#ended.delete(connection.connectionId);
  }

  connected(encoderId: string): boolean {
    const live = this.#live.get(encoderId);
    return live !== undefined && this.#isConnected(live);
  }

  /** Resolves when handed to the transport; throws DriverError LINK_LOST when the encoder is not connected. */
  async send<Channel extends keyof DownMessages>(
    encoderId: string,
    channel: Channel,
    message: DownMessages[Channel],
  ): Promise<void> {
    if (!this.connected(encoderId)) {
      throw new DriverError('LINK_LOST', `encoder ${encoderId} is not connected`);
    }
    await this.#options.link().send(encoderId, channel, encodeDown(channel, message));
  }

  /** After a registration or a revocation: from here on nothing reaches the old connection. */
  async drop(encoderId: string, reason: string): Promise<void> {
    if (!this.#changedAt.has(encoderId)) this.#changedAt.set(encoderId, this.#options.clock.now());
    const live = this.#live.get(encoderId);
    if (live) this.#end(live, reason);
    await this.#options.link().kick(encoderId, reason);
  }

  /** After it was retired: as drop(), and it counts as none. */
  async forget(encoderId: string, reason: string): Promise<void> {
    const dropped = this.drop(encoderId, reason);
    // Before anything is awaited: a registration in the meantime makes it known again.
    this.#changedAt.delete(encoderId);
    await dropped;
  }

  presence(encoderId: string): Presence | undefined {
    const changedAt = this.#changedAt.get(encoderId);
    if (changedAt === undefined) return undefined;
    const live = this.#live.get(encoderId);
    const connectedAt = live?.connectedAt ?? null;
    return {
      connected: connectedAt !== null,
      changedAt,
      connectedAt,
      lastMessageAt: live?.lastMessageAt ?? null,
    };
  }

  /** A revoked encoder is none that should be connected: it counts as neither. */
  counts(): { registered: number; connected: number; revoked: number } {
    const connected = [...this.#live.values()].filter((live) => this.#isConnected(live)).length;
    const revoked = this.#options.table.countRevoked.get()?.count ?? 0;
    return { registered: this.#changedAt.size - revoked, connected, revoked };
  }

  #isConnected(live: LiveEncoder): boolean {
    return live.connectedAt !== null && this.#live.get(live.connection.encoderId) === live;
  }

  #liveOf(connection: EncoderConnection): LiveEncoder | undefined {
    if (this.#ended.has(connection.connectionId)) return undefined;
    const current = this.#live.get(connection.encoderId);
    if (current?.connection.connectionId === connection.connectionId) return current;
    if (current) this.#end(current, 'a newer connection took its place');
    const live: LiveEncoder = {
      connection,
      granted: false,
      born: undefined,
      birthStored: false,
      awaitsBirth: undefined,
      owed: new Map(),
      connectedAt: null,
      lastMessageAt: null,
    };
    this.#live.set(connection.encoderId, live);
    return live;
  }

  #connectIfReady(live: LiveEncoder): void {
    const { encoderId, generation } = live.connection;
    const { clock, log, reports, epoch } = this.#options;
    if (this.#live.get(encoderId) !== live || live.connectedAt !== null) return;
    if (!live.granted || !live.birthStored) return;
    live.connectedAt = clock.monotonic();
    this.#remember(encoderId, true);
    log.info({ encoderId, generation }, 'encoder connected');
    this.#trySend(live, 'hello', { epoch });
    reports().wake(encoderId, 'fresh-connection');
  }

  #end(live: LiveEncoder, reason: string): void {
    const { encoderId, connectionId } = live.connection;
    this.#ended.add(connectionId);
    this.#live.delete(encoderId);
    live.awaitsBirth?.abort();
    if (live.connectedAt === null) return;
    this.#remember(encoderId, false);
    this.#options.log.info({ encoderId, reason }, 'encoder disconnected');
  }

  /** Ends a connection on which a status of another session stands where its birth should be. */
  #awaitBirth(live: LiveEncoder, { session: named }: Birth): void {
    const { encoderId, session: announced } = live.connection;
    if (named === announced) live.awaitsBirth?.abort();
    if (announced === undefined || named === announced) return;
    if (live.birthStored || live.awaitsBirth) return;
    const waiting = new AbortController();
    live.awaitsBirth = waiting;
    const { clock, log } = this.#options;
    const end = () => {
      const reason = 'its birth names another session than its will';
      log.warn({ encoderId, birth: named, will: announced }, `encoder disconnected: ${reason}`);
      return this.drop(encoderId, reason);
    };
    clock.sleep(BIRTH_DEADLINE_MS, waiting.signal).then(end, () => undefined);
  }

  /** Memory is what counts; the row only carries the time of the change across a restart. */
  #remember(encoderId: string, isConnected: boolean): void {
    const { database, table, events, clock, log } = this.#options;
    const now = clock.now();
    this.#changedAt.set(encoderId, now);
    database
      .commit(() => {
        table.setConnected.run(isConnected ? 1 : 0, now, encoderId);
        events.publish(connectionChanged(encoderId, isConnected, now));
      }, 'telemetry')
      .then(events.wake)
      .catch((error) => log.warn({ encoderId, error: String(error) }, 'presence not stored'));
  }

  /** Inside the commit: stores the message and all that follows from it. Returns how far its boot is stored. */
  #store(live: LiveEncoder, up: Up): number {
    const { table, events, clock, reports } = this.#options;
    const { encoderId } = live.connection;
    const { boot, seq } = up.message;
    const { isNew, acked } = storeOnce(table, { encoderId, boot, seq });
    const isCurrent = up.channel === 'status' && counts(live, up.message);
    if (isCurrent) live.born = { boot, seq };
    if (!isNew) return acked;
    if (up.channel === 'job') reports().job(encoderId, up.message);
    else if (up.channel === 'progress') reports().progress(encoderId, up.message);
    else if (isCurrent) {
      writeReported({ table, events }, live.connection, up.message, clock.now());
      reports().born(encoderId, up.message.journal);
    }
    return acked;
  }

  /** What came before the birth is acknowledged as soon as the encoder is connected and can hear it. */
  #acknowledge(live: LiveEncoder): void {
    if (!this.#isConnected(live)) return;
    const { epoch } = this.#options;
    for (const [boot, seq] of live.owed) this.#trySend(live, 'ack', { epoch, boot, seq });
    live.owed.clear();
  }

  /** For what is repeated anyway when the encoder is back. */
  #trySend<Channel extends 'hello' | 'ack'>(
    { connection: { encoderId } }: LiveEncoder,
    channel: Channel,
    message: DownMessages[Channel],
  ): void {
    const { link, log } = this.#options;
    link()
      .send(encoderId, channel, encodeDown(channel, message))
      .catch((error) => log.debug({ encoderId, channel, error: String(error) }, 'not sent'));
  }
}

/** No one is connected when the gateway starts: what the rows say is from before. */
export async function openConnections(options: ConnectionsOptions): Promise<EncoderConnections> {
  const { database, table, events, clock } = options;
  await database.commit(() => {
    const now = clock.now();
    for (const { id, connected } of table.all.all()) {
      if (connected === 1) events.publish(connectionChanged(id, false, now));
    }
    table.disconnectAll.run(now);
  });
  return new EncoderConnections(options);
}

/** What is forgotten is acknowledged at its next repeat. */
function owe(live: LiveEncoder, boot: string, seq: number): void {
  live.owed.delete(boot);
  live.owed.set(boot, seq);
  const oldest = live.owed.size > BOOTS_KEPT ? live.owed.keys().next().value : undefined;
  if (oldest !== undefined) live.owed.delete(oldest);
}

function decode(channel: UpChannel, payload: Buffer): Up | undefined {
  if (channel === 'job') return { channel, message: parseJob(payload) };
  if (channel === 'progress') return { channel, message: parseProgress(payload) };
  const message = parseStatus(payload);
  return message.online ? { channel, message } : undefined;
}

/**
 * Whether a status is about the present state. Statuses of earlier connections are repeated too, before or after the
 * birth: those of another session than the connection's own say nothing. Where the link does not know the
 * session, the first status is taken for the birth. The very status that counted last comes again when its commit has
 * failed, and must count then.
 */
function counts({ connection, born }: LiveEncoder, message: Birth): boolean {
  if (connection.session !== undefined && message.session !== connection.session) return false;
  return !born || (born.boot === message.boot && message.seq >= born.seq);
}

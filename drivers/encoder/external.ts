/**
 * A broker that is not ours between the gateway and its encoders: any that speaks MQTT 3.1.1 or 5, with several addresses.
 * The gateway is one client of it. What it says of encoders is what the broker lets them say: who may publish in whose
 * name, and who is shut out, is for the broker's access control (docs/operations.md, A broker of the site). Nothing is
 * durable there: what the gateway has stored it acknowledges itself (docs/encoder-protocol.md, rule 8).
 */
import { ConnectionFailure } from '../contract/connection-failure.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { type Failover, openFailover } from '../contract/failover.ts';
import { openDeadline } from '../contract/waiting.ts';
import { type AdministrationKeeper, type BrokerAdministration, openKeeper } from './administration.ts';
import { type BrokerAccess, type BrokerConnection, connectToBroker } from './broker-connection.ts';
import { openDampedLog } from './damped-log.ts';
import { type EncoderLink, type EncoderLinkHost, MAX_UP_PACKET_BYTES } from './link.ts';
import { encodeProbe } from './messages.ts';
import { openPresence, type PresenceTable } from './presence.ts';
import { brokeredTopic, downTopic, probeTopic, UP_FILTER } from './topics.ts';

const TICK_MS = 1_000;
/** A connection in the name of the encoder, which makes the broker end the encoder's own. */
const TAKEOVER_DEADLINE_MS = 5_000;
const OPERATORS_TURN =
  'the operator administers the broker: let this certificate in there, and shut out every other one of this encoder';
const NOT_ENDED = 'the broker was not made to end the connection of an encoder';

export interface ExternalLinkOptions {
  /** Asked one after the other. */
  urls: readonly string[];
  access: BrokerAccess;
  administration: BrokerAdministration;
  clock: Clock;
  log: DriverLog;
}

export interface BrokerState {
  /** The address of the connection; null without one. */
  url: string | null;
  /** Epoch milliseconds; null without one. */
  connectedSince: number | null;
  /** Why there is none, or why the last one ended. */
  lastError: string | null;
  /** Why the broker does not know which credentials are in force; null when it does, or when it is not for the gateway. */
  administrationError: string | null;
}

export interface ExternalLink extends EncoderLink {
  /** Connects to the first address that answers, and serves until the connection breaks; then throws. */
  run(signal: AbortSignal): Promise<never>;
  state(): BrokerState;
}

interface Link extends ExternalLinkOptions {
  host: EncoderLinkHost;
  presence: PresenceTable;
  connection: BrokerConnection | undefined;
  keeper: AdministrationKeeper;
  state: Omit<BrokerState, 'administrationError'>;
  failover: Failover<string>;
  close: AbortController;
  ignored(subject: string, fields: Record<string, unknown>): void;
}

export function openExternalLink(options: ExternalLinkOptions, host: EncoderLinkHost): ExternalLink {
  const { clock, log } = options;
  const misbehaved = openDampedLog(clock, (fields) =>
    log.warn(fields, 'encoder disconnected for a bad message'),
  );
  const presence = openPresence({
    host,
    clock,
    log,
    ask(encoderId, message) {
      // One that does not arrive is repeated by the next tick or the next message.
      link.connection?.publish(probeTopic(encoderId), encodeProbe(message)).catch(() => undefined);
    },
    misbehaved({ encoderId }, reason) {
      misbehaved(encoderId, { encoderId, reason });
      presence.lose(encoderId, reason);
      void disconnect(link, encoderId);
    },
  });
  const link: Link = {
    ...options,
    host,
    presence,
    keeper: openKeeper(options.administration, () => host.expected(), { clock, log }),
    connection: undefined,
    state: { url: null, connectedSince: null, lastError: null },
    failover: openFailover(options.urls),
    close: new AbortController(),
    ignored: openDampedLog(clock, (fields) => log.warn(fields, 'a message from the broker is ignored')),
  };
  return {
    run: (signal) => run(link, AbortSignal.any([signal, link.close.signal])),
    state: () => ({ ...link.state, administrationError: link.keeper.lastError() }),
    async send(encoderId, channel, payload) {
      const { connection } = link;
      if (!connection || !presence.connection(encoderId))
        throw new DriverError('LINK_LOST', `encoder ${encoderId} is not connected`);
      await connection.publish(downTopic(encoderId, channel), payload);
    },
    async kick(encoderId, reason) {
      const live = presence.connection(encoderId);
      presence.lose(encoderId, reason);
      // Who is shut out for good is deleted at the broker, which ends the connection as well.
      await link.keeper.changed();
      const verdict = host.standing(encoderId);
      if (link.administration.kind === 'none')
        log.warn(
          { encoderId, letIn: verdict.ok ? `CN=${encoderId}, OU=g${verdict.generation}` : null, reason },
          OPERATORS_TURN,
        );
      const isInForce = verdict.ok && verdict.generation === live?.generation;
      if (isInForce || !link.administration.disconnect) await disconnect(link, encoderId);
      // Of the first generation there is none before.
      if (!isInForce && !(verdict.ok && verdict.generation === 1)) disconnectSettled(link, encoderId);
    },
    async [Symbol.asyncDispose]() {
      link.close.abort(new Error('the gateway is stopping'));
      presence.loseAll('the gateway is stopping');
    },
  };
}

async function run(link: Link, signal: AbortSignal): Promise<never> {
  const { presence, clock, log, state } = link;
  try {
    using connection = await connect(link, signal);
    const { url } = connection;
    link.connection = connection;
    Object.assign(state, { url, connectedSince: clock.now() });
    log.info({ url }, 'connected to the broker of the encoders');
    presence.probeAll();
    const tasks = [tick(link, connection, signal), link.keeper.keep(connection.publish, signal)];
    return await Promise.race<never>([connection.ended, ...tasks]);
  } catch (error) {
    state.lastError = error instanceof Error ? error.message : String(error);
    throw error;
  } finally {
    link.connection = undefined;
    Object.assign(state, { url: null, connectedSince: null });
    presence.loseAll('the broker is away');
  }
}

async function tick(
  { clock, presence }: Link,
  connection: BrokerConnection,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await clock.sleep(TICK_MS, signal);
    connection.tick();
    presence.tick();
  }
}

function connect(link: Link, signal: AbortSignal): Promise<BrokerConnection> {
  const { access, clock, administration } = link;
  const filters = [UP_FILTER, ...administration.filters];
  return link.failover(
    (url) =>
      connectToBroker({ access, url, filters, clock, signal }, eventsOf(link)).catch((error: unknown) => {
        throw error instanceof ConnectionFailure ? error : new ConnectionFailure(`${url}: ${String(error)}`);
      }),
    signal,
  );
}

function eventsOf({ presence, ignored, administration }: Link) {
  return {
    room: presence.room,
    received(topic: string, payload: Buffer, retained: boolean) {
      if (administration.filters.includes(topic)) return administration.received(payload);
      const from = brokeredTopic(topic);
      if (!from)
        return ignored('topic', { topic: topic.slice(0, 128), reason: 'its topic is none of the protocol' });
      const { encoderId, channel } = from;
      // What a broker kept says nothing of now, no matter who left it there.
      if (retained) return ignored(encoderId, { encoderId, reason: 'it is retained' });
      if (payload.length > MAX_UP_PACKET_BYTES)
        return ignored(encoderId, { encoderId, reason: `it is longer than ${MAX_UP_PACKET_BYTES} bytes` });
      presence.received(encoderId, channel, payload);
    },
  };
}

/** It may come again while its credential is in force. */
async function disconnect(link: Link, encoderId: string): Promise<void> {
  const { connection, administration, host, log } = link;
  if (!connection) return;
  const verdict = host.standing(encoderId);
  if (!administration.disconnect || !verdict.ok) return takeOver(link, connection, encoderId);
  const { generation } = verdict;
  try {
    await administration.disconnect(connection.publish, { encoderId, generation });
  } catch (error) {
    log.warn({ encoderId, error: String(error) }, NOT_ENDED);
    // It may have been deleted and not made again.
    await link.keeper.changed();
  }
}

/** Once more, for a broker that reads the revocation list later. */
function disconnectSettled(link: Link, encoderId: string): void {
  const { administration, clock, close } = link;
  if (administration.settlesMs === undefined) return;
  clock.sleep(administration.settlesMs, close.signal).then(
    () => disconnect(link, encoderId),
    () => undefined,
  );
}

/** A broker ends a connection when another one takes its client id. */
async function takeOver(link: Link, { url }: BrokerConnection, encoderId: string): Promise<void> {
  const { clock, log, close } = link;
  const late = () => new Error(`it takes more than ${TAKEOVER_DEADLINE_MS} ms`);
  using deadline = openDeadline(TAKEOVER_DEADLINE_MS, clock, late);
  const signal = AbortSignal.any([close.signal, deadline.signal]);
  try {
    const access = { ...link.access, clientId: encoderId };
    const nothing = { received: () => undefined, room: async () => undefined };
    using _taken = await connectToBroker({ access, url, filters: [], clock, signal }, nothing);
  } catch (error) {
    log.warn({ encoderId, error: String(error) }, NOT_ENDED);
  }
}

/**
 * The encoder link on an embedded broker: a TLS server, and behind it aedes as the carrier of MQTT 3.1.1 and nothing else, deny
 * by default. Its persistence, routing, wills and retained messages are never used, which closes what is wrong with them:
 * sessions are always clean, wills are taken out of the CONNECT, nothing is sent with broker.publish, and no subscription but
 * the encoder's own is granted.
 *
 * The table of admitted encoders here is authoritative. That of aedes is not: a connection that is closed between its
 * authentication and its registration removes another one's entry, or leaves its own behind.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { Aedes, type AedesOptions, type Client } from 'aedes';
import { writeToStream } from 'mqtt-packet';
import { failureWords } from '../contract/connection-failure.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { TLS } from '../contract/tls.ts';
import { openAcceptRate } from './accept-rate.ts';
import { announcedSession, connectFault } from './admission.ts';
import { type DampedLog, openDampedLog } from './damped-log.ts';
import { type BadMessage, type EncoderLink, type EncoderLinkHost, MAX_KEEP_ALIVE_SECONDS } from './link.ts';
import {
  type AdmittedEncoder,
  type Identity,
  identityOf,
  openAdmitted,
  openPeer,
  type Peer,
  type Refusal,
} from './peer.ts';
import { downFilter, isDownTopic } from './topics.ts';
import { openUnadmitted, UNADMITTED_MAX } from './unadmitted.ts';

// The codec of aedes and of mqtt would keep a Buffer for each of 65,536 numbers: 10 MB, to save a microsecond a packet.
writeToStream.cacheNumbers = false;

/** A handshake takes 2 ms of work and one or two round trips. */
const HANDSHAKE_TIMEOUT_MS = 5_000;
/** Admitted ones are one for each registered encoder: ten times a large site. */
const MAX_CONNECTIONS = UNADMITTED_MAX + 512;
/** TCP probes find a dead peer behind a long keep-alive, and keep a firewall's entry alive. */
const TCP_KEEP_ALIVE_MS = 15_000;
/** From the end of the TLS handshake to the CONNECT. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a full socket may take to drain before its encoder counts as lost. */
const DRAIN_TIMEOUT_MS = 10_000;
/** SUBACK return code: failure (MQTT 3.1.1, 3.9.3). */
const NOT_GRANTED = 128;

export interface EmbeddedLinkOptions {
  host: string;
  port: number;
  /** PEM: server certificate chain, its private key, and the CA whose client certificates are admitted, up to its root. */
  tls: { cert: string; key: string; clientCa: string };
  clock: Clock;
  log: DriverLog;
}

export interface EmbeddedLink extends EncoderLink {
  /** A renewed server certificate, for connections from now on. PEM. */
  renew(identity: { chain: string; key: string }): void;
  /** The host:port actually bound (a port 0 in the configuration is resolved here). */
  readonly address: { host: string; port: number };
}

/** Rejects when the address cannot be bound or a certificate cannot be read. */
export async function openEmbeddedLink(
  options: EmbeddedLinkOptions,
  host: EncoderLinkHost,
): Promise<EmbeddedLink> {
  const { clock, log } = options;
  await using opening = new AsyncDisposableStack();
  const crowded = openDampedLog(clock, (fields) =>
    log.warn(fields, 'a connection was closed before an encoder was admitted: too many are open'),
  );
  const unadmitted = openUnadmitted((remoteAddress) => crowded(`${remoteAddress}`, { remoteAddress }));
  const rate = openAcceptRate(() => clock.monotonic());
  const broker = await openBroker({
    host,
    clock,
    log,
    admitted(socket, encoderId) {
      unadmitted.admitted(socket);
      rate.admitted(socket.remoteAddress, encoderId);
    },
  });
  const server = openServer(options.tls);
  const sockets = new Set<Socket>();
  opening.defer(async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await broker[Symbol.asyncDispose]();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  server.on('connection', (socket: Socket) => {
    // Without an address it is closed already.
    if (!socket.remoteAddress || !rate.accept(socket.remoteAddress)) return socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    unadmitted.opened(socket);
  });
  server.on('secureConnection', (socket) => broker.accept(socket));
  const failed = openDampedLog(clock, (fields) => log.info(fields, 'TLS handshake with an encoder failed'));
  server.on('tlsClientError', (error, socket) => {
    // Undefined when the connection was closed, by us too: those share their lines.
    const { remoteAddress } = socket;
    failed(`${remoteAddress}`, { remoteAddress, reason: failureWords(error) });
    // Node only reports a handshake that takes too long.
    socket.destroy();
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  server.on('error', (error) => log.error({ error: error.message }, 'an encoder could not be accepted'));
  const { address, port } = server.address() as AddressInfo;
  const opened = opening.move();
  return {
    address: { host: address, port },
    // What is not given again falls back to Node's defaults.
    renew: ({ chain, key }) => server.setSecureContext(tlsOptions({ ...options.tls, cert: chain, key })),
    async send(encoderId, channel, payload) {
      const encoder = broker.encoder(encoderId);
      if (!encoder) throw new DriverError('LINK_LOST', `encoder ${encoderId} is not connected`);
      await encoder.send(channel, payload);
    },
    async kick(encoderId, reason) {
      await broker.encoder(encoderId)?.close(reason);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function openServer(tls: EmbeddedLinkOptions['tls']): Server {
  const server = createServer({
    ...tlsOptions(tls),
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

function tlsOptions({ cert, key, clientCa }: EmbeddedLinkOptions['tls']) {
  return { cert, key, ca: clientCa, ...TLS };
}

interface Broker extends AsyncDisposable {
  /** Takes a connection whose TLS handshake is done. */
  accept(socket: TLSSocket): void;
  /** One that is admitted, while it is. */
  encoder(encoderId: string): AdmittedEncoder | undefined;
}

interface BrokerOptions {
  host: EncoderLinkHost;
  clock: Clock;
  log: DriverLog;
  /** An encoder is admitted on this connection. */
  admitted(socket: TLSSocket, encoderId: string): void;
}

interface Connections extends BrokerOptions {
  refused: DampedLog;
  misbehaved: DampedLog;
  peers: WeakMap<Client, Peer>;
  live: Map<string, AdmittedEncoder>;
  stopping: boolean;
}

export async function openBroker(options: BrokerOptions): Promise<Broker> {
  const { clock, log } = options;
  const refused = openDampedLog(clock, (fields) => log.warn(fields, 'encoder refused'));
  const connections: Connections = {
    ...options,
    refused,
    // Several messages of one connection may be in hand, and each is bad by itself.
    misbehaved: openDampedLog(clock, (fields) => log.warn(fields, 'encoder disconnected for a bad message')),
    peers: new WeakMap(),
    live: new Map(),
    stopping: false,
  };
  const { peers, live } = connections;
  const aedes = await Aedes.createBroker({
    ...hooks(connections),
    connectTimeout: CONNECT_TIMEOUT_MS,
    drainTimeout: DRAIN_TIMEOUT_MS,
    keepaliveLimit: MAX_KEEP_ALIVE_SECONDS,
  });
  listen(aedes, connections);
  return {
    accept(socket) {
      const peer = openPeer(socket, {
        closed: (closed, reason) => lost(connections, closed, reason),
        refused: (stranger, refusal) =>
          reportRefused(connections, stranger, identityOf(socket)?.encoderId ?? '', refusal),
      });
      peers.set(aedes.handle(socket), peer);
    },
    encoder: (encoderId) => live.get(encoderId),
    async [Symbol.asyncDispose]() {
      connections.stopping = true;
      await Promise.all([...live.values()].map((encoder) => encoder.close('the gateway is stopping')));
      await new Promise<void>((resolve) => aedes.close(resolve));
    },
  };
}

function hooks(connections: Connections): AedesOptions {
  const { peers, misbehaved } = connections;
  return {
    preConnect(client, packet, done) {
      const peer = peers.get(client);
      if (peer?.stage.at !== 'opened') return done(new Error('unexpected CONNECT'), false);
      const identity = identityOf(peer.socket);
      const refusal = connectFault(packet, identity);
      peer.stage = { at: 'connecting', identity, refusal, announced: announcedSession(packet) };
      if (refusal?.returnCode === 1) {
        // aedes would take 3.1 too, and answers 1 by itself only: to 5, of which it knows that it does not speak it.
        packet.protocolVersion = 5;
        reportRefused(connections, peer, packet.clientId, refusal);
      }
      packet.clean = true;
      delete packet.will;
      done(null, true);
    },
    authenticate(client, _username, _password, done) {
      void admit(connections, client).then((refusal) => {
        if (!refusal) return done(null, true);
        const peer = peers.get(client);
        if (peer) reportRefused(connections, peer, client.id, refusal);
        const { returnCode, reason } = refusal;
        done(Object.assign(new Error(reason), { returnCode }), false);
      });
    },
    authorizePublish(client, packet, done) {
      const encoder = client && encoderOf(connections, client);
      if (!encoder) return done(new Error('not admitted'));
      void encoder.receive(packet).then(
        (outcome) => {
          // aedes writes the PUBACK after this hook and reads on when the message is done with. As QoS 0 it is done with
          // and has no PUBACK; without the call the connection would stop being read and time out.
          if (outcome === 'withhold') packet.qos = 0;
          done(null);
        },
        (error: BadMessage) => {
          const { connection } = encoder;
          misbehaved(connection.encoderId, { ...connection, reason: error.message });
          done(error);
        },
      );
    },
    authorizeSubscribe(client, subscription, done) {
      const encoder = encoderOf(connections, client);
      const isOwn = encoder && subscription.topic === downFilter(encoder.connection.encoderId);
      done(null, isOwn ? subscription : null);
    },
    authorizeForward(client, packet) {
      const encoder = encoderOf(connections, client);
      return encoder && isDownTopic(encoder.connection.encoderId, packet.topic) ? packet : null;
    },
  };
}

function listen(aedes: Aedes, connections: Connections): void {
  const { peers, log } = connections;
  aedes.on('subscribe', (subscriptions, client) => {
    const encoder = encoderOf(connections, client);
    const own =
      encoder && subscriptions.find(({ topic }) => topic === downFilter(encoder.connection.encoderId));
    if (own && Number(own.qos) !== NOT_GRANTED) encoder.granted(own.qos);
  });
  aedes.on('unsubscribe', (topics, client) => {
    // Also called when a connection closes, for the subscriptions that end with it.
    const encoder = client.closed ? undefined : encoderOf(connections, client);
    if (encoder && topics.includes(downFilter(encoder.connection.encoderId))) {
      void encoder.close('it unsubscribed from its down topics');
    }
  });
  const failed = (client: Client, error: Error) => void peers.get(client)?.close(error.message);
  aedes.on('clientError', failed);
  aedes.on('connectionError', failed);
  // The types of aedes leave out the one event that would end the process if no one listened.
  (aedes as NodeJS.EventEmitter).on('error', (error) =>
    log.error({ error: String(error) }, 'MQTT broker failed'),
  );
}

/** Undefined also when the connection is closed or another one has taken its place. */
function encoderOf({ peers, live }: Connections, client: Client): AdmittedEncoder | undefined {
  const peer = peers.get(client);
  if (peer?.stage.at !== 'admitted' || peer.socket.destroyed) return undefined;
  const { encoder } = peer.stage;
  return live.get(encoder.connection.encoderId) === encoder ? encoder : undefined;
}

function reportRefused(
  { refused }: Connections,
  { stage, remoteAddress }: Peer,
  encoderId: string,
  { reason }: Refusal,
): void {
  // Distinguished by the certificate also: many encoders may share one address, and an encoder that is refused may say any id.
  const proven = stage.at === 'connecting' ? stage.identity?.encoderId : undefined;
  refused(`${remoteAddress} ${proven}`, { encoderId, remoteAddress, reason });
}

/** Undefined when admitted. */
async function admit(connections: Connections, client: Client): Promise<Refusal | undefined> {
  const peer = connections.peers.get(client);
  if (peer?.stage.at !== 'connecting') return { returnCode: 3, reason: 'unexpected CONNECT' };
  const { identity, refusal, announced } = peer.stage;
  if (refusal) return refusal;
  if (!identity) return { returnCode: 5, reason: 'no certificate' };
  try {
    return await takePlace(connections, { client, peer, identity, announced });
  } catch (error) {
    return { returnCode: 3, reason: `the credential could not be checked (${String(error)})` };
  }
}

interface Candidate {
  client: Client;
  peer: Peer;
  identity: Identity;
  announced: string | undefined;
}

/**
 * Ends an older connection of the encoder and takes its place. The credential is asked for again after each wait,
 * because it may have been revoked meanwhile; between the last answer and taking the place nothing is awaited.
 */
async function takePlace(
  connections: Connections,
  { client, peer, identity, announced }: Candidate,
): Promise<Refusal | undefined> {
  const { host, log, live } = connections;
  const { encoderId, fingerprint256 } = identity;
  for (;;) {
    const verdict = host.credential(encoderId, fingerprint256);
    if (!verdict.ok) return { returnCode: 5, reason: `its credential is ${verdict.reason}` };
    if (connections.stopping || peer.socket.destroyed)
      return { returnCode: 3, reason: 'the connection has ended' };
    const older = live.get(encoderId);
    if (older) {
      await older.close('a newer connection of the same encoder took its place');
      continue;
    }
    const { generation } = verdict;
    const { remoteAddress, close } = peer;
    const connectionId = randomUUID();
    const connection = { encoderId, connectionId, generation, remoteAddress, session: announced };
    const encoder = openAdmitted({ connection, client, host, log, close });
    peer.stage = { at: 'admitted', encoder };
    live.set(encoderId, encoder);
    connections.admitted(peer.socket, encoderId);
    return undefined;
  }
}

function lost({ host, live }: Connections, peer: Peer, reason: string): void {
  if (peer.stage.at !== 'admitted') return;
  const { encoder } = peer.stage;
  const { encoderId } = encoder.connection;
  if (live.get(encoderId) === encoder) live.delete(encoderId);
  host.lost(encoder.connection, reason);
}

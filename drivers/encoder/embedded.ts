/** The encoder link on an embedded broker: a TLS server in front of broker.ts. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { failureWords } from '../contract/connection-failure.ts';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { TLS } from '../contract/tls.ts';
import { openAcceptRate } from './accept-rate.ts';
import { openBroker } from './broker.ts';
import { openDampedLog } from './damped-log.ts';
import type { EncoderLink, EncoderLinkHost } from './link.ts';
import { openUnadmitted, UNADMITTED_MAX } from './unadmitted.ts';

/** A handshake takes 2 ms of work and one or two round trips. */
const HANDSHAKE_TIMEOUT_MS = 5_000;
/** Admitted ones are one for each registered encoder: ten times a large site. */
const MAX_CONNECTIONS = UNADMITTED_MAX + 512;
/** TCP probes find a dead peer behind a long keep-alive, and keep a firewall's entry alive. */
const TCP_KEEP_ALIVE_MS = 15_000;
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

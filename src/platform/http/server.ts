/**
 * Sockets for an app: HTTPS on the network, plain HTTP on loopback, a unix socket for the command line. HTTP/1.1 only:
 * event streams on HTTP/2 end the process (honojs/hono#4041). The only importer of @hono/node-server.
 */
import { randomUUID } from 'node:crypto';
import { chmodSync } from 'node:fs';
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { type AddressInfo, BlockList, isIP, type ListenOptions } from 'node:net';
import { createSecureContext, type SecureContext, type TlsOptions } from 'node:tls';
import { getRequestListener } from '@hono/node-server';
import { TLS } from '../../../drivers/contract/tls.ts';
import type { Clock } from '../clock.ts';
import { GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import { clientAddress, type Proxies } from './address.ts';
import { claimSocketPath } from './admin-socket.ts';
import type { App } from './app.ts';
import {
  type Arrivals,
  CONNECTION_LIMITS,
  type ConnectionLimits,
  type Connections,
  openArrivals,
  openConnections,
} from './connections.ts';
import type { KnownAddresses } from './known-addresses.ts';
import { lingerBeforeClose } from './linger.ts';
import { answerMalformed, refuse } from './malformed.ts';
import { errorReply, responseOf } from './reply.ts';

/** Milliseconds. */
export interface ServerTimes {
  /** From the first byte of a connection to the last header of a request. */
  headers: number;
  /** To the last byte of a request. */
  request: number;
  tlsHandshake: number;
  /** An idle connection is kept; above the 15 s many clients keep theirs, so that they close first. */
  keepAlive: number;
  /** A connection on which neither side gets a byte through: a client that does not read its answer. */
  stalled: number;
  /** How often the first two are looked at. */
  check: number;
  /** Requests under way when the server closes may take so long; below systemd's TimeoutStopSec. */
  drain: number;
}

const TIMES: ServerTimes = {
  headers: 10_000,
  request: 30_000,
  tlsHandshake: 10_000,
  keepAlive: 20_000,
  stalled: 120_000,
  check: 1_000,
  drain: 8_000,
};
/** Bytes of all headers of a request; a token and a few names take less than one tenth. */
const HEADERS_MAX_BYTES = 8_192;
/** A flood must not become one of the log. */
const REFUSALS_LOGGED_EVERY_MS = 60_000;
/** Would be taken out of a URL, and what is left names something else (RFC 3986, 5.2.4; WHATWG URL, 4.1: %2e too). */
const DOT_SEGMENT = /^[^?#]*\/(\.|%2e){1,2}([/?#]|$)/i;
/** When the kernel starts to probe a silent peer. */
const TCP_PROBE_AFTER_MS = 30_000;

/** PEM: the leaf, then its issuers, and the leaf's private key. */
export interface TlsIdentity {
  chain: string;
  key: string;
}

/** For a client that names this host (SNI, RFC 6066, 3); undefined: the one that all others get. */
export type IdentityFor = (host: string) => TlsIdentity | undefined;

export interface ServeOptions {
  app: App;
  clock: Clock;
  log: Log;
  /** Of the process; absent: of this server alone, where nothing depends on how old a request is. */
  arrivals?: Pick<Arrivals, 'arrivedAt' | 'wentOnAt'>;
  /** Addresses for which room is kept; without it, only this host. */
  known?: Pick<KnownAddresses, 'has'>;
  /** Whose X-Forwarded-For is believed; without it, no one's. */
  isProxy?: Proxies;
  /** In place of the standard ones. */
  times?: Partial<ServerTimes>;
  limits?: Partial<ConnectionLimits>;
}

export interface HttpsOptions extends ServeOptions, TlsIdentity {
  host: string;
  port: number;
  /** A socket that listens already, in place of one at host and port. */
  descriptor?: number | undefined;
  identityFor?: IdentityFor | undefined;
  /** TLS 1.2 is accepted as well; without it, TLS 1.3 alone. */
  tls12?: boolean;
}

/** Listening. Disposal refuses new work, lets what is under way finish, and closes every connection. */
export interface Server extends AsyncDisposable {
  readonly address: { host: string; port: number };
}

export interface HttpsServer extends Server {
  /** For connections from now on; those open stay as they are. */
  setSecureContext(identity: TlsIdentity): void;
}

export async function listenHttps(options: HttpsOptions): Promise<HttpsServer> {
  const tls = (identity: TlsIdentity) => tlsOptions(identity, options.tls12 ?? false);
  const server = createTlsServer({
    ...(options.identityFor && { SNICallback: contextFor(options.identityFor, tls) }),
    ...httpOptions(options),
    ...tls(options),
    handshakeTimeout: timesOf(options).tlsHandshake,
    ALPNProtocols: ['http/1.1'],
  });
  server.on('tlsClientError', (error) => options.log.debug({ err: error }, 'a TLS handshake failed'));
  const { host, port, descriptor } = options;
  const target = descriptor === undefined ? { host, port } : { fd: descriptor };
  const listening = await listen(server, options, target);
  return {
    ...listening,
    address: addressOf(server),
    // What is not given again falls back to Node's defaults.
    setSecureContext: (identity) => server.setSecureContext(tls(identity)),
  };
}

/** One context for each identity, since making one takes a millisecond. */
function contextFor(
  identityFor: IdentityFor,
  tls: (identity: TlsIdentity) => TlsOptions,
): NonNullable<TlsOptions['SNICallback']> {
  const contexts = new WeakMap<TlsIdentity, SecureContext>();
  return (host, done) => {
    const identity = identityFor(host);
    // Node takes the context of the server then.
    if (!identity) return done(null);
    const context = contexts.get(identity) ?? createSecureContext(tls(identity));
    contexts.set(identity, context);
    return done(null, context);
  };
}

/** Without TLS, on a loopback address only: tokens would travel in the open. */
export async function listenPlain(options: ServeOptions & { host: string; port: number }): Promise<Server> {
  if (!isLoopback(options.host)) {
    throw new Error(
      `plain HTTP is served on a loopback address only, such as 127.0.0.1, not on ${options.host}: change http.listen, or set http.plain to false`,
    );
  }
  const server = createServer(httpOptions(options));
  const listening = await listen(server, options, { host: options.host, port: options.port });
  return { ...listening, address: addressOf(server) };
}

/** Mode 0660: anyone who can open the socket is the local administrator. */
export async function listenUnix(options: ServeOptions & { path: string }): Promise<AsyncDisposable> {
  await claimSocketPath(options.path);
  const server = createServer(httpOptions(options));
  const listening = listen(server, options, { path: options.path });
  // Binding is synchronous, so no one is let in before the mode is right.
  if (server.listening) chmodSync(options.path, 0o660);
  return listening;
}

function timesOf({ times }: ServeOptions): ServerTimes {
  return { ...TIMES, ...times };
}

function httpOptions(options: ServeOptions) {
  const times = timesOf(options);
  return {
    headersTimeout: times.headers,
    requestTimeout: times.request,
    keepAliveTimeout: times.keepAlive,
    connectionsCheckingInterval: times.check,
    maxHeaderSize: HEADERS_MAX_BYTES,
    keepAlive: true,
    keepAliveInitialDelay: TCP_PROBE_AFTER_MS,
    // Node's own refusal has no body; requestListener refuses.
    requireHostHeader: false,
  };
}

function tlsOptions({ chain, key }: TlsIdentity, tls12: boolean) {
  return {
    cert: chain,
    key,
    honorCipherOrder: true,
    ...TLS,
    ...(!tls12 && { minVersion: 'TLSv1.3' as const }),
  };
}

function isLoopback(host: string): boolean {
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  const family = isIP(host);
  return family !== 0 && loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

async function listen(
  server: HttpServer | TlsServer,
  options: ServeOptions,
  target: ListenOptions & { fd?: number },
): Promise<AsyncDisposable> {
  const { app, clock, log } = options;
  server.timeout = timesOf(options).stalled;
  const connections = openConnections(server, {
    arrivals: options.arrivals ?? openArrivals(clock),
    clock,
    limits: { ...CONNECTION_LIMITS, ...options.limits },
    isKnown: (address) => options.known?.has(address) ?? false,
    isProxy: (address) => options.isProxy?.(address) ?? false,
    refused: refusalLog(options),
  });
  server.on('request', requestListener(options, connections));
  lingerBeforeClose(server, clock);
  answerMalformed(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(explained(error, target)));
    server.listen(target, resolve);
  });
  // Failures to accept, such as too many open files, are emitted; without a listener they would end the process.
  server.on('error', (error) =>
    log.warn(
      { err: error },
      'a connection could not be accepted: look at how many files this process has open, and may have (LimitNOFILE)',
    ),
  );
  return {
    async [Symbol.asyncDispose]() {
      app.drain();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.closeWhenIdle();
      const finished = new AbortController();
      const overdue = clock
        .sleep(timesOf(options).drain, finished.signal)
        .then(connections.destroy, () => {});
      await closed;
      finished.abort();
      await overdue;
    },
  };
}

/** One line a minute, however many connections are refused. */
function refusalLog({ clock, log }: ServeOptions): (address: string) => void {
  let refused = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    refused += 1;
    if (clock.monotonic() - loggedAt < REFUSALS_LOGGED_EVERY_MS) return;
    log.warn(
      { address, refused },
      'connections are refused, for an address holds too many: close some there, or name it in http.trustedProxies where it is a proxy',
    );
    loggedAt = clock.monotonic();
    refused = 0;
  };
}

/** What reaches the error handler never became a request for the app: the adapter could not make a URL of it. */
function requestListener(
  { app, log, isProxy = () => false }: ServeOptions,
  { arrivedAt }: Pick<Connections, 'arrivedAt'>,
) {
  const fetch: Parameters<typeof getRequestListener>[0] = (request, { incoming }) =>
    app.fetch(request, {
      address: clientAddress(incoming.socket.remoteAddress, forwardedFor(incoming), isProxy),
      isLeaving: () => incoming.socket.readableEnded || incoming.socket.destroyed,
      arrivedAt: arrivedAt(incoming),
    });
  const listener = getRequestListener(fetch, {
    errorHandler(error) {
      const correlationId = randomUUID();
      const malformed = error instanceof Error && error.name === 'RequestError';
      const refusal = malformed
        ? new GatehouseError('VALIDATION_FAILED', 'The path or the Host header is not valid.')
        : error;
      const reply = errorReply(refusal, { correlationId, credentialsOffered: false }, log);
      return responseOf(reply, correlationId, true);
    },
  });
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    // Node keeps the first; a proxy in front may go by the last (RFC 9112, 3.2: either is refused).
    const hosts = incoming.headersDistinct.host?.length ?? 0;
    if (hosts !== 1) {
      const message = `Send one Host header; this request has ${hosts || 'none'}.`;
      return refuse(outgoing, 'VALIDATION_FAILED', message);
    }
    if (DOT_SEGMENT.test(incoming.url ?? ''))
      return refuse(outgoing, 'VALIDATION_FAILED', 'No part of the path may be "." or "..".');
    return listener(incoming, outgoing);
  };
}

/** Of several headers of that name one list (RFC 9110, 5.3), as Node joins them. */
function forwardedFor({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return headers['x-forwarded-for']?.toString();
}

function addressOf(server: HttpServer | TlsServer): { host: string; port: number } {
  const { address, port } = server.address() as AddressInfo;
  return { host: address, port };
}

function explained(
  error: NodeJS.ErrnoException,
  { host, port, path, fd }: ListenOptions & { fd?: number },
): Error {
  const where = path ?? (fd === undefined ? `${host}:${port}` : `the socket of systemd (${fd})`);
  if (error.code === 'EADDRINUSE') {
    return new Error(`${where} is in use: stop the other program, or listen elsewhere`, { cause: error });
  }
  // What is missing on the way there is EACCES, too, for a socket of the file system (uv_pipe_bind).
  if (path !== undefined && error.code === 'EACCES') {
    const message = `adminSocket: ${path} cannot be made: its folder does not exist, or this user may not write there; make it, or choose another place`;
    return new Error(message, { cause: error });
  }
  if (error.code === 'EACCES') {
    const message = `${where} may not be opened by this user: use a port from 1024 on, or for HTTPS sudo systemctl enable --now gatehouse-https.socket`;
    return new Error(message, { cause: error });
  }
  return new Error(`${where} cannot be listened on: ${error.message}`, { cause: error });
}

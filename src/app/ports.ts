/** Where the interface is reached: HTTPS (or plain HTTP on loopback) on the network, and the unix socket. */
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config/config.ts';
import { hostOf } from '../platform/host/host-names.ts';
import { openProxies } from '../platform/http/address.ts';
import { type Credentials, createApp } from '../platform/http/app.ts';
import type { Commitment } from '../platform/http/commitment.ts';
import { openArrivals } from '../platform/http/connections.ts';
import type { Idempotency } from '../platform/http/idempotency.ts';
import type { KnownAddresses } from '../platform/http/known-addresses.ts';
import type { Operation } from '../platform/http/operation.ts';
import { openPages } from '../platform/http/pages.ts';
import {
  type HttpsServer,
  type IdentityFor,
  listenHttps,
  listenPlain,
  listenUnix,
  type Server,
  type TlsIdentity,
} from '../platform/http/server.ts';
import type { Log } from '../platform/log.ts';
import type { Principal } from '../platform/principal.ts';

/** What serves plain HTTP there is in front of it. */
const LOOPBACK = ['127.0.0.0/8', '::1'];

/** scripts/build.ts makes them. */
const CONSOLE_FOLDER = join(import.meta.dirname, '../../dist/console');

export interface PortsOptions {
  config: Config;
  clock: Clock;
  log: Log;
  version: string;
  operations: readonly Operation[];
  identity: TlsIdentity;
  /** A socket for HTTPS that listens already, in place of http.listen. */
  httpsDescriptor: number | undefined;
  /** Of the site's own certificate. */
  identityFor: IdentityFor | undefined;
  authenticate(credentials: Credentials): Principal | Promise<Principal>;
  known: Pick<KnownAddresses, 'has'>;
  forbidden(principal: Principal, operation: string): void;
  adminSocket: string;
  /** See AppOptions. */
  answered(method: string, route: string, status: number, milliseconds: number): void;
  checkResponses: boolean;
  idempotency: Idempotency;
  commitment: Commitment | undefined;
}

export interface Ports extends AsyncDisposable {
  /** Base path included. */
  readonly baseUrl: string;
  /** A renewed certificate, for connections from now on. */
  renew(identity: TlsIdentity): void;
  /** As Arrivals.keep. */
  keepArrivals(signal: AbortSignal): Promise<never>;
}

/** A name of the certificate where there is one, since clients refuse every other. */
function shownHost({ plain, names: [name] }: Config['http'], listening: string): string {
  if (plain || name === undefined) return hostOf(listening);
  return isIPv6(name) ? `[${name}]` : name;
}

export async function openPorts(options: PortsOptions): Promise<Ports> {
  const { config, clock, log, version, operations, answered, checkResponses } = options;
  const { idempotency, commitment } = options;
  const arrivals = openArrivals(clock);
  const served = { operations, version, clock, log, answered, checkResponses };
  const common = { ...served, idempotency, commitment };
  await using opening = new AsyncDisposableStack();
  const local = createApp({ ...common, surface: { kind: 'local' } });
  opening.use(await listenUnix({ app: local, clock, log, arrivals, path: options.adminSocket }));
  const { basePath } = config.http;
  const lan = createApp({
    ...common,
    surface: {
      kind: 'lan',
      basePath,
      authenticate: options.authenticate,
      forbidden: options.forbidden,
      rate: (caller) => rateOf(config, caller),
      corsOrigins: config.http.corsOrigins,
      pages: openPages(CONSOLE_FOLDER, { api: basePath, doors: config.http.productSegment }),
    },
  });
  const isProxy = openProxies(config.http.trustedProxies ?? (config.http.plain ? LOOPBACK : []));
  const serve = { app: lan, clock, log, arrivals, known: options.known, isProxy, ...config.http.listen };
  const https = config.http.plain
    ? undefined
    : await listenHttps({
        ...serve,
        ...options.identity,
        identityFor: options.identityFor,
        tls12: config.http.tls12,
        descriptor: options.httpsDescriptor,
      });
  const server: Server | HttpsServer = opening.use(https ?? (await listenPlain(serve)));
  const opened = opening.move();
  return {
    baseUrl: `${https ? 'https' : 'http'}://${shownHost(config.http, server.address.host)}:${server.address.port}${basePath}`,
    keepArrivals: arrivals.keep,
    renew: (identity) => https?.setSecureContext(identity),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function rateOf({ http }: Config, { roles }: Principal) {
  return roles.has('pms')
    ? { perSecond: http.pmsRequestsPerSecond, burst: http.pmsRequestBurst }
    : { perSecond: http.requestsPerSecond, burst: http.requestBurst };
}

/**
 * A connection to a coordinator on the network, made for the library, which has neither TLS nor a deadline for connecting
 * of its own; port.ts hands it over. What goes through is cut the moment either side ends.
 */
import { X509Certificate } from 'node:crypto';
import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import { checkServerIdentity, connect as tlsConnect } from 'node:tls';
import { failureWords } from '../../contract/connection-failure.ts';
import { type Clock, DriverError } from '../../contract/driver.ts';
import { TLS } from '../../contract/tls.ts';

/** To connect and to shake hands: a coordinator is in the same building. */
const CONNECTING_MS = 5_000;
/** A dead peer is noticed by the probe; this is for a peer that forgot us while nothing was sent. */
const KEEP_ALIVE_MS = 15_000;
/** Unanswered by the other end; a request of the coordinator is shorter than 256 bytes. More is a peer that hangs. */
const UNSENT_MAX_BYTES = 64 * 1024;

/** Disposal cuts it, and drops what is not sent yet: nothing of that may arrive later. */
export interface Connection extends Disposable {
  write(bytes: Uint8Array): void;
  /** What comes is kept until this is called. Throws when it is over already. */
  read(take: (bytes: Buffer) => void, closed: () => void): void;
}

export interface ConnectionOptions {
  secure: boolean;
  host: string;
  port: number;
  /** PEM of what the peer is verified against; needed when `secure`. */
  cert: string | null;
}

/** Undefined when the port is a device of this host. */
export function connectionOptionsOf(port: string, cert: string | null): ConnectionOptions | undefined {
  const parts = /^(tcp|tls):\/\/(?:\[([0-9a-fA-F:]+)\]|([^:]+)):(\d+)$/.exec(port);
  if (!parts) return undefined;
  const [, scheme, ipv6, name = '', number] = parts;
  return { secure: scheme === 'tls', host: ipv6 ?? name, port: Number(number), cert };
}

/** Rejects with LINK_LOST when the peer cannot be reached, and REFUSED when it is not who it should be. */
export async function openConnection(
  options: ConnectionOptions,
  clock: Clock,
  signal: AbortSignal,
): Promise<Connection> {
  const raw = tcpConnect({ host: options.host, port: options.port, noDelay: true });
  raw.setKeepAlive(true, KEEP_ALIVE_MS);
  const cut = () => void raw.resetAndDestroy();
  try {
    await connected(raw, 'connect', options, clock, signal);
    const remote = options.secure ? await encrypted(raw, options, clock, signal) : raw;
    remote.on('close', cut);
    return {
      write(bytes) {
        if (!remote.writable) return;
        remote.write(bytes);
        if (remote.writableLength > UNSENT_MAX_BYTES) cut();
      },
      read(take, closed) {
        if (remote.destroyed)
          throw new DriverError('LINK_LOST', `${nameOf(options)}: it closed the connection`);
        remote.on('data', take).once('close', closed);
      },
      [Symbol.dispose]: cut,
    };
  } catch (error) {
    cut();
    throw error;
  }
}

async function encrypted(
  raw: Socket,
  options: ConnectionOptions,
  clock: Clock,
  signal: AbortSignal,
): Promise<Socket> {
  const { host, cert } = options;
  if (cert === null)
    throw new DriverError(
      'REFUSED',
      `${nameOf(options)} cannot be verified: give its network a cert, or the link a port on tcp://`,
    );
  const socket = tlsConnect({
    socket: raw,
    ca: cert,
    // The cert may be that of the gateway itself.
    allowPartialTrustChain: true,
    ...TLS,
    ...(isIP(host) === 0 && { servername: host }),
    checkServerIdentity(_, peer) {
      const isPinned = certificatesOf(cert).some(({ raw: bytes }) => bytes.equals(peer.raw));
      return isPinned ? undefined : checkServerIdentity(host, peer);
    },
  });
  await connected(socket, 'secureConnect', options, clock, signal);
  return socket;
}

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

function certificatesOf(cert: string): X509Certificate[] {
  return (cert.match(PEM) ?? []).map((pem) => new X509Certificate(pem));
}

/** What OpenSSL and Node say of the far end's certificate: not of the wire, and not its alert about ours (ERR_SSL_…). */
const CERTIFICATE_FAULT = /^(?!ERR_SSL_).*(CERT|SIGNATURE|ISSUER|CHAIN|ALTNAME|PURPOSE)/;

async function connected(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  options: ConnectionOptions,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const name = nameOf(options);
  const over = new AbortController();
  const waiting = AbortSignal.any([signal, over.signal]);
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (reason: string, cause?: unknown) =>
        reject(new DriverError('LINK_LOST', `${name}: ${reason}`, { cause }));
      socket.once(event, () => resolve());
      socket.once('close', () => fail('it closed the connection'));
      // Stays for the errors after the first one.
      socket.on('error', (error: NodeJS.ErrnoException) => {
        if (!CERTIFICATE_FAULT.test(error.code ?? '')) return fail(failureWords(error), error);
        // What Node.js adds to it is advice for programmers.
        const [reason] = error.message.split(';');
        const text = `${name} is not who the cert of its network says (${reason}): correct the cert or the port`;
        reject(new DriverError('REFUSED', text, { cause: error }));
      });
      clock.sleep(CONNECTING_MS, waiting).then(
        () => fail(`no connection within ${CONNECTING_MS} ms`),
        () => reject(signal.reason),
      );
    });
  } finally {
    over.abort();
  }
}

function nameOf({ secure, host, port }: ConnectionOptions): string {
  return `${secure ? 'tls' : 'tcp'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Sockets to other systems' services: how they are reached, trusted, and why they fail. */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates } from 'node:tls';
import { failureWords } from '../../drivers/contract/connection-failure.ts';
import { TLS } from '../../drivers/contract/tls.ts';
import { readNamedFile } from './host/regular-file.ts';

export interface ConnectionLoss {
  error: Error;
  /** The peer closed or reset the connection and gave no reason: what was in flight may have been the reason. */
  unexplained: boolean;
}

/** How a peer's close looks when it comes as an error. Others, such as ETIMEDOUT, are of the network. */
const PEER_CLOSED = new Set(['ECONNRESET', 'EPIPE']);

export function isPeersClose(error: Error): boolean {
  return PEER_CLOSED.has(String((error as { code?: unknown }).code));
}

/** Without the address where that is the one of `url`. */
export function reasonOf(error: Error, url: string): string {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return failureWords(error).replace(/ (\S+):\d+$/, (found, address) => (address === host ? '' : found));
}

/** The files of a client's side of TLS. */
export interface TlsFiles {
  caFile?: string | undefined;
  certFile?: string | undefined;
  keyFile?: string | undefined;
}

/** What TLS takes of them; without caFile the authorities of the system count. */
export function trustOf({ caFile, certFile, keyFile }: TlsFiles) {
  const [ca, cert, key] = [caFile, certFile, keyFile].map(readText);
  return { ca: ca ?? getCACertificates('system'), ...(cert && { cert }), ...(key && { key }), ...TLS };
}

/** By the scheme: mqtt, nats and http are without TLS. Without the delay of Nagle's algorithm a small window waits at every turn. */
export function socketOpener(
  url: string,
  files: TlsFiles,
  defaultPorts: Readonly<Record<string, number>>,
): () => Socket {
  const { protocol, hostname, port: given } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const port = Number(given) || (defaultPorts[protocol] ?? 0);
  if (!isSecure(url)) return () => connectTcp({ host, port, noDelay: true });
  const trust = trustOf(files);
  return () =>
    connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ...trust }).setNoDelay(true);
}

export const isSecure = (url: string) => /^(mqtts|https|tls):/.test(url);

/** The first line of a file that holds a secret. */
export function readSecret(file: string | undefined): string | undefined {
  return readText(file)?.split(/\r?\n/, 1)[0];
}

function readText(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readNamedFile(file);
}

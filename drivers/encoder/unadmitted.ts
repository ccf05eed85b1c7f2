/**
 * The TCP connections on which no encoder has been admitted yet. Anybody can open them, so they are bounded apart from
 * those of admitted encoders. At the bound the one that has waited longest gives way: an encoder is admitted within a
 * fraction of a second, and one that only holds connections open keeps no one out.
 */
import type { Socket } from 'node:net';

/** Of one address: all encoders of a site behind one router, after a power cut. */
const PER_ADDRESS_MAX = 128;
/** Of all addresses: four that hold all they can. */
export const UNADMITTED_MAX = 512;

export interface Unadmitted {
  /** A new TCP connection. Another one may be closed for it; `gaveWay` is called with its address. */
  opened(socket: Socket): void;
  /** An encoder was admitted on it; the TLS socket does as well as the TCP socket beneath. */
  admitted(socket: Socket): void;
}

export function openUnadmitted(gaveWay: (remoteAddress: string | undefined) => void): Unadmitted {
  /** The oldest first. */
  const waiting = new Map<string, Socket>();

  function surplus(remoteAddress: string | undefined): [ends: string, socket: Socket] | undefined {
    const ofAddress = [...waiting].filter(([, socket]) => socket.remoteAddress === remoteAddress);
    if (ofAddress.length > PER_ADDRESS_MAX) return ofAddress[0];
    return waiting.size > UNADMITTED_MAX ? [...waiting][0] : undefined;
  }

  return {
    opened(socket) {
      const ends = endsOf(socket);
      waiting.set(ends, socket);
      socket.once('close', () => {
        if (waiting.get(ends) === socket) waiting.delete(ends);
      });
      const oldest = surplus(socket.remoteAddress);
      if (!oldest) return;
      gaveWay(oldest[1].remoteAddress);
      waiting.delete(oldest[0]);
      oldest[1].destroy();
    },
    admitted: (socket) => void waiting.delete(endsOf(socket)),
  };
}

/** What a TLS socket has in common with the TCP socket beneath it. */
const endsOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;

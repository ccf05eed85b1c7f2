/** One TLS connection to the encoders' port, from the end of its handshake to its close. */
import type { TLSSocket } from 'node:tls';
import { MAX_UP_IN_HAND, type Session } from './admitted.ts';
import { UNACCEPTABLE_LEVEL, unparsedLevel } from './connect-level.ts';
import { type FrameBounds, guardFrames } from './frame-guard.ts';
import { ENCODER_ID, MAX_UP_PACKET_BYTES } from './link.ts';

/** A CONNECT needs below 400 bytes; the rest is room for a user name that no one asked for. */
const MAX_CONNECT_BYTES = 2 * 1024;

/** Who the client certificate says it is. */
export interface Identity {
  encoderId: string;
  /** As node:crypto writes it. */
  fingerprint256: string;
}

/** `connecting`: the CONNECT has come and is not answered; `refusal` is what is wrong with it, `announced` its session. */
export type Stage =
  | { at: 'opened' }
  | {
      at: 'connecting';
      identity: Identity | undefined;
      refusal: Refusal | undefined;
      announced: string | undefined;
    }
  | { at: 'admitted'; session: Session };

/**
 * A CONNACK other than 0 (MQTT 3.1.1, 3.2.2.3): 1 unacceptable protocol version, 2 identifier rejected, 3 server
 * unavailable, 5 not authorized.
 */
export interface Refusal {
  returnCode: 1 | 2 | 3 | 5;
  reason: string;
}

export interface Peer {
  readonly socket: TLSSocket;
  readonly remoteAddress: string | undefined;
  stage: Stage;
  /** Ends the connection at once; resolves when it is closed and `closed` has run. The first reason counts. */
  close(reason: string): Promise<void>;
}

export interface PeerEvents {
  /** Once, when the socket has closed. */
  closed(peer: Peer, reason: string): void;
  /** A CONNECT was refused that the parser cannot read. */
  refused(peer: Peer, refusal: Refusal): void;
}

export function openPeer(socket: TLSSocket, { closed, refused }: PeerEvents): Peer {
  const end = Promise.withResolvers<void>();
  let because: string | undefined;
  const peer: Peer = {
    socket,
    // An IPv4 peer of a dual-stack listener comes as ::ffff:a.b.c.d.
    remoteAddress: socket.remoteAddress?.replace(/^::ffff:/, ''),
    stage: { at: 'opened' },
    close(reason) {
      because ??= reason;
      socket.destroy();
      return end.promise;
    },
  };
  socket.once('close', () => {
    closed(peer, because ?? 'the encoder closed the connection');
    end.resolve();
  });
  const refuseLevel = (level: number) => {
    because ??= `it speaks MQTT at level ${level}`;
    socket.end(UNACCEPTABLE_LEVEL);
    refused(peer, { returnCode: 1, reason: because });
  };
  guardFrames(socket, frameBounds(peer, refuseLevel), (reason) => void peer.close(reason));
  // aedes reads when it learns that there is something to read, which it was not allowed to take until now.
  socket.on('drain', () => socket.emit('readable'));
  return peer;
}

function frameBounds(peer: Peer, refuseLevel: (level: number) => void): FrameBounds {
  /** Of the CONNECT, which is short. */
  let head: Buffer = Buffer.alloc(0);
  return {
    packetBytes: () => (peer.stage.at === 'admitted' ? MAX_UP_PACKET_BYTES : MAX_CONNECT_BYTES),
    packets() {
      // A client that does not read its answers is not read either: from 64 KiB on, the high-water mark of a Node socket.
      if (peer.socket.writableNeedDrain) return 0;
      if (peer.stage.at === 'admitted') return MAX_UP_IN_HAND - peer.stage.session.inHand();
      // What follows the CONNECT waits for its answer: aedes would handle it before it has authenticated.
      return peer.stage.at === 'opened' ? 1 : 0;
    },
    passes(bytes) {
      if (peer.stage.at !== 'opened') return true;
      head = Buffer.concat([head, bytes]);
      const level = unparsedLevel(head);
      if (level === undefined) return true;
      refuseLevel(level);
      return false;
    },
  };
}

/** Also there on a resumed TLS session. Undefined unless the subject has exactly one CN that can be an encoder id. */
export function identityOf(socket: TLSSocket): Identity | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (!certificate) return undefined;
  // Node gives a repeated CN as an array; @types/node does not know.
  const name: unknown = certificate.toLegacyObject().subject?.CN;
  if (typeof name !== 'string' || !ENCODER_ID.test(name)) return undefined;
  return { encoderId: name, fingerprint256: certificate.fingerprint256 };
}

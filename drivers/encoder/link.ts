/**
 * The link to card encoders: a contract of its own, because an encoder comes to us over MQTT where every other driver
 * goes out to its device. The transport behind it is the embedded broker (embedded.ts) or an external one (external.ts);
 * both pass the same suite (test/drivers/encoder/link-contract.ts). Durability and order are the business of the caller and the
 * encoder (docs/encoder-protocol.md): a link carries messages and reports who is there, nothing more.
 */

/** The last level of an up topic: `enc/<id>/up/<channel>`. */
export type UpChannel = 'status' | 'job' | 'progress';
/** The last level of a down topic: `enc/<id>/down/<channel>`. */
export type DownChannel = 'hello' | 'ack' | 'write' | 'cancel';

/** One connection of one encoder. A reconnect is a new connection with a new id. */
export interface EncoderConnection {
  encoderId: string;
  /** Unique within this process. */
  connectionId: string;
  /** Credential generation the connection was admitted with. */
  generation: number;
  /** The peer's address, an IPv4 one without the ::ffff: of a dual-stack socket; undefined when a broker stands between. */
  remoteAddress: string | undefined;
  /**
   * The session the encoder drew for this connection, from its last will (docs/encoder-protocol.md, Connection). Only
   * a status of this session is this connection's birth. Undefined where a link does not know it.
   */
  session: string | undefined;
}

export type CredentialVerdict =
  | { ok: true; generation: number }
  | { ok: false; reason: 'unknown' | 'superseded' | 'revoked' };

/** What a link asks of the gateway, and reports to it. */
export interface EncoderLinkHost {
  /** Asked on every CONNECT, also of a resumed TLS session. `fingerprint256` as node:crypto writes it (AA:BB:…). */
  credential(encoderId: string, fingerprint256: string): CredentialVerdict;
  /** The same of the credential in force, for a link that sees no certificate. */
  standing(encoderId: string): CredentialVerdict;
  /** The credentials in force, whether their encoders are there or not. */
  expected(): readonly { encoderId: string; generation: number }[];
  /** down/# was granted on this connection. */
  subscribed(connection: EncoderConnection): void;
  /**
   * One up message. The transport acknowledges (PUBACK) when the promise resolves, where its PUBACK reaches the
   * encoder. When it rejects with `BadMessage` the connection is closed; on any other rejection the acknowledgement is
   * withheld and the connection stays.
   */
  received(connection: EncoderConnection, channel: UpChannel, payload: Buffer): Promise<void>;
  /** The connection is gone. Called exactly once per connection that was admitted. */
  lost(connection: EncoderConnection, reason: string): void;
}

export interface EncoderLink extends AsyncDisposable {
  /** Sends JSON to `enc/<id>/down/<channel>`, QoS 1. Resolves when handed to the transport; throws DriverError LINK_LOST when no one is connected. */
  send(encoderId: string, channel: DownChannel, payload: Buffer): Promise<void>;
  /** Closes the live connection, if any, and resolves when it is closed. */
  kick(encoderId: string, reason: string): Promise<void>;
}

/** The payload cannot be a message of this protocol; `reason` is safe to log. */
export class BadMessage extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'BadMessage';
  }
}

/**
 * Ids become topic levels, client ids, common names and path segments. None of these characters means anything there
 * (MQTT 3.1.1 4.7, RFC 3986 3.3), and no id is `.` or `..` (docs/encoder-protocol.md, Registration).
 */
export const ENCODER_ID = /^[A-Za-z0-9_-][A-Za-z0-9._:-]{0,63}$/;
export const ENCODER_ID_FORM = '1 to 64 letters, digits, ., _, : or -, of which the first is neither . nor :';

/** Bound on an up packet, MQTT header included. */
export const MAX_UP_PACKET_BYTES = 64 * 1024;

/** Longest keep-alive an encoder may ask for. A silent one is lost after 1.5 times as long (MQTT 3.1.1, 3.1.2.10). */
export const MAX_KEEP_ALIVE_SECONDS = 30;

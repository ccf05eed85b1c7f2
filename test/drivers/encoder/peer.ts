/**
 * An MQTT 3.1.1 peer for tests that shows every byte: packets are put together by hand, so that a wrong one can be sent
 * as easily as a right one, and none is answered unless the test does. Section numbers are those of the OASIS standard.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { vi } from 'vitest';

/** Control packet types (2.2.1). */
export const TYPE = { connack: 2, publish: 3, puback: 4, suback: 9, unsuback: 11, pingresp: 13 } as const;

export interface Packet {
  type: number;
  flags: number;
  body: Buffer;
}

export interface TestPeer extends AsyncDisposable {
  readonly socket: TLSSocket;
  /** Everything received and not yet taken. */
  readonly packets: Packet[];
  send(...packets: Buffer[]): void;
  /** Breaks the TCP connection off. */
  reset(): void;
  /** Takes the oldest packet of that type, waiting for it. */
  next(type: number): Promise<Packet>;
  /** Resolves when the connection has ended, no matter who ended it. */
  ended(): Promise<void>;
}

export interface PeerOptions {
  address: { host: string; port: number };
  ca: string;
  cert?: string;
  key?: string;
  /** A TLS session to resume. */
  session?: Buffer;
  maxVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** Suites of TLS 1.2, as OpenSSL names them. */
  ciphers?: string;
  /** The address to connect from. */
  localAddress?: string;
  /** What is sent at once for a packet, which then counts as taken; undefined: it is left to the test. */
  answer?: (packet: Packet) => Buffer[] | undefined;
}

export const WAIT = { timeout: 25_000, interval: 3 };

async function dial({
  address,
  maxVersion = 'TLSv1.3',
  localAddress,
  ...tls
}: Omit<PeerOptions, 'answer'>): Promise<{ socket: TLSSocket; tcp: Socket }> {
  const tcp = connectTcp({ ...address, ...(localAddress ? { localAddress } : {}) });
  const socket = connect({ socket: tcp, host: address.host, maxVersion, ...tls });
  for (const each of [tcp, socket]) each.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once('secureConnect', resolve);
    socket.once('close', () => resolve());
  });
  return { socket, tcp };
}

export async function openTestPeer({ answer, ...options }: PeerOptions): Promise<TestPeer> {
  const { socket, tcp } = await dial(options);
  const packets: Packet[] = [];
  let waiting = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    waiting = Buffer.concat([waiting, chunk]);
    for (;;) {
      const packet = firstPacket(waiting);
      if (!packet) break;
      waiting = waiting.subarray(packet.bytes);
      const answers = answer?.(packet);
      if (answers) socket.write(Buffer.concat(answers));
      else packets.push(packet);
    }
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return {
    socket,
    packets,
    reset: () => void tcp.resetAndDestroy(),
    send: (...sent) => void socket.write(Buffer.concat(sent)),
    next: (type) =>
      vi.waitFor(() => {
        const index = packets.findIndex((packet) => packet.type === type);
        const [packet] = index < 0 ? [] : packets.splice(index, 1);
        if (!packet) throw new Error(`no packet of type ${type} came`);
        return packet;
      }, WAIT),
    ended: () => (socket.closed ? Promise.resolve() : closed),
    async [Symbol.asyncDispose]() {
      socket.destroy();
      if (!socket.closed) await closed;
    },
  };
}

/** The first packet of a stream, and how many bytes it takes; undefined: it is not whole. */
export function firstPacket(bytes: Buffer): (Packet & { bytes: number }) | undefined {
  let length = 0;
  for (let at = 1; at <= 4; at += 1) {
    const byte = bytes[at];
    if (byte === undefined) return undefined;
    length += (byte & 0x7f) * 128 ** (at - 1);
    if (byte >= 0x80) continue;
    const end = at + 1 + length;
    if (bytes.length < end) return undefined;
    const first = bytes[0] ?? 0;
    return { type: first >> 4, flags: first & 0xf, body: bytes.subarray(at + 1, end), bytes: end };
  }
  throw new Error('malformed remaining length');
}

/** A packet with its fixed header (2.2). */
export function packet(first: number, body: Buffer): Buffer {
  const length: number[] = [];
  let left = body.length;
  do {
    const byte = left % 128;
    left = Math.floor(left / 128);
    length.push(left > 0 ? byte | 0x80 : byte);
  } while (left > 0);
  return Buffer.concat([Buffer.from([first, ...length]), body]);
}

const uint16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
/** A string or binary with its length before it (1.5.3). */
const field = (content: string | Buffer): Buffer => {
  const bytes = bytesOf(content);
  return Buffer.concat([uint16(bytes.length), bytes]);
};
const bytesOf = (content: string | Buffer): Buffer =>
  typeof content === 'string' ? Buffer.from(content) : content;

export interface ConnectOptions {
  clientId: string;
  keepAlive?: number;
  clean?: boolean;
  /** Protocol name; MQTT 3.1 had another one. */
  protocol?: string;
  /** Protocol level: 3 is 3.1, 4 is 3.1.1, 5 is MQTT 5. */
  level?: number;
  /** By default the one an encoder has to leave, and none in MQTT 5, which writes it otherwise; null: none. */
  will?: { topic: string; payload: string | Buffer; qos?: number; retain?: boolean } | null;
}

/** In the will of every peer that names no other. */
export const SESSION = '7a9d2c14-0b5e-4f6a-8c3d-91e2f4a6b8c0';
const willOf = (clientId: string): NonNullable<ConnectOptions['will']> => ({
  topic: `enc/${clientId}/up/status`,
  payload: JSON.stringify({ online: false, session: SESSION }),
});

/** CONNECT (3.1) */
export function connectPacket(options: ConnectOptions): Buffer {
  const { clientId, keepAlive = 30, clean = true, protocol = 'MQTT', level = 4 } = options;
  const { will = level === 5 ? null : willOf(clientId) } = options;
  const willFlags = will ? 0x04 | ((will.qos ?? 1) << 3) | (will.retain ? 0x20 : 0) : 0;
  const header = [field(protocol), Buffer.from([level, (clean ? 0x02 : 0) | willFlags]), uint16(keepAlive)];
  const properties = level === 5 ? [Buffer.from([0])] : [];
  const payload = [field(clientId), ...(will ? [field(will.topic), field(will.payload)] : [])];
  return packet(0x10, Buffer.concat([...header, ...properties, ...payload]));
}

export interface PublishOptions {
  topic: string;
  payload: string | Buffer;
  id?: number;
  qos?: number;
  retain?: boolean;
  dup?: boolean;
}

/** PUBLISH (3.3) */
export function publishPacket({ topic, payload, id = 1, qos = 1, retain, dup }: PublishOptions): Buffer {
  const first = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0);
  const identifier = qos > 0 ? uint16(id) : Buffer.alloc(0);
  return packet(first, Buffer.concat([field(topic), identifier, bytesOf(payload)]));
}

/** SUBSCRIBE (3.8) */
export function subscribePacket(id: number, ...filters: [topic: string, qos: number][]): Buffer {
  const payload = filters.map(([topic, qos]) => Buffer.concat([field(topic), Buffer.from([qos])]));
  return packet(0x82, Buffer.concat([uint16(id), ...payload]));
}

/** UNSUBSCRIBE (3.10) */
export const unsubscribePacket = (id: number, topic: string): Buffer =>
  packet(0xa2, Buffer.concat([uint16(id), field(topic)]));
export const PINGREQ = packet(0xc0, Buffer.alloc(0));
export const DISCONNECT = packet(0xe0, Buffer.alloc(0));

/** What a received PUBLISH carries. */
export function readPublish({ flags, body }: Packet): { topic: string; payload: string; qos: number } {
  const topicEnd = 2 + body.readUInt16BE(0);
  const qos = (flags >> 1) & 3;
  const payload = body.subarray(topicEnd + (qos > 0 ? 2 : 0)).toString();
  return { topic: body.subarray(2, topicEnd).toString(), payload, qos };
}

/** The packet identifier of a PUBACK, SUBACK or UNSUBACK. */
export const identifierOf = ({ body }: Packet): number => body.readUInt16BE(0);
/** PUBACK (3.4) of a received PUBLISH. */
export const pubackPacket = ({ body }: Packet): Buffer => {
  const topicEnd = 2 + body.readUInt16BE(0);
  return packet(0x40, body.subarray(topicEnd, topicEnd + 2));
};

/** What a NATS server and its client say to each other (NATS client protocol; ADR-4 for headers). Pure: bytes in, messages out. */
import { z } from 'zod';

/** INFO names all servers of a cluster; an acknowledgement has a hundred bytes. */
const MESSAGE_BYTES_MAX = 64 * 1_024;
/** Of a line before its payload. */
const LINE_BYTES_MAX = 4_096;
const TOO_MUCH = 'it sends more than was asked for';
const CRLF = '\r\n';

const serverInfo = z.object({
  max_payload: z.int().min(1).optional(),
  tls_required: z.boolean().optional(),
  tls_available: z.boolean().optional(),
  headers: z.boolean().optional(),
});
export type ServerInfo = z.output<typeof serverInfo>;

export type ServerMessage =
  | { kind: 'info'; info: ServerInfo }
  | { kind: 'ping' }
  | { kind: 'pong' }
  | { kind: 'ok' }
  | { kind: 'error'; text: string }
  /** `status`: of its headers, such as 503 without a subscriber. */
  | Received;

export interface Received {
  kind: 'message';
  subject: string;
  status: number | undefined;
  payload: Buffer;
}

/** It is no NATS server, or one that sends more than was asked for. */
class WireFault extends Error {}

/** Takes chunks as they come; what is not whole yet waits for the next. Throws WireFault. */
export function openNatsReader(longest = MESSAGE_BYTES_MAX): (chunk: Buffer) => ServerMessage[] {
  let buffer = Buffer.alloc(0);
  return (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    const found: ServerMessage[] = [];
    for (let next = take(buffer, longest); next; next = take(buffer, longest)) {
      found.push(next.message);
      buffer = buffer.subarray(next.bytes);
    }
    if (buffer.length > longest + LINE_BYTES_MAX) throw new WireFault(TOO_MUCH);
    return found;
  };
}

function take(buffer: Buffer, longest: number): { message: ServerMessage; bytes: number } | undefined {
  const end = buffer.indexOf(CRLF);
  if (end === -1) return undefined;
  const line = buffer.toString('utf8', 0, end);
  const bytes = end + CRLF.length;
  const [, operation = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line) ?? [];
  switch (operation.toUpperCase()) {
    case 'INFO':
      return { message: { kind: 'info', info: infoIn(rest) }, bytes };
    case 'PING':
      return { message: { kind: 'ping' }, bytes };
    case 'PONG':
      return { message: { kind: 'pong' }, bytes };
    case '+OK':
      return { message: { kind: 'ok' }, bytes };
    case '-ERR':
      return { message: { kind: 'error', text: rest.replace(/^'|'$/g, '') }, bytes };
    case 'MSG':
      return takeMessage(buffer, bytes, { words: rest.split(/\s+/), hasHeaders: false, longest });
    case 'HMSG':
      return takeMessage(buffer, bytes, { words: rest.split(/\s+/), hasHeaders: true, longest });
    default:
      throw new WireFault('it does not speak NATS');
  }
}

function infoIn(text: string): ServerInfo {
  try {
    return serverInfo.parse(JSON.parse(text));
  } catch {
    throw new WireFault('its INFO is none of a NATS server');
  }
}

/** MSG subject sid [reply-to] #bytes, HMSG subject sid [reply-to] #header bytes #total bytes. */
function takeMessage(
  buffer: Buffer,
  at: number,
  { words, hasHeaders, longest }: { words: readonly string[]; hasHeaders: boolean; longest: number },
) {
  const total = Number(words.at(-1));
  const headers = hasHeaders ? Number(words.at(-2)) : 0;
  const isSound = Number.isInteger(total) && Number.isInteger(headers) && headers >= 0 && headers <= total;
  if (!isSound || total > longest) throw new WireFault(TOO_MUCH);
  if (buffer.length < at + total + CRLF.length) return undefined;
  const status = /^NATS\/1\.0 (\d{3})/.exec(buffer.toString('utf8', at, at + headers))?.[1];
  const message: ServerMessage = {
    kind: 'message',
    subject: words[0] ?? '',
    status: status === undefined ? undefined : Number(status),
    payload: buffer.subarray(at + headers, at + total),
  };
  return { message, bytes: at + total + CRLF.length };
}

export interface Outgoing {
  subject: string;
  reply: string;
  headers: Readonly<Record<string, string>>;
  payload: string | Uint8Array;
}

/** HPUB subject reply-to #header bytes #total bytes. */
export function encodePublish({ subject, reply, headers, payload }: Outgoing): Buffer {
  // A value ends with its line.
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value.replace(/[\r\n]/g, ' ')}`);
  const head = Buffer.from(['NATS/1.0', ...lines, '', ''].join(CRLF));
  const body = typeof payload === 'string' ? Buffer.from(payload) : payload;
  const control = `HPUB ${subject} ${reply} ${head.length} ${head.length + body.length}${CRLF}`;
  return Buffer.concat([Buffer.from(control), head, body, Buffer.from(CRLF)]);
}

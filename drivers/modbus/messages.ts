/**
 * Modbus requests as exchanges of the bus (drivers/bus/exchange.ts), and their bytes. The only importer of modbus-serial, which is used
 * as a codec and nothing else. A client of one exchange sits on a port that is none; it writes one request there, and is handed one frame
 * that frame.ts has found to be the answer. Its queue, timeouts and serial ports credit late replies to the wrong request,
 * believe local echo and leave promises pending (modbus-serial.test.ts shows each), so they are never used.
 */
import modbusSerial from 'modbus-serial';
import type { Exchange, Reading } from '../bus/exchange.ts';
import { answerLength, isMbapAnswer, locate } from './frame.ts';

const MODBUS_TCP = {
  kind: 'unanswered',
  reason:
    'a Modbus TCP server answers (MBAP headers), where the bytes of a serial line are expected: set the port of the link to modbus-tcp://, or the server to raw TCP server mode',
} as const;

export function readBits(
  unit: number,
  from: { functionCode: 1 | 2; address: number; quantity: number },
): Exchange<boolean[]> {
  return exchange(unit, from, (answer) => (answer.kind === 'bits' ? answer.values : undefined));
}

export function readRegisters(
  unit: number,
  from: { functionCode: 3 | 4; address: number; quantity: number },
): Exchange<number[]> {
  return exchange(unit, from, (answer) => (answer.kind === 'registers' ? answer.values : undefined));
}

export function write(
  unit: number,
  request: Extract<Request, { functionCode: 5 | 6 | 15 | 16 }>,
): Exchange<null> {
  return exchange(unit, request, (answer) => (answer.kind === 'written' ? null : undefined));
}

export interface Identification {
  objects: ReadonlyMap<number, string>;
  next: number | undefined;
}

export function readIdentification(unit: number, object: number): Exchange<Identification> {
  return exchange(unit, { functionCode: 43, object }, (answer) =>
    answer.kind === 'identification' ? answer : undefined,
  );
}

function exchange<Reply>(
  unit: number,
  request: Request,
  replyOf: (answer: Answer) => Reply | undefined,
): Exchange<Reply> {
  const bytes = encode(unit, request);
  // Modbus over serial line 1.02, 2.1: all devices take it, and none answers.
  const isBroadcast = unit === 0;
  return {
    address: unit,
    operation: String(request.functionCode),
    replyLength: isBroadcast ? 0 : answerLength(bytes),
    request: () => bytes,
    read(received): Reading<Reply> {
      const unanswered = isBroadcast ? replyOf({ kind: 'written' }) : undefined;
      if (unanswered !== undefined) return { kind: 'reply', reply: unanswered };
      const located = locate(bytes, received);
      if (located.kind === 'more' && isMbapAnswer(bytes, received)) return MODBUS_TCP;
      if (located.kind === 'more') return located;
      const answer = decode(unit, request, located.frame);
      if (answer.kind === 'exception') return exceptionReading(answer.code, replyOf({ kind: 'written' }));
      const reply = replyOf(answer);
      return reply === undefined ? { kind: 'more', fault: 'framing' } : { kind: 'reply', reply };
    },
  };
}

// What an exception says of the request that it answers (application protocol 1.1b3, 7).

/** Checked before anything is carried out: the request has changed nothing. 7 is of the editions before 1.1. */
const REFUSALS = new Map([
  [1, 'exception 01 (illegal function): it does not know this request; compare its product with its profile'],
  [2, 'exception 02 (illegal data address): it has no such register; compare its product with its profile'],
  [3, 'exception 03 (illegal data value): it does not take this value, or so many registers at once'],
  [7, 'exception 07 (negative acknowledge): it cannot carry this request out'],
]);
/** The request is accepted, and takes long. */
const ACKNOWLEDGE = 5;
/** Nothing was done, and asking again is in order. */
const BUSY = 6;
/** The gateway has no way to the device: nothing was passed on. */
const NO_PATH = 10;
/** The gateway has passed the request on, and heard no answer. */
const NO_ANSWER = 11;
/** The failure may have come before, while or after the request was carried out; so may those that no edition names. */
const FAILURES = new Map([
  [4, 'exception 04 (server device failure): it reports a failure of its own'],
  [8, 'exception 08 (memory parity error): its memory is damaged'],
]);

/** `written`: what acknowledges the request where it was to change something; undefined: it was to read. */
function exceptionReading<Reply>(code: number, written: Reply | undefined): Reading<Reply> {
  const refusal = REFUSALS.get(code);
  if (refusal !== undefined) return { kind: 'refused', reason: refusal };
  switch (code) {
    case ACKNOWLEDGE:
      return written === undefined ? { kind: 'busy' } : { kind: 'reply', reply: written };
    case BUSY:
      return { kind: 'busy' };
    case NO_PATH:
      return {
        kind: 'unreached',
        reason:
          'exception 0A (gateway path unavailable): the Modbus gateway before it is misconfigured or overloaded',
      };
    case NO_ANSWER:
      return {
        kind: 'unanswered',
        reason:
          'exception 0B (gateway target device failed to respond): the Modbus gateway before it heard nothing',
      };
    default: {
      const reason = FAILURES.get(code) ?? `exception ${code.toString(16).toUpperCase().padStart(2, '0')}`;
      // A read changes nothing, whatever it failed of.
      return { kind: written === undefined ? 'refused' : 'failed', reason };
    }
  }
}

// The bytes.

/** Function codes of the Modbus application protocol 1.1b3, 6.1 to 6.12, and 6.21. */
type Request =
  /** Coils, discrete inputs; holding registers, input registers. */
  | { functionCode: 1 | 2 | 3 | 4; address: number; quantity: number }
  /** A number: products that take a time where the standard has only on (0xFF00) and off (0). */
  | { functionCode: 5; address: number; value: boolean | number }
  | { functionCode: 6; address: number; value: number }
  | { functionCode: 15; address: number; values: boolean[] }
  | { functionCode: 16; address: number; values: number[] }
  /** Read device identification, basic: vendor, product code and revision. */
  | { functionCode: 43; object: number };

type Answer =
  | { kind: 'bits'; values: boolean[] }
  | { kind: 'registers'; values: number[] }
  | { kind: 'written' }
  /** By object id; `next` is the object to ask for, when not all fitted. */
  | { kind: 'identification'; objects: Map<number, string>; next: number | undefined }
  | { kind: 'exception'; code: number };

const MEI_TYPE = 14;
/** Read device identification, code 1: the basic objects, as a stream (6.21). */
const READ_BASIC = 1;
const MORE_FOLLOWS = 0xff;

function encode(unit: number, request: Request): Uint8Array {
  return codecOf(unit, request).sent;
}

/** `frame`: whole, of sound CRC, and the answer to `request` (frame.ts). Throws on what modbus-serial makes nothing of. */
function decode(unit: number, request: Request, frame: Uint8Array): Answer {
  // modbus-serial would ask for the next part by itself, past the owner of the bus.
  if (frame[1] === 43) return identification(frame);
  const { error, data } = codecOf(unit, request).receive(frame);
  const code = error?.modbusCode;
  if (code !== undefined) return { kind: 'exception', code };
  if (error || !data) throw new Error(`modbus-serial cannot read a frame: ${error?.message ?? 'no answer'}`);
  switch (request.functionCode) {
    case 1:
    case 2:
      return { kind: 'bits', values: (data.data as boolean[]).slice(0, request.quantity) };
    case 3:
    case 4:
      return { kind: 'registers', values: data.data as number[] };
    default:
      return { kind: 'written' };
  }
}

const { default: Client } = modbusSerial;
type Outcome = { error?: Error & { modbusCode?: number }; data?: { data?: unknown } };

/** One request through a client of its own: nothing of an earlier exchange can be in it. */
function codecOf(unit: number, request: Request) {
  let sent: Uint8Array = new Uint8Array();
  let receive: (frame: Buffer) => void = () => undefined;
  const outcome: Outcome = {};
  const client = new Client({
    isOpen: true,
    open: (opened: () => void) => opened(),
    on(event: string, listener: typeof receive) {
      if (event === 'data') receive = listener;
    },
    once: () => undefined,
    removeListener: () => undefined,
    write(bytes: Uint8Array) {
      sent = bytes;
    },
  });
  client.open();
  hand(client, unit, request, (error, data) => Object.assign(outcome, error ? { error } : { data }));
  return {
    sent,
    receive(frame: Uint8Array): Outcome {
      receive(Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength));
      return outcome;
    },
  };
}

function hand(
  client: InstanceType<typeof Client>,
  unit: number,
  request: Request,
  next: (error: Error | null, data: object) => void,
) {
  if (request.functionCode === 43)
    return client.writeCustomFC(unit, 43, [MEI_TYPE, READ_BASIC, request.object], next);
  const { address } = request;
  switch (request.functionCode) {
    case 1:
      return client.writeFC1(unit, address, request.quantity, next);
    case 2:
      return client.writeFC2(unit, address, request.quantity, next);
    case 3:
      return client.writeFC3(unit, address, request.quantity, next);
    case 4:
      return client.writeFC4(unit, address, request.quantity, next);
    case 5: {
      const { value } = request;
      if (typeof value === 'boolean') return client.writeFC5(unit, address, value, next);
      const data = [address >> 8, address & 0xff, value >> 8, value & 0xff];
      return client.writeCustomFC(unit, 5, data, next);
    }
    case 6:
      return client.writeFC6(unit, address, request.value, next);
    case 15:
      return client.writeFC15(unit, address, request.values, next);
    case 16:
      return client.writeFC16(unit, address, request.values, next);
  }
}

function identification(frame: Uint8Array): Answer {
  const [, , , , , more, next, count = 0] = frame;
  const objects = new Map<number, string>();
  for (let at = 8; objects.size < count && at + 2 <= frame.length - 2; ) {
    const [id = 0, length = 0] = frame.subarray(at, at + 2);
    objects.set(id, Buffer.from(frame.subarray(at + 2, at + 2 + length)).toString('latin1'));
    at += 2 + length;
  }
  return { kind: 'identification', objects, next: more === MORE_FOLLOWS ? next : undefined };
}

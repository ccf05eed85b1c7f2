/** What is heard during one exchange: from bytes as they come to what became of the request. No time of its own. */
import { DriverError } from '../contract/driver.ts';
import type { Attempt, Exchange, Fault, Reading } from './exchange.ts';

export type Outcome =
  | { kind: 'reply'; reply: unknown }
  | { kind: WithReason; reason: string }
  | { kind: Exclude<Attempt['outcome'], 'reply' | WithReason> };

type WithReason = 'refused' | 'failed' | 'unreached' | 'unanswered';

/** The device is there, whatever it said. */
export function isAnswer(outcome: Attempt['outcome']): boolean {
  return outcome === 'reply' || outcome === 'refused' || outcome === 'busy' || outcome === 'failed';
}

export interface Receiver {
  receive(bytes: Uint8Array): void;
  /** As soon as it is settled. */
  outcome(): Outcome | undefined;
  /** When nothing more comes; a broadcast reads no bytes now. */
  conclude(): Outcome;
  /** Bytes beside the local echo. */
  heard(): number;
  received(): Uint8Array;
  /** A whole frame that is damaged, or as many bytes as the reply has and no frame in them: two devices at once. */
  isGarbled(): boolean;
  /** More bytes came behind the reply, of whatever device, than a wire makes of the moment when a device lets it go. */
  isFollowed(): boolean;
  /** Everything that came began like the request, although no local echo is configured. */
  soundsLikeEcho(): boolean;
}

export interface ReceiverOptions {
  exchange: Exchange<unknown>;
  request: Uint8Array;
  localEcho: boolean;
  /** `read` threw: a defect of the protocol, and of the frame too. */
  failed(error: unknown): void;
}

const GLITCH_MAX = 2;
/** Noise that may stand before a reply without costing it, characters. */
const NOISE_MAX = 256;

export function openReceiver({ exchange, request, localEcho, failed }: ReceiverOptions): Receiver {
  const received = new Uint8Array(exchange.replyLength + NOISE_MAX);
  let length = 0;
  /** So much of it was read when there was an outcome. */
  let readLength = 0;
  let echoLeft = localEcho ? request.length : 0;
  let outcome: Outcome | undefined;
  let fault: Fault | undefined;

  /** What is left of the bytes without the echo of the request, which comes first. */
  function withoutEcho(bytes: Uint8Array): Uint8Array {
    const echo = bytes.subarray(0, echoLeft);
    const expected = request.subarray(request.length - echoLeft);
    if (echo.some((byte, index) => byte !== expected[index])) outcome = { kind: 'collision' };
    echoLeft -= echo.length;
    return bytes.subarray(echo.length);
  }

  function read(): Reading<unknown> {
    try {
      return exchange.read(received.subarray(0, length));
    } catch (error) {
      failed(error);
      return { kind: 'more', fault: 'framing' };
    }
  }

  return {
    receive(bytes) {
      if (outcome && !exchange.exhaustive) return;
      const rest = withoutEcho(bytes);
      if (outcome?.kind === 'collision' || rest.length === 0) return;
      const kept = rest.subarray(0, received.length - length);
      if (kept.length === 0) return;
      received.set(kept, length);
      length += kept.length;
      if (outcome) return;
      const reading = read();
      readLength = length;
      if (reading.kind === 'more') fault = reading.fault;
      else outcome = reading;
    },
    outcome: () => outcome,
    conclude() {
      // What came behind the reply is for the protocol to judge.
      if (outcome && length > readLength) read();
      if (outcome) return outcome;
      if (exchange.replyLength === 0) {
        const reading = read();
        return reading.kind === 'more' ? { kind: 'framing' } : reading;
      }
      return { kind: length === 0 ? 'timeout' : (fault ?? 'framing') };
    },
    heard: () => length,
    received: () => received.subarray(0, length),
    isGarbled: () => fault === 'crc' || (fault === 'framing' && length >= exchange.replyLength),
    isFollowed: () => outcome !== undefined && length > readLength + GLITCH_MAX,
    soundsLikeEcho: () =>
      length >= request.length && request.every((byte, index) => received[index] === byte),
  };
}

export function errorOf(outcome: Exclude<Outcome, { kind: 'reply' }>, address: number): DriverError {
  switch (outcome.kind) {
    case 'refused':
      return new DriverError('REFUSED', `device ${address} refused: ${outcome.reason}`);
    case 'busy':
      // It did nothing, and will: unlike a refusal this is not for good.
      return new DriverError('BUSY', `device ${address} is busy: try again in a moment`);
    case 'failed':
      return new DriverError('BAD_REPLY', `device ${address} failed: ${outcome.reason}`);
    case 'unreached':
      return new DriverError('DEVICE_OFFLINE', `device ${address} was not reached: ${outcome.reason}`);
    case 'unanswered':
      return new DriverError('NO_REPLY', `device ${address} did not answer: ${outcome.reason}`);
    case 'timeout':
      return new DriverError('NO_REPLY', `device ${address} did not answer in time`);
    case 'crc':
      return new DriverError('BAD_REPLY', `the reply of device ${address} was damaged on the wire`);
    case 'framing':
      return new DriverError('BAD_REPLY', `what came instead of a reply of device ${address} is no frame`);
    case 'foreign':
      return new DriverError('BAD_REPLY', `what came is no answer to what device ${address} was asked`);
    case 'collision':
      return new DriverError('BAD_REPLY', `what was sent to device ${address} was disturbed on the wire`);
  }
}

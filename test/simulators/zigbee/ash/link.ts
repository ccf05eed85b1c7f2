/**
 * The side of the network co-processor in ASH (UG101, rev. 3.1, clauses 3 and 5): numbered DATA frames, each acknowledged,
 * repeated when it is not, and the state FAILED, out of which only a reset leads.
 *
 * | state     | input                         | becomes   | says                          |
 * |-----------|-------------------------------|-----------|-------------------------------|
 * | any       | RST                           | booting   | after the boot RSTACK         |
 * | booting   | boot is over                  | connected | RSTACK                        |
 * | connected | DATA, the next number         | connected | ACK, by the next DATA or alone |
 * | connected | DATA, another number, repeated | connected | ACK                           |
 * | connected | DATA, another number; damaged | connected | NAK, once                     |
 * | connected | NAK, or no ACK in time        | connected | the DATA frames once more     |
 * | connected | no ACK, several times         | failed    | ERROR                         |
 * | failed    | anything but RST              | failed    | ERROR                         |
 */
import type { Time } from '../time.ts';
import { ASH_VERSION, type AshFrame, encodeAsh, openAshReader } from './frame.ts';

/** Clause 3.4.2: of the co-processor. */
const WINDOW = 3;
const ACK_TIMEOUT_MS = 1_600;
const ACK_TIMEOUTS_MAX = 4;
/** EZSP_HOST_MAX and more: beyond it an incoming frame finds no buffer. */
const WAITING_MAX = 200;
/** Codes of RSTACK and ERROR (clause 2.1). */
export const RESET_CODE = { external: 1, powerOn: 2, watchdog: 3, software: 11 } as const;
const ERROR_ACK_TIMEOUTS = 0x51;
const NUMBERS = 8;

export interface AshCounters {
  received: number;
  sent: number;
  bad: number;
}

export interface AshFaults {
  /** The next so many DATA frames from the host with a request to send are answered with NAK, as if they were damaged. */
  nak: number;
  /** The next so many of them are lost. */
  lost: number;
  /** The next so many DATA frames to the host are damaged on the way. */
  damaged: number;
}

export interface AshLink {
  receive(bytes: Uint8Array): void;
  /** A DATA frame to the host. False: there is no room, and it is dropped. */
  send(data: Buffer): boolean;
  /** Forgets half a frame. */
  cut(): void;
  /** The co-processor has restarted: what was queued is gone. */
  restarted(code: number): void;
  fail(faults: { [Name in keyof AshFaults]?: number | undefined }): void;
  counters: AshCounters;
}

export interface AshOptions {
  time: Time;
  write(bytes: Uint8Array): void;
  /** RST: the co-processor restarts. */
  reset(): void;
  take(data: Buffer): void;
  /** It is a request to send something. */
  sends(data: Buffer): boolean;
}

export function openAshLink({ time, write, reset, take, sends }: AshOptions): AshLink {
  const reader = openAshReader();
  const counters: AshCounters = { received: 0, sent: 0, bad: 0 };
  const faults: AshFaults = { nak: 0, lost: 0, damaged: 0 };
  let state: 'booting' | 'connected' | 'failed' = 'booting';
  let expected = 0;
  let isRejecting = false;

  function takeOne(name: keyof AshFaults): boolean {
    if (faults[name] === 0) return false;
    faults[name] -= 1;
    return true;
  }
  function say(frame: AshFrame): void {
    counters.sent += 1;
    const bytes = encodeAsh(frame);
    if (frame.kind === 'data' && takeOne('damaged')) bytes.writeUInt8(bytes.readUInt8() ^ 1);
    write(bytes);
  }
  const sayFailed = () => say({ kind: 'error', version: ASH_VERSION, code: ERROR_ACK_TIMEOUTS });
  const sender = openSender({
    time,
    say: (frame) => say({ kind: 'data', ack: expected, ...frame }),
    failed() {
      state = 'failed';
      sayFailed();
    },
  });
  const acknowledge = () => say({ kind: 'ack', ack: expected, isNotReady: false });
  function reject(): void {
    if (!isRejecting) say({ kind: 'nak', ack: expected, isNotReady: false });
    isRejecting = true;
  }
  function hearData({ number, isRepeated, data }: Extract<AshFrame, { kind: 'data' }>): void {
    const isRequest = sends(data);
    if (isRequest && takeOne('lost')) return;
    const isNext = number === expected;
    if ((isRequest && takeOne('nak')) || (!isNext && !isRepeated)) reject();
    else if (!isNext) acknowledge();
    else {
      isRejecting = false;
      expected = (expected + 1) % NUMBERS;
      const before = counters.sent;
      take(data);
      // Its answer has the acknowledgement in it.
      if (counters.sent === before) acknowledge();
    }
  }
  function hear(frame: AshFrame): void {
    if (frame.kind === 'rst') reset();
    else if (state === 'failed') sayFailed();
    else if (state === 'connected' && 'ack' in frame) {
      sender.acknowledged(frame.ack);
      if (frame.kind === 'data') hearData(frame);
      else sender.setReady(!frame.isNotReady);
      if (frame.kind === 'nak') sender.repeat();
    }
  }

  return {
    counters,
    cut: reader.clear,
    receive(bytes) {
      for (const reading of reader.read(bytes)) {
        counters.received += 1;
        if (reading.kind === 'frame') hear(reading.frame);
        else {
          counters.bad += 1;
          if (state === 'connected') reject();
        }
      }
    },
    send: sender.send,
    restarted(code) {
      sender.restart();
      expected = 0;
      isRejecting = false;
      state = 'connected';
      say({ kind: 'rstack', version: ASH_VERSION, code });
    },
    fail({ nak = faults.nak, lost = faults.lost, damaged = faults.damaged }) {
      Object.assign(faults, { nak, lost, damaged });
    },
  };
}

interface Sent {
  number: number;
  data: Buffer;
}

interface SenderOptions {
  time: Time;
  say(frame: Sent & { isRepeated: boolean }): void;
  /** Nothing is acknowledged any more. */
  failed(): void;
}

/** DATA frames to the host: so many at a time, each until it is acknowledged. */
function openSender({ time, say, failed }: SenderOptions) {
  let unacknowledged: Sent[] = [];
  let waiting: Buffer[] = [];
  let isHostReady = true;
  let nextNumber = 0;
  let timeouts = 0;
  let stopTimer: () => void = () => undefined;

  function startTimer(): void {
    stopTimer();
    stopTimer = () => undefined;
    if (unacknowledged.length === 0) return;
    stopTimer = time.after(ACK_TIMEOUT_MS, () => {
      timeouts += 1;
      if (timeouts < ACK_TIMEOUTS_MAX) repeat();
      else failed();
    });
  }
  function repeat(): void {
    for (const one of unacknowledged) say({ ...one, isRepeated: true });
    startTimer();
  }
  function fill(): void {
    while (isHostReady && unacknowledged.length < WINDOW) {
      const data = waiting.shift();
      if (!data) return;
      const one = { number: nextNumber, data };
      nextNumber = (nextNumber + 1) % NUMBERS;
      unacknowledged.push(one);
      say({ ...one, isRepeated: false });
      if (unacknowledged.length === 1) startTimer();
    }
  }
  return {
    repeat,
    send(data: Buffer): boolean {
      if (waiting.length >= WAITING_MAX) return false;
      waiting.push(data);
      fill();
      return true;
    },
    /** Frames up to, but not including, this number have arrived. */
    acknowledged(ack: number): void {
      const index = unacknowledged.findIndex(({ number }) => number === ack);
      const count = index < 0 && ack === nextNumber ? unacknowledged.length : index;
      if (count <= 0) return;
      unacknowledged = unacknowledged.slice(count);
      timeouts = 0;
      startTimer();
      fill();
    },
    setReady(isReady: boolean): void {
      isHostReady = isReady;
      fill();
    },
    restart(): void {
      stopTimer();
      [unacknowledged, waiting] = [[], []];
      [nextNumber, timeouts] = [0, 0];
      isHostReady = true;
    },
  };
}

/** The serial port of the stick: frames out of what comes in pieces, and answers before what their requests cause. */
import { encodeMt, type MtFrame, readMt, SUBSYSTEM } from '../mt/frame.ts';

export interface PortCounters {
  received: number;
  sent: number;
  bad: number;
  unknown: number;
  /** Requests by subsystem and command, such as `1/1b`. */
  byType: Record<string, number>;
}

export interface Port {
  receive(bytes: Uint8Array): void;
  /** Forgets half a frame. */
  cut(): void;
  /** At once, or after the answer to the request that is being dealt with. */
  indicate(frame: MtFrame): void;
  setSilent(on: boolean): void;
  isSilent(): boolean;
  counters(): PortCounters;
}

export interface PortOptions {
  /** It hears and says nothing while it is not. */
  isUp(): boolean;
  /** To the host. */
  write(bytes: Uint8Array): void;
  /** SYS_RESET_REQ, which is not answered. */
  reset(): void;
  answer(request: MtFrame): MtFrame;
}

export function openPort(options: PortOptions): Port {
  let pending: Buffer = Buffer.alloc(0);
  let isSilent = false;
  /** AREQs that wait for the SRSP of the request that caused them. */
  let held: MtFrame[] | undefined;
  const frames: PortCounters = { received: 0, sent: 0, bad: 0, unknown: 0, byType: {} };

  function write(frame: MtFrame): void {
    if (isSilent || !options.isUp()) return;
    frames.sent += 1;
    options.write(encodeMt(frame));
  }
  function handle(frame: MtFrame): void {
    frames.received += 1;
    const isReset = frame.type === 'AREQ' && frame.subsystem === SUBSYSTEM.sys && frame.id === 0;
    if (isReset) options.reset();
    if (frame.type !== 'SREQ') return;
    const name = `${frame.subsystem}/${frame.id.toString(16).padStart(2, '0')}`;
    frames.byType[name] = (frames.byType[name] ?? 0) + 1;
    held = [];
    const response = options.answer(frame);
    const waiting = held;
    held = undefined;
    if (response.subsystem === SUBSYSTEM.rpcError) frames.unknown += 1;
    for (const one of [response, ...waiting]) write(one);
  }
  function cut(): void {
    pending = Buffer.alloc(0);
  }

  return {
    receive(bytes) {
      if (isSilent || !options.isUp()) return;
      pending = Buffer.concat([pending, bytes]);
      for (let reading = readMt(pending); reading.kind !== 'incomplete'; reading = readMt(pending)) {
        pending = pending.subarray(reading.length);
        if (reading.kind === 'frame') handle(reading.frame);
        else if (reading.isFrame) frames.bad += 1;
      }
    },
    cut,
    indicate(frame) {
      if (held) held.push(frame);
      else write(frame);
    },
    setSilent(on) {
      isSilent = on;
      cut();
    },
    isSilent: () => isSilent,
    counters: () => ({ ...frames, byType: { ...frames.byType } }),
  };
}

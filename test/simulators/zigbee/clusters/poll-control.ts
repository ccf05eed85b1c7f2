/** Poll control (ZCL 3.16): a sleepy device says now and then that it can be talked to. Times are quarters of a second. */
import type { Time } from '../time.ts';
import { type Cluster, failed, succeeded } from '../zcl/cluster.ts';
import { ZCL_STATUS } from '../zcl/frame.ts';
import { TYPE, type Value } from '../zcl/types.ts';

export const POLL_CONTROL = 0x0020;
const QUARTER_MS = 250;
/** By default ten seconds. */
const FAST_POLL_TIMEOUT = 40;

export interface PollControl {
  cluster: Cluster;
  checkIn(): void;
}

export function openPollControl(
  time: Time,
  checkInSeconds: number,
  actions: { notify(command: number, payload: Buffer): void; stayAwake(until: number): void },
): PollControl {
  const intervals = {
    checkIn: Math.round(checkInSeconds * 4),
    long: 24,
    short: 2,
    timeout: FAST_POLL_TIMEOUT,
  };
  let timer = () => {};
  function checkIn(): void {
    timer();
    if (intervals.checkIn > 0) timer = time.after(intervals.checkIn * QUARTER_MS, checkIn);
    actions.notify(0, Buffer.alloc(0));
  }
  timer = time.after(intervals.checkIn * QUARTER_MS, checkIn);
  return {
    checkIn,
    cluster: {
      id: POLL_CONTROL,
      attributes: {
        0: {
          type: TYPE.uint32,
          get: () => intervals.checkIn,
          set(value: Value) {
            intervals.checkIn = Number(value);
            timer();
            if (intervals.checkIn > 0) timer = time.after(intervals.checkIn * QUARTER_MS, checkIn);
            return ZCL_STATUS.success;
          },
        },
        1: { type: TYPE.uint32, get: () => intervals.long },
        2: { type: TYPE.uint16, get: () => intervals.short },
        3: {
          type: TYPE.uint16,
          get: () => intervals.timeout,
          set(value: Value) {
            intervals.timeout = Number(value);
            return ZCL_STATUS.success;
          },
        },
      },
      commands: {
        0(input) {
          const isFast = input.u8() !== 0;
          const quarters = input.u16() || intervals.timeout;
          if (isFast) actions.stayAwake(time.now() + quarters * QUARTER_MS);
          return succeeded;
        },
        1() {
          actions.stayAwake(time.now());
          return succeeded;
        },
        2(input) {
          const long = input.u32();
          if (long < 4) return failed(ZCL_STATUS.invalidValue);
          intervals.long = long;
          return succeeded;
        },
        3(input) {
          intervals.short = input.u16();
          return succeeded;
        },
      },
    },
  };
}

/**
 * What the library sends to a device by itself: default responses to events, answers to reads and check-ins, blocks of
 * firmware. A command of ours would wait behind such a frame for as long as the library tries to deliver it, up to 17 s:
 * too long for an unlock. So these frames have a queue of their own, and one that is not confirmed is given up: a device
 * that misses an answer asks again.
 */
import type { Queue } from './make.ts';

/** To different devices at the same time, beside the 16 frames of the library's queue. */
export const ANSWERS_AT_ONCE = 4;
/** Under way and waiting. */
const ANSWERS_MAX = 64;

/** Of the library's adapter. */
export interface Sender {
  sendZclFrameToEndpoint(...given: Given): Promise<unknown>;
  sendZclFrameToEndpointInternal(...given: unknown[]): Promise<unknown>;
  selectSourceEndpoint(sourceEndpoint?: number, profileId?: number): number;
}
export interface Frame {
  header: { frameControl: { disableDefaultResponse: boolean } };
  command: { response?: number };
}
/** Of the library's adapters, whatever their make. */
export type Given<Zcl extends Frame = Frame> = [
  ieee: string,
  networkAddress: number,
  endpoint: number,
  frame: Zcl,
  timeout: number,
  disableResponse: boolean,
  disableRecovery: boolean,
  sourceEndpoint?: number,
  profileId?: number,
];

/** Attempts so far, and what the library has done to find the device: nothing, and nothing of it is to be done. */
const FIRST_ATTEMPT = [0, 0, true, true, true, undefined];

export function separateAnswers(adapter: Sender, queue: Queue): void {
  const { sendZclFrameToEndpoint } = adapter;
  adapter.sendZclFrameToEndpoint = async function (this: Sender, ...given) {
    const [ieee, address, endpoint, frame, timeout, disableResponse, , source, profile] = given;
    if (expectedOf(frame, disableResponse) !== undefined) return sendZclFrameToEndpoint.apply(this, given);
    const from = this.selectSourceEndpoint(source, profile);
    return answerApart(queue, address, () =>
      this.sendZclFrameToEndpointInternal(
        ...[ieee, address, endpoint, from, frame, timeout, disableResponse, true],
        ...FIRST_ATTEMPT,
      ),
    );
  };
}

export async function answerApart(
  queue: Queue,
  address: number,
  send: () => Promise<unknown>,
): Promise<unknown> {
  // After what came with the frame that is answered, such as the outcome of an unlock, which somebody waits for.
  await new Promise((resolve) => setImmediate(resolve));
  if (queue.count() >= ANSWERS_MAX) return undefined;
  // The library would keep it for a later contact of the device.
  return queue.execute(send, address).catch(() => undefined);
}

const DEFAULT_RESPONSE = 0x0b;

/** The command that answers the frame, as the library decides it; undefined: none does. */
export function expectedOf({ header, command }: Frame, disableResponse: boolean): number | undefined {
  if (command.response !== undefined && !disableResponse) return command.response;
  return header.frameControl.disableDefaultResponse ? undefined : DEFAULT_RESPONSE;
}

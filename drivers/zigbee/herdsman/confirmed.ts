/** What the coordinator says of a frame that it did not take, or that was not answered. Pure. */
import type { ZclReply } from '../radio.ts';
import { hex } from '../values.ts';

/** Answers to AF_DATA_REQUEST and its confirmations (Z-Stack Monitor and Test API, ZStatus): the frame was given up. */
const UNDELIVERED = new Map([
  [0x10, 'the coordinator has no memory for the frame'],
  [0x11, 'the coordinator has no room for the frame'],
  [0x1a, 'the coordinator has no room for the frame'],
  [0xcd, 'there is no route to the lock'],
  [0xe1, 'the radio channel is busy'],
  [0xf0, 'the lock did not fetch the frame from its parent'],
]);
/** It may have arrived, and only its acknowledgement been lost. */
const MAC_NO_ACK = 0xe9;

/** The answer to AF_DATA_REQUEST was not success: nothing of the frame is sent. */
export function refused(status: number): ZclReply {
  const reason = UNDELIVERED.get(status) ?? `the coordinator refused the frame (status ${hex(status, 2)})`;
  return { kind: 'undelivered', reason };
}

/** `status` undefined: it said nothing of it, or that it was sent. */
export function confirmed(status: number | undefined): ZclReply {
  const undelivered = status === undefined ? undefined : UNDELIVERED.get(status);
  if (undelivered) return { kind: 'undelivered', reason: undelivered };
  const reason = status === MAC_NO_ACK ? 'the lock did not acknowledge' : 'no answer in time';
  return { kind: 'unanswered', reason };
}

/** What the coordinator says of a frame: in its answer to the request, and in the confirmation. Pure. */
import type { ZclReply } from '../radio.ts';
import { hex } from '../values.ts';

/** Answers to AF_DATA_REQUEST (Z-Stack Monitor and Test API, ZStatus). */
const REFUSALS = new Map([
  [0x02, 'the coordinator does not take such a frame'],
  [0x10, 'the coordinator has no memory for the frame'],
  [0x11, 'the coordinator has no room for the frame'],
  [0x1a, 'the coordinator has no room for the frame'],
  [0xcd, 'there is no route to the lock'],
]);
/** AF_DATA_CONFIRM (the same): none of them proves that the lock does not have the frame. */
const CONFIRMATIONS = new Map([
  [0x10, 'the coordinator has no memory for the frame'],
  [0x11, 'the coordinator has no room for the frame'],
  [0x1a, 'the coordinator has no room for the frame'],
  [0xb7, 'the lock did not acknowledge the frame'],
  [0xcd, 'there is no route to the lock'],
  [0xe1, 'the radio channel is busy'],
  [0xe9, 'the lock did not acknowledge the frame'],
  [0xf0, 'the lock did not fetch the frame from its parent'],
]);
const STATUS_MAX = 0xff;

/** The answer to AF_DATA_REQUEST was not success: nothing of the frame is sent. */
export function refused(status: number): ZclReply {
  const reason = REFUSALS.get(status) ?? `the coordinator refused the frame (status ${hex(status, 2)})`;
  return { kind: 'unsent', reason };
}

/** `status` undefined, or above a byte: no confirmation came. */
export function unconfirmed(status: number | undefined): string {
  if (status === undefined || status > STATUS_MAX)
    return 'the coordinator did not say whether it was delivered';
  return CONFIRMATIONS.get(status) ?? `the coordinator did not see it delivered (status ${hex(status, 2)})`;
}

/** What an EmberZNet coordinator says of a frame: in its answer to sendUnicast, and in messageSentHandler. Pure. */
import type { ZclReply } from '../radio.ts';
import { hex } from '../values.ts';

/** sl_status_t of the Gecko SDK; the library translates the statuses of older firmware. */
export const STATUS_OK = 0;
/** Answers to sendUnicast (UG100, Silicon Labs): with any of them the stack has not taken the frame. */
const REFUSALS = new Map([
  [0x04, 'the coordinator is busy'],
  [0x16, 'the coordinator has no network'],
  [0x17, 'the coordinator has no network'],
  [0x19, 'the coordinator has no memory for the frame'],
  [0x38, 'the frame is too long for the coordinator'],
  [0x0c03, 'the coordinator has no room for the frame'],
]);
/** Of messageSentHandler: none of them proves that the lock does not have the frame. */
const FAILURES = new Map([
  [0x0c02, 'the lock did not acknowledge the frame'],
  [0x0c20, 'the lock did not acknowledge the frame'],
  [0x0c26, 'there is no route to the lock'],
]);

/** The answer to sendUnicast was not success: nothing of the frame is sent. */
export function refusedByEmber(status: number): ZclReply {
  const reason = REFUSALS.get(status) ?? `the coordinator refused the frame (status ${hex(status, 4)})`;
  return { kind: 'unsent', reason };
}

export function unconfirmedByEmber(status: number): string {
  return FAILURES.get(status) ?? `the coordinator did not see it delivered (status ${hex(status, 4)})`;
}

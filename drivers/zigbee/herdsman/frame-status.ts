/** What a coordinator says of a frame, by its make: in its answer to the request, and in the confirmation. Pure. */
import type { ZclReply } from '../radio.ts';
import { hex } from '../values.ts';

/** Answers to AF_DATA_REQUEST (Z-Stack Monitor and Test API, ZStatus). */
const Z_STACK_REFUSALS = new Map([
  [0x02, 'the coordinator does not take such a frame'],
  [0x10, 'the coordinator has no memory for the frame'],
  [0x11, 'the coordinator has no room for the frame'],
  [0x1a, 'the coordinator has no room for the frame'],
  [0xcd, 'there is no route to the lock'],
]);
/** AF_DATA_CONFIRM (the same): none of them proves that the lock does not have the frame. */
const Z_STACK_CONFIRMATIONS = new Map([
  [0x10, 'the coordinator has no memory for the frame'],
  [0x11, 'the coordinator has no room for the frame'],
  [0x1a, 'the coordinator has no room for the frame'],
  [0xb7, 'the lock did not acknowledge the frame'],
  [0xcd, 'there is no route to the lock'],
  [0xe1, 'the radio channel is busy'],
  [0xe9, 'the lock did not acknowledge the frame'],
  [0xf0, 'the lock did not fetch the frame from its parent'],
]);
const Z_STACK_STATUS_MAX = 0xff;

/** Success, an sl_status_t of the Gecko SDK; the library translates the statuses of older firmware. */
export const EMBER_OK = 0;
/** Answers to sendUnicast (UG100, Silicon Labs): with any of them the stack has not taken the frame. */
const EMBER_REFUSALS = new Map([
  [0x04, 'the coordinator is busy'],
  [0x16, 'the coordinator has no network'],
  [0x17, 'the coordinator has no network'],
  [0x19, 'the coordinator has no memory for the frame'],
  [0x38, 'the frame is too long for the coordinator'],
  [0x0c03, 'the coordinator has no room for the frame'],
]);
/** Of messageSentHandler: none of them proves that the lock does not have the frame. */
const EMBER_FAILURES = new Map([
  [0x0c02, 'the lock did not acknowledge the frame'],
  [0x0c20, 'the lock did not acknowledge the frame'],
  [0x0c26, 'there is no route to the lock'],
]);

const refusedAs = (reason: string | undefined, status: string): ZclReply => ({
  kind: 'unsent',
  reason: reason ?? `the coordinator refused the frame (status ${status})`,
});
const undelivered = (reason: string | undefined, status: string) =>
  reason ?? `the coordinator did not see it delivered (status ${status})`;

/** The answer to AF_DATA_REQUEST was not success: nothing of the frame is sent. */
export const refusedByZStack = (status: number) => refusedAs(Z_STACK_REFUSALS.get(status), hex(status, 2));

/** Above a byte: no confirmation came. */
export function unconfirmedByZStack(status: number): string {
  if (status > Z_STACK_STATUS_MAX) return 'the coordinator did not say whether it was delivered';
  return undelivered(Z_STACK_CONFIRMATIONS.get(status), hex(status, 2));
}

/** The answer to sendUnicast was not success: nothing of the frame is sent. */
export const refusedByEmber = (status: number) => refusedAs(EMBER_REFUSALS.get(status), hex(status, 4));

export const unconfirmedByEmber = (status: number) => undelivered(EMBER_FAILURES.get(status), hex(status, 4));

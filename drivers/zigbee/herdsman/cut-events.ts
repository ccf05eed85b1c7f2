/**
 * Frames of a lock that end early, and which the library cannot read. Operation and programming events (ZCL rev. 8, 7.3.2.16.27 and
 * 28): locks are sold that leave out the last fields, or a part of them; such an event is not acknowledged, and the lock repeats
 * it. What a daemon needs of it, the source, the code and the user, comes first. And answers that there is no such schedule,
 * whose other fields mean nothing. Pure.
 */

/** Frame control: for the cluster, of the standard, from the server. */
const CONTROL_MASK = 0b1111;
const FROM_LOCK = 0b1001;
/** Frame control, transaction sequence number, command. */
const HEADER_BYTES = 3;
/** Source, code and user. */
const HEAD_BYTES = 4;
/** Between the PIN and the text at the end, by command: the local time; user type, user status and local time. */
const FIXED_BYTES: ReadonlyMap<number | undefined, number> = new Map([
  [0x20, 4],
  [0x21, 6],
]);

/** Get Week Day, Year Day and Holiday Schedule Response: where the status is, and the length of the whole. */
const SCHEDULE_ANSWERS: ReadonlyMap<number | undefined, { statusAt: number; bytes: number }> = new Map([
  [0x0c, { statusAt: 3, bytes: 9 }],
  [0x0f, { statusAt: 3, bytes: 12 }],
  [0x12, { statusAt: 1, bytes: 11 }],
]);

/** A frame of the Door Lock cluster, with zeros for what it lacks. Any other frame is as it was. */
export function completeFrame(frame: Buffer): Buffer {
  const [control = 0, , command] = frame;
  if ((control & CONTROL_MASK) !== FROM_LOCK) return frame;
  const payload = frame.subarray(HEADER_BYTES);
  const answer = SCHEDULE_ANSWERS.get(command);
  if (answer && (payload[answer.statusAt] ?? 0) !== 0)
    return Buffer.concat([frame, Buffer.alloc(Math.max(0, answer.bytes - payload.length))]);
  const fixed = FIXED_BYTES.get(command);
  if (fixed === undefined || payload.length < HEAD_BYTES) return frame;
  const pinBytes = payload[HEAD_BYTES];
  const pinEnd = HEAD_BYTES + 1 + (pinBytes ?? 0);
  // An end within the PIN leaves nothing to rely on.
  if (pinBytes !== undefined && payload.length < pinEnd) return frame;
  const missing = pinEnd + fixed + 1 - payload.length;
  return missing > 0 ? Buffer.concat([frame, Buffer.alloc(missing)]) : frame;
}

/**
 * Operation and programming events (ZCL rev. 8, 7.3.2.16.27 and 28) that end early. Locks are sold that leave out the last
 * fields, or a part of them; the library cannot read such an event, does not acknowledge it, and the lock repeats it. What
 * a daemon needs of it, the source, the code and the user, comes first. Pure.
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

/** A frame of the Door Lock cluster, with zeros for what an event lacks. Any other frame is as it was. */
export function completeEvent(frame: Buffer): Buffer {
  const [control = 0, , command] = frame;
  const fixed = FIXED_BYTES.get(command);
  const payload = frame.subarray(HEADER_BYTES);
  if (fixed === undefined || (control & CONTROL_MASK) !== FROM_LOCK || payload.length < HEAD_BYTES)
    return frame;
  const pinBytes = payload[HEAD_BYTES];
  const pinEnd = HEAD_BYTES + 1 + (pinBytes ?? 0);
  // An end within the PIN leaves nothing to rely on.
  if (pinBytes !== undefined && payload.length < pinEnd) return frame;
  const missing = pinEnd + fixed + 1 - payload.length;
  return missing > 0 ? Buffer.concat([frame, Buffer.alloc(missing)]) : frame;
}

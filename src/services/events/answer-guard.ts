/**
 * Bounds what the notification service can make the parser of MQTT.js hold, which collects 256 MB for one packet. This
 * side subscribes to nothing, so all that comes are short answers; anything else ends the connection.
 */
import type { Socket } from 'node:net';
import { openFrameWalk } from '../../../drivers/encoder/frame-guard.ts';

/** A PUBACK has 4 bytes; the rest is room for the reason strings and user properties of a CONNACK or DISCONNECT. */
export const ANSWER_BYTES_MAX = 16 * 1024;
/** Each answers a packet of this side, of which the shortest, PINGREQ, has 2 bytes; and a DISCONNECT may come of itself. */
const SENT_BYTES_MIN = 2;
const UNASKED_MAX = 8;
/** CONNACK, PUBACK, PINGRESP and DISCONNECT (MQTT 5, 2.1.2). */
const ANSWERS = new Set([2, 4, 13, 14]);

/** Call it before the socket has another reader: the guard sees each chunk first. `refuse` ends the connection. */
export function guardAnswers(socket: Socket, refuse: (reason: string) => void): void {
  const walk = openFrameWalk((type) => ANSWERS.has(type));
  let answers = 0;
  socket.on('data', (chunk: Buffer) => {
    const step = walk(chunk, Number.POSITIVE_INFINITY, ANSWER_BYTES_MAX);
    if ('refused' in step) return refuse(step.refused);
    answers += step.packets;
    // Short answers without an end would take all the time of the event loop, and the desk would wait.
    if (answers > UNASKED_MAX + socket.bytesWritten / SENT_BYTES_MIN) refuse('more answers than questions');
  });
}

/**
 * Bounds what the notification service can make the parser of MQTT.js hold, which collects 256 MB for one packet. This
 * side subscribes to nothing, so all that comes are short answers; anything else ends the connection.
 */
import type { Socket } from 'node:net';
import { openFrameWalk } from '../../../drivers/encoder/frame-guard.ts';

/** A PUBACK has 4 bytes; the rest is room for the reason strings and user properties of a CONNACK or DISCONNECT. */
export const ANSWER_BYTES_MAX = 16 * 1024;
/** CONNACK, PUBACK, PINGRESP and DISCONNECT (MQTT 5, 2.1.2). */
const ANSWERS = new Set([2, 4, 13, 14]);

/** Call it before the socket has another reader: the guard sees each chunk first. `refuse` ends the connection. */
export function guardAnswers(socket: Socket, refuse: (reason: string) => void): void {
  const walk = openFrameWalk((type) => ANSWERS.has(type));
  socket.on('data', (chunk: Buffer) => {
    const step = walk(chunk, Number.POSITIVE_INFINITY, ANSWER_BYTES_MAX);
    if ('refused' in step) refuse(step.refused);
  });
}

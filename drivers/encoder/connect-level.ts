/**
 * The answer to a CONNECT whose protocol level the parser of aedes does not know: it takes such a packet for malformed
 * and hangs up, where the standard wants a return code ([MQTT-3.1.2-2]). Pure.
 */

/** CONNACK with return code 1, unacceptable protocol version (MQTT 3.1.1, 3.2). */
export const UNACCEPTABLE_LEVEL = Buffer.from([0x20, 2, 0, 1]);

/** Control packet type (MQTT 3.1.1, 2.2.1). */
const CONNECT = 1;
/** 3.1, 3.1.1 and 5, and the same with the bit of a mosquitto bridge. */
const PARSED_LEVELS = new Set([3, 4, 5, 0x83, 0x84, 0x85]);

/**
 * The protocol level in the first bytes of a CONNECT (MQTT 3.1.1, 3.1.2.2) when it is one that the parser does not know;
 * undefined when it is another, and while too few bytes are there.
 */
export function unparsedLevel(head: Uint8Array): number | undefined {
  if ((head[0] ?? 0) >> 4 !== CONNECT) return undefined;
  const lengthEnd = head.findIndex((byte, index) => index > 0 && byte < 0x80);
  const high = head[lengthEnd + 1];
  const low = head[lengthEnd + 2];
  if (lengthEnd === -1 || high === undefined || low === undefined) return undefined;
  const level = head[lengthEnd + 3 + high * 256 + low];
  return level === undefined || PARSED_LEVELS.has(level) ? undefined : level;
}

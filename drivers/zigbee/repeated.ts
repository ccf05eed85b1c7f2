/**
 * Frames that come twice: a device that saw no acknowledgement sends the same frame again, with the transaction sequence
 * number it had (ZCL rev. 8, 2.4.1.3; APS acknowledgements: Zigbee specification R22, 2.2.8.4.3).
 */
import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';
import type { Clock } from '../driver.ts';
import type { RadioEvent } from './radio.ts';

/** Three more attempts, 1.6 s apart (apscMaxFrameRetries, apscAckWaitDuration), through parents that hold them. */
const WINDOW_MS = 10_000;
/** Of one device. */
const FRAMES_MAX = 16;

type Heard = Extract<RadioEvent, { kind: 'heard' }>;

export interface Repeated {
  /** Whether this frame has just been heard. A device that never changes its number still says different things. */
  isRepeated(event: Heard): boolean;
  forget(ieee: string): void;
}

export function openRepeated({ monotonic }: Pick<Clock, 'monotonic'>): Repeated {
  /** By device: frames, and when each came. The latest is last. */
  const heard = new Map<string, Map<string, number>>();
  return {
    isRepeated(event) {
      const { ieee, tsn, type } = event;
      // An answer has the number of its request.
      if (tsn === undefined || type === 'readResponse') return false;
      const frames = heard.get(ieee) ?? new Map<string, number>();
      heard.set(ieee, frames);
      const now = monotonic();
      const frame = digestOf(event);
      const before = frames.get(frame);
      const isRepeated = before !== undefined && now - before <= WINDOW_MS;
      frames.delete(frame);
      frames.set(frame, isRepeated ? before : now);
      const [oldest] = frames.keys();
      if (frames.size > FRAMES_MAX && oldest !== undefined) frames.delete(oldest);
      return isRepeated;
    },
    forget: (ieee) => void heard.delete(ieee),
  };
}

/** Not the frame itself: it may hold the digits of a PIN. */
function digestOf({ endpoint, cluster, type, tsn, data }: Heard): string {
  return createHash('sha256')
    .update(serialize([endpoint, cluster, type, tsn, data]))
    .digest('base64');
}

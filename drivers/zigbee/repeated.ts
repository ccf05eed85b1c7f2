/**
 * Frames that come twice, or late. A device that saw no acknowledgement sends the same frame again, with the transaction sequence
 * number it had (ZCL rev. 8, 2.4.1.3; APS acknowledgements: Zigbee specification R22, 2.2.8.4.3). A lock may repeat an event
 * for minutes until it gets the default response.
 */
import { hash } from 'node:crypto';
import { serialize } from 'node:v8';
import type { Clock } from '../contract/driver.ts';
import { DOOR_LOCK, type RadioEvent } from './radio.ts';

/** So long a lock repeats an event (EVENT_WITHIN_MS of the daemon). In that time it does not send the 256 frames after which its numbers begin again. */
const WINDOW_MS = 300_000;
/**
 * Of a device whose number says nothing, since different frames of it had the same: three more attempts, 1.6 s apart
 * (apscMaxFrameRetries, apscAckWaitDuration), through parents that hold them.
 */
const UNNUMBERED_WINDOW_MS = 10_000;
/** Of one device. */
const FRAMES_MAX = 32;

type Heard = Extract<RadioEvent, { kind: 'heard' }>;

export interface Repeated {
  /** Whether this frame has been heard lately. A device that never changes its number still says different things. */
  isRepeated(event: Heard): boolean;
  forget(ieee: string): void;
}

interface Frame {
  /** Reports have other numbers than events in some devices. */
  kind: string;
  tsn: number;
  at: number;
}

interface Device {
  /** By digest, the latest last. */
  frames: Map<string, Frame>;
  isNumbered: boolean;
}

export function openRepeated({ monotonic }: Pick<Clock, 'monotonic'>): Repeated {
  const devices = new Map<string, Device>();
  return {
    isRepeated(event) {
      const { ieee, tsn, type, endpoint, cluster } = event;
      // An answer has the number of its request.
      if (tsn === undefined || type === 'readResponse') return false;
      const device = devices.get(ieee) ?? { frames: new Map<string, Frame>(), isNumbered: true };
      devices.set(ieee, device);
      const { frames } = device;
      const now = monotonic();
      const digest = digestOf(event);
      const kind = `${endpoint}/${cluster}/${type}`;
      const before = frames.get(digest);
      const isReused = (one: Frame) => one.tsn === tsn && one.kind === kind && now - one.at <= WINDOW_MS;
      if (!before && frames.values().some(isReused)) device.isNumbered = false;
      const windowMs = device.isNumbered ? WINDOW_MS : UNNUMBERED_WINDOW_MS;
      const isRepeated = before !== undefined && now - before.at <= windowMs;
      frames.delete(digest);
      frames.set(digest, isRepeated ? before : { kind, tsn, at: now });
      const [oldest] = frames.keys();
      if (frames.size > FRAMES_MAX && oldest !== undefined) frames.delete(oldest);
      return isRepeated;
    },
    forget: (ieee) => void devices.delete(ieee),
  };
}

/** Not the frame itself: it may hold the digits of a PIN. */
function digestOf({ endpoint, cluster, type, tsn, data }: Heard): string {
  return hash('sha256', serialize([endpoint, cluster, type, tsn, data]), 'base64');
}

/** More reports than a lock sends while one is held up. */
const BEHIND_MAX = 32;
/** After the one that was sent later. */
const ORDER_WINDOW_MS = 120_000;
/** EmberZNet counts to 127 (EMBER_AF_ZCL_SEQUENCE_MASK). */
const COUNTED = 0x7f;
/** What else a report carries is no state that the lock can be asked for, but an event. */
const STATES: ReadonlySet<string> = new Set(['lockState', 'doorState']);

/**
 * Reports of bolt and door that a lock sent before one that was heard already: one can be held up for seconds on its way. Its
 * transaction sequence number lies behind then. That proves nothing: stacks count to 127 or to 255, some devices not at all,
 * and each begins again with a restart. So what such a report says is not taken in, and the lock is asked.
 */
export interface ReportOrder {
  /** It seems older than one that was heard before, and the lock is asked. */
  isBehind(event: Heard): boolean;
  forget(ieee: string): void;
}

export function openReportOrder(
  { monotonic }: Pick<Clock, 'monotonic'>,
  ask: (ieee: string) => void,
): ReportOrder {
  /** Of each lock the newest report. */
  const locks = new Map<string, { tsn: number; at: number }>();
  return {
    isBehind(event) {
      const { ieee, tsn } = event;
      if (tsn === undefined || !isOfStates(event)) return false;
      const newest = locks.get(ieee);
      const behind = newest && monotonic() - newest.at <= ORDER_WINDOW_MS ? (newest.tsn - tsn) & COUNTED : 0;
      if (behind > 0 && behind <= BEHIND_MAX) {
        ask(ieee);
        return true;
      }
      locks.set(ieee, { tsn, at: monotonic() });
      return false;
    },
    forget: (ieee) => void locks.delete(ieee),
  };
}

function isOfStates({ type, cluster, data }: Heard): boolean {
  if (type !== 'attributeReport' || cluster !== DOOR_LOCK) return false;
  return Object.keys(Object(data)).every((name) => STATES.has(name));
}

/**
 * The stream of live events (GET /events). The browser opens it again by itself with the last id, so nothing is missed; and
 * whenever it is opened, all is read again. A stream that is silent is stale.
 */
import { signal } from '@preact/signals';
import type { EndReason } from '../services/events/live.ts';
import { session } from './api.ts';
import { API } from './place.ts';

export interface LiveEvent {
  id: string;
  type: string;
  /** Within the system, such as doors/<doorId>. */
  source: string;
  subject: string;
  time: string;
  data: Record<string, unknown>;
}

/** What the source of each event begins with. */
const OF_SYSTEM = /^\/systems\/[^/]+\//;
export const localEvent = (event: LiveEvent): LiveEvent => ({
  ...event,
  source: event.source.replace(OF_SYSTEM, ''),
});
/** The gateway sends a heartbeat every 15 s. */
const STALE_MS = 18_000;
const LOOK_MS = 1_000;
/** A window that is not looked at for so long gives its stream up: a browser keeps six connections to a gateway, for all windows. */
const AWAY_MS = 10_000;
/** A person has turned to this window; `visibilitychange` bubbles up from the document. */
const LOOKED_AT = ['visibilitychange', 'focus', 'pointerdown', 'keydown'] as const;

/** Why what is shown may be out of date, as words.ts calls it; undefined where it is not. */
export const stale = signal<'stale' | 'displaced' | undefined>(undefined);
/** Another one whenever all must be read again; 0 without a stream, since what changes between a read and it would be missed. */
export const epoch = signal(0);

/** Events kept for the page that shows them. */
const RECENT_MAX = 500;
/** What has happened since the console was opened, the newest first. */
export const recent = signal<readonly LiveEvent[]>([]);

const listeners = new Set<(event: LiveEvent) => void>();

/** Returns the function that ends it. */
export function onEvent(listener: (event: LiveEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the function that closes the stream. */
export function openLive(): () => void {
  let source: EventSource;
  let heardAt = performance.now();
  let seenAt = heardAt;
  let lastId = '';
  let isPaused = false;
  let reloads = 0;
  const heard = ({ lastEventId }: MessageEvent) => {
    heardAt = performance.now();
    lastId = lastEventId || lastId;
    stale.value = undefined;
  };
  const reload = () => {
    reloads += 1;
    epoch.value = reloads;
  };
  const pause = (why: 'stale' | 'displaced') => {
    source.close();
    isPaused = true;
    stale.value = why;
    // Nor is anything read for a person who does not look.
    epoch.value = 0;
  };
  const open = () => {
    isPaused = false;
    source = new EventSource(`${API}/events${lastId && `?after=${encodeURIComponent(lastId)}`}`);
    source.onmessage = (message) => {
      heard(message);
      const event = localEvent(JSON.parse(message.data));
      recent.value = [event, ...recent.value].slice(0, RECENT_MAX);
      for (const listener of listeners) listener(event);
    };
    source.addEventListener('hello', (message) => {
      heard(message);
      reload();
    });
    source.addEventListener('heartbeat', heard);
    source.addEventListener('reset', heard);
    source.addEventListener('end', ({ data }: MessageEvent) => {
      const { reason } = JSON.parse(data) as { reason: EndReason };
      // It says why: to ask again with a cookie that is refused would count as a guess.
      if (reason === 'UNAUTHORIZED') session.value = null;
      // Opened again by itself it would end the stream of another window, and that one the next, without end.
      if (reason === 'TOO_MANY_STREAMS') pause('displaced');
    });
  };
  open();
  const comeBack = () => {
    if (document.hidden) return;
    seenAt = performance.now();
    if (!isPaused) return;
    // Its first word takes longer than a look on a slow phone.
    heardAt = seenAt;
    open();
  };
  for (const sign of LOOKED_AT) addEventListener(sign, comeBack);
  const timer = setInterval(() => {
    const now = performance.now();
    if (!document.hidden) seenAt = now;
    if (isPaused) return;
    if (now - seenAt > AWAY_MS) return pause('stale');
    if (now - heardAt < STALE_MS) return;
    if (source.readyState === EventSource.CLOSED || stale.value) {
      source.close();
      open();
      heardAt = now - STALE_MS / 2;
    }
    stale.value = 'stale';
    // Old figures with the banner are more than none.
    if (epoch.value === 0) reload();
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    for (const sign of LOOKED_AT) removeEventListener(sign, comeBack);
    source.close();
  };
}

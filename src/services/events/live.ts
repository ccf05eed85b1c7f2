/**
 * Live events: server-sent events from the log in the database (HTML Living Standard, 9.2), so that a reader that comes
 * back goes on where it was. A reader asks for its next chunk when it has taken the last one: one that is slow holds no
 * more than a chunk of ours, and one that takes nothing is cut off by the server (src/platform/http/server.ts, `stalled`).
 */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { type ErrorCode, GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import type { Principal } from '../../platform/principal.ts';
import type { EventLog } from './events.ts';
import { type KeptEvents, openKeptEvents } from './kept.ts';
import { type LiveFeed, openLiveFeed, type ResetReason } from './live-feed.ts';
import { type LiveFilter, passes } from './live-filter.ts';
import { mayRead } from './readers.ts';

/** How often a reader hears from us, and its credentials are looked at again. */
export const HEARTBEAT_MS = 15_000;
/** Memory for so many is some 20 MB. */
export const STREAMS_MAX = 64;
/** A program needs one; a person has some browser tabs. */
export const STREAMS_PER_PRINCIPAL = 8;
/** What a browser waits before it comes back. */
const RETRY_MS = 2_000;

/** Of a caller whose credentials have ended; the second one when its address has shown too many such. */
const ENDED_CREDENTIALS: readonly ErrorCode[] = ['UNAUTHORIZED', 'RATE_LIMITED'];

export interface Reader {
  principal: Principal;
  /** The id of the last event it has seen; undefined: it wants what comes from now on. */
  after: string | undefined;
  filter: LiveFilter;
  /** Throws UNAUTHORIZED once its credentials have ended. */
  reauthenticate(): Promise<Principal>;
  closing: AbortSignal;
}

export type EndReason = 'UNAUTHORIZED' | 'TOO_MANY_STREAMS' | 'SHUTTING_DOWN';

export interface LiveStreams extends KeptEvents {
  /** Never throws; the stream is closed by its reader, or ended with an `end` event. */
  open(reader: Reader): ReadableStream<Uint8Array>;
  /** Looks at the credentials of a principal's streams now, since they may have ended. Never rejects. */
  recheck(principalId: string): Promise<void>;
  /** Heartbeats; for supervise. Ends only by its signal. */
  keep(signal: AbortSignal): Promise<never>;
  /** How many are open. */
  count(): number;
}

export interface LiveOptions {
  events: Pick<EventLog, 'table' | 'listen'>;
  database: Pick<Database, 'legible'>;
  clock: Clock;
  log: Log;
}

interface Stream {
  reader: Reader;
  /** As the credentials last said. */
  principal: Principal;
  /** The seq of the last event it was given or may not read. */
  seq: number;
  /** Sent before further events. */
  notices: string[];
  heartbeatDue: boolean;
  ended: boolean;
  wakeup: PromiseWithResolvers<void>;
}

export function openLiveStreams({ events, database, clock, log }: LiveOptions): LiveStreams {
  const feed = openLiveFeed(events.table, database);
  /** In the order of their opening. */
  const streams = new Set<Stream>();
  // For as long as the log lives, whether anybody reads or not.
  events.listen(() => {
    feed.forget();
    for (const stream of streams) wake(stream);
  });

  function end(stream: Stream, reason: EndReason): void {
    if (stream.ended) return;
    stream.ended = true;
    streams.delete(stream);
    stream.notices.push(message('end', { reason }));
    log.debug({ principal: stream.principal.label, reason }, 'an event stream ends');
    wake(stream);
  }

  /** The caller's own oldest makes room, else the oldest of the caller with the most. */
  function makeRoom({ id }: Principal): void {
    const held = Map.groupBy(streams, ({ principal }) => principal.id);
    const own = held.get(id) ?? [];
    const most = [...held.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
    const crowd = own.length >= STREAMS_PER_PRINCIPAL ? own : streams.size >= STREAMS_MAX ? most : [];
    if (crowd[0]) end(crowd[0], 'TOO_MANY_STREAMS');
  }

  async function checkCredentials(stream: Stream): Promise<void> {
    try {
      stream.principal = await stream.reader.reauthenticate();
    } catch (error) {
      // Anything else, such as a disk that is full, says nothing about these credentials.
      const ended = error instanceof GatehouseError && ENDED_CREDENTIALS.includes(error.code);
      if (ended) end(stream, 'UNAUTHORIZED');
    }
  }

  return {
    ...openKeptEvents(events.table, database),
    open(reader) {
      makeRoom(reader.principal);
      const stream = begin(reader, feed);
      const stop = () => end(stream, 'SHUTTING_DOWN');
      streams.add(stream);
      reader.closing.addEventListener('abort', stop);
      if (reader.closing.aborted) stop();
      return readable(
        () => next(stream, feed, clock),
        () => {
          stream.ended = true;
          streams.delete(stream);
          reader.closing.removeEventListener('abort', stop);
          wake(stream);
        },
      );
    },
    async recheck(principalId) {
      for (const stream of streams) if (stream.principal.id === principalId) await checkCredentials(stream);
    },
    async keep(signal) {
      for (;;) {
        await clock.sleep(HEARTBEAT_MS, signal);
        for (const stream of streams) {
          await checkCredentials(stream);
          stream.heartbeatDue = true;
          wake(stream);
        }
      }
    },
    count: () => streams.size,
  };
}

/** Where to begin, with what has to be said about it. */
function begin(reader: Reader, feed: LiveFeed): Stream {
  const { seq, lost } = feed.begin(reader.after);
  const cursor = feed.idOf(seq);
  // With an id, so that a reader cut off before its first event comes back to this place.
  const hello = `retry: ${RETRY_MS}\n${message('hello', { cursor, ...feed.range() }, cursor)}`;
  const stream: Stream = {
    reader,
    principal: reader.principal,
    seq,
    heartbeatDue: false,
    ended: false,
    notices: [hello],
    wakeup: Promise.withResolvers(),
  };
  if (lost) stream.notices.push(reset(stream, feed, lost));
  return stream;
}

function reset(stream: Stream, feed: LiveFeed, reason: ResetReason): string {
  stream.seq = feed.newest();
  const cursor = feed.idOf(stream.seq);
  return message('reset', { reason, cursor, ...feed.range() }, cursor);
}

/** The next chunk, once there is one; undefined at the end. */
async function next(stream: Stream, feed: LiveFeed, clock: Clock): Promise<string | undefined> {
  for (;;) {
    const notice = stream.notices.shift();
    if (notice !== undefined) return notice;
    if (stream.ended) return undefined;
    const events = feed.after(stream.seq);
    const last = events.at(-1);
    if (last) {
      if (stream.seq < feed.keptAfter()) return reset(stream, feed, 'NOT_KEPT');
      stream.seq = last.seq;
      const { filter } = stream.reader;
      const visible = events.filter(
        (event) => event.text !== null && mayRead(stream.principal, event.type) && passes(event, filter),
      );
      if (visible.length > 0) return visible.map(({ text }) => text).join('');
      await new Promise((resolve) => setImmediate(resolve));
    } else if (stream.heartbeatDue) {
      stream.heartbeatDue = false;
      // With an id: a reader of few events comes back to here, and not to the last of them.
      return message('heartbeat', { at: new Date(clock.now()).toISOString() }, feed.idOf(stream.seq));
    } else {
      await stream.wakeup.promise;
    }
  }
}

/** Asks for a chunk only when the one before is taken. */
function readable(next: () => Promise<string | undefined>, close: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await next();
        if (chunk !== undefined) return controller.enqueue(encoder.encode(chunk));
        close();
        controller.close();
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}

/** Wakes the reader that waits for the next chunk. */
function wake(stream: Stream): void {
  stream.wakeup.resolve();
  stream.wakeup = Promise.withResolvers();
}

/** An event of ours rather than of the log; its name distinguishes it: those have none. */
function message(name: string, data: Record<string, unknown>, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

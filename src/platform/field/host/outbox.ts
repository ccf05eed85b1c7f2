/**
 * What a host says, on its way to the daemon. Reports: the latest per subject waits here, however many came. Events:
 * each stays until the daemon says it is durable; credits bound how many that can be, and the driver waits for one.
 * Log lines: the daemon writes them; what it does not take is counted.
 */
import {
  type Clock,
  DriverError,
  type DriverEvent,
  type DriverLog,
  type Plain,
  type StateReport,
} from '../../../../drivers/contract/driver.ts';
import type { Level, Log } from '../../log.ts';
import {
  EVENT_CREDITS,
  type HostMessage,
  isPlain,
  KIND_MAX,
  NAME_MAX,
  SUBJECTS_MAX,
  TEXT_MAX,
} from '../ipc.ts';

/** Between two rounds of reports: an operator's eye needs no more, and a flood costs the daemon next to nothing. */
const REPORT_PAUSE_MS = 20;
/** Callers of one link's `emit` that may wait for a credit. A driver that emits without awaiting meets it. */
const EMITTERS_WAITING_MAX = 1_024;

type Send = (message: HostMessage) => Promise<void>;

export interface Reports {
  report(linkId: string, report: StateReport): void;
  /** The link is down: what of it was not sent yet is of the past. */
  forget(linkId: string): void;
}

type Report = HostMessage & { type: 'report' };

/** Of one subject, for as long as the host lives. */
interface Place {
  unsent: Report | undefined;
}

export function openReports(send: Send, clock: Clock, log: DriverLog): Reports {
  // Subjects stay: a Map whose entries come and go has new tables all the time, each of which V8 keeps until a full collection, with
  // the reports in it, once the one before has grown old.
  const links = new Map<string, Map<string, Place>>();
  const complained = new Set<string>();
  let waiting: Place[] = [];
  let pumping = false;

  async function pump(): Promise<void> {
    pumping = true;
    while (waiting.length > 0) {
      // What the driver reports in the same turn belongs to the same round.
      await undefined;
      const round = waiting;
      waiting = [];
      for (const place of round) {
        const { unsent } = place;
        place.unsent = undefined;
        if (unsent) await send(unsent);
      }
      await clock.sleep(REPORT_PAUSE_MS);
    }
    pumping = false;
  }

  /** Once per link: a driver that does this does it again. */
  function complain(linkId: string, subject: string): void {
    if (complained.has(linkId)) return;
    complained.add(linkId);
    const reason = 'its state is not plain data within bounds, or there are too many subjects';
    log.error({ link: linkId, subject }, `a report was dropped: ${reason}`);
  }

  function placeOf(linkId: string, subject: string): Place | undefined {
    const places = links.get(linkId) ?? new Map<string, Place>();
    links.set(linkId, places);
    const place = places.get(subject) ?? { unsent: undefined };
    if (places.size >= SUBJECTS_MAX && !places.has(subject)) return undefined;
    places.set(subject, place);
    return place;
  }

  return {
    report(linkId, { subject, state }) {
      const isSound = isPlain(state) && isText(subject, NAME_MAX);
      const place = isSound ? placeOf(linkId, subject) : undefined;
      if (!place) return complain(linkId, String(subject).slice(0, NAME_MAX));
      if (!place.unsent) waiting.push(place);
      place.unsent = { type: 'report', linkId, subject, state };
      if (!pumping) void pump();
    },
    forget(linkId) {
      for (const place of links.get(linkId)?.values() ?? []) place.unsent = undefined;
    },
  };
}

interface Unacknowledged {
  message: HostMessage & { type: 'event' };
  refused: boolean;
  settle: () => void;
}

export interface Events {
  /** Resolves when the event is durable. */
  emit(linkId: string, event: DriverEvent, signal: AbortSignal): Promise<void>;
  durable(seq: number): void;
  refused(seq: number): void;
  /** Sends again, with the same id, what the daemon could not store. */
  sendRefused(): void;
}

export function openEvents(send: Send): Events {
  const unacknowledged = new Map<number, Unacknowledged>();
  const credits = new Map<string, Credits>();
  let lastSeq = 0;

  function known(seq: number): Unacknowledged {
    const entry = unacknowledged.get(seq);
    if (!entry) throw new Error(`there is no event ${seq} to answer`);
    return entry;
  }

  function again(isDue: (entry: Unacknowledged) => boolean): void {
    for (const entry of unacknowledged.values()) {
      if (!entry.refused || !isDue(entry)) continue;
      entry.refused = false;
      void send(entry.message);
    }
  }

  return {
    async emit(linkId, { id, kind, data }, signal) {
      if (!isPlain(data) || !isText(id, NAME_MAX) || !isText(kind, KIND_MAX)) {
        throw new TypeError('an event takes an id, a kind and plain data within bounds');
      }
      const own = credits.get(linkId) ?? openCredits();
      credits.set(linkId, own);
      await own.take(signal);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => reject(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      lastSeq += 1;
      const message = { type: 'event', linkId, seq: lastSeq, id, kind, data } as const;
      // The credit comes back with the daemon's answer even when the driver no longer waits for it.
      unacknowledged.set(lastSeq, {
        message,
        refused: false,
        settle() {
          own.giveBack();
          resolve();
        },
      });
      // What is refused is older: a lock that left and joined again must not be reported in the other order.
      again((entry) => entry.message.linkId === linkId);
      void send(message);
      return promise.finally(() => signal.removeEventListener('abort', abort));
    },
    durable(seq) {
      known(seq).settle();
      unacknowledged.delete(seq);
    },
    refused(seq) {
      known(seq).refused = true;
    },
    sendRefused: () => again(() => true),
  };
}

interface Credits {
  take(signal: AbortSignal): Promise<void>;
  giveBack(): void;
}

function openCredits(): Credits {
  const waiting: (() => void)[] = [];
  let left = EVENT_CREDITS;
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (left > 0) {
        left -= 1;
        return;
      }
      if (waiting.length >= EMITTERS_WAITING_MAX) {
        throw new DriverError(
          'BUSY',
          `${EMITTERS_WAITING_MAX} events wait already: await emit before the next`,
        );
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => {
        const place = waiting.indexOf(resolve);
        // It has its credit, and has only not run yet.
        if (place === -1) return;
        waiting.splice(place, 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      waiting.push(resolve);
      await promise.finally(() => signal.removeEventListener('abort', abort));
    },
    giveBack() {
      const next = waiting.shift();
      if (next) next();
      else left += 1;
    },
  };
}

function isText(value: unknown, max: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= max;
}

/** Lines handed over and not yet taken; a driver that logs in a loop meets it. */
const LINES_UNSENT_MAX = 256;

export function openHostLog(send: (message: HostMessage) => Promise<void>): Log {
  let unsent = 0;
  let dropped = 0;

  function write(level: Level, fields: Record<string, unknown>, message: string): void {
    if (unsent >= LINES_UNSENT_MAX) {
      dropped += 1;
      return;
    }
    const lost = dropped > 0 ? { droppedLines: dropped } : {};
    dropped = 0;
    unsent += 1;
    const line = { ...plainFields(fields), ...lost };
    void send({ type: 'log', level, fields: line, message: message.slice(0, TEXT_MAX) }).then(() => {
      unsent -= 1;
    });
  }

  function child(fixed: Record<string, unknown>): Log {
    const at = (level: Level) => (fields: Record<string, unknown>, message: string) =>
      write(level, { ...fixed, ...fields }, message);
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: (more) => child({ ...fixed, ...more }),
    };
  }

  return child({});
}

/**
 * An error becomes its code and stack, a DriverError its code and message (log.ts says why); anything else that cannot
 * travel becomes text.
 */
function plainFields(fields: Record<string, unknown>): Record<string, Plain> {
  const plain: Record<string, Plain> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined || key.length > 64 || key === '__proto__') continue;
    if (isPlain(value)) plain[key] = value;
    else plain[key] = (value instanceof Error ? describe(value) : String(value)).slice(0, TEXT_MAX);
  }
  return plain;
}

function describe(error: Error & { code?: unknown }): string {
  const text = error instanceof DriverError ? error.message : (error.stack ?? error.message);
  return `${error.code === undefined ? '' : `${error.code} `}${text}`;
}

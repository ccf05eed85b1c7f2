/** Grants the bus: to which order or poll next. Holds what waits; knows the time only from its caller. */
import { DriverError } from '../contract/driver.ts';
import { admitsOrder } from './circuit-breaker.ts';
import type { Exchange, Order, OrderClass, Poll } from './exchange.ts';
import type { Conversation } from './line.ts';
import type { Station } from './stations.ts';

/** An order that waits for its turn, or for another one. */
export interface QueuedOrder {
  readonly station: Station;
  readonly exchange: Exchange<unknown>;
  readonly order: Order;
  /** How often it was sent, and what came of it. */
  attempts: number;
  lastError: DriverError | undefined;
  /** Monotonic: its first attempt. */
  firstSentAt: number | undefined;
  /** The first of these settles it. */
  resolve(reply: unknown): void;
  reject(error: unknown): void;
  isSettled(): boolean;
}

/** Rejected with the signal's reason when that fires; the first to settle it has the say. */
export function newQueuedOrder(
  what: Pick<QueuedOrder, 'station' | 'exchange' | 'order'>,
  signal: AbortSignal,
  { resolve, reject }: Pick<QueuedOrder, 'resolve' | 'reject'>,
): QueuedOrder {
  let isSettled = false;
  function settle(call: () => void): void {
    if (isSettled) return;
    isSettled = true;
    signal.removeEventListener('abort', abort);
    call();
  }
  const queued: QueuedOrder = {
    ...what,
    attempts: 0,
    lastError: undefined,
    firstSentAt: undefined,
    resolve: (reply) => settle(() => resolve(reply)),
    reject: (error) => settle(() => reject(error)),
    isSettled: () => isSettled,
  };
  const abort = () => queued.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return queued;
}

export interface Polled {
  readonly station: Station;
  readonly poll: Poll;
  /** Monotonic. */
  dueAt: number;
}

export type Grant =
  | { kind: 'order'; queued: QueuedOrder }
  | { kind: 'poll'; polled: Polled }
  /** To no one before this monotonic time, which may be Infinity. */
  | { kind: 'idle'; until: number };

export interface Schedule {
  /** Why not, if not: BUSY when too many wait, DEVICE_OFFLINE when it would be in vain. */
  add(queued: QueuedOrder): DriverError | undefined;
  /** One that was sent and wants to be sent again: before all others of its class. */
  again(queued: QueuedOrder): void;
  remove(queued: QueuedOrder): void;
  startPoll(polled: Polled): void;
  stopPoll(polled: Polled): void;
  next(now: number): Grant;
  /** A command for another station could be sent now. */
  hasUrgent(station: Station, now: number): boolean;
  /** So long had a poll the wire. */
  polled(polled: Polled, conversation: Pick<Conversation, 'sentAt' | 'endedAt'>): void;
  /** Takes out all orders. */
  drain(): QueuedOrder[];
}

const QUEUE_MAX: Record<OrderClass, number> = {
  /** One for each relay at most. */
  off: Number.POSITIVE_INFINITY,
  /** A person waits for each of them: more than this is no one's wish. */
  command: 64,
  /** One for each relay at most. */
  check: Number.POSITIVE_INFINITY,
  /** A few devices' settings and a scan, which asks for sixteen addresses at once. */
  settings: 128,
};
/**
 * Then one poll that is due: inputs are seen also while doors are opened one after the other. To open one takes three: who is there, the
 * order, and what the relay shows.
 */
const COMMANDS_IN_A_ROW = 6;
/** Probes of dead stations come once per cycle of healthy polls, or so rarely where that cycle is long. */
const PROBE_SPACING_MS = 250;
/** Of the time of the wire, for all of them together, where there are healthy ones. */
const PROBE_SHARE = 0.1;

export function openSchedule(): Schedule {
  const queues: Record<OrderClass, QueuedOrder[]> = { off: [], command: [], check: [], settings: [] };
  const polls = new Set<Polled>();
  const probes = openRation(polls);
  let commandsInARow = 0;
  /** Since the last poll: settings and polls alternate, so that a scan leaves no station unread. */
  let settingsHadTheirTurn = true;

  const askable = (now: number, queue: QueuedOrder[]) => queue.find((queued) => askableAt(queued) <= now);
  const all = () => [...queues.off, ...queues.command, ...queues.check, ...queues.settings];

  function duePoll(now: number): Polled | undefined {
    const mayProbe = probes.admits(now) && !askable(now, [...queues.off, ...queues.command]);
    let due: Polled | undefined;
    for (const polled of polls) {
      if (probes.dueAt(polled) > now || (polled.station.breaker.kind === 'open' && !mayProbe)) continue;
      if (!due || probes.dueAt(polled) < probes.dueAt(due)) due = polled;
    }
    return due;
  }

  function take(queued: QueuedOrder): Grant {
    commandsInARow = queued.order.class === 'settings' ? 0 : commandsInARow + 1;
    if (queued.order.class === 'settings') settingsHadTheirTurn = true;
    remove(queues, queued);
    return { kind: 'order', queued };
  }

  function ask(polled: Polled, now: number): Grant {
    commandsInARow = 0;
    settingsHadTheirTurn = false;
    probes.asked(polled, now);
    return { kind: 'poll', polled };
  }

  return {
    add(queued) {
      const queue = queues[queued.order.class];
      if (queue.length >= QUEUE_MAX[queued.order.class]) {
        return new DriverError(
          'BUSY',
          `${queue.length} ${queued.order.class} orders wait for the bus already: try again in a second`,
        );
      }
      if (!admits(queued)) return offline(queued.station);
      queue.push(queued);
      return undefined;
    },
    again: (queued) => queues[queued.order.class].unshift(queued),
    remove: (queued) => remove(queues, queued),
    startPoll: (polled) => polls.add(polled),
    stopPoll(polled) {
      polls.delete(polled);
      probes.forget(polled);
    },
    next(now) {
      for (const queued of all()) {
        const reason = inVain(queued, now);
        if (!reason) continue;
        remove(queues, queued);
        queued.reject(reason);
      }
      const off = askable(now, queues.off);
      if (off) return take(off);
      const command = askable(now, queues.command) ?? askable(now, queues.check);
      if (command && commandsInARow < COMMANDS_IN_A_ROW) return take(command);
      const settings = askable(now, queues.settings);
      const due = duePoll(now);
      if (settings && !(due && settingsHadTheirTurn)) return take(settings);
      if (due) return ask(due, now);
      if (command) return take(command);
      const times = all().map((queued) => Math.min(askableAt(queued), queued.order.deadline));
      return { kind: 'idle', until: Math.min(...times, probes.nextDueAt()) };
    },
    hasUrgent: (other, now) =>
      [...queues.off, ...queues.command].some(
        (queued) => queued.station !== other && askableAt(queued) <= now && !inVain(queued, now),
      ),
    polled: probes.ended,
    drain: () => Object.values(queues).flatMap((queue) => queue.splice(0)),
  };
}

function remove(queues: Record<OrderClass, QueuedOrder[]>, queued: QueuedOrder): void {
  const queue = queues[queued.order.class];
  const index = queue.indexOf(queued);
  if (index >= 0) queue.splice(index, 1);
}

function askableAt({ station, order }: QueuedOrder): number {
  return order.class === 'off' ? station.offAt : station.askableAt;
}

/** Why it is not worth sending any more. What was sent once keeps the error that says so. */
function inVain(queued: QueuedOrder, now: number): DriverError | undefined {
  const { station, order, lastError } = queued;
  if (now >= order.deadline) {
    return lastError ?? new DriverError('DEADLINE_PASSED', 'the bus had no turn for it before its deadline');
  }
  return admits(queued) ? undefined : (lastError ?? offline(station));
}

function admits({ station, order }: QueuedOrder): boolean {
  return order.insists === true || admitsOrder(station.breaker);
}

function offline({ address }: Station): DriverError {
  return new DriverError(
    'DEVICE_OFFLINE',
    `device ${address} has left the last questions unanswered; nothing was sent`,
  );
}

/** How often the bus looks after the dead: at most one probe in each cycle of the healthy ones. */
function openRation(polls: ReadonlySet<Polled>) {
  const askedSinceProbe = new Set<Polled>();
  let probedAt = Number.NEGATIVE_INFINITY;
  /** Probes had their share of the wire until then. */
  let restsUntil = Number.NEGATIVE_INFINITY;

  function dueAt({ station, dueAt: due }: Polled): number {
    return Math.max(station.breaker.kind === 'open' ? station.breaker.probeAt : due, station.askableAt);
  }

  const healthy = () => [...polls].filter(({ station }) => station.breaker.kind === 'closed');
  const cycleIsOver = () => healthy().every((polled) => askedSinceProbe.has(polled));

  return {
    dueAt,
    admits(now: number): boolean {
      if (now < restsUntil) return false;
      if (cycleIsOver()) return true;
      // As nextDueAt has it: a difference may be rounded otherwise than a sum, and the bus would wait no time for ever.
      return now >= probedAt + PROBE_SPACING_MS && healthy().every((polled) => dueAt(polled) > now);
    },
    asked(polled: Polled, now: number): void {
      if (polled.station.breaker.kind === 'closed') {
        askedSinceProbe.add(polled);
        return;
      }
      askedSinceProbe.clear();
      probedAt = now;
    },
    ended({ station }: Polled, { sentAt, endedAt }: Pick<Conversation, 'sentAt' | 'endedAt'>): void {
      if (station.breaker.kind === 'closed' || healthy().length === 0) return;
      restsUntil = endedAt + (endedAt - sentAt) * (1 / PROBE_SHARE - 1);
    },
    forget: (polled: Polled) => askedSinceProbe.delete(polled),
    nextDueAt(): number {
      const earliest = cycleIsOver() ? Number.NEGATIVE_INFINITY : probedAt + PROBE_SPACING_MS;
      const earliestProbe = Math.max(restsUntil, earliest);
      const times = [...polls].map((polled) =>
        polled.station.breaker.kind === 'closed' ? dueAt(polled) : Math.max(dueAt(polled), earliestProbe),
      );
      return Math.min(...times, Number.POSITIVE_INFINITY);
    },
  };
}

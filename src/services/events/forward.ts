/**
 * Sends the log of events to one sink, each encoder's in order, with a go-back-N window of its own:
 *
 *   event rows ─ queue ─► window ─ publish ─► service
 *                          ▲                    │
 *   cursor ◄─ batches ─ settled beginning ◄─ PUBACK
 *
 * One run is one connection; it throws when the connection ends, and the supervisor runs it again. Whatever was not
 * acknowledged is sent again, in the same order and with the same ids, so that first arrivals are in order.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import { withReplayed } from './cloud-event.ts';
import type { EventLog } from './events.ts';
import { FAILURES_BEFORE_ALONE, type HeadFailure, type Outbox, openOutbox } from './outbox.ts';
import { type Next, openQueue, type Queue } from './queue.ts';
import type { Sink } from './sink.ts';
import type { EventRow } from './table.ts';
import type { Answer, Connection, Message, Transport } from './transport.ts';
import { ACKNOWLEDGEMENT_DEADLINE_MS, openWindow, type Sent, type Window } from './window.ts';

/** The cursor goes to the disk at most this often: losing the last step only repeats what it covers. */
const SAVE_INTERVAL_MS = 1_000;
/**
 * So often where it has come few events further: a commit for each step of a key that a desk writes would be more than half as
 * many again as the steps have themselves.
 */
const SAVE_FEW_INTERVAL_MS = 30_000;
const FEW_EVENTS = 64;
/** How often the acknowledgement deadline is looked at. */
const WATCH_INTERVAL_MS = 1_000;
/** Events that leave in one turn of the event loop, a millisecond or two: what happens meanwhile is stored in the next one. */
const SLICE_EVENTS = 64;
/** Of the window for live events alone: behind a full window they would wait for an acknowledgement of the backlog. */
const LIVE_SHARE = 1 / 4;
/** An event at the end of its age still has time to be delivered. */
const EXPIRY_LEAST_S = 60;
export interface ForwarderOptions {
  database: Database;
  events: Pick<EventLog, 'listen' | 'wake'>;
  sink: Sink;
  transport: Transport;
  /** Most messages in flight; the service may want fewer. */
  window: number;
  clock: Clock;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  log: Log;
}

export interface Forwarder {
  /** One connection: runs until it ends, then throws. */
  run(signal: AbortSignal): Promise<never>;
}

/** The state of one connection. */
interface Delivery extends Omit<ForwarderOptions, 'window'> {
  connection: Connection;
  outbox: Outbox;
  window: Window;
  /** Most messages in flight. */
  limit: number;
  queue: Queue;
  /** What was recorded up to here waited for the connection. */
  oldThrough: number;
  /** Monotonic milliseconds of the last answer, and of the last save. */
  heardAt: number;
  savedAt: number;
  /** While the cursor is on its way to the disk. Events go on leaving; two at once would count what is acknowledged twice. */
  saving: Promise<void> | undefined;
  saveFault: { error: unknown } | undefined;
  /** Whether anything was acknowledged: else a hang-up says nothing about the message in flight. */
  heard: boolean;
  /** A repeat of what was delivered before, whose answer is waited for before anything else is sent. */
  witness: { row: EventRow; sentAt: number | undefined } | undefined;
  /** A refusal that ends the connection. */
  refusal: { sent: Sent; answer: Answer } | undefined;
  notify: () => void;
}

/** Why a connection ended, and whether the oldest message in flight may be the reason. */
class Broken extends Error {
  readonly headAtFault: boolean;
  /** The error is about the network or the service: a stack trace of this program would not help. */
  override stack = '';
  constructor(cause: Error, headAtFault: boolean) {
    super(cause.message);
    this.headAtFault = headAtFault;
  }
}

export function openForwarder(options: ForwarderOptions): Forwarder {
  const { database, events, sink, transport, time, log } = options;
  const { link } = sink;
  const outbox = openOutbox({ database, sink, wake: events.wake, time, log });
  return {
    async run(signal) {
      const notifier = openNotifier();
      try {
        using connection = await transport.connect(notifier.notify, signal);
        await outbox.opened();
        return await forward(openDelivery(options, outbox, connection, notifier.notify), notifier, signal);
      } catch (error) {
        if (!signal.aborted) link.lastError = error instanceof Error ? error.message : String(error);
        throw error;
      } finally {
        link.connectedSince = null;
        link.heldThrough = 0;
        // What is acknowledged is on the disk, or is sent again.
        link.ahead.clear();
      }
    },
  };
}

function openDelivery(options: ForwarderOptions, outbox: Outbox, connection: Connection, notify: () => void) {
  const { clock, window, sink, log } = options;
  const now = clock.monotonic();
  const delivery: Delivery = {
    ...options,
    connection,
    outbox,
    window: openWindow(),
    limit: Math.min(window, connection.limit),
    queue: openQueue(sink.table, sink.link, outbox.acked),
    oldThrough: sink.table.newest(),
    heardAt: now,
    savedAt: now,
    saving: undefined,
    saveFault: undefined,
    heard: false,
    witness: witnessOf(outbox, sink),
    refusal: undefined,
    notify,
  };
  sink.link.connectedSince = clock.now();
  log.info({ sink: sink.bounds.name, window: delivery.limit }, `connected to ${sink.bounds.name}`);
  return delivery;
}

/**
 * A service that crashes in a loop hangs up on whatever comes first. So every other connection that begins with a repeat
 * begins with a message the service has taken before: only who takes that one and then hangs up means the next. On the
 * connections in between the next goes first, for a service that takes one message before each crash.
 */
function witnessOf(outbox: Outbox, { table, link }: Sink): Delivery['witness'] {
  const [head] = table.page(outbox.acked, 1);
  const isRepeat = head !== undefined && head.seq <= link.sentThrough;
  const row = outbox.wantsWitness(isRepeat) ? table.delivered(outbox.acked) : undefined;
  return row && { row, sentAt: undefined };
}

async function forward(delivery: Delivery, notifier: Notifier, signal: AbortSignal): Promise<never> {
  const { events, clock, outbox, window } = delivery;
  const over = new AbortController();
  signal.addEventListener('abort', notifier.notify, { signal: over.signal });
  using _ = events.listen(notifier.notifyAtOnce);
  const watch = notifyEvery(WATCH_INTERVAL_MS, notifier, clock, over.signal);
  try {
    for (;;) {
      signal.throwIfAborted();
      const notified = notifier.notified();
      await step(delivery);
      await notified;
    }
  } catch (error) {
    await delivery.saving;
    settle(delivery);
    await outbox.ended(headFailure(window, error));
    throw error;
  } finally {
    over.abort();
    await watch;
  }
}

/** What the oldest message has to do with the end: it was refused, or it was in flight and may be the reason. */
function headFailure({ sent }: Window, error: unknown): HeadFailure | undefined {
  const head = sent[0];
  if (!head) return undefined;
  const atFault = error instanceof Broken && error.headAtFault && head.state === 'in flight';
  const failures = head.failures + (atFault ? 1 : 0);
  return { row: head.row, failures, explanation: error instanceof Error ? error.message : String(error) };
}

/** Everything that can be done now. Throws when the connection has ended or must end. */
async function step(delivery: Delivery): Promise<void> {
  const { connection, window, clock } = delivery;
  settle(delivery);
  const loss = connection.loss();
  if (loss) throw new Broken(loss.error, loss.unexplained && delivery.heard);
  if (delivery.saveFault) throw delivery.saveFault.error;
  if (delivery.refusal) throw broken(delivery.refusal, window);
  const witnessAt = delivery.witness?.sentAt ?? Number.POSITIVE_INFINITY;
  const isWitnessOverdue = clock.monotonic() - witnessAt >= ACKNOWLEDGEMENT_DEADLINE_MS;
  if (isWitnessOverdue || window.overdue(clock.monotonic(), delivery.heardAt)) {
    const silence = `no acknowledgement for ${ACKNOWLEDGEMENT_DEADLINE_MS} ms`;
    throw new Broken(new Error(silence), window.overtaken());
  }
  if (delivery.witness) sendWitness(delivery, delivery.witness);
  else {
    await settleRefused(delivery);
    await fill(delivery);
    settle(delivery);
  }
  const isFew = delivery.sink.link.unsaved.events < FEW_EVENTS;
  const saveAt = delivery.savedAt + (isFew ? SAVE_FEW_INTERVAL_MS : SAVE_INTERVAL_MS);
  if (!delivery.saving && clock.monotonic() >= saveAt) {
    delivery.savedAt = clock.monotonic();
    delivery.saving = save(delivery);
  }
}

async function save(delivery: Delivery): Promise<void> {
  try {
    await delivery.outbox.save();
  } catch (error) {
    delivery.saveFault = { error };
    delivery.notify();
  }
  delivery.saving = undefined;
}

function settle({ outbox, window, queue }: Delivery): void {
  outbox.settle(window.takeSettled());
  // Behind the last of the backlog there may be events that have overtaken it.
  if (window.sent.length === 0) outbox.acked = queue.position();
}

function broken({ sent, answer }: { sent: Sent; answer: Answer }, window: Window): Broken {
  const error = new Error(`the service refused an event (${answer.reason})`);
  return new Broken(error, answer.verdict === 'failed' && window.sent[0] === sent);
}

/** Sends what was refused again, at last alone; gives up what fails even then. */
async function settleRefused(delivery: Delivery): Promise<void> {
  const { window, outbox } = delivery;
  const refused = window.sent.filter(({ state }) => state === 'refused');
  for (const message of refused) {
    if (message.failures < FAILURES_BEFORE_ALONE)
      publish(delivery, message, packetOf(delivery, message.row, true));
  }
  const suspect = refused.find(({ failures }) => failures >= FAILURES_BEFORE_ALONE);
  if (!suspect || window.inFlight() > 0) return;
  const { row, failures, reason } = suspect;
  if (failures === FAILURES_BEFORE_ALONE) return publish(delivery, suspect, packetOf(delivery, row, true));
  const refusal = `the service refuses events of ${row.encoderId} (${reason})`;
  if (!outbox.mayBury()) throw new Error(`${refusal}: check the rights of this client there`);
  await outbox.bury(row, 'REJECTED', refusal);
  suspect.state = 'buried';
  delivery.notify();
}

function sendWitness(delivery: Delivery, witness: NonNullable<Delivery['witness']>): void {
  if (witness.sentAt !== undefined) return;
  const { connection, clock } = delivery;
  witness.sentAt = clock.monotonic();
  connection.publish(packetOf(delivery, witness.row, true), ({ verdict }) => {
    delivery.heardAt = clock.monotonic();
    delivery.heard ||= verdict === 'taken';
    delivery.witness = undefined;
    delivery.notify();
  });
}

async function fill(delivery: Delivery): Promise<void> {
  const { connection, outbox, window, clock, queue } = delivery;
  queue.look();
  for (let sent = 0; ; sent += 1) {
    const next = queue.next();
    if (!next || window.sent.length >= limit(delivery, next)) return;
    if (sent === SLICE_EVENTS) return delivery.notify();
    queue.take();
    const { row, isAhead } = next;
    const message: Sent = {
      row,
      isAhead,
      sentAt: clock.monotonic(),
      state: 'in flight',
      failures: outbox.failures(row.seq),
      reason: '',
    };
    const packet = packetOf(delivery, row, row.seq <= delivery.oldThrough);
    const bytes = connection.bytes(packet);
    if (bytes > connection.maximumBytes) {
      const limits = `${bytes} bytes; the service takes ${connection.maximumBytes}`;
      if (!outbox.mayBury()) throw new Error(`events are too large: ${limits}`);
      await outbox.bury(row, 'TOO_LARGE', limits);
      message.state = 'buried';
      delivery.notify();
    } else {
      publish(delivery, message, packet);
    }
    window.add(message);
  }
}

/** Beside a suspect nothing else may be in flight, or no one would know which of them broke the connection. */
function limit({ window, outbox, connection, heard, limit: most }: Delivery, { row, isAhead }: Next): number {
  const suspected = window.sent.some(
    ({ failures, state }) =>
      failures >= FAILURES_BEFORE_ALONE && (state === 'in flight' || state === 'refused'),
  );
  const isSuspect = row.seq <= outbox.cautionThrough() || outbox.failures(row.seq) >= FAILURES_BEFORE_ALONE;
  if (suspected || isSuspect || (connection.startsAlone && !heard)) return 1;
  return isAhead ? most : most - Math.floor(most * LIVE_SHARE);
}

function publish(delivery: Delivery, message: Sent, packet: Message): void {
  const { connection, clock, sink, outbox } = delivery;
  message.sentAt = clock.monotonic();
  message.state = 'in flight';
  connection.publish(packet, (answer) => {
    delivery.heardAt = clock.monotonic();
    message.reason = answer.reason;
    if (answer.verdict === 'taken') {
      message.state = 'acknowledged';
      delivery.heard = true;
      sink.link.lastError = null;
      outbox.acknowledged();
    } else if (answer.verdict === 'refused') {
      message.state = 'refused';
      message.failures += 1;
    } else {
      delivery.refusal ??= { sent: message, answer };
    }
    delivery.notify();
  });
  const { link } = sink;
  if (message.isAhead) link.aheadThrough = Math.max(link.aheadThrough, message.row.seq);
  else link.sentThrough = Math.max(link.sentThrough, message.row.seq);
}

function packetOf({ time, sink }: Delivery, row: EventRow, isReplayed: boolean): Message {
  // Between two times of which one is not trusted there is no age.
  const age = time.synchronised() && row.clockSynchronised === 1 ? time.now() - row.recordedAt : 0;
  return {
    row,
    body: withReplayed(row.body, isReplayed),
    expirySeconds: Math.max(EXPIRY_LEAST_S, Math.floor((sink.bounds.maxAge - Math.max(0, age)) / 1_000)),
  };
}

interface Notifier {
  /** Many calls in one turn of the event loop are one: a chunk of acknowledgements is one step. */
  notify(): void;
  /** For what was just committed: the next commit would keep it waiting for the disk. */
  notifyAtOnce(): void;
  /** Resolves at the first notification after the call. */
  notified(): Promise<void>;
}

function openNotifier(): Notifier {
  let next = Promise.withResolvers<void>();
  let isScheduled = false;
  function notifyAtOnce(): void {
    next.resolve();
    next = Promise.withResolvers();
  }
  return {
    notify() {
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(() => {
        isScheduled = false;
        notifyAtOnce();
      });
    },
    notifyAtOnce,
    notified: () => next.promise,
  };
}

async function notifyEvery(
  intervalMs: number,
  notifier: Notifier,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(intervalMs, signal).catch(() => undefined);
    notifier.notify();
  }
}

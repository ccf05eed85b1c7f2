/**
 * The part of the encoder that writes cards: jobs in, reports out, by the nine rules of docs/encoder-protocol.md. It
 * knows no network; it goes on while the link is away.
 */
import type { Card, CardKind, Cards } from './cards.ts';
import type { Moment, Timings } from './commands.ts';
import {
  type Entry,
  type EntryError,
  type EntryStatus,
  isAhead,
  isTerminal,
  type Journal,
} from './journal.ts';
import type { EncoderClock } from './time.ts';

export interface WriteMessage {
  epoch: number;
  jobId: string;
  requestId: string;
  ttlMs: number;
  data: { keyId: string; blocks: string[] }[];
}

export interface Writer {
  /** A new write or a repeated one; answers whether it was repeated. */
  write(message: WriteMessage): boolean;
  /** Answers whether the job is known. */
  cancel(jobId: string): boolean;
  /** Writes cards until the signal fires. */
  run(signal: AbortSignal): Promise<never>;
}

export interface WriterOptions {
  journal: Journal;
  cards: Cards;
  clock: EncoderClock;
  timings: Timings;
  /** Why nothing can be written now; undefined when it can. */
  obstacle(): EntryError | undefined;
  /** A status was journaled and may be sent. */
  reported(jobId: string, entry: Entry): void;
  /** Called around every step, for scripted faults. May not return. */
  moment(moment: Moment): void;
}

/** A job in work: what the journal does not keep. */
interface OpenJob {
  jobId: string;
  /** By keyId. */
  blocks: Map<string, string[]>;
  /** Monotonic milliseconds. */
  deadline: number;
  cancelled: AbortController;
}

const CARD_ERRORS: Record<Exclude<CardKind, 'blank'>, EntryError> = {
  incompatible: { code: 'CARD_INCOMPATIBLE', message: 'not a card of this site' },
  damaged: { code: 'CARD_DAMAGED' },
  locked: { code: 'CARD_LOCKED' },
  unverifiable: { code: 'VERIFY_FAILED' },
};
const CANCELLED: EntryError = { code: 'CANCELLED' };
const EXPIRED: EntryError = { code: 'EXPIRED' };
const NO_CARD: EntryError = { code: 'NO_CARD', message: 'no card was put down in time' };
const CARD_REMOVED: EntryError = { code: 'CARD_REMOVED' };
const INTERRUPTED: EntryError = { code: 'INTERNAL', message: 'restarted while writing' };

export function openWriter(options: WriterOptions): Writer {
  const { journal, clock } = options;
  const open = new Map<string, OpenJob>();
  let more = Promise.withResolvers<void>();

  /** The first entry, in order, that has no outcome and whose blocks are here. */
  function next(): { job: OpenJob; entry: Entry } | undefined {
    for (const job of open.values()) {
      const entry = journal
        .job(job.jobId)
        ?.entries.find(({ keyId, status }) => !isTerminal(status) && job.blocks.has(keyId));
      if (entry) return { job, entry };
      open.delete(job.jobId);
    }
    return undefined;
  }

  return {
    write({ jobId, ttlMs, data }) {
      const repeated = journal.job(jobId) !== undefined;
      const keyIds = data.map(({ keyId }) => keyId);
      if (!repeated) journal.addJob(jobId, keyIds);
      const job = open.get(jobId) ?? newJob(jobId);
      job.deadline = clock.monotonic() + ttlMs;
      for (const { keyId, blocks } of data) job.blocks.set(keyId, blocks);
      open.set(jobId, job);
      more.resolve();
      return repeated;
    },
    cancel(jobId) {
      const job = journal.job(jobId);
      if (!job) return false;
      const inWork = open.get(jobId);
      inWork?.cancelled.abort();
      // After a restart the blocks are gone, but what has no outcome can still be cancelled.
      if (!inWork) for (const entry of job.entries) advance(options, jobId, entry, 'failed', CANCELLED);
      return true;
    },
    async run(signal) {
      settleInterrupted(options);
      for (;;) {
        signal.throwIfAborted();
        const work = next();
        if (work) {
          await serve(options, work.job, work.entry, signal);
          continue;
        }
        more = Promise.withResolvers<void>();
        await untilSignal(more.promise, signal);
      }
    },
  };
}

function newJob(jobId: string): OpenJob {
  return { jobId, blocks: new Map(), deadline: 0, cancelled: new AbortController() };
}

/** Journals and reports a status, unless the entry is already further. */
function advance(
  desk: WriterOptions,
  jobId: string,
  entry: Entry,
  status: EntryStatus,
  error?: EntryError,
): void {
  if (!isAhead(status, entry.status)) return;
  desk.moment({ status, when: 'before' });
  desk.journal.report('progress', { jobId, keyId: entry.keyId, status, ...(error && { error }) });
  desk.moment({ status, when: 'after' });
  desk.reported(jobId, entry);
}

/**
 * Rule 3: no one knows what is on a card that was being written when the power went. What lies in the reader may hold a
 * key, and a lost journal would not show it: the clerk has to take it away, whatever it is.
 */
function settleInterrupted(desk: WriterOptions): void {
  const lying = desk.cards.inReader();
  if (lying) desk.cards.remove(lying);
  for (const job of desk.journal.jobs()) {
    for (const entry of job.entries.filter(({ status }) => status === 'writing')) {
      advance(desk, job.jobId, entry, 'unknown', INTERRUPTED);
    }
  }
}

async function serve(desk: WriterOptions, job: OpenJob, entry: Entry, signal: AbortSignal): Promise<void> {
  const { clock, timings, cards } = desk;
  const report = (status: EntryStatus, error?: EntryError) => advance(desk, job.jobId, entry, status, error);
  const obstacle = whyNot(desk, job);
  if (obstacle) return report('failed', obstacle);
  report('started');
  await clock.sleep(timings.startMs, signal);
  report('cardRequested');
  const card = await awaitCard(desk, job, signal);
  if ('code' in card) return report('failed', card);
  // Rule 6: the card in hand is finished, whatever the deadline or a cancel says.
  report('cardDetected');
  await clock.sleep(timings.detectMs, signal);
  const damage = await writeCard(desk, job, entry, card, signal);
  if (damage) report('failed', damage);
  else report('written');
  cards.remove(card);
}

function whyNot(desk: WriterOptions, job: OpenJob): EntryError | undefined {
  if (job.cancelled.signal.aborted) return CANCELLED;
  if (desk.clock.monotonic() >= job.deadline) return EXPIRED;
  return desk.obstacle();
}

async function writeCard(
  desk: WriterOptions,
  job: OpenJob,
  entry: Entry,
  card: Card,
  signal: AbortSignal,
): Promise<EntryError | undefined> {
  const { cards, clock, timings } = desk;
  if (card.removedDuring === 'cardDetected') return CARD_REMOVED;
  if (card.kind !== 'blank' && card.kind !== 'unverifiable') return CARD_ERRORS[card.kind];
  advance(desk, job.jobId, entry, 'writing');
  cards.beginWrite(card, job.jobId, entry.keyId);
  await clock.sleep(timings.writeMs, signal);
  if (card.removedDuring === 'writing') return CARD_REMOVED;
  if (card.kind === 'unverifiable') return CARD_ERRORS.unverifiable;
  cards.endWrite(card, job.jobId, entry.keyId, job.blocks.get(entry.keyId) ?? []);
  return undefined;
}

/** The card, or why there will be none. */
async function awaitCard(desk: WriterOptions, job: OpenJob, signal: AbortSignal): Promise<Card | EntryError> {
  const { cards, clock, timings } = desk;
  const timeout = new AbortController();
  const wait = AbortSignal.any([signal, job.cancelled.signal, timeout.signal]);
  const patience = Math.min(timings.cardTimeoutMs, job.deadline - clock.monotonic());
  const timer = clock.sleep(patience, wait).then(
    () => timeout.abort(),
    () => undefined,
  );
  try {
    await clock.sleep(timings.placeMs, wait);
    for (;;) {
      wait.throwIfAborted();
      const card = cards.take();
      if (card) return card;
      await cards.arrival(wait);
    }
  } catch (error) {
    if (signal.aborted || !wait.aborted) throw error;
    if (job.cancelled.signal.aborted) return CANCELLED;
    return clock.monotonic() >= job.deadline ? EXPIRED : NO_CARD;
  } finally {
    timeout.abort();
    await timer;
  }
}

function untilSignal(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([promise, stopped]).finally(() => signal.removeEventListener('abort', abort));
}

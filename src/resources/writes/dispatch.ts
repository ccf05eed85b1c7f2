/**
 * When what is sent: one loop over the encoders that have unfinished requests. For each it ends what is overdue, takes
 * the next request when the one before is finished, and sends. "Sent" is committed before anything leaves (Rules 4), and
 * what leaves is read from what is committed; a lane knows what was sent last, so nothing is sent twice at a time.
 *
 * What is kept here is lost with the process and may be: deadlines begin again from what the wall clock says remains
 * (never more than the whole), and a restarted gateway has no connection that anything was sent on.
 */
import type { DownMessages } from '../../../drivers/encoder/messages.ts';
import type { WriteContext } from './context.ts';
import type { Ledger } from './ledger.ts';
import type { RequestRow } from './table.ts';

/** Rules 4: a message that no up/job has answered is repeated. */
const REPEAT_AFTER_MS = 5_000;
/** Rules 6: how long after its deadline a sent job may still be reported on. */
const GRACE_MS = 60_000;
/** Rules 1 allow a requestId again "months later"; until then a repeat is known. */
const KEPT_MS = 30 * 86_400_000;
const FORGET_EVERY_MS = 3_600_000;
/** Requests forgotten in one commit: a few milliseconds of it. */
const FORGET_BATCH = 500;

/** The last message of the present connection. */
interface Sent {
  jobId: string;
  channel: 'write' | 'cancel';
  answered: boolean;
  /** Monotonic; infinite while the link still holds the message, so that a slow link collects no repeats. */
  repeatAt: number;
}

/** An encoder with unfinished requests. Times are monotonic milliseconds. */
interface Lane {
  encoderId: string;
  /** By jobId. */
  deadlines: Map<string, number>;
  sent: Sent | null;
  /** When the loop must look here next. */
  dueAt: number;
}

/** The context that a job's key data is sealed in. */
export const sealContext = (jobId: string, keyId: string): string => `${jobId}/${keyId}`;

export class Dispatch {
  readonly #context: WriteContext;
  readonly #ledger: Ledger;
  readonly #lanes = new Map<string, Lane>();
  /** Monotonic; when old requests were last forgotten. */
  #forgotAt: number;
  /** Ends the loop's sleep. */
  #wake: () => void = () => {};

  constructor(context: WriteContext, ledger: Ledger) {
    this.#context = context;
    this.#ledger = ledger;
    this.#forgotAt = context.clock.monotonic();
    for (const { encoder_id } of context.table.encodersWithOpen.all()) {
      this.#laneOf(encoder_id);
      this.look(encoder_id);
    }
  }

  /** After the commit: there is a new request. If that commit took it (advance), it waits for no other. */
  accepted(encoderId: string): void {
    const lane = this.#laneOf(encoderId);
    const open = this.#context.table.open.all(encoderId);
    for (const request of open) this.#deadline(lane, request);
    this.#publish(lane, open[0]);
    this.look(encoderId);
  }

  /** After the commit: something changed that may let the encoder go on. */
  look(encoderId: string): void {
    const lane = this.#lanes.get(encoderId);
    if (!lane) return;
    lane.dueAt = -Infinity;
    this.#wake();
  }

  /** Nothing was sent on this connection yet. */
  connectionIsFresh(encoderId: string): void {
    const lane = this.#lanes.get(encoderId);
    if (lane) lane.sent = null;
  }

  /**
   * The encoder holds the job, so it need not be sent again on this connection. Called inside the commit that stores
   * up/job: should that fail, the encoder says it again.
   */
  answered(encoderId: string, jobId: string): void {
    const sent = this.#lanes.get(encoderId)?.sent;
    if (sent?.jobId === jobId) sent.answered = true;
  }

  /** Runs until the signal fires and throws its reason, or throws when the storage fails; then it may be run again. */
  async run(signal: AbortSignal): Promise<never> {
    const { clock } = this.#context;
    for (;;) {
      signal.throwIfAborted();
      const now = clock.monotonic();
      const due = [...this.#lanes.values()].filter((lane) => lane.dueAt <= now);
      const results = await Promise.allSettled(due.map((lane) => this.#serve(lane)));
      const failure = results.find((result) => result.status === 'rejected');
      if (failure) throw failure.reason;
      const forgetAt = () => this.#forgotAt + FORGET_EVERY_MS;
      if (now >= forgetAt()) await this.#forgetOld();
      const dueAt = [...this.#lanes.values()].map((lane) => lane.dueAt);
      await this.#sleepUntil(Math.min(forgetAt(), ...dueAt), signal);
    }
  }

  async #serve(lane: Lane): Promise<void> {
    // Set before the commit, so that what happens meanwhile can ask for another look.
    lane.dueAt = Infinity;
    try {
      const hasNews = await this.#context.database.commit(() => this.advance(lane.encoderId));
      if (hasNews) this.#context.events.wake();
      const open = this.#context.table.open.all(lane.encoderId);
      this.#publish(lane, open[0]);
      this.#setDueAt(lane, open);
    } catch (error) {
      lane.dueAt = -Infinity;
      throw error;
    }
  }

  /**
   * Inside a commit: ends what is overdue and takes the next request, which counts as sent from now on. Returns whether
   * anything ended. In the commit that accepts a request it saves the encoder the wait for a commit of its own.
   */
  advance(encoderId: string): boolean {
    const { table, clock } = this.#context;
    const lane = this.#laneOf(encoderId);
    const now = clock.monotonic();
    let hasEnded = false;
    for (const request of table.open.all(encoderId)) {
      if (now < this.#endsAt(lane, request)) continue;
      this.#ledger.apply(request, { type: request.sent_journal === null ? 'deadline' : 'graceOver' });
      hasEnded = true;
    }
    return this.#takeNext(encoderId) || hasEnded;
  }

  /** Inside the commit: the first request is sent next, if it can be. Returns whether one ended because it cannot. */
  #takeNext(encoderId: string): boolean {
    const { table, encoders, connections } = this.#context;
    const journal = encoders.journal(encoderId);
    if (!connections.connected(encoderId) || encoders.upgrading(encoderId) || journal === null) return false;
    let hasEnded = false;
    for (const request of table.open.all(encoderId)) {
      if (request.sent_journal !== null) break;
      const isReadable = this.#unsealed(request) !== undefined;
      this.#ledger.apply(request, isReadable ? { type: 'sent', journal } : { type: 'unreadable' });
      if (isReadable) break;
      hasEnded = true;
    }
    return hasEnded;
  }

  #laneOf(encoderId: string): Lane {
    const lane = this.#lanes.get(encoderId) ?? {
      encoderId,
      deadlines: new Map(),
      sent: null,
      dueAt: Infinity,
    };
    this.#lanes.set(encoderId, lane);
    return lane;
  }

  #publish(lane: Lane, request: RequestRow | undefined): void {
    const { encoders, connections, clock, log } = this.#context;
    const { encoderId } = lane;
    // A journal that is not the one the job went to ends the job when its birth is stored; until then nothing is sent.
    const isSendable =
      request !== undefined &&
      request.sent_journal !== null &&
      request.sent_journal === encoders.journal(encoderId) &&
      connections.connected(encoderId);
    if (!isSendable) {
      lane.sent = null;
      return;
    }
    const channel = request.cancel_requested_at === null ? 'write' : 'cancel';
    const { sent } = lane;
    const isSame = sent?.jobId === request.job_id && sent.channel === channel;
    if (isSame && (sent.answered || clock.monotonic() < sent.repeatAt)) return;
    const sending: Sent = { jobId: request.job_id, channel, answered: false, repeatAt: Infinity };
    lane.sent = sending;
    const handedOver = () => {
      sending.repeatAt = clock.monotonic() + REPEAT_AFTER_MS;
      if (lane.sent === sending) this.look(encoderId);
    };
    this.#send(lane, request, channel).then(handedOver, (error) => {
      log.debug({ encoderId, jobId: request.job_id, channel, error: String(error) }, 'not sent');
      handedOver();
    });
  }

  async #send(lane: Lane, request: RequestRow, channel: 'write' | 'cancel'): Promise<void> {
    const { connections, epoch, clock } = this.#context;
    const jobId = request.job_id;
    if (channel === 'cancel') return connections.send(lane.encoderId, 'cancel', { epoch, jobId });
    const data = this.#unsealed(request);
    // Sent before the vault's key was replaced: what the encoder still reports counts, the deadline settles the rest.
    if (!data) return;
    const remaining = this.#deadline(lane, request) - clock.monotonic();
    return connections.send(lane.encoderId, 'write', {
      epoch,
      jobId,
      requestId: request.request_id,
      ttlMs: Math.max(0, Math.ceil(remaining)),
      ...(request.description === null ? {} : { description: request.description }),
      data,
    });
  }

  /** The entries without an outcome; undefined when the vault's key is not the one that sealed them. */
  #unsealed({ job_id: jobId }: RequestRow): DownMessages['write']['data'] | undefined {
    const { table, vault } = this.#context;
    try {
      return table.sealed.all(jobId).map(({ key_id: keyId, sealed_blocks }) => ({
        keyId,
        blocks: JSON.parse(vault.open(sealed_blocks, sealContext(jobId, keyId)).toString()),
      }));
    } catch {
      return undefined;
    }
  }

  #setDueAt(lane: Lane, open: RequestRow[]): void {
    if (open.length === 0) {
      this.#lanes.delete(lane.encoderId);
      return;
    }
    const repeatAt = lane.sent && !lane.sent.answered ? lane.sent.repeatAt : Infinity;
    lane.dueAt = Math.min(lane.dueAt, repeatAt, ...open.map((request) => this.#endsAt(lane, request)));
    const isOpen = new Set(open.map((request) => request.job_id));
    for (const jobId of lane.deadlines.keys()) if (!isOpen.has(jobId)) lane.deadlines.delete(jobId);
  }

  /** When the job ends of itself: unsent at its deadline, sent a grace later. */
  #endsAt(lane: Lane, request: RequestRow): number {
    return this.#deadline(lane, request) + (request.sent_journal === null ? 0 : GRACE_MS);
  }

  /** Monotonic from the first time this process sees the job. The wall clock says what remains of the job's own span. */
  #deadline(lane: Lane, request: RequestRow): number {
    const known = lane.deadlines.get(request.job_id);
    if (known !== undefined) return known;
    const span = request.expires_at - request.accepted_at;
    const remaining = Math.min(Math.max(request.expires_at - this.#context.clock.now(), 0), span);
    const deadline = this.#context.clock.monotonic() + remaining;
    lane.deadlines.set(request.job_id, deadline);
    return deadline;
  }

  /** By the known time: a request that was just finished must be known when it is sent again, or its keys would be written again. */
  async #forgetOld(): Promise<void> {
    const { database, table, clock, knownTime } = this.#context;
    const now = knownTime();
    this.#forgotAt = clock.monotonic();
    await database.commit(() => table.forgetFinishedBefore.run(now - KEPT_MS, FORGET_BATCH));
  }

  async #sleepUntil(at: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    const sleep = new AbortController();
    const wake = () => sleep.abort();
    // A signal that has fired already fires no more.
    if (signal.aborted || at <= clock.monotonic()) return;
    signal.addEventListener('abort', wake, { once: true });
    this.#wake = wake;
    try {
      await clock.sleep(at - clock.monotonic(), sleep.signal);
    } catch (error) {
      if (!sleep.signal.aborted) throw error;
    } finally {
      this.#wake = () => {};
      signal.removeEventListener('abort', wake);
    }
  }
}

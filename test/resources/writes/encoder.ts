/**
 * For the simulation: an encoder made from the rules of docs/encoder-protocol.md and not from the gateway's code. It
 * counts what really got onto cards. An instruction is atomic; it can be killed between any two.
 */
import { randomUUID } from 'node:crypto';
import type { DownMessages, JobReport, ProgressReport } from '../../../drivers/encoder/messages.ts';

export type Up =
  | { job: Omit<JobReport, 'boot' | 'seq'> }
  | { progress: Omit<ProgressReport, 'boot' | 'seq'> };
export type Down = { write: DownMessages['write'] } | { cancel: DownMessages['cancel'] };
type ModelStatus = 'held' | ProgressReport['status'];
type ModelError = NonNullable<ProgressReport['error']>['code'];

/** An encoder as docs/encoder-protocol.md, Rules, describe it. */
export class ModelEncoder {
  journal = randomUUID();
  /** Journaled: what became of each key of each job, and messages not yet acknowledged. */
  jobs = new Map<string, Map<string, { status: ModelStatus; error?: ModelError }>>();
  outbox: Up[] = [];
  /** A cancel for a job it never had: a write of it would be refused. */
  refused = new Set<string>();
  /** What is on cards. Survives everything. */
  readonly cards: string[] = [];
  /** Lost with the power. */
  work: { jobId: string; keyIds: string[]; deadline: number; cardDone: boolean } | null = null;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  receive(message: Down): void {
    if ('write' in message) this.#write(message.write);
    else this.#cancel(message.cancel.jobId);
  }

  /** One instruction of the job in hand. */
  step(fails: boolean): void {
    const { work } = this;
    const keyId = work?.keyIds[0];
    if (!work || keyId === undefined) return;
    const status = this.jobs.get(work.jobId)?.get(keyId)?.status;
    if (status !== 'writing' && this.#now() >= work.deadline) {
      for (const open of work.keyIds) this.#set(work.jobId, open, 'failed', 'EXPIRED');
      this.work = null;
      return;
    }
    if (status === 'held') this.#set(work.jobId, keyId, 'started');
    else if (status === 'started') this.#set(work.jobId, keyId, 'cardRequested');
    else if (status === 'cardRequested' && fails) this.#end(work.jobId, keyId, 'failed', 'NO_CARD');
    else if (status === 'cardRequested') this.#set(work.jobId, keyId, 'cardDetected');
    else if (status === 'cardDetected') this.#set(work.jobId, keyId, 'writing');
    else if (!work.cardDone && fails) this.#end(work.jobId, keyId, 'failed', 'VERIFY_FAILED');
    else if (!work.cardDone) {
      this.cards.push(keyId);
      work.cardDone = true;
    } else this.#end(work.jobId, keyId, 'written');
  }

  restart(): void {
    this.work = null;
    for (const [jobId, entries] of this.jobs) {
      for (const [keyId, { status }] of entries) if (status === 'writing') this.#set(jobId, keyId, 'unknown');
    }
  }

  loseJournal(): void {
    this.work = null;
    this.journal = randomUUID();
    this.jobs = new Map();
    this.outbox = [];
    this.refused = new Set();
  }

  #write({ jobId, ttlMs, data }: DownMessages['write']): void {
    const known = this.jobs.get(jobId);
    const entries = known ?? new Map(data.map(({ keyId }) => [keyId, { status: 'held' as ModelStatus }]));
    this.jobs.set(jobId, entries);
    this.#restate(jobId);
    const keyIds = data.map(({ keyId }) => keyId).filter((keyId) => !this.#isOver(jobId, keyId));
    if (this.refused.has(jobId)) for (const keyId of keyIds) this.#set(jobId, keyId, 'failed', 'CANCELLED');
    else if (this.work?.jobId === jobId) this.work.deadline = this.#now() + ttlMs;
    else this.work = { jobId, keyIds, deadline: this.#now() + ttlMs, cardDone: false };
  }

  #cancel(jobId: string): void {
    const entries = this.jobs.get(jobId);
    if (!entries) {
      this.refused.add(jobId);
      this.outbox.push({ job: { jobId, known: false, entries: [] } });
      return;
    }
    this.#restate(jobId);
    for (const [keyId, { status }] of entries) {
      if (status !== 'writing' && !this.#isOver(jobId, keyId)) this.#set(jobId, keyId, 'failed', 'CANCELLED');
    }
    if (this.work?.jobId !== jobId) return;
    this.work.keyIds = this.work.keyIds.filter((keyId) => !this.#isOver(jobId, keyId));
  }

  #isOver(jobId: string, keyId: string): boolean {
    return ['written', 'failed', 'unknown'].includes(this.jobs.get(jobId)?.get(keyId)?.status ?? 'held');
  }

  #restate(jobId: string): void {
    const entries = [...(this.jobs.get(jobId) ?? [])].flatMap(([keyId, { status, error }]) =>
      status === 'held' ? [] : [{ keyId, status, ...(error && { error: { code: error } }) }],
    );
    this.outbox.push({ job: { jobId, known: true, entries } });
  }

  #end(jobId: string, keyId: string, status: ProgressReport['status'], error?: ModelError): void {
    this.#set(jobId, keyId, status, error);
    if (!this.work) return;
    this.work.keyIds.shift();
    this.work.cardDone = false;
  }

  #set(jobId: string, keyId: string, status: ProgressReport['status'], error?: ModelError): void {
    this.jobs.get(jobId)?.set(keyId, error ? { status, error } : { status });
    this.outbox.push({ progress: { jobId, keyId, status, ...(error && { error: { code: error } }) } });
  }
}

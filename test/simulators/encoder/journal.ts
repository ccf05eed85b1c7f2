/**
 * The encoder's durable journal (docs/encoder-protocol.md, Rules 2, 3 and 8): one file of JSON lines, appended and
 * fsynced before anything leaves the encoder. A progress report is the state of its entry: one line is both, so the two
 * cannot disagree. Survives kill -9 at any byte: a torn last line never happened.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';

/** In the order an entry passes them; the last three are terminal. */
const ENTRY_STATUSES = [
  'started',
  'cardRequested',
  'cardDetected',
  'writing',
  'written',
  'failed',
  'unknown',
] as const;
export type EntryStatus = (typeof ENTRY_STATUSES)[number];

export interface EntryError {
  code: string;
  message?: string;
}

export interface Entry {
  keyId: string;
  /** Absent: nothing has happened yet. */
  status?: EntryStatus;
  error?: EntryError;
}

/** What the journal keeps of a job: never the blocks, which come again with each repeated write. */
export interface Job {
  jobId: string;
  entries: Entry[];
}

export type UpChannel = 'status' | 'job' | 'progress';

/** A message that is kept until the gateway has stored it. */
export interface UpMessage {
  channel: UpChannel;
  /** Complete, with boot and seq. */
  content: { boot: string; seq: number } & Record<string, unknown>;
}

export interface Journal extends Disposable {
  /** Drawn when the file was made. */
  readonly id: string;
  readonly boot: string;
  /** The highest epoch seen from the gateway; 0 at first. */
  readonly epoch: number;
  sawEpoch(epoch: number): void;
  job(jobId: string): Job | undefined;
  jobs(): Iterable<Job>;
  addJob(jobId: string, keyIds: string[]): Job;
  /** Numbers and stores a message; a progress report changes its entry. On return it is on the disk. */
  report(channel: UpChannel, content: Record<string, unknown>): UpMessage;
  /** In the order they were reported, earlier boots first. */
  unacknowledged(): readonly UpMessage[];
  /** Forgets everything of this boot up to `seq`. */
  acknowledge(boot: string, seq: number): void;
}

type Line =
  | { kind: 'journal'; id: string }
  | { kind: 'epoch'; epoch: number }
  | { kind: 'job'; jobId: string; entries: Entry[] }
  | { kind: 'up'; channel: UpChannel; content: UpMessage['content'] }
  | { kind: 'acknowledged'; boot: string; seq: number };

interface State {
  id: string;
  epoch: number;
  jobs: Map<string, Job>;
  pending: UpMessage[];
}

/** A gateway asks again only for jobs it has not finished; it holds 9 per encoder at most. */
const JOBS_KEPT = 64;
/** The file is written again, without what is over, after so many lines. */
const LINES_BEFORE_COMPACTION = 5_000;

export const isTerminal = (status: EntryStatus | undefined) =>
  status === 'written' || status === 'failed' || status === 'unknown';

/** `durable: false` leaves out the fsync, for benchmarks of the other side. */
export function openJournal(file: string, options: { durable?: boolean } = {}): Journal {
  const durable = options.durable ?? true;
  const boot = randomUUID();
  const state = existsSync(file) ? readJournal(file) : emptyState();
  let seq = 0;
  let lines = 0;
  let descriptor = rewrite(file, state);

  function append(line: Line): void {
    writeSync(descriptor, `${JSON.stringify(line)}\n`);
    if (durable) fdatasyncSync(descriptor);
    apply(state, line);
    lines += 1;
    if (lines < LINES_BEFORE_COMPACTION) return;
    closeSync(descriptor);
    descriptor = rewrite(file, state);
    lines = 0;
  }

  return {
    id: state.id,
    boot,
    get epoch() {
      return state.epoch;
    },
    sawEpoch(epoch) {
      if (epoch > state.epoch) append({ kind: 'epoch', epoch });
    },
    job: (jobId) => state.jobs.get(jobId),
    jobs: () => state.jobs.values(),
    addJob(jobId, keyIds) {
      append({ kind: 'job', jobId, entries: keyIds.map((keyId) => ({ keyId })) });
      return state.jobs.get(jobId) as Job;
    },
    report(channel, content) {
      seq += 1;
      append({ kind: 'up', channel, content: { boot, seq, ...content } });
      return state.pending.at(-1) as UpMessage;
    },
    unacknowledged: () => state.pending,
    acknowledge(acknowledgedBoot, upTo) {
      const covered = ({ content }: UpMessage) => content.boot === acknowledgedBoot && content.seq <= upTo;
      if (state.pending.some(covered)) {
        append({ kind: 'acknowledged', boot: acknowledgedBoot, seq: upTo });
      }
    },
    [Symbol.dispose]() {
      closeSync(descriptor);
    },
  };
}

function emptyState(): State {
  return { id: randomUUID(), epoch: 0, jobs: new Map(), pending: [] };
}

/** A line that cannot be read is torn when it is the last; anywhere else the journal is lost, and a new one begins. */
function readJournal(file: string): State {
  const state = emptyState();
  const lines = readFileSync(file, 'utf8').split('\n');
  // What follows the last newline is empty, or torn.
  for (const line of lines.slice(0, -1)) {
    try {
      apply(state, JSON.parse(line) as Line);
    } catch {
      renameSync(file, `${file}.damaged`);
      return emptyState();
    }
  }
  return state;
}

function apply(state: State, line: Line): void {
  switch (line.kind) {
    case 'journal':
      state.id = line.id;
      break;
    case 'epoch':
      state.epoch = line.epoch;
      break;
    case 'job':
      state.jobs.set(line.jobId, { jobId: line.jobId, entries: line.entries });
      break;
    case 'up':
      state.pending.push({ channel: line.channel, content: line.content });
      if (line.channel === 'progress') applyProgress(state, line.content);
      break;
    case 'acknowledged':
      state.pending = state.pending.filter(
        ({ content }) => content.boot !== line.boot || content.seq > line.seq,
      );
      break;
  }
}

function applyProgress(state: State, content: Record<string, unknown>): void {
  const { jobId, keyId, status, error } = content as { jobId: string } & Required<Entry>;
  const entry = state.jobs.get(jobId)?.entries.find((candidate) => candidate.keyId === keyId);
  if (!entry || !isAhead(status, entry.status)) return;
  entry.status = status;
  if (error) entry.error = error;
}

/** Whether `next` takes an entry further than `current` (Rules 5: transitions are monotone). */
export function isAhead(next: EntryStatus, current: EntryStatus | undefined): boolean {
  if (current === undefined) return true;
  return !isTerminal(current) && ENTRY_STATUSES.indexOf(next) > ENTRY_STATUSES.indexOf(current);
}

/** Replaces the file by what is still needed, in one step, and opens it for appending. */
function rewrite(file: string, state: State): number {
  for (const jobId of [...state.jobs.keys()].slice(0, -JOBS_KEPT)) state.jobs.delete(jobId);
  const lines: Line[] = [
    { kind: 'journal', id: state.id },
    { kind: 'epoch', epoch: state.epoch },
    ...[...state.jobs.values()].map((job): Line => ({ kind: 'job', ...job })),
    ...state.pending.map((message): Line => ({ kind: 'up', ...message })),
  ];
  const replacement = `${file}.new`;
  writeFileSync(replacement, lines.map((line) => `${JSON.stringify(line)}\n`).join(''), {
    mode: 0o600,
    flush: true,
  });
  renameSync(replacement, file);
  return openSync(file, 'a');
}

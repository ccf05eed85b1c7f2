/** For the tests of this folder: write requests on a real database, with a clock, encoders and a link turned by hand. */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { DownMessages, JobReport, ProgressReport } from '../../../drivers/encoder/messages.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { GatehouseError } from '../../../src/platform/errors.ts';
import { type KnownTime, openKnownTime } from '../../../src/platform/known-time.ts';
import { silentLog } from '../../../src/platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../../../src/platform/principal.ts';
import { supervise } from '../../../src/platform/supervise.ts';
import { openVault } from '../../../src/platform/vault.ts';
import type { WriteRequestStatus } from '../../../src/resources/writes/schema.ts';
import { openWrites, type Writes } from '../../../src/resources/writes/writes.ts';
import type { AuditEntry } from '../../../src/services/audit/entry.ts';
import type { WriteProgress } from '../../../src/services/events/cloud-event.ts';
import { openMeters } from '../../../src/services/metrics/meters.ts';
import { type ManualClock, manualClock } from '../../manual-clock.ts';
import { migratedFile, temporaryFolder } from '../../temporary.ts';

export const EXPIRY_MS = 900_000;
export const JOURNAL = '10000000-0000-4000-8000-000000000001';
export const OTHER_JOURNAL = '10000000-0000-4000-8000-000000000002';
export const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'correlation-1' };

export const key = (index: number): string => `20000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
export const body = (...keyIds: string[]) => ({
  data: keyIds.map((keyId) => ({ keyId, blocks: [`block of ${keyId}`, 'CAFEF00D'] })),
});

export type Sent = { encoderId: string } & (
  | { channel: 'write'; message: DownMessages['write'] }
  | { channel: 'cancel'; message: DownMessages['cancel'] }
);
interface FakeEncoder {
  connected: boolean;
  upgrading: boolean;
  journal: string | null;
}

interface Faults {
  commit: 'fail' | null;
  send: 'fail' | 'hang' | null;
}

export const MESSAGE = { boot: '30000000-0000-4000-8000-000000000001', seq: 1 };

export async function openTestbed(encoderIds = ['desk-1', 'desk-2']): Promise<Testbed> {
  const bed = new Testbed(encoderIds);
  onTestFinished(() => bed.kill());
  await bed.start();
  return bed;
}

/** Of one boot, with a time server. */
export function testTime(clock: ManualClock): KnownTime {
  const table = { stored: () => undefined, store: () => {} };
  return openKnownTime({ clock, synchronised: () => true, bootId: undefined, table, log: silentLog });
}

/** One gateway process after the other on the same files. */
export class Testbed {
  readonly clock: ManualClock = manualClock();
  readonly meters = openMeters();
  readonly #time = testTime(this.clock);
  readonly folder = temporaryFolder();
  /** How commits and sends fare from now on. */
  readonly faults: Faults = { commit: null, send: null };
  readonly warnings: Record<string, unknown>[] = [];
  readonly #encoders = new Map<string, FakeEncoder>();
  readonly #sent: Sent[] = [];
  #life = new AbortController();
  #process: { database: Database; writes: Writes; records: Records } | undefined;
  #epoch = 0;

  constructor(encoderIds: string[]) {
    for (const id of encoderIds)
      this.#encoders.set(id, { connected: false, upgrading: false, journal: null });
  }

  get database(): Database {
    return this.#running().database;
  }
  get writes(): Writes {
    return this.#running().writes;
  }
  events(): WriteProgress[] {
    return this.#running().records.eventRows();
  }
  audits(): AuditEntry[] {
    return this.#running().records.auditRows();
  }
  encoder(encoderId: string): FakeEncoder {
    return this.#encoders.get(encoderId) ?? fail(`no encoder ${encoderId}`);
  }
  /** What was handed to the link since the last call, oldest first. */
  takeSent(): Sent[] {
    return this.#sent.splice(0);
  }
  /** Lets everything that is ready run. */
  async settle(): Promise<void> {
    await this.clock.advance(0);
  }

  /** A new process on the same files. */
  async start({ vaultFile = 'vault.key' } = {}): Promise<void> {
    const life = new AbortController();
    this.#life = life;
    this.#epoch += 1;
    const { clock } = this;
    const file = await migratedFile(this.folder);
    const inner = await openDatabase({ file, monotonic: () => clock.monotonic(), failed: () => {} });
    const database = mortal(inner, life.signal, this.faults);
    const records = await openRecords(inner, [...this.#encoders.keys()], join(this.folder, 'records.db'));
    const writes = openWrites({
      ...records,
      database,
      vault: openVault(join(this.folder, vaultFile)),
      encoders: {
        exists: (id) => this.#encoders.has(id),
        upgrading: (id) => this.encoder(id).upgrading,
        journal: (id) => this.encoder(id).journal,
      },
      connections: {
        connected: (id) => this.encoder(id).connected,
        send: async (encoderId, channel, message) => {
          if (life.signal.aborted) return;
          if (this.faults.send === 'fail') throw new Error('link lost');
          this.#sent.push({ encoderId, channel, message } as Sent);
          if (this.faults.send === 'hang') await new Promise<never>(() => {});
        },
      },
      clock,
      meter: this.meters,
      knownTime: this.#time.now,
      log: { ...silentLog, warn: (fields) => this.warnings.push(fields) },
      expiryMs: EXPIRY_MS,
      epoch: this.#epoch,
    });
    this.#process = { database, writes, records };
    const run = (signal: AbortSignal) => writes.run(signal);
    void supervise({ name: 'writes', run, signal: life.signal, clock, log: silentLog, random: () => 0.9 });
    await this.settle();
  }

  /** The process is gone between two instructions; what was not committed is lost. */
  async kill(): Promise<void> {
    this.#life.abort();
    await this.#process?.database[Symbol.asyncDispose]();
    for (const encoder of this.#encoders.values()) encoder.connected = false;
  }

  async restart(options?: { vaultFile?: string }): Promise<void> {
    await this.kill();
    await this.start(options);
  }

  accept(encoderId: string, requestId: string, ...keyIds: string[]): Promise<WriteRequestStatus> {
    return this.writes.accept({ encoderId, requestId }, body(...keyIds), CALLER);
  }
  cancel(encoderId: string, requestId: string): Promise<WriteRequestStatus> {
    return this.writes.cancel({ encoderId, requestId }, CALLER);
  }
  /** What the status resource says of each entry. */
  statuses(encoderId: string, requestId: string): string[] {
    return this.writes.get({ encoderId, requestId }).entries.map(({ status }) => status);
  }

  async connect(encoderId: string, journal = JOURNAL): Promise<void> {
    const encoder = this.encoder(encoderId);
    encoder.journal = journal;
    await this.database.commit(() => this.writes.reports.born(encoderId, journal));
    encoder.connected = true;
    this.writes.reports.wake(encoderId, 'fresh-connection');
    await this.settle();
  }
  disconnect(encoderId: string): void {
    this.encoder(encoderId).connected = false;
  }
  async job(
    encoderId: string,
    report: Pick<JobReport, 'jobId' | 'known'> & Partial<JobReport>,
  ): Promise<void> {
    await this.#stored(encoderId, () =>
      this.writes.reports.job(encoderId, { ...MESSAGE, entries: [], ...report }),
    );
  }
  async progress(
    encoderId: string,
    report: Pick<ProgressReport, 'jobId' | 'keyId' | 'status'> & Partial<ProgressReport>,
  ): Promise<void> {
    await this.#stored(encoderId, () => this.writes.reports.progress(encoderId, { ...MESSAGE, ...report }));
  }

  async #stored(encoderId: string, store: () => void): Promise<void> {
    await this.database.commit(store);
    this.writes.reports.wake(encoderId, 'report');
    await this.settle();
  }
  #running() {
    return this.#process ?? fail('the gateway is not running');
  }
}

/** What was sent, briefly: `write R1 1,2` with the last digits of the keys, `cancel`. */
export const brief = (bed: Testbed): string[] =>
  bed.takeSent().map((sent) => {
    if (sent.channel === 'cancel') return 'cancel';
    return `write ${sent.message.requestId} ${sent.message.data.map(({ keyId }) => keyId.at(-1)).join()}`;
  });

/** Connected, with requests R1 … of the given keys, the first of them sent; returns its jobId. */
export async function sending(...requests: number[][]): Promise<{ bed: Testbed; jobId: string }> {
  const bed = await openTestbed();
  await bed.connect('desk-1');
  for (const [index, keys] of requests.entries())
    await bed.accept('desk-1', `R${index + 1}`, ...keys.map(key));
  await bed.settle();
  return { bed, jobId: bed.takeSent()[0]?.message.jobId ?? '' };
}

/** A database whose owner may die: what it had not committed then never happens, and it can do nothing any more. */
function mortal(database: Database, life: AbortSignal, faults: Faults): Database {
  return {
    ...database,
    commit: async (job) => {
      if (faults.commit === 'fail') throw new GatehouseError('STORAGE_UNAVAILABLE', 'the disk is full');
      return database.commit(() => {
        life.throwIfAborted();
        return job();
      });
    },
  };
}

type Records = Awaited<ReturnType<typeof openRecords>>;

/**
 * Events and audit as plain rows, so that they share the fate of the transaction; a doubled event stays visible. They are in a
 * file of their own, because a gateway's database with a foreign table in it is refused at the next start.
 */
export async function openRecords(database: Database, encoderIds: string[], file = ':memory:') {
  // The database's connection creates no file.
  if (file !== ':memory:') closeSync(openSync(file, 'a'));
  database.prepare('ATTACH ? AS records').run(file);
  await database.commit(() => {
    for (const kind of ['event', 'audit']) {
      database
        .prepare(`CREATE TABLE IF NOT EXISTS records.test_${kind} (id INTEGER PRIMARY KEY, body TEXT) STRICT`)
        .run();
    }
    const insert = database.prepare<[string]>(
      `INSERT OR IGNORE INTO encoder (id, generation, connected_changed_at, alarm_changed_at, created_at, created_by,
         updated_at, updated_by) VALUES (?, 1, 0, 0, 0, '', 0, '')`,
    );
    for (const id of encoderIds) insert.run(id);
  });
  const insertEvent = database.prepare<[string]>('INSERT INTO test_event (body) VALUES (?)');
  const insertAudit = database.prepare<[string]>('INSERT INTO test_audit (body) VALUES (?)');
  const events = database.prepare<[], { body: string }>('SELECT body FROM test_event ORDER BY id');
  const audits = database.prepare<[], { body: string }>('SELECT body FROM test_audit ORDER BY id');
  return {
    events: {
      writeProgress: (progress: WriteProgress) => void insertEvent.run(JSON.stringify(progress)),
      wake() {},
    },
    audit: { record: (entry: AuditEntry) => void insertAudit.run(JSON.stringify(entry)) },
    eventRows: () => events.all().map((row): WriteProgress => JSON.parse(row.body)),
    auditRows: () => audits.all().map((row): AuditEntry => JSON.parse(row.body)),
  };
}

function fail(message: string): never {
  throw new Error(message);
}

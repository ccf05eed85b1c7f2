/**
 * A gateway of the campaign: lease, shipping, following, the conversation with a host and the host itself are the real ones; its database is
 * a list of rows, one for each page, and its wire takes down who has closed a relay, and when.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { type Driver, DriverError } from '../../../drivers/contract/driver.ts';
import { type Acting, actingUntil } from '../../../src/platform/acting.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { openConversation } from '../../../src/platform/field/conversation.ts';
import { serve } from '../../../src/platform/field/host/serve.ts';
import { silentLog } from '../../../src/platform/log.ts';
import type { NatsClient } from '../../../src/platform/nats/client.ts';
import { type Bucket, openBucket } from '../../../src/services/cluster/bucket.ts';
import { openCommitment } from '../../../src/services/cluster/commitment.ts';
import { openFollower } from '../../../src/services/cluster/follower.ts';
import { CLOSING_MS, openLease, type Tenure } from '../../../src/services/cluster/lease.ts';
import type { OwnState } from '../../../src/services/cluster/own-state.ts';
import type { LeaseRecord } from '../../../src/services/cluster/record.ts';
import { openShipping } from '../../../src/services/cluster/shipping.ts';
import { openSnapshotStore, type SnapshotStore } from '../../../src/services/cluster/snapshot-store.ts';
import type { ManualClock } from '../../manual-clock.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { PlayedStreams, Way } from './streams.ts';

const BUCKET = 'site';
const SITE = 'one';
const PAGE_BYTES = 64;
/** Of the bus, until an order has its turn: at the most. */
const BUS_BUSY_MS = 6_000;

/** What the campaign has taken down, for the checker; `at` counts what happened, whenever that was. */
export interface Records {
  /** Of the next one. */
  next(): number;
  tenures: { name: string; epoch: number; at: number; rows: readonly string[] }[];
  closed: { name: string; at: number }[];
  /** Answered 2xx. */
  answered: { name: string; row: string; at: number }[];
  /** Of the program itself. */
  faults: string[];
  refused: number;
  notKept: number;
  /** Orders that were on their way when the time was over. */
  late: number;
}

export interface PlayedGateway {
  readonly name: string;
  way: Way;
  isRunning(): boolean;
  tenure(): Tenure | undefined;
  start(): void;
  kill(): void;
  /** As SIGSTOP and SIGCONT. */
  stop(): void;
  wake(): void;
  /** Closes the relay, after the bus has been busy for so long. */
  order(share: number): void;
  commit(row: string): void;
  promote(): Promise<void>;
  rows(): readonly string[];
}

interface GatewayOptions {
  streams: PlayedStreams;
  clock: ManualClock;
  records: Records;
}

/** What a process that is killed leaves, and what it reaches. */
interface Machine {
  name: string;
  /** Of a process that may be stopped. */
  clock: Clock;
  folder: string;
  own: OwnState;
  rows: string[];
  client: NatsClient;
  bucket: Bucket;
  /** Resolves when the lease has this epoch. */
  leased(epoch: number): Promise<void>;
  snapshots: SnapshotStore;
  records: Records;
}

interface Work {
  tenure: Tenure;
  order(share: number): void;
  commit(row: string): void;
  ended: Promise<unknown>;
}

export function openPlayedGateway(
  name: string,
  { streams, clock: real, records }: GatewayOptions,
): PlayedGateway {
  const { clock, ...freezing } = openFreezing(real);
  const client = streams.client(() => gateway.way, clock, freezing.awake);
  const at = { client, replicas: 1 };
  const { bucket, leased } = openWatchedBucket(openBucket({ ...at, name: BUCKET }));
  const snapshots = openSnapshotStore({ ...at, bucket: BUCKET, vault: PLAYED_VAULT });
  const own = openPlayedState();
  const folder = temporaryFolder();
  const machine: Machine = { name, clock, folder, own, rows: [], client, bucket, leased, snapshots, records };
  let stopped = new AbortController();
  let isRunning = false;
  let work: Work | undefined;

  /** Of one process after the other, as systemd starts them. */
  async function life(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const process = new AbortController();
      const alive = AbortSignal.any([signal, process.signal]);
      const tenure = await becomeActive(machine, alive);
      const lasting = tenure.keep(alive);
      work = openWork(machine, tenure, alive);
      await Promise.race([tenure.ended, fired(signal)]);
      const { ended } = work;
      work = undefined;
      process.abort(new Error('the process has ended'));
      await Promise.all([lasting, ended]);
      if (!signal.aborted) await tenure.release().catch(() => undefined);
    }
  }

  const gateway: PlayedGateway = {
    name,
    way: 'open',
    isRunning: () => isRunning,
    tenure: () => work?.tenure,
    start() {
      stopped = new AbortController();
      isRunning = true;
      const { signal } = stopped;
      life(signal).catch((error: unknown) => {
        if (!signal.aborted) records.faults.push(`${name} has failed: ${error}`);
      });
    },
    kill() {
      stopped.abort(new Error('killed'));
      freezing.wake();
      work = undefined;
      isRunning = false;
    },
    stop: freezing.stop,
    wake: freezing.wake,
    // A process that is stopped does nothing that it is asked.
    order: (share) => freezing.isStopped() || work?.order(share),
    commit: (row) => freezing.isStopped() || work?.commit(row),
    async promote() {
      const { lease } = await bucket.read(NEVER);
      const after = lease?.value.epoch ?? own.current.epoch;
      await bucket.write('wanted', { active: name, force: !lease, after }, undefined, NEVER);
    },
    rows: () => machine.rows,
  };
  return gateway;
}

const NEVER = new AbortController().signal;

/** Time goes on while a process is stopped, and nothing of it wakes. */
function openFreezing(real: Clock) {
  let frozen: PromiseWithResolvers<void> | undefined;
  const awake = async () => {
    while (frozen) await frozen.promise;
  };
  const clock: Clock = {
    now: real.now,
    monotonic: real.monotonic,
    async sleep(milliseconds, signal) {
      await real.sleep(milliseconds, signal);
      await awake();
      signal?.throwIfAborted();
    },
  };
  return {
    clock,
    awake,
    isStopped: () => frozen !== undefined,
    stop() {
      frozen ??= Promise.withResolvers();
    },
    wake() {
      frozen?.resolve();
      frozen = undefined;
    },
  };
}

async function becomeActive(machine: Machine, signal: AbortSignal): Promise<Tenure> {
  const { name, clock, folder, own, rows, client, bucket, leased, snapshots, records } = machine;
  const identity = { name, site: SITE, version: '1' };
  const { instance } = own.current;
  const place = { stream: `${BUCKET}-commits`, folder: join(folder, 'copy') };
  const parts = { client, bucket, snapshots, vault: PLAYED_VAULT, clock, log: silentLog };
  const follower = openFollower({ ...parts, ...place, identity, instance });
  const stop = new AbortController();
  const following = follower.run(AbortSignal.any([signal, stop.signal]));
  const lease = openLease({ bucket, own, identity, clock, log: silentLog });
  const tenure = await lease.acquire(() => undefined, signal).finally(() => stop.abort());
  const at = records.next();
  await following;
  if (own.current.unplaced !== null) {
    const copy = await finished(() => follower.finish(signal), machine, signal);
    if (copy) rows.splice(0, rows.length, ...rowsOf(copy.file));
    copy?.drop();
    await own.change({ unplaced: null });
  }
  const { epoch } = tenure;
  if (clock.monotonic() < tenure.until()) records.tenures.push({ name, epoch, at, rows: [...rows] });
  // Begun while NATS is away: another one may be active until it has the lease.
  else
    void leased(epoch).then(() => records.tenures.push({ name, epoch, at: records.next(), rows: [...rows] }));
  return tenure;
}

/** Sees which lease is written. */
function openWatchedBucket({ read, write }: Bucket) {
  const waiting = new Map<number, () => void>();
  const bucket: Bucket = {
    read,
    async write(key, value, ...expected) {
      const revision = await write(key, value, ...expected);
      if (key === 'lease') waiting.get((value as LeaseRecord).epoch)?.();
      return revision;
    },
  };
  return {
    bucket,
    leased: (epoch: number) => new Promise<void>((resolve) => waiting.set(epoch, resolve)),
  };
}

/** What was answered with quorum is in the stream, and is waited for. */
async function finished<T>(read: () => Promise<T>, { clock }: Machine, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch {
      await clock.sleep(1_000, signal);
    }
  }
}

function openWork(machine: Machine, tenure: Tenure, signal: AbortSignal): Work {
  const { clock, folder, rows, client, snapshots, records } = machine;
  const acting = actingUntil(tenure.until, CLOSING_MS, clock);
  const shipping = openShipping({
    client,
    snapshots,
    vault: PLAYED_VAULT,
    stream: `${BUCKET}-commits`,
    subject: `${BUCKET}.commits`,
    replicas: 1,
    epoch: tenure.epoch,
    version: '1',
    site: SITE,
    file: join(folder, 'snapshot.db'),
    entitled: () => clock.monotonic() < tenure.until(),
    clock,
    log: silentLog,
  });
  const commitment = openCommitment({ acting, durability: 'quorum', shipping, clock });
  const copyTo = async (file: string) => writeFileSync(file, Buffer.concat(rows.map(pageOf)));
  const field = openPlayedField(machine, acting);
  return {
    tenure,
    ended: Promise.all([
      shipping.run(copyTo, signal).catch(() => undefined),
      acting
        .while(field.run)(signal)
        .catch(() => undefined),
      snapshotsWhereLacking(tenure, shipping.snapshotWanted, clock, signal),
    ]),
    order: field.order,
    commit(row) {
      try {
        commitment.admit();
      } catch {
        records.refused += 1;
        return;
      }
      rows.push(row);
      const changed = [{ number: rows.length, bytes: pageOf(row) }];
      shipping.written({ pageBytes: PAGE_BYTES, pages: rows.length, changed });
      const answered = () => void records.answered.push({ name: machine.name, row, at: records.next() });
      commitment.kept().then(
        () => signal.aborted || answered(),
        () => {
          records.notKept += 1;
        },
      );
    },
  };
}

/** A host while it may be held, as hosts.ts does it. */
function openPlayedField(machine: Machine, acting: Acting) {
  const { clock } = machine;
  const drivers = new Map([['bus', async () => async () => openBus(machine)]]);
  let conversation: ReturnType<typeof openConversation> | undefined;
  return {
    async run(lasting: AbortSignal): Promise<never> {
      const [near, far] = duplexPair();
      void serve({ stream: far, protocols: [], drivers, clock, signal: lasting });
      const listener = { link: () => undefined, report: () => undefined, event: async () => undefined };
      const linkIds = new Set(['bus']);
      using opened = openConversation({ acting, stream: near, linkIds, listener, clock, log: silentLog });
      opened.start([{ id: 'bus', protocol: 'bus', options: null }]);
      conversation = opened;
      await fired(lasting);
      conversation = undefined;
      throw lasting.reason;
    },
    order(share: number) {
      const command = { kind: 'pulse', data: share, timeoutMs: 10_000 };
      conversation?.execute('bus', command, NEVER).catch(() => undefined);
    },
  };
}

/** A bus that is busy before an order has its turn, and looks at the deadline right before the wire, as all do. */
function openBus({ name, clock, records }: Machine): Driver {
  return {
    run: (signal) => fired(signal).then(() => Promise.reject(signal.reason)),
    async execute({ data, deadline }, signal) {
      await clock.sleep(Number(data) * BUS_BUSY_MS, signal).catch(() => undefined);
      if (clock.monotonic() >= deadline) {
        records.late += 1;
        throw new DriverError('DEADLINE_PASSED', 'not sent any more');
      }
      records.closed.push({ name, at: records.next() });
      return null;
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function snapshotsWhereLacking(
  tenure: Tenure,
  wanted: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(5_000, signal).catch(() => undefined);
    if (!signal.aborted && tenure.follower()?.record.lacksSnapshot) wanted();
  }
}

/** Kept in memory, which outlives the played process. */
function openPlayedState(): OwnState {
  let current: OwnState['current'] = {
    instance: randomUUID(),
    role: 'new',
    epoch: 0,
    begun: 0,
    standby: null,
    unplaced: null,
  };
  return {
    get current() {
      return current;
    },
    async change(to) {
      current = { ...current, ...to };
    },
  };
}

const PLAYED_VAULT = {
  seal: (data: Uint8Array) => Buffer.from(data),
  open: (data: Uint8Array) => Buffer.from(data),
};

const pageOf = (row: string) => Buffer.from(row.padEnd(PAGE_BYTES));

function rowsOf(file: string): string[] {
  const bytes = readFileSync(file);
  return Array.from({ length: bytes.length / PAGE_BYTES }, (_, page) =>
    bytes.toString('utf8', page * PAGE_BYTES, (page + 1) * PAGE_BYTES).trim(),
  );
}

function fired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/**
 * The active gateway's side of following: each commit's pages go to a stream, in order, and a snapshot of the database to the object store,
 * at the beginning and whenever the standby could not follow any more. What is not sent yet is bound in memory; beyond that bound, and
 * after each failure, it is given up for a new snapshot, so that the stream has no gap without one.
 */
import { rmSync } from 'node:fs';
import type { Clock } from '../../platform/clock.ts';
import type { Written } from '../../platform/database/write-ahead-log.ts';
import type { Log } from '../../platform/log.ts';
import type { NatsClient } from '../../platform/nats/client.ts';
import type { JetStream } from '../../platform/nats/jetstream.ts';
import type { Vault } from '../../platform/vault.ts';
import { openWaking } from '../../platform/waking.ts';
import { bytesOf, encodeMessage, encodePages, frameContext, merged } from './frames.ts';
import { NotShipped, openKept } from './kept.ts';
import { NOT_RENEWED } from './lease.ts';
import type { SnapshotStore } from './snapshot-store.ts';

/** Of one message: below the megabyte that a server takes. */
const MESSAGE_BYTES_MAX = 512 * 1_024;
/** Not sent yet: some minutes of a busy site, and less than a snapshot. */
const WAITING_BYTES_MAX = 16 * 1_024 * 1_024;
/** Sent since the last snapshot was begun: more is not kept in the stream, and a standby begins with a newer one. */
const SHIPPED_BYTES_MAX = 64 * 1_024 * 1_024;
const RETRY_MS = 1_000;

export interface ShippingState {
  /** The number of the last message that is stored. */
  shipped: number;
  /** Bytes that wait. */
  waitingBytes: number;
  /** Why nothing is sent; null while it is, and while the first snapshot is made. */
  error: string | null;
}

export interface Shipping {
  /** Of one commit. */
  written(written: Written): void;
  /** `copy`: page by page, of what is committed. Until the signal fires. */
  run(copy: (file: string) => Promise<void>, signal: AbortSignal): Promise<never>;
  /** The standby cannot go on with what the stream has. */
  snapshotWanted(): void;
  /**
   * Resolves when a standby could have, from JetStream alone, all that was committed before; rejects with NotShipped when that
   * fails now. What is committed is not taken back.
   */
  kept(): Promise<void>;
  state(): ShippingState;
}

export interface ShippingOptions {
  client: NatsClient;
  snapshots: SnapshotStore;
  vault: Pick<Vault, 'seal'>;
  stream: string;
  subject: string;
  replicas: number;
  epoch: number;
  version: string;
  site: string;
  /** Where the snapshot is made. */
  file: string;
  /** Whether the lease is this gateway's now: no other one has written anything. */
  entitled(): boolean;
  clock: Clock;
  log: Log;
}

export function openShipping(options: ShippingOptions): Shipping {
  const { client, snapshots, vault, stream, subject, epoch, log } = options;
  const waking = openWaking(options.clock);
  const queue = openQueue();
  const kept = openKept();
  let [number, shipped, shippedBytes] = [0, 0, 0];
  let needsSnapshot = true;
  const health = openHealth(log, epoch);
  /** The last one in the stream. */
  let sequence = 0;

  function giveUp(): void {
    queue.clear();
    kept.broken();
    needsSnapshot = true;
    // A number that no message has: a follower sees the gap.
    number += 1;
  }

  function written(one: Written): void {
    kept.committed();
    queue.push(one);
    if (queue.bytes() > WAITING_BYTES_MAX) giveUp();
    waking.wake();
  }

  async function ship(jetStream: JetStream): Promise<void> {
    while (queue.bytes() > 0 && !needsSnapshot) {
      const [{ commits, count }, sent] = [queue.next(), kept.mark()];
      if (!commits) return giveUp();
      // What is given up meanwhile takes a number as well.
      const own = ++number;
      const sealed = vault.seal(encodePages(commits), frameContext(epoch, own));
      const payload = encodeMessage(epoch, own, sealed);
      sequence = await jetStream.publish({ subject, payload }, { stream: sequence });
      shipped = own;
      kept.stored(count, sent);
      shippedBytes += payload.length;
      if (shippedBytes > SHIPPED_BYTES_MAX) needsSnapshot = true;
    }
  }

  async function snapshot(copy: (file: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { version, site, file } = options;
    sequence = await lastSequence(options, signal);
    const replaced = await snapshots.revision(signal);
    // What is written from here on expects what was there while no other gateway could have written.
    if (!options.entitled()) throw new Error(NOT_RENEWED);
    const [first, from] = [sequence + 1, number];
    const mark = kept.mark();
    // Commits from now on are sent as well: those that the copy has already change nothing in it.
    needsSnapshot = false;
    shippedBytes = 0;
    try {
      await copy(file);
      await client.use(ship, signal);
      if (needsSnapshot) return;
      const about = { epoch, version, site, from, wholeAt: number, frames: first };
      await snapshots.put({ file, about, replaced }, signal);
      kept.whole(mark);
      await client.use((jetStream) => jetStream.purge(stream, first), signal);
      log.info({ epoch, from }, 'a snapshot for the standby is stored');
    } finally {
      removeCopy(file);
    }
  }

  async function work(copy: (file: string) => Promise<void>, signal: AbortSignal): Promise<number> {
    try {
      if (needsSnapshot) await snapshot(copy, signal);
      await client.use(ship, signal);
      health.well();
      return needsSnapshot ? 0 : RETRY_MS;
    } catch (thrown) {
      signal.throwIfAborted();
      // Whether the last message is stored is not known.
      giveUp();
      kept.failed(new NotShipped(health.ill(thrown)));
      return RETRY_MS;
    }
  }

  return {
    written,
    snapshotWanted() {
      needsSnapshot = true;
      waking.wake();
    },
    async kept() {
      const error = health.error();
      if (error !== null) throw new NotShipped(error);
      await kept.now();
    },
    state: () => ({ shipped, waitingBytes: queue.bytes(), error: health.error() }),
    run: (copy, signal) => waking.run(signal, () => work(copy, signal)),
  };
}

/** It is said once that it does not work, and once that it does, also at the beginning. */
function openHealth(log: Log, epoch: number) {
  let error: string | null = null;
  let isSaid = false;
  return {
    error: () => error,
    well(): void {
      if (!isSaid) log.info({ epoch }, 'the standby gets the commits');
      isSaid = true;
      error = null;
    },
    ill(thrown: unknown): string {
      if (error === null)
        log.warn(
          { err: thrown },
          'the standby gets nothing, for NATS takes no commits: look at the NATS servers, their disks and the network to them',
        );
      isSaid = false;
      error = thrown instanceof Error ? thrown.message : String(thrown);
      return error;
    },
  };
}

/** Of the stream, which is made unless it is there. */
async function lastSequence(
  { client, stream, subject, replicas }: ShippingOptions,
  signal: AbortSignal,
): Promise<number> {
  const settings = { subjects: [subject], num_replicas: replicas, discard: 'old' };
  await client.use((jetStream) => jetStream.ensureStream(stream, settings), signal);
  const state = await client.use((jetStream) => jetStream.stateOf(stream), signal);
  return state.lastSequence;
}

function removeCopy(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${file}${suffix}`, { force: true });
}

/** Commits that are not sent yet. */
function openQueue() {
  let waiting: Written[] = [];
  let waitingBytes = 0;
  return {
    bytes: () => waitingBytes,
    push(one: Written): void {
      waiting.push(one);
      waitingBytes += bytesOf(one);
    },
    clear(): void {
      waiting = [];
      waitingBytes = 0;
    },
    /** As many commits as one message holds; none when one alone is too large. */
    next(): { commits: Written | undefined; count: number } {
      const taken: Written[] = [];
      let bytes = 0;
      for (let one = waiting[0]; one && bytes + bytesOf(one) <= MESSAGE_BYTES_MAX; one = waiting[0]) {
        bytes += bytesOf(one);
        taken.push(one);
        waiting.shift();
      }
      waitingBytes -= bytes;
      return { commits: merged(taken), count: taken.length };
    },
  };
}

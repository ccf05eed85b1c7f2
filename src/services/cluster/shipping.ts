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
import type { SnapshotStore } from './snapshot-store.ts';

/** Of one message: below the megabyte that a server takes. */
const MESSAGE_BYTES_MAX = 512 * 1_024;
/** Not sent yet: some minutes of a busy site, and less than a snapshot. */
const WAITING_BYTES_MAX = 16 * 1_024 * 1_024;
/** Sent since the last snapshot: more is not kept in the stream, and a standby begins with a newer one. */
const SHIPPED_BYTES_MAX = 64 * 1_024 * 1_024;
const RETRY_MS = 1_000;

export interface ShippingState {
  /** Messages of this epoch that are stored. */
  shipped: number;
  /** Bytes that wait. */
  waitingBytes: number;
  /** Why nothing is sent; null while it is. */
  error: string | null;
}

export interface Shipping {
  /** Of one commit. */
  written(written: Written): void;
  /** `copy`: page by page, of what is committed. Until the signal fires. */
  run(copy: (file: string) => Promise<void>, signal: AbortSignal): Promise<never>;
  /** The standby cannot go on with what the stream has. */
  snapshotWanted(): void;
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
  clock: Clock;
  log: Log;
}

export function openShipping(options: ShippingOptions): Shipping {
  const { client, snapshots, vault, stream, subject, epoch, log } = options;
  const waking = openWaking(options.clock);
  const queue = openQueue();
  let shippedBytes = 0;
  let number = 0;
  let shipped = 0;
  let needsSnapshot = true;
  let error: string | null = 'the first snapshot is being made';
  /** The last one in the stream. */
  let sequence = 0;

  function giveUp(): void {
    queue.clear();
    needsSnapshot = true;
    // A number that no message has: whoever follows sees the gap.
    number += 1;
  }

  function written(one: Written): void {
    queue.push(one);
    if (queue.bytes() > WAITING_BYTES_MAX) giveUp();
    waking.wake();
  }

  async function ship(jetStream: JetStream): Promise<void> {
    while (queue.bytes() > 0 && !needsSnapshot) {
      const commits = queue.next();
      if (!commits) return giveUp();
      number += 1;
      const sealed = vault.seal(encodePages(commits), frameContext(epoch, number));
      const payload = encodeMessage(epoch, number, sealed);
      sequence = await jetStream.publish({ subject, payload }, { stream: sequence });
      shipped = number;
      shippedBytes += payload.length;
      if (shippedBytes > SHIPPED_BYTES_MAX) needsSnapshot = true;
    }
  }

  async function snapshot(copy: (file: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { replicas, version, site, file } = options;
    const settings = { subjects: [subject], num_replicas: replicas, discard: 'old' };
    await client.use((jetStream) => jetStream.ensureStream(stream, settings), signal);
    const state = await client.use((jetStream) => jetStream.stateOf(stream), signal);
    sequence = state.lastSequence;
    const first = state.lastSequence + 1;
    const from = number;
    // Commits from now on are sent as well: those that the copy has already change nothing in it.
    needsSnapshot = false;
    try {
      await copy(file);
      await client.use(ship, signal);
      if (needsSnapshot) return;
      const about = { epoch, version, site, from, wholeAt: number, frames: first };
      await snapshots.put(file, about, signal);
      await client.use((jetStream) => jetStream.purge(stream, first), signal);
      shippedBytes = 0;
      log.info({ epoch, from }, 'a snapshot for the standby is stored');
    } finally {
      for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${file}${suffix}`, { force: true });
    }
  }

  async function work(copy: (file: string) => Promise<void>, signal: AbortSignal): Promise<number> {
    try {
      if (needsSnapshot) await snapshot(copy, signal);
      await client.use(ship, signal);
      if (error !== null) log.info({ epoch }, 'the standby gets the commits');
      error = null;
      return needsSnapshot ? 0 : RETRY_MS;
    } catch (thrown) {
      signal.throwIfAborted();
      // Whether the last message is stored is not known.
      giveUp();
      if (error === null) log.warn({ err: thrown }, 'the standby gets nothing: NATS takes no commits');
      error = thrown instanceof Error ? thrown.message : String(thrown);
      return RETRY_MS;
    }
  }

  return {
    written,
    snapshotWanted() {
      needsSnapshot = true;
      waking.wake();
    },
    state: () => ({ shipped, waitingBytes: queue.bytes(), error }),
    run: (copy, signal) => waking.run(signal, () => work(copy, signal)),
  };
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
    /** As many as one message holds; undefined when one alone is too large. */
    next(): Written | undefined {
      const taken: Written[] = [];
      let bytes = 0;
      for (let one = waiting[0]; one && bytes + bytesOf(one) <= MESSAGE_BYTES_MAX; one = waiting[0]) {
        bytes += bytesOf(one);
        taken.push(one);
        waiting.shift();
      }
      waitingBytes -= bytes;
      return merged(taken);
    },
  };
}

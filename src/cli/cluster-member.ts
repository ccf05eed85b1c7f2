/**
 * What `serve` does in a cluster before it opens the gateway: it waits until this one is the active one, follows the other meanwhile,
 * and puts the copy in the place of the database when it takes over. When another one has become active the process
 * ends, and systemd starts it again as the standby.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openDeadline } from '../../drivers/contract/waiting.ts';
import type { Membership, Takeover } from '../app/services.ts';
import { VERSION } from '../app/version.ts';
import { type Acting, actingUntil } from '../platform/acting.ts';
import type { Clock } from '../platform/clock.ts';
import type { ClusterConfig } from '../platform/config/cluster.ts';
import type { Log } from '../platform/log.ts';
import { openNatsClient } from '../platform/nats/client.ts';
import { openVault } from '../platform/vault.ts';
import { openBucket } from '../services/cluster/bucket.ts';
import { openCommitment } from '../services/cluster/commitment.ts';
import type { Copy } from '../services/cluster/copy.ts';
import { type Follower, openFollower } from '../services/cluster/follower.ts';
import { CLOSING_MS, type Ending, type Lease, openLease, type Tenure } from '../services/cluster/lease.ts';
import { type OwnState, openOwnState } from '../services/cluster/own-state.ts';
import { openShipping, type Shipping } from '../services/cluster/shipping.ts';
import { openSnapshotStore } from '../services/cluster/snapshot-store.ts';
import type { ClusterState } from '../services/status/status.ts';
import { takeOver } from './cluster-copy.ts';

/** For an answer of JetStream, and for a connection: three fit into a lease. */
const ANSWER_MS = 1_000;
const CONNECT_MS = 2_000;
/** For what the stream has that the copy has not, when another gateway has gone. */
const FINISH_MS = 3_000;
/** Of a message that is read: half a megabyte of pages as base64, and JSON around it. */
const LONGEST_BYTES = 1_200_000;
/** A standby that cannot go on is given a new snapshot that often at most. */
const SNAPSHOT_EVERY_MS = 30_000;

const LAPSED =
  'the lease cannot be renewed, and the standby may be active: look at the NATS servers and the network to them (gatehouse cluster status)';

export interface Member extends Membership {
  takeover: Takeover | undefined;
  ended: Promise<Ending>;
  /** After the gateway is closed, whose time was over. */
  release(): Promise<void>;
  /** Milliseconds until nothing may be held any more; undefined: there is no such time. */
  leftMs(): number | undefined;
}

export interface JoinOptions {
  cluster: ClusterConfig;
  dataDirectory: string;
  clock: Clock;
  log: Log;
  /** The standby works, and this is what it waits for. */
  waiting(reason: string): void;
}

/** What both sides, and the commands, have of a cluster. */
export function openClusterParts({ cluster, dataDirectory, clock }: Omit<JoinOptions, 'waiting' | 'log'>) {
  const vaultFile = join(dataDirectory, 'keys', 'vault.key');
  if (!existsSync(vaultFile))
    throw new Error(
      `cluster: ${vaultFile} is missing: start this gateway once without cluster, or restore an archive of the other gateway here`,
    );
  const vault = openVault(vaultFile, { create: false });
  const { bucket: name, replicas, urls } = cluster;
  const settings = { ...cluster, name: `gatehouse-${cluster.name}`, longest: LONGEST_BYTES };
  const client = openNatsClient({
    settings: { ...settings, connectMs: CONNECT_MS },
    urls,
    clock,
    answerMs: ANSWER_MS,
  });
  return {
    vault,
    client,
    bucket: openBucket({ client, name, replicas }),
    snapshots: openSnapshotStore({ client, bucket: name, replicas, vault }),
    stream: `${name}-commits`,
    identity: { name: cluster.name, site: vault.digest('cluster', name), version: VERSION },
  };
}

/** Resolves when this gateway is the active one; rejects with the signal's reason. */
export async function joinCluster(options: JoinOptions, signal: AbortSignal): Promise<Member> {
  const { dataDirectory, clock, log } = options;
  const parts = openClusterParts(options);
  const folder = join(dataDirectory, 'cluster');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const own = openOwnState(join(folder, 'state.json'));
  // The instance is drawn once.
  await own.change({});
  const { instance } = own.current;
  const follower = openFollower({ ...parts, folder: join(folder, 'copy'), instance, clock, log });
  const lease = openLease({ ...parts, own, clock, log });
  const tenure = await acquired(options, { lease, follower }, signal);
  const over = new AbortController();
  const running = AbortSignal.any([signal, over.signal]);
  void tenure.keep(running);
  const takeover = await placed(options, { own, follower }, signal);
  const { acting, shipping, ...acts } = actingBy(tenure, parts, options, running);
  return {
    ...acts,
    acting,
    shipping,
    takeover,
    ended: tenure.ended,
    async release() {
      over.abort();
      await tenure.release();
      parts.client[Symbol.dispose]();
    },
    leftMs() {
      const left = tenure.until() - clock.monotonic();
      return left === Number.POSITIVE_INFINITY ? undefined : Math.max(0, left);
    },
  };
}

/** The standby follows until it is the active one. */
async function acquired(
  { cluster, log, waiting }: JoinOptions,
  { lease, follower }: { lease: Lease; follower: Follower },
  signal: AbortSignal,
): Promise<Tenure> {
  const stop = new AbortController();
  let following: Promise<void> | undefined;
  try {
    const said = (reason: string) => {
      log.info({ name: cluster.name }, `standby: ${reason}`);
      waiting(reason);
      // Not where it has the lease at once: a copy of its own work would be of no use.
      following ??= follower.run(AbortSignal.any([signal, stop.signal]));
    };
    return await lease.acquire(said, signal);
  } finally {
    stop.abort();
    await following;
  }
}

/** What the active one may do while its tenure lasts, and sends to the standby. */
function actingBy(
  tenure: Tenure,
  parts: ReturnType<typeof openClusterParts>,
  { cluster, dataDirectory, clock, log }: JoinOptions,
  running: AbortSignal,
): Pick<Member, 'acting' | 'commitment' | 'state'> & { shipping: Shipping } {
  const shipping = openShipping({
    ...parts,
    replicas: cluster.replicas,
    subject: `${cluster.bucket}.commits`,
    epoch: tenure.epoch,
    version: VERSION,
    site: parts.identity.site,
    file: join(dataDirectory, 'cluster', 'snapshot.db'),
    entitled: () => clock.monotonic() < tenure.until(),
    clock,
    log,
  });
  const acting = actingUntil(tenure.until, CLOSING_MS, clock);
  void watchFollower(tenure, shipping, clock, running);
  void sayLapses(acting, log, running).catch(() => undefined);
  return {
    acting,
    shipping,
    commitment: openCommitment({ acting, durability: cluster.durability, shipping, clock }),
    state: () => stateOf(cluster, { tenure, acting, shipping, clock }),
  };
}

interface Placing {
  own: OwnState;
  follower: Follower;
}

/** Undefined: this gateway was the active one before, and its own database is the newest. Again until the database has recorded it. */
async function placed(
  options: JoinOptions,
  { own, follower }: Placing,
  signal: AbortSignal,
): Promise<Takeover | undefined> {
  if (own.current.unplaced === null) return undefined;
  return takeOver(options, own, await finished(options, follower, signal));
}

/** With all that the stream has. What is not read in time is lost with `local`; with `quorum` it was answered, and is waited for. */
async function finished(
  { cluster, clock, log }: JoinOptions,
  follower: Follower,
  signal: AbortSignal,
): Promise<Copy | undefined> {
  for (;;) {
    using deadline = openDeadline(FINISH_MS, clock, () => undefined);
    try {
      return await follower.finish(AbortSignal.any([signal, deadline.signal]));
    } catch (err) {
      signal.throwIfAborted();
      if (cluster.durability === 'local') {
        log.warn({ err }, 'what the stream has last could not be read: the copy is used as it is');
        return follower.copy();
      }
      log.warn({ err }, 'what the stream has last could not be read, and is waited for');
      await clock.sleep(FINISH_MS, signal);
    }
  }
}

/** What the status shows. */
function stateOf(
  { name, durability }: ClusterConfig,
  { tenure, acting, shipping, clock }: Pick<Member, 'acting'> & Parts,
): ClusterState {
  const { shipped, waitingBytes, error } = shipping.state();
  const heard = tenure.follower();
  const standby = heard && {
    name: heard.record.name,
    takesOver: tenure.standby() === heard.record.name,
    reason: heard.record.reason,
    behind: heard.record.position === null ? null : Math.max(0, shipped - heard.record.position),
    seenSeconds: heard.ageMs / 1_000,
  };
  const acts = clock.monotonic() < acting.until();
  const { epoch } = tenure;
  return { name, epoch, acts, durability, standby: standby ?? null, waitingBytes, lastError: error };
}

interface Parts {
  tenure: Tenure;
  shipping: Shipping;
  clock: Clock;
}

/** Before links are closed, and after: once each. */
async function sayLapses(acting: Acting, log: Log, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await acting.over(signal);
    if (signal.aborted) return;
    log.error(
      {},
      `${LAPSED}. This gateway closes its links and moves nothing until it is; it answers what is read`,
    );
    await acting.begun(signal);
    log.info({}, 'the lease is renewed: this gateway opens its links again');
  }
}

async function watchFollower(
  tenure: Tenure,
  shipping: Shipping,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let givenAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const lacks = tenure.follower()?.record.lacksSnapshot === true;
    if (lacks && clock.monotonic() - givenAt >= SNAPSHOT_EVERY_MS) {
      if (givenAt !== Number.NEGATIVE_INFINITY) shipping.snapshotWanted();
      givenAt = clock.monotonic();
    }
    await clock.sleep(1_000, signal).catch(() => undefined);
  }
}

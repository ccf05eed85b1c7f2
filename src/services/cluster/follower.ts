/** The standby's side: fetches a snapshot, applies the commits behind it, and says in the bucket how far it is and whether it could take over. */
import type { Clock } from '../../platform/clock.ts';
import type { Written } from '../../platform/database/write-ahead-log.ts';
import type { Log } from '../../platform/log.ts';
import type { NatsClient } from '../../platform/nats/client.ts';
import { JetStreamError, type StoredMessage } from '../../platform/nats/jetstream.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Bucket } from './bucket.ts';
import { type Copy, openCopy, type Position } from './copy.ts';
import { decodeMessage, decodePages, frameContext, merged } from './frames.ts';
import type { Identity } from './lease.ts';
import { DamagedSnapshot, type SnapshotDetails, type SnapshotStore } from './snapshot-store.ts';

/** Between two looks at the stream: what the copy is behind, at most, while all is well. */
const LOOK_EVERY_MS = 250;
const ANNOUNCE_EVERY_MS = 1_000;
/** Read and applied at once: some megabytes. */
const MESSAGES_AT_ONCE = 64;

export interface FollowerState {
  ready: boolean;
  /** Why it could not take over now. */
  reason: string | null;
  position: number | null;
}

export interface Follower {
  /** Until the signal fires. */
  run(signal: AbortSignal): Promise<void>;
  /** Applies what there is. Resolves with the file; undefined: there is no copy that could be used. */
  finish(signal: AbortSignal): Promise<Copy | undefined>;
  /** As it is; undefined: there is none that could be used. */
  copy(): Copy | undefined;
  state(): FollowerState;
}

export interface FollowerOptions {
  client: NatsClient;
  bucket: Bucket;
  snapshots: SnapshotStore;
  vault: Pick<Vault, 'open'>;
  stream: string;
  folder: string;
  identity: Identity;
  instance: string;
  clock: Clock;
  log: Log;
}

const NO_SNAPSHOT = 'it waits for a snapshot of the active gateway';

export function openFollower(options: FollowerOptions): Follower {
  const { client, bucket, snapshots, vault, stream, identity, instance, clock, log } = options;
  const copy = openCopy(options.folder);
  let reason: string | null = NO_SNAPSHOT;
  /** It cannot be used, or does not reach to what the stream has. */
  let spoilt = '';
  let lacksSnapshot = copy.position === undefined;

  function unusable(why: string, nuid = copy.position?.nuid ?? ''): void {
    if (reason !== why) log.warn({ reason: why }, `the standby cannot follow: ${why}`);
    reason = why;
    spoilt = nuid;
    lacksSnapshot = true;
  }

  async function fetch(found: SnapshotDetails, signal: AbortSignal): Promise<void> {
    const { epoch, version, site, from, wholeAt, frames } = found.options;
    if (site !== identity.site)
      return unusable('the snapshot is of another site: use another cluster.bucket', found.nuid);
    if (version !== identity.version)
      return unusable(
        `the active gateway has version ${version} and this one ${identity.version}: bring both to the same version`,
        found.nuid,
      );
    try {
      await snapshots.fetch(found, copy.incoming, signal);
    } catch (error) {
      if (!(error instanceof DamagedSnapshot)) throw error;
      return unusable(`the snapshot is damaged: ${error.message}; another one is asked for`, found.nuid);
    }
    copy.begin({ nuid: found.nuid, epoch, number: from, wholeAt, next: frames, version });
    lacksSnapshot = false;
    log.info({ epoch, from }, 'the standby has a snapshot');
  }

  /** How many messages were taken. */
  async function apply(signal: AbortSignal): Promise<number> {
    const at = copy.position;
    if (!at) return 0;
    const messages = await client.use(
      (jetStream) => jetStream.read(stream, at.next, MESSAGES_AT_ONCE),
      signal,
    );
    const { commits, number, next, fault } = taken(messages, at, vault);
    if (fault !== undefined) unusable(fault);
    const pages = merged(commits);
    if (pages) copy.apply(pages, { ...at, number, next });
    return messages.length;
  }

  async function follow(signal: AbortSignal): Promise<void> {
    const found = await newest(snapshots, signal);
    if (found instanceof DamagedSnapshot) return unusable(`${found.message}; another one is asked for`);
    if (found && found.nuid !== spoilt && (lacksSnapshot || isAhead(found, copy.position)))
      await fetch(found, signal);
    if (lacksSnapshot) return;
    while ((await apply(signal)) === MESSAGES_AT_ONCE && !lacksSnapshot) signal.throwIfAborted();
    if (!lacksSnapshot) reason = copy.isWhole ? null : 'its snapshot is not whole yet';
  }

  const state = (): FollowerState => {
    return { ready: reason === null, reason, position: copy.position?.number ?? null };
  };

  const whole = () => (copy.isWhole ? copy : undefined);

  return {
    state,
    copy: whole,
    async run(signal) {
      let announcedAt = Number.NEGATIVE_INFINITY;
      for (let beat = 0; !signal.aborted; beat += 1) {
        try {
          await follow(signal);
          if (clock.monotonic() - announcedAt < ANNOUNCE_EVERY_MS) continue;
          announcedAt = clock.monotonic();
          const record = { ...identity, instance, ...state(), lacksSnapshot, beat };
          await bucket.write('standby', record, undefined, signal);
        } catch (error) {
          if (signal.aborted) return;
          log.debug({ err: error }, 'the standby could not follow');
        } finally {
          await clock.sleep(LOOK_EVERY_MS, signal).catch(() => undefined);
        }
      }
    },
    async finish(signal) {
      while ((await apply(signal)) > 0 && !lacksSnapshot) signal.throwIfAborted();
      return whole();
    },
  };
}

async function newest(snapshots: SnapshotStore, signal: AbortSignal) {
  try {
    return await snapshots.newest(signal);
  } catch (error) {
    if (error instanceof DamagedSnapshot) return error;
    if (error instanceof JetStreamError && error.kind === 'absent') return undefined;
    throw error;
  }
}

/** It has what the copy lacks, and no message brings any more. */
function isAhead({ nuid, options: { epoch, from } }: SnapshotDetails, at: Position | undefined): boolean {
  if (!at || nuid === at.nuid) return false;
  return epoch > at.epoch || (epoch === at.epoch && from > at.number);
}

/** The commits behind what the copy has, up to a gap or a message of another epoch. */
function taken(messages: readonly StoredMessage[], at: Position, vault: Pick<Vault, 'open'>) {
  const commits: Written[] = [];
  let { number, next } = at;
  let fault: string | undefined;
  for (const { sequence, payload } of messages) {
    const message = decodeMessage(payload);
    if (message && message.epoch > at.epoch) fault = NO_SNAPSHOT;
    // Of an earlier epoch: of a gateway that was replaced.
    const isNext = message?.epoch === at.epoch && message.number > number;
    if (isNext && message.number !== number + 1)
      fault = 'commits are missing in the stream: another snapshot is asked for';
    if (fault !== undefined) break;
    next = sequence + 1;
    if (!isNext) continue;
    commits.push(decodePages(vault.open(message.sealed, frameContext(message.epoch, message.number))));
    number = message.number;
  }
  return { commits, number, next, fault };
}

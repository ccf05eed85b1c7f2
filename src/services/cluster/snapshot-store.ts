/**
 * Snapshots of the database in the object store (NATS ADR-20: chunks on $O.<bucket>.C.<nuid>, and what they are on
 * $O.<bucket>.M.<name>). Each chunk is sealed on its own and bound to its place.
 */
import { createHash, randomUUID } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { z } from 'zod';
import type { NatsClient } from '../../platform/nats/client.ts';
import type { Vault } from '../../platform/vault.ts';

/** As other clients of an object store have it. */
const CHUNK_BYTES = 128 * 1_024;
const CHUNKS_AT_ONCE = 16;
const NAME = Buffer.from('database').toString('base64url');

const details = z.object({
  name: z.literal('database'),
  bucket: z.string(),
  nuid: z.string(),
  size: z.int(),
  chunks: z.int(),
  digest: z.string(),
  options: z.object({
    epoch: z.int(),
    version: z.string(),
    site: z.string(),
    /** Messages of the epoch that are in it, and the one from which on it is whole. */
    from: z.int(),
    wholeAt: z.int(),
    /** In the stream: of its first chunk, and of the frames behind it. */
    firstChunk: z.int(),
    frames: z.int(),
  }),
});
export type SnapshotDetails = z.output<typeof details>;
type About = Omit<SnapshotDetails['options'], 'firstChunk'>;

/** It cannot be used: the message is for the operator, and another snapshot mends it. */
export class DamagedSnapshot extends Error {}

export interface SnapshotStore {
  /** In the place of what had the revision; rejects when another one has taken that place. */
  put(snapshot: { file: string; about: About; replaced: number }, signal: AbortSignal): Promise<void>;
  /** Of what describes the newest one; 0 for none. */
  revision(signal: AbortSignal): Promise<number>;
  /** What there is to fetch. */
  newest(signal: AbortSignal): Promise<SnapshotDetails | undefined>;
  /** Into a new file. Throws DamagedSnapshot. */
  fetch(snapshot: SnapshotDetails, file: string, signal: AbortSignal): Promise<void>;
}

export interface SnapshotStoreOptions {
  client: NatsClient;
  bucket: string;
  replicas: number;
  vault: Pick<Vault, 'seal' | 'open'>;
}

export function openSnapshotStore({ client, bucket, replicas, vault }: SnapshotStoreOptions): SnapshotStore {
  const stream = `OBJ_${bucket}`;
  const chunkSubject = (nuid: string) => `$O.${bucket}.C.${nuid}`;
  const detailsSubject = `$O.${bucket}.M.${NAME}`;
  const context = (nuid: string, chunk: number) => `cluster snapshot ${nuid} ${chunk}`;
  const settings = {
    subjects: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
    num_replicas: replicas,
    discard: 'new',
    allow_rollup_hdrs: true,
  };
  return {
    revision: (signal) =>
      client.use(async (jetStream) => {
        await jetStream.ensureStream(stream, settings);
        return (await jetStream.last(stream, detailsSubject))?.sequence ?? 0;
      }, signal),
    put: ({ file, about, replaced }, signal) =>
      client.use(async (jetStream) => {
        const nuid = randomUUID().replaceAll('-', '');
        const descriptor = openSync(file, 'r');
        const hash = createHash('sha256');
        let [size, chunks, firstChunk] = [0, 0, 0];
        try {
          const buffer = Buffer.alloc(CHUNK_BYTES);
          for (let left = fstatSync(descriptor).size; left > 0; chunks += 1) {
            const bytes = readSync(descriptor, buffer, 0, CHUNK_BYTES, null);
            if (bytes === 0) throw new Error(`${file} became shorter while it was read`);
            left -= bytes;
            const payload = vault.seal(buffer.subarray(0, bytes), context(nuid, chunks));
            size += payload.length;
            hash.update(payload);
            const sequence = await jetStream.publish({ subject: chunkSubject(nuid), payload });
            if (chunks === 0) firstChunk = sequence;
          }
        } finally {
          closeSync(descriptor);
        }
        const digest = `SHA-256=${hash.digest('base64url')}`;
        const options = { ...about, firstChunk };
        const value: SnapshotDetails = { name: 'database', bucket, nuid, size, chunks, digest, options };
        const payload = JSON.stringify(value);
        await jetStream.publish({ subject: detailsSubject, payload }, { subject: replaced });
        // What is older is of no use any more: the frames that follow it go, too.
        await jetStream.purge(stream, firstChunk);
      }, signal),
    newest: (signal) =>
      client.use(async (jetStream) => {
        const found = await jetStream.last(stream, detailsSubject);
        if (!found) return undefined;
        try {
          return details.parse(JSON.parse(found.payload.toString()));
        } catch (cause) {
          throw new DamagedSnapshot('what describes the snapshot is damaged', { cause });
        }
      }, signal),
    fetch: (snapshot, file, signal) =>
      client.use(async (jetStream) => {
        const descriptor = openSync(file, 'w', 0o600);
        const hash = createHash('sha256');
        try {
          let next = snapshot.options.firstChunk;
          for (let chunk = 0; chunk < snapshot.chunks; ) {
            const messages = await jetStream.read(stream, next, CHUNKS_AT_ONCE);
            const last = messages.at(-1);
            if (!last) throw new DamagedSnapshot(`${snapshot.chunks - chunk} of its chunks are missing`);
            next = last.sequence + 1;
            for (const { subject, payload } of messages) {
              if (subject !== chunkSubject(snapshot.nuid)) continue;
              hash.update(payload);
              writeSync(descriptor, opened(vault, payload, context(snapshot.nuid, chunk)));
              chunk += 1;
            }
          }
          if (`SHA-256=${hash.digest('base64url')}` !== snapshot.digest)
            throw new DamagedSnapshot('its digest is another one');
          fsyncSync(descriptor);
        } finally {
          closeSync(descriptor);
        }
      }, signal),
  };
}

function opened(vault: Pick<Vault, 'open'>, payload: Buffer, context: string): Buffer {
  try {
    return vault.open(payload, context);
  } catch (cause) {
    throw new DamagedSnapshot('a chunk does not open: it was changed, or sealed with another vault key', {
      cause,
    });
  }
}

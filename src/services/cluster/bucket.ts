/** The key-value bucket of a cluster in JetStream (NATS ADR-8: a stream KV_<bucket> with a subject $KV.<bucket>.<key> for each key). */
import type { z } from 'zod';
import type { NatsClient } from '../../platform/nats/client.ts';
import { type JetStream, JetStreamError } from '../../platform/nats/jetstream.ts';
import { leaseRecord, type Records, standbyRecord, wantedRecord } from './record.ts';

const KEYS = { lease: leaseRecord, standby: standbyRecord, wanted: wantedRecord } as const;
export type Key = keyof typeof KEYS;

/** What is in the bucket is none of Gatehouse's, or of a version that this one does not know. */
class ForeignBucket extends Error {}

export interface Bucket {
  read(signal: AbortSignal): Promise<Records>;
  /**
   * Resolves with the new revision. `expected`: the revision of the key, 0 for none. Rejects with a JetStreamError of the kind
   * `conflict` when it has another one.
   */
  write<K extends Key>(
    key: K,
    value: z.input<(typeof KEYS)[K]>,
    expected: number | undefined,
    signal: AbortSignal,
  ): Promise<number>;
}

export interface BucketOptions {
  client: NatsClient;
  name: string;
  /** Of the stream below it. */
  replicas: number;
}

export function openBucket({ client, name, replicas }: BucketOptions): Bucket {
  const stream = `KV_${name}`;
  const subjectOf = (key: Key) => `$KV.${name}.${key}`;
  const settings = {
    subjects: [`$KV.${name}.>`],
    num_replicas: replicas,
    max_msgs_per_subject: 1,
    discard: 'new',
    allow_rollup_hdrs: true,
    deny_delete: true,
  };

  async function get<K extends Key>(jetStream: JetStream, key: K) {
    const found = await jetStream.last(stream, subjectOf(key));
    // A key that was deleted by hand has an empty value.
    if (!found || found.payload.length === 0) return undefined;
    return { value: parsed(key, found.payload, name), revision: found.sequence };
  }

  return {
    read: (signal) =>
      client.use(async (jetStream) => {
        const [lease, standby, wanted] = await Promise.all([
          get(jetStream, 'lease'),
          get(jetStream, 'standby'),
          get(jetStream, 'wanted'),
        ]);
        return { lease, standby, wanted };
      }, signal),
    write: (key, value, expected, signal) =>
      client.use(async (jetStream) => {
        const subject = subjectOf(key);
        const put = () =>
          jetStream.publish(
            { subject, payload: JSON.stringify(value) },
            expected === undefined ? {} : { subject: expected },
          );
        try {
          return await put();
        } catch (error) {
          if (!(error instanceof JetStreamError && error.kind === 'absent')) throw error;
          await jetStream.ensureStream(stream, settings);
          return put();
        }
      }, signal),
  };
}

function parsed<K extends Key>(key: K, payload: Buffer, bucket: string): z.output<(typeof KEYS)[K]> {
  try {
    const schema: z.ZodType = KEYS[key];
    return schema.parse(JSON.parse(payload.toString())) as z.output<(typeof KEYS)[K]>;
  } catch (cause) {
    const message = `what is in the bucket ${bucket} is not of a Gatehouse of this version: use another cluster.bucket, or the same version on both gateways`;
    throw new ForeignBucket(message, { cause });
  }
}

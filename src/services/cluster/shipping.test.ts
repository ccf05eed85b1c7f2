/** What is sent to JetStream, and when a snapshot is, without a server. */
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { runUntilTestEnds } from '../../../test/until-test-ends.ts';
import { systemClock as clock } from '../../platform/clock.ts';
import { silentLog } from '../../platform/log.ts';
import type { NatsClient } from '../../platform/nats/client.ts';
import type { JetStream } from '../../platform/nats/jetstream.ts';
import { openShipping } from './shipping.ts';
import type { SnapshotStore } from './snapshot-store.ts';

const COMMIT = { pageBytes: 4_096, pages: 1, changed: [{ number: 1, bytes: Buffer.alloc(4_096) }] };
/** Two of these are more than the stream keeps. */
const SEALED = Buffer.alloc(40 * 1_024 * 1_024);

it('stores a snapshot once the stream has enough, also where there are commits while each copy is made', async () => {
  let sequence = 0;
  const jetStream: Partial<JetStream> = {
    ensureStream: async () => undefined,
    stateOf: async () => ({ firstSequence: 1, lastSequence: sequence, messages: sequence, bytes: 0 }),
    publish: async () => ++sequence,
    purge: async () => undefined,
  };
  const client: Pick<NatsClient, 'use'> = { use: (work) => work(jetStream as JetStream) };
  let [copies, stored] = [0, 0];
  const snapshots: Pick<SnapshotStore, 'revision' | 'put'> = {
    revision: async () => 0,
    async put() {
      stored += 1;
    },
  };
  const shipping = openShipping({
    client: client as NatsClient,
    snapshots: snapshots as SnapshotStore,
    vault: { seal: () => SEALED },
    stream: 'commits',
    subject: 'commits',
    replicas: 1,
    epoch: 1,
    version: '1',
    site: 'one',
    file: `${temporaryFolder()}/snapshot.db`,
    entitled: () => true,
    clock,
    log: silentLog,
  });
  runUntilTestEnds((signal) =>
    shipping.run(async () => {
      copies += 1;
      // Not for ever: where none is stored, the test ends all the same.
      if (copies < 5) shipping.written(COMMIT);
    }, signal),
  );
  await expect.poll(() => stored).toBe(1);
  shipping.written(COMMIT);
  await expect.poll(() => stored).toBe(2);
  expect(copies).toBe(2);
});

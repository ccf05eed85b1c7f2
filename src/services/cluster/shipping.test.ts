/** What is sent to JetStream, and when a snapshot is, without a server. */
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { runUntilTestEnds } from '../../../test/until-test-ends.ts';
import { systemClock as clock } from '../../platform/clock.ts';
import { silentLog } from '../../platform/log.ts';
import type { NatsClient } from '../../platform/nats/client.ts';
import type { JetStream } from '../../platform/nats/jetstream.ts';
import { decodeMessage } from './frames.ts';
import { openShipping, type Shipping } from './shipping.ts';
import type { SnapshotStore } from './snapshot-store.ts';

const COMMIT = { pageBytes: 4_096, pages: 1, changed: [{ number: 1, bytes: Buffer.alloc(4_096) }] };
/** Two of these are more than the stream keeps. */
const SEALED = Buffer.alloc(40 * 1_024 * 1_024);
/** More than may wait. */
const TOO_MUCH = { ...COMMIT, pageBytes: 17 * 1_024 * 1_024 };

interface Played {
  publish?: JetStream['publish'];
  sealed?: Buffer;
  /** At each copy. */
  copied?: (shipping: Shipping) => void;
}

/** With a server that takes everything. */
function openPlayed({ publish, sealed = Buffer.alloc(1), copied = () => undefined }: Played) {
  let [sequence, stored] = [0, 0];
  const jetStream: Partial<JetStream> = {
    ensureStream: async () => undefined,
    stateOf: async () => ({ firstSequence: 1, lastSequence: sequence, messages: sequence, bytes: 0 }),
    publish: async (...message) => {
      await publish?.(...message);
      return ++sequence;
    },
    purge: async () => undefined,
  };
  const client: Pick<NatsClient, 'use'> = { use: (work) => work(jetStream as JetStream) };
  const snapshots: Pick<SnapshotStore, 'revision' | 'put'> = {
    revision: async () => 0,
    async put() {
      stored += 1;
    },
  };
  const shipping = openShipping({
    client: client as NatsClient,
    snapshots: snapshots as SnapshotStore,
    vault: { seal: () => sealed },
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
  runUntilTestEnds((signal) => shipping.run(async () => copied(shipping), signal));
  return { shipping, stored: () => stored };
}

it('stores a snapshot once the stream has enough, also where there are commits while each copy is made', async () => {
  let copies = 0;
  const { shipping, stored } = openPlayed({
    sealed: SEALED,
    copied({ written }) {
      copies += 1;
      // Not for ever: where none is stored, the test ends all the same.
      if (copies < 5) written(COMMIT);
    },
  });
  await expect.poll(stored).toBe(1);
  shipping.written(COMMIT);
  await expect.poll(stored).toBe(2);
  expect(copies).toBe(2);
});

it('says of a message the number that it has, also where the queue has overflowed while it was sent', async () => {
  const numbers: (number | undefined)[] = [];
  const { shipping, stored } = openPlayed({
    async publish({ payload }) {
      numbers.push(decodeMessage(Buffer.from(payload))?.number);
      if (numbers.length === 1) shipping.written(TOO_MUCH);
      return 0;
    },
  });
  await expect.poll(stored).toBe(1);
  shipping.written(COMMIT);
  await expect.poll(stored).toBe(2);
  expect(numbers).toEqual([1]);
  expect(shipping.state().shipped).toBe(1);
});

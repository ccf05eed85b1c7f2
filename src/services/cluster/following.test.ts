/** A database and the copy that follows it through the JetStream of nats-server from Debian. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, onTestFinished, vi } from 'vitest';
import { natsMissing, openNats, type TestNats } from '../../../test/services/events/nats.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { systemClock } from '../../platform/clock.ts';
import { openConnection } from '../../platform/database/connection.ts';
import { openDatabase } from '../../platform/database/database.ts';
import { silentLog } from '../../platform/log.ts';
import { openNatsClient } from '../../platform/nats/client.ts';
import { openVault } from '../../platform/vault.ts';
import { openBucket } from './bucket.ts';
import { openFollower } from './follower.ts';
import { NotShipped } from './kept.ts';
import { openShipping } from './shipping.ts';
import { openSnapshotStore } from './snapshot-store.ts';

const BUCKET = 'site';
const STREAM = `${BUCKET}-commits`;
const keyFolder = mkdtempSync(join(tmpdir(), 'gatehouse-following-'));
afterAll(() => rmSync(keyFolder, { recursive: true }));
const keys = join(keyFolder, 'vault.key');
const clock = systemClock;

function partsOf(nats: TestNats, { keyFile = keys } = {}) {
  const settings = { name: 'test', longest: 1_200_000, connectMs: 1_000 };
  const client = openNatsClient({ settings, urls: [nats.url], clock, answerMs: 1_000 });
  onTestFinished(() => client[Symbol.dispose]());
  const vault = openVault(keyFile);
  return {
    client,
    vault,
    bucket: openBucket({ client, name: BUCKET, replicas: 1 }),
    snapshots: openSnapshotStore({ client, bucket: BUCKET, replicas: 1, vault }),
    stream: STREAM,
    clock,
    log: silentLog,
  };
}

/** A gateway's database, which ships what it commits. */
async function active(nats: TestNats, { entitled = () => true }: { entitled?: () => boolean } = {}) {
  const folder = temporaryFolder();
  const parts = partsOf(nats);
  const shipping = openShipping({
    ...parts,
    subject: `${BUCKET}.commits`,
    replicas: 1,
    epoch: 1,
    version: '1',
    site: 'one',
    file: join(folder, 'snapshot.db'),
    entitled,
  });
  const file = join(folder, 'gatehouse.db');
  const options = { file, monotonic: clock.monotonic, failed: () => undefined };
  const database = await openDatabase({ ...options, written: shipping.written });
  await database.commit(() =>
    database.prepare('CREATE TABLE follow (id INTEGER PRIMARY KEY, text TEXT)').run(),
  );
  const insert = database.prepare<[string]>('INSERT INTO follow (text) VALUES (?)');
  const stop = new AbortController();
  const running = shipping.run(database.copyTo, stop.signal).catch(() => undefined);
  onTestFinished(async () => {
    stop.abort();
    await running;
    await database[Symbol.asyncDispose]();
  });
  const write = (text: string) => database.commit(() => insert.run(text));
  return { shipping, write };
}

function standby(
  nats: TestNats,
  { site = 'one', version = '1', folder = temporaryFolder(), keyFile = keys } = {},
) {
  const identity = { name: 'b', site, version };
  const instance = '11111111-2222-4333-8444-555555555555';
  const follower = openFollower({ ...partsOf(nats, { keyFile }), folder, identity, instance });
  const stop = new AbortController();
  const running = follower.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return {
    folder,
    state: follower.state,
    async texts(): Promise<string[]> {
      const copy = join(temporaryFolder(), 'copy.db');
      copyFileSync(join(folder, 'copy.db'), copy);
      using connection = openConnection(copy);
      expect(connection.pragma('integrity_check')).toBe('ok');
      return connection
        .prepare<[], { text: string }>('SELECT text FROM follow ORDER BY id')
        .all()
        .map(({ text }) => text);
    },
    async end() {
      stop.abort();
      await running;
    },
  };
}

const until = (condition: () => void) => vi.waitFor(condition, { interval: 20 });
const follows = (one: ReturnType<typeof standby>, shipping: { state(): { shipped: number } }, from = 0) =>
  until(() => {
    expect(one.state()).toMatchObject({ ready: true });
    expect(one.state().position).toBeGreaterThan(from);
    expect(one.state().position).toBeGreaterThanOrEqual(shipping.state().shipped);
  });

it.skipIf(natsMissing)(
  'has what was committed before it, while it follows, and after a restart',
  async () => {
    await using nats = await openNats(temporaryFolder());
    const { shipping, write } = await active(nats);
    await write('before');
    const one = standby(nats);
    await until(() => expect(one.state().ready).toBe(true));
    for (let number = 0; number < 60; number += 1) await write(`while ${number}`);
    await follows(one, shipping);
    const texts = await one.texts();
    expect(texts).toEqual(['before', ...Array.from({ length: 60 }, (_, number) => `while ${number}`)]);
    await one.end();
    await write('x'.repeat(40_000));
    const again = standby(nats, { folder: one.folder });
    await follows(again, shipping);
    expect((await again.texts()).at(-1)).toHaveLength(40_000);
  },
);

it.skipIf(natsMissing)(
  'gets a new snapshot after a commit too large for a message, and when the stream was purged',
  async () => {
    await using nats = await openNats(temporaryFolder());
    const { shipping, write } = await active(nats);
    const one = standby(nats);
    await until(() => expect(one.state().ready).toBe(true));
    await write('y'.repeat(700_000));
    await follows(one, shipping, one.state().position ?? 0);
    expect((await one.texts())[0]).toHaveLength(700_000);
    await one.end();
    await write('unseen');
    await until(() => expect(shipping.state().waitingBytes).toBe(0));
    await nats.ask(`STREAM.PURGE.${STREAM}`);
    await write('after the purge');
    const again = standby(nats, { folder: one.folder });
    await until(() => expect(again.state().reason).toContain('commits are missing in the stream'));
    shipping.snapshotWanted();
    await until(() => expect(again.state().ready).toBe(true));
    expect((await again.texts()).slice(1)).toEqual(['unseen', 'after the purge']);
  },
);

it.skipIf(natsMissing)('goes on when NATS was away; the active one stores all the while', async () => {
  const folder = temporaryFolder();
  const nats = await openNats(folder);
  const { shipping, write } = await active(nats);
  const one = standby(nats);
  await until(() => expect(one.state().ready).toBe(true));
  await write('kept');
  await shipping.kept();
  await nats.kill();
  await write('alone');
  await expect(shipping.kept()).rejects.toThrow(NotShipped);
  await until(() => expect(shipping.state().error).not.toBeNull());
  await using _again = await openNats(folder, { port: nats.port });
  await until(() => expect(shipping.state().error).toBeNull());
  await write('together');
  await shipping.kept();
  shipping.snapshotWanted();
  await vi.waitFor(async () => expect(await one.texts()).toEqual(['kept', 'alone', 'together']));
});

it.skipIf(natsMissing)(
  'refuses another site, another version, and a snapshot sealed with another key',
  async () => {
    await using nats = await openNats(temporaryFolder());
    const { shipping } = await active(nats);
    await until(() => expect(shipping.state().error).toBeNull());
    const foreign = standby(nats, { site: 'two' });
    const older = standby(nats, { version: '0' });
    const stranger = standby(nats, { keyFile: join(temporaryFolder(), 'vault.key') });
    await until(() => {
      expect(foreign.state().reason).toContain('is of another site');
      expect(older.state().reason).toContain('has version 1 and this one 0');
      expect(stranger.state().reason).toContain('the snapshot is damaged: a chunk does not open');
    });
    expect([foreign, older, stranger].map(({ state }) => state().ready)).toEqual([false, false, false]);
  },
);

it.skipIf(natsMissing)('takes no snapshot of which a part is gone, and the next one', async () => {
  await using nats = await openNats(temporaryFolder());
  const { shipping, write } = await active(nats);
  await write('kept');
  await shipping.kept();
  await nats.ask(`STREAM.PURGE.OBJ_${BUCKET}`, { filter: `$O.${BUCKET}.C.>` });
  const one = standby(nats);
  await until(() => expect(one.state().reason).toContain('of its chunks are missing; another one is asked'));
  shipping.snapshotWanted();
  await until(() => expect(one.state().ready).toBe(true));
  expect(await one.texts()).toEqual(['kept']);
});

it.skipIf(natsMissing)('gets nothing of a gateway that another one has replaced', async () => {
  await using nats = await openNats(temporaryFolder());
  let isEntitled = true;
  const { shipping, write } = await active(nats, { entitled: () => isEntitled });
  await write('first');
  await shipping.kept();
  isEntitled = false;
  shipping.snapshotWanted();
  await until(() => expect(shipping.state().error).toMatch('the lease cannot be renewed'));
  await write('late');
  await expect(shipping.kept()).rejects.toThrow('the lease cannot be renewed');
});

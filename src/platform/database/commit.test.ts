import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { GatehouseError } from '../errors.ts';
import { openGroupCommit } from './commit.ts';
import { openConnection } from './connection.ts';

function setUp() {
  const file = join(temporaryFolder(), 'db', 'test.db');
  mkdirSync(join(file, '..'));
  writeFileSync(file, '');
  const connection = openConnection(file);
  onTestFinished(() => connection[Symbol.dispose]());
  connection.exec(
    `CREATE TABLE thing (id INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT;
     CREATE TABLE part (thing INTEGER REFERENCES thing (id) DEFERRABLE INITIALLY DEFERRED) STRICT;`,
  );
  const faults: unknown[] = [];
  const space = { level: 'plenty', ballast: false };
  const clock = { now: 0 };
  const group = openGroupCommit({
    connection,
    space: {
      admits: (urgency) => space.level === 'plenty' || urgency === 'urgent',
      release() {
        space.level = 'full';
        if (space.ballast) connection.pragma('max_page_count = 4294967294');
        return space.ballast;
      },
    },
    monotonic: () => clock.now,
    failed: (error) => faults.push(error),
  });
  const insert = connection.prepare<[string]>('INSERT INTO thing (content) VALUES (?)');
  const orphan = connection.prepare<[number]>('INSERT INTO part VALUES (?)');
  const contents = connection.prepare<[], { content: string }>('SELECT content FROM thing ORDER BY id');
  const stored = () => contents.all().map(({ content }) => content);
  return { file, clock, connection, group, space, faults, insert, orphan, stored };
}

const UNAVAILABLE = expect.objectContaining({ code: 'STORAGE_UNAVAILABLE', retryAfterSeconds: 5 });

it('commits all work of a turn in one transaction, in order', async () => {
  const { group, insert, stored } = setUp();
  const results = await Promise.all(
    ['a', 'b', 'c'].map((text) => group.commit(() => insert.run(text).changes)),
  );
  expect(results).toEqual([1, 1, 1]);
  expect(stored()).toEqual(['a', 'b', 'c']);
  expect(group.figures()).toMatchObject({ batches: 1, jobs: 3, failures: 0, lastBatchSize: 3, queued: 0 });
});

it('settles nothing before the commit', async () => {
  const { group, connection, insert } = setUp();
  const committed = group.commit(() => insert.run('a')).then(() => connection.inTransaction);
  const later = group.commit(() => connection.inTransaction);
  expect(await committed).toBe(false);
  expect(await later).toBe(true);
});

it('leaves the sockets turns of their own after a slow commit, and stores in one what they bring', async () => {
  const { group, clock, insert } = setUp();
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await group.commit(() => {
    insert.run('slow');
    clock.now += 20;
  });
  const brought = [];
  for (let text = 0; text < 5; text += 1) {
    brought.push(group.commit(() => insert.run(`${text}`)));
    await turn();
  }
  expect(group.figures()).toMatchObject({ batches: 1, queued: 5 });
  await Promise.all(brought);
  expect(group.figures()).toMatchObject({ batches: 2, jobs: 6 });
  const next = group.commit(() => insert.run('at once'));
  await turn();
  expect(group.figures().batches).toBe(3);
  await next;
});

it('commits at once when the slow commit ended longer ago than it took: the sockets had their turns', async () => {
  const { group, clock, insert } = setUp();
  await group.commit(() => {
    insert.run('slow');
    clock.now += 20;
  });
  clock.now += 21;
  const next = group.commit(() => insert.run('at once'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(group.figures().batches).toBe(2);
  await next;
});

it('rolls a failing job back alone', async () => {
  const { group, insert, stored, faults } = setUp();
  const results = await Promise.allSettled([
    group.commit(() => insert.run('before')),
    group.commit(() => {
      insert.run('gone');
      throw new RangeError('mine');
    }),
    group.commit(() => insert.run(null as never)),
    group.commit(() => insert.run('after')),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  expect(results[1]).toMatchObject({ reason: new RangeError('mine') });
  expect(results[2]).toMatchObject({ reason: { code: 'SQLITE_CONSTRAINT_NOTNULL' } });
  expect(stored()).toEqual(['before', 'after']);
  expect(faults).toEqual([]);
});

it('does what waits for the disk once the job is there, and never for one that is not', async () => {
  const { group, insert, orphan, connection } = setUp();
  const done: string[] = [];
  const add = (text: string, then: () => void = () => {}) =>
    group.commit(() => {
      group.whenStored(() => done.push(connection.inTransaction ? 'too early' : text));
      insert.run(text);
      then();
    });
  const stored = add('stored').then(() => done.push('resolved'));
  const thrown = add('thrown', () => {
    throw new RangeError('mine');
  });
  await expect(thrown).rejects.toThrow('mine');
  await stored;
  expect(done).toEqual(['stored', 'resolved']);
  await expect(add('in a COMMIT that fails', () => void orphan.run(99))).rejects.toEqual(UNAVAILABLE);
  expect(done).toEqual(['stored', 'resolved']);
  expect(() => group.whenStored(() => {})).toThrow('outside of a commit job');
});

it('waits for the sockets no longer than the slow commit took, however long their turns are', async () => {
  const { group, insert, clock } = setUp();
  await group.commit(() => {
    insert.run('slow');
    clock.now += 5;
  });
  const { batches } = group.figures();
  // A turn that takes 6 ms: the drain of a backlog, for example.
  let isBusy = true;
  const busy = () => {
    clock.now += 6;
    if (isBusy) setImmediate(busy);
  };
  busy();
  const asked = clock.now;
  await group.commit(() => insert.run('quick'));
  isBusy = false;
  expect(group.figures().batches).toBe(batches + 1);
  expect(clock.now - asked).toBeLessThanOrEqual(12);
});

it('refuses a job that is not over when it returns', async () => {
  const { group, stored, insert } = setUp();
  const waiting = group.commit(async () => insert.run('a'));
  await expect(waiting).rejects.toThrow(/must be synchronous/);
  expect(stored()).toEqual([]);
});

it('fails every job when COMMIT fails, and goes on with the same statements', async () => {
  const { group, insert, orphan, stored, faults } = setUp();
  const results = await Promise.allSettled([
    group.commit(() => insert.run('a')),
    group.commit(() => orphan.run(99)),
  ]);
  expect(results).toEqual([
    { status: 'rejected', reason: UNAVAILABLE },
    { status: 'rejected', reason: UNAVAILABLE },
  ]);
  expect(faults).toEqual([expect.objectContaining({ code: 'SQLITE_CONSTRAINT_FOREIGNKEY' })]);
  expect(stored()).toEqual([]);
  await group.commit(() => {});
  expect(group.figures()).toMatchObject({ failures: 1, failing: true, batches: 1 });
  await group.commit(() => insert.run('b'));
  expect(stored()).toEqual(['b']);
  expect(group.figures()).toMatchObject({ failures: 1, failing: false, batches: 2, jobs: 2 });
});

it('fails every job when the disk is full, refuses further ones, and recovers when there is room', async () => {
  const { group, space, connection, insert, stored, faults } = setUp();
  await group.commit(() => insert.run('kept'));
  connection.pragma('max_page_count = 1');
  const results = await Promise.allSettled([
    group.commit(() => insert.run('small')),
    group.commit(() => insert.run('x'.repeat(1_000_000))),
  ]);
  expect(results).toEqual([
    { status: 'rejected', reason: UNAVAILABLE },
    { status: 'rejected', reason: UNAVAILABLE },
  ]);
  expect((results[0] as PromiseRejectedResult).reason.cause).toMatchObject({ code: 'SQLITE_FULL' });
  expect(faults).toHaveLength(1);
  await expect(group.commit(() => insert.run('small'))).rejects.toEqual(UNAVAILABLE);
  expect(faults).toHaveLength(1);
  expect(stored()).toEqual(['kept']);
  space.level = 'plenty';
  connection.pragma('max_page_count = 4294967294');
  await group.commit(() => insert.run('x'.repeat(1_000_000)));
  expect(stored()).toHaveLength(2);
});

it('stores urgent work in the room of the ballast, once, and refuses the rest of the batch', async () => {
  const { group, space, connection, insert, stored, faults } = setUp();
  space.ballast = true;
  connection.pragma('max_page_count = 1');
  const results = await Promise.allSettled([
    group.commit(() => insert.run('unlock'), 'urgent'),
    group.commit(() => insert.run('x'.repeat(1_000_000))),
    group.commit(() => insert.run('revoke'), 'urgent'),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(stored()).toEqual(['unlock', 'revoke']);
  expect(faults).toHaveLength(1);
  await expect(group.commit(() => insert.run('name'))).rejects.toEqual(UNAVAILABLE);
  await group.commit(() => insert.run('later'), 'urgent');
  expect(stored()).toEqual(['unlock', 'revoke', 'later']);
});

it('keeps refusing while the file cannot be opened, makes no empty one, and recovers', async () => {
  const { file, group, insert, orphan, stored } = setUp();
  await group.commit(() => insert.run('kept'));
  await expect(group.commit(() => orphan.run(99))).rejects.toEqual(UNAVAILABLE);
  const folder = join(file, '..');
  renameSync(folder, `${folder}.away`);
  mkdirSync(folder);
  for (const text of ['a', 'b'])
    await expect(group.commit(() => insert.run(text))).rejects.toEqual(UNAVAILABLE);
  // Nor can anything be read, which a client reads in the same words.
  expect(stored).toThrow(UNAVAILABLE);
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
  renameSync(`${folder}.away`, folder);
  await group.commit(() => insert.run('c'));
  expect(stored()).toEqual(['kept', 'c']);
  expect(group.figures()).toMatchObject({ failures: 3 });
});

it('bounds what waits, and how much goes into one transaction', async () => {
  const { group, insert, stored } = setUp();
  const results = await Promise.allSettled(
    Array.from({ length: 2_570 }, (_, index) => group.commit(() => insert.run(String(index)))),
  );
  const refused = results.filter((result) => result.status === 'rejected');
  expect(refused).toHaveLength(10);
  expect(refused[0]?.reason).toEqual(expect.objectContaining({ code: 'STORAGE_UNAVAILABLE' }));
  expect(refused[0]?.reason).toBeInstanceOf(GatehouseError);
  expect(stored()).toHaveLength(2_560);
  expect(group.figures()).toMatchObject({ batches: 10, lastBatchSize: 256, queued: 0 });
});

it('finishes what was accepted when it closes, and accepts nothing more', async () => {
  const { group, insert, stored } = setUp();
  const accepted = Array.from({ length: 300 }, (_, index) => group.commit(() => insert.run(String(index))));
  group.close();
  expect(stored()).toHaveLength(300);
  await Promise.all(accepted);
  await expect(group.commit(() => insert.run('late'))).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
});

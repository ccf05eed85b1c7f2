import { beforeEach, describe, expect, it } from 'vitest';
import { openTestAudit, type TestAudit } from '../../../test/services/audit/audit.ts';

const DAY = 86_400_000;
const RETENTION_DAYS = 400;

let opened: TestAudit;
let synchronised: boolean;
let ending: AbortController;
beforeEach(async () => {
  opened = await openTestAudit();
  // A time before this software existed gives no age.
  opened.clock.jumpWall(Date.UTC(2026, 2, 1) - opened.clock.now());
  synchronised = true;
  ending = new AbortController();
});

/** As of a time server that the test turns off. */
const time = { now: () => opened.clock.now(), synchronised: () => synchronised };

async function recordMany(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => opened.record(`encoder/${n}`)));
}

/** One look of the retention, an hour from now. */
async function look(): Promise<void> {
  const { audit, clock } = opened;
  const ended = audit
    .retention({ time, retentionDays: RETENTION_DAYS })
    .keep(ending.signal)
    .catch(() => {});
  await clock.advance(3_600_000);
  // It sleeps again once everything is removed.
  await until(() => clock.sleepers() === 1);
  ending.abort();
  ending = new AbortController();
  await ended;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

const seqs = () => opened.database.prepare<[], { seq: number }>('SELECT seq FROM audit ORDER BY seq').all();
const first = () => seqs()[0]?.seq;

/** 1,200 old entries up to a checkpoint, and ten new ones. */
async function aged(): Promise<void> {
  await recordMany(1_199);
  await opened.audit.checkpoints.take();
  await recordMany(5);
  opened.clock.hold(401 * DAY);
  await recordMany(10);
}

describe('entries older than the retention', () => {
  it('are removed up to a signed checkpoint, and the rest stays verifiable', async () => {
    await aged();
    await look();
    // The five entries after the checkpoint are old too, and wait for the next one.
    expect(first()).toBe(1_201);
    expect(await opened.audit.verify()).toEqual({ intact: true, rows: 16, prunedThrough: 1_200 });
    expect(opened.audit.oldest()).toMatchObject({ seq: 1_201 });
    const { items } = await opened.audit.list({ limit: 1, action: 'audit.prune' });
    expect(items).toMatchObject([{ detail: { through: 1_200, retentionDays: 400 } }]);
    // A restart goes on with the same chain.
    expect(await opened.open().verify()).toMatchObject({ intact: true, rows: 16 });
  });

  it('are left out of lists and exports without pages that are empty', async () => {
    await aged();
    await look();
    const listed = await opened.audit.list({ limit: 100 });
    expect(listed.items).toHaveLength(16);
    expect(listed.next).toBe(null);
    expect(opened.audit.export({ after: 0 })).toMatchObject({ items: { length: 16 }, next: null });
  });

  it('stay while the clock is not trusted', async () => {
    await aged();
    synchronised = false;
    await look();
    expect(first()).toBe(1);
  });

  it('stay when one before the checkpoint is not old, whatever those of a clock in 1970 say', async () => {
    await recordMany(3);
    opened.clock.jumpWall(-opened.clock.now());
    await recordMany(600);
    await opened.audit.checkpoints.take();
    // Without a battery the clock was in 1970 until it had the time.
    opened.clock.jumpWall(Date.UTC(2026, 2, 2));
    await recordMany(3);
    await opened.audit.checkpoints.take();
    await look();
    expect(first()).toBe(1);
    opened.clock.hold(401 * DAY);
    await look();
    expect(first()).toBe(608);
  });

  it('are removed in turns, the checkpoint of the turn before among them', async () => {
    await aged();
    await look();
    const { jws = '' } = (await opened.audit.checkpoints.take()) ?? {};
    opened.clock.hold(401 * DAY);
    await opened.record('encoder/new');
    await look();
    expect(await opened.audit.verify()).toMatchObject({ intact: true, prunedThrough: 1_216 });
    expect(await opened.audit.verify(jws)).toMatchObject({ intact: true });
  });

  it('cannot be compared with an older checkpoint, which is said', async () => {
    await opened.record('encoder/1');
    const { jws = '' } = (await opened.audit.checkpoints.take()) ?? {};
    await aged();
    await look();
    await expect(opened.audit.verify(jws)).rejects.toThrow(/entry 2. Entries up to 1201 were removed/);
  });

  it('go on being removed after a stop in between', async () => {
    await aged();
    await look();
    // As a stop between two batches leaves it: the start has moved, and rows before it are there.
    await opened.tamper(
      'INSERT INTO audit SELECT 1200, at, actor_id, actor, action, object, outcome, detail, correlation_id, mac FROM audit WHERE seq = 1201',
    );
    expect(first()).toBe(1_200);
    expect(await opened.audit.verify()).toMatchObject({ intact: true, rows: 16 });
    await look();
    expect(first()).toBe(1_201);
  });
});

describe('somebody with the database, but without the keys', () => {
  it('cannot remove an entry that is not old: the database itself refuses', async () => {
    await aged();
    await look();
    await expect(opened.tamper('DELETE FROM audit WHERE seq = 1201')).rejects.toThrow('append-only');
  });

  it.each([
    [
      'a later checkpoint',
      `UPDATE audit_start SET seq = 1210, mac = (SELECT mac FROM audit WHERE seq = 1210)`,
    ],
    ['another entry for the reason', 'UPDATE audit_start SET pruned_by = 1205'],
    ['an entry that is not there', 'UPDATE audit_start SET pruned_by = 9999'],
    ['no checkpoint', 'DELETE FROM audit_checkpoint WHERE seq = 1200'],
    ['a checkpoint that is not signed', "UPDATE audit_checkpoint SET jws = 'x' WHERE seq = 1200"],
  ])('is found to have moved the start with %s', async (_what, sql) => {
    await aged();
    await look();
    await opened.withoutTriggers();
    await opened.tamper(sql);
    await opened.tamper('DELETE FROM audit WHERE seq <= (SELECT seq FROM audit_start)');
    expect(await opened.audit.verify()).toMatchObject({ intact: false, reason: 'unpruned' });
  });

  it('is found to have removed entries and the start', async () => {
    await aged();
    await look();
    await opened.tamper('DELETE FROM audit_start');
    expect(await opened.audit.verify()).toEqual({ intact: false, firstBad: 1, reason: 'missing' });
  });

  it('is found to have forged the entry that says so', async () => {
    await aged();
    await look();
    const { seq = 0 } = (await opened.audit.checkpoints.take()) ?? {};
    await opened.record('encoder/new');
    await opened.withoutTriggers();
    await opened.tamper(
      `UPDATE audit SET action = 'audit.prune', object = (SELECT object FROM audit WHERE seq = ${seq}),
       detail = json_object('through', ${seq}, 'mac', (SELECT lower(hex(mac)) FROM audit WHERE seq = ${seq}))
       WHERE seq = ${seq + 1}`,
    );
    await opened.tamper(
      `UPDATE audit_start SET seq = ${seq}, mac = (SELECT mac FROM audit WHERE seq = ${seq}), pruned_by = ${seq + 1}`,
    );
    await opened.tamper(`DELETE FROM audit WHERE seq <= ${seq}`);
    expect(await opened.audit.verify()).toEqual({ intact: false, firstBad: seq + 1, reason: 'changed' });
  });
});

it('nothing is removed up to a checkpoint that is not signed', async () => {
  await aged();
  await opened.tamper("UPDATE audit_checkpoint SET jws = 'x'");
  await look();
  expect(first()).toBe(1);
});

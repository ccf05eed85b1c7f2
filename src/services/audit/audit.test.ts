import { beforeEach, describe, expect, it } from 'vitest';
import { entry, openTestAudit, type TestAudit } from '../../../test/services/audit/audit.ts';
import type { Database } from '../../platform/database/database.ts';
import type { OpenAudit } from './audit.ts';

let opened: TestAudit;
let database: Database;
let audit: OpenAudit;

beforeEach(async () => {
  opened = await openTestAudit();
  database = opened.database;
  audit = opened.audit;
});

const record = (object: string) => opened.record(object);
const tamper = (sql: string) => opened.tamper(sql);
const withoutTriggers = () => opened.withoutTriggers();

describe('the chain', () => {
  it('is intact over many rows, and begins with the name of the database', async () => {
    for (let n = 0; n < 1_200; n += 1) await record(`encoder/${n}`);
    expect(await audit.verify()).toEqual({ intact: true, rows: 1_201 });
    const { items } = await audit.list({ limit: 2_000 });
    expect(items.at(-1)).toMatchObject({ seq: 1, action: 'audit.begin', principal: { label: 'gatehouse' } });
  });

  it('goes on after the gateway has started again', async () => {
    await record('a');
    audit = opened.open();
    await record('b');
    expect(await audit.verify()).toEqual({ intact: true, rows: 3 });
  });

  it('survives jobs that roll back between others of the same transaction', async () => {
    const jobs = Array.from({ length: 30 }, (_, n) =>
      database.commit(() => {
        audit.record(entry(`encoder/${n}`));
        if (n % 3 === 0) throw new Error('refused');
        audit.record(entry(`encoder/${n}/again`));
      }),
    );
    const settled = await Promise.allSettled(jobs);
    expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(10);
    expect(await audit.verify()).toEqual({ intact: true, rows: 41 });
    await record('after');
    expect(await audit.verify()).toEqual({ intact: true, rows: 42 });
  });

  it('is intact before the first entry', async () => {
    expect(await audit.verify()).toEqual({ intact: true, rows: 1 });
  });
});

describe('tampering', () => {
  beforeEach(async () => {
    for (let n = 2; n <= 10; n += 1) await record(`encoder/${n}`);
  });

  it('is stopped by triggers first', async () => {
    await expect(tamper("UPDATE audit SET actor = 'Eve' WHERE seq = 4")).rejects.toThrow('append-only');
    await expect(tamper('DELETE FROM audit WHERE seq = 4')).rejects.toThrow('append-only');
  });

  it.each([
    ["UPDATE audit SET actor = 'Eve' WHERE seq = 4", 4, 'changed'],
    ['UPDATE audit SET at = at - 1 WHERE seq = 10', 10, 'changed'],
    [`UPDATE audit SET detail = '{ }' WHERE seq = 2`, 2, 'changed'],
    // The border between two columns moved: the same text in all.
    ["UPDATE audit SET action = 'encoder.updateencoder', object = '/5' WHERE seq = 5", 5, 'changed'],
    ['UPDATE audit SET mac = (SELECT mac FROM audit WHERE seq = 6) WHERE seq = 7', 7, 'changed'],
    ['DELETE FROM audit WHERE seq = 4', 4, 'missing'],
    ['DELETE FROM audit WHERE seq = 1', 1, 'missing'],
    ['DELETE FROM audit WHERE seq >= 9', 9, 'missing'],
    ['DELETE FROM audit', 1, 'missing'],
    [
      "INSERT INTO audit SELECT 11, at, actor_id, 'Eve', action, object, outcome, detail, correlation_id, mac FROM audit WHERE seq = 10",
      11,
      'changed',
    ],
  ])('%s is found', async (sql, firstBad, reason) => {
    await withoutTriggers();
    await tamper(sql);
    expect(await audit.verify()).toEqual({ intact: false, firstBad, reason });
  });

  it('is found when rows that follow were swapped or renumbered', async () => {
    await withoutTriggers();
    await tamper('DELETE FROM audit WHERE seq = 4');
    await tamper('UPDATE audit SET seq = -seq WHERE seq > 4');
    await tamper('UPDATE audit SET seq = -seq - 1 WHERE seq < 0');
    expect(await audit.verify()).toEqual({ intact: false, firstBad: 4, reason: 'changed' });
  });

  it('at the end stays found after entries that follow', async () => {
    await withoutTriggers();
    await tamper('DELETE FROM audit WHERE seq >= 9');
    await record('later');
    expect(await audit.verify()).toEqual({ intact: false, firstBad: 9, reason: 'missing' });
  });

  it('is found when everything was emptied, the counter too, and also after entries that follow', async () => {
    await audit.checkpoints.take();
    await withoutTriggers();
    await tamper('DELETE FROM audit');
    await tamper('DELETE FROM audit_checkpoint');
    await tamper("DELETE FROM sqlite_sequence WHERE name = 'audit'");
    expect(await audit.verify()).toEqual({ intact: false, firstBad: 1, reason: 'missing' });
    expect(await audit.checkpoints.take()).toBeUndefined();
    await record('later');
    expect(await audit.verify()).toEqual({ intact: false, firstBad: 1, reason: 'missing' });
  });

  it('by putting in the log of another database is found', async () => {
    await tamper("UPDATE system SET database_id = 'another'");
    expect(await audit.verify()).toEqual({ intact: false, firstBad: 1, reason: 'foreign' });
  });

  it('with another key is found', async () => {
    const other = opened.open(Buffer.alloc(32, 8));
    expect(await other.verify()).toEqual({ intact: false, firstBad: 1, reason: 'changed' });
  });
});

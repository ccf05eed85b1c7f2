import { beforeEach, describe, expect, it } from 'vitest';
import { openTestAudit, type TestAudit, testAuthority } from '../../../test/services/audit/audit.ts';
import { CHECKPOINT_AGE_MS, CHECKPOINT_ROWS } from './checkpoints.ts';

let opened: TestAudit;
beforeEach(async () => {
  opened = await openTestAudit();
});

async function recordMany(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => opened.record(`encoder/${n}`)));
}
const newest = () =>
  opened.database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM audit_checkpoint');

/** As somebody with the database, SQLite's counter included, but without the keys. */
async function truncate(from: number): Promise<void> {
  await opened.withoutTriggers();
  await opened.tamper(`DELETE FROM audit WHERE seq >= ${from}`);
  await opened.tamper(`UPDATE sqlite_sequence SET seq = ${from - 1} WHERE name = 'audit'`);
}

describe('truncation', () => {
  it('leaves no trace in the chain, but a stored checkpoint shows it', async () => {
    await recordMany(9);
    const { audit } = opened;
    await truncate(10);
    expect(await audit.verify()).toEqual({ intact: true, rows: 9 });
    await opened.record('encoder/again');
    await audit.checkpoints.take();
    await truncate(8);
    expect(await audit.verify()).toEqual({ intact: false, firstBad: 8, reason: 'missing' });
  });

  it('is shown by a checkpoint kept elsewhere when the stored ones are deleted too', async () => {
    await recordMany(9);
    const { audit } = opened;
    const { jws = '' } = (await audit.checkpoints.take()) ?? {};
    expect(await audit.verify(jws)).toEqual({ intact: true, rows: 10 });
    await truncate(7);
    await opened.tamper('DELETE FROM audit_checkpoint');
    expect(await audit.verify()).toEqual({ intact: true, rows: 6 });
    expect(await audit.verify(jws)).toEqual({ intact: false, firstBad: 7, reason: 'missing' });
  });

  it('is shown when other rows have taken the place of those deleted', async () => {
    await recordMany(9);
    const { audit } = opened;
    const { jws = '' } = (await audit.checkpoints.take()) ?? {};
    await truncate(7);
    await opened.tamper('DELETE FROM audit_checkpoint');
    await recordMany(20);
    expect(await audit.verify()).toEqual({ intact: true, rows: 26 });
    expect(await audit.verify(jws)).toEqual({ intact: false, firstBad: 10, reason: 'changed' });
  });
});

describe('a checkpoint', () => {
  it('is of the CA of this site, and of no other document of it', async () => {
    const authority = await testAuthority();
    opened = await openTestAudit(authority);
    await recordMany(3);
    const { jws = '' } = (await opened.audit.checkpoints.take()) ?? {};
    expect(await opened.audit.verify(jws)).toEqual({ intact: true, rows: 4 });
    const elsewhere = await openTestAudit(await testAuthority());
    await elsewhere.record('x');
    const { jws: foreign = '' } = (await elsewhere.audit.checkpoints.take()) ?? {};
    const configuration = await authority.sign({ kind: 'audit-checkpoint', seq: 1, mac: '' }, 'other+jws');
    const [head, , signature] = jws.split('.');
    const raised = Buffer.from(JSON.stringify({ kind: 'audit-checkpoint', seq: 99, mac: '00' }));
    for (const bad of [
      foreign,
      configuration,
      '',
      'a.b.c',
      `${head}.${raised.toString('base64url')}.${signature}`,
    ]) {
      await expect(opened.audit.verify(bad)).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    }
  });

  it.each([
    ['is garbage', "jws = 'x'"],
    ['is of another row', 'jws = (SELECT jws FROM audit_checkpoint WHERE seq = 4)'],
  ])('that is stored and whose signed part %s is found', async (_what, change) => {
    await recordMany(3);
    await opened.audit.checkpoints.take();
    await recordMany(3);
    await opened.audit.checkpoints.take();
    await recordMany(3);
    expect(await opened.audit.verify()).toEqual({ intact: true, rows: 10 });
    await opened.tamper(`UPDATE audit_checkpoint SET ${change} WHERE seq = 7`);
    expect(await opened.audit.verify()).toEqual({ intact: false, firstBad: 7, reason: 'unsigned' });
  });

  it('is taken once for the same head', async () => {
    const { checkpoints } = opened.audit;
    await opened.record('a');
    const first = await checkpoints.take();
    expect(first).toMatchObject({ seq: 2 });
    expect(await checkpoints.take()).toEqual(first);
  });

  it('is taken at the end, and survives it', async () => {
    await opened.record('a');
    await opened.audit.checkpoints[Symbol.asyncDispose]();
    expect(newest().get()).toEqual({ seq: 2 });
    expect(await opened.open().verify()).toEqual({ intact: true, rows: 2 });
  });

  it('is taken after so many rows, or so much time', async () => {
    const ending = new AbortController();
    const kept = opened.audit.checkpoints.keep(ending.signal).catch(() => {});
    await recordMany(CHECKPOINT_ROWS - 2);
    await opened.clock.advance(60_000);
    expect(newest().get()).toEqual({ seq: null });
    await opened.record('the last');
    await opened.clock.advance(60_000);
    expect(newest().get()).toEqual({ seq: CHECKPOINT_ROWS });
    await opened.record('one more');
    await opened.clock.advance(CHECKPOINT_AGE_MS);
    expect(newest().get()).toEqual({ seq: CHECKPOINT_ROWS + 1 });
    ending.abort();
    await kept;
  });
});

describe('a restored database', () => {
  it('has a new name, which the audit must record', async () => {
    await opened.record('a');
    await opened.tamper("UPDATE system SET database_id = 'restored'");
    expect(await opened.audit.verify()).toEqual({ intact: false, firstBad: 1, reason: 'foreign' });
    await opened.record('database/restored', { action: 'database.restore' });
    expect(await opened.audit.verify()).toEqual({ intact: true, rows: 3 });
  });
});

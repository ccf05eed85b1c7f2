import { describe, expect, it } from 'vitest';
import { measuredKeys } from '../../../test/measured.ts';
import {
  brief,
  EXPIRY_MS,
  key,
  MESSAGE,
  openTestbed,
  sending,
} from '../../../test/resources/writes/testbed.ts';
import { LEAVE_KEY_DATA_OUT } from '../../services/backup/snapshot.ts';
import { OPEN_STATUSES } from './machine.ts';

const GRACE_MS = 60_000;
const DAY_MS = 86_400_000;
const YEARS_MS = 10 * 365 * DAY_MS;

describe('a gateway killed', () => {
  it.each(OPEN_STATUSES)('while an entry is %s ends it once, under a higher epoch', async (status) => {
    const { bed, jobId } = await sending([1, 2], [3]);
    if (status !== 'queued') await bed.progress('desk-1', { jobId, keyId: key(1), status });
    await bed.restart();
    expect(bed.statuses('desk-1', 'R1')).toEqual([status, 'queued']);
    bed.takeSent();
    await bed.connect('desk-1');
    expect(bed.takeSent()).toMatchObject([
      { channel: 'write', message: { epoch: 2, jobId, requestId: 'R1' } },
    ]);
    const entries = [key(1), key(2)].map((keyId) => ({ keyId, status: 'written' as const }));
    await bed.job('desk-1', { jobId, known: true, entries });
    await bed.job('desk-1', { jobId, known: true, entries });
    expect(bed.events().filter((event) => event.status === 'written')).toHaveLength(2);
    expect(brief(bed)).toEqual(['write R2 3']);
  });

  it('between the commit of "sent" and the sending repeats on the next connection', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    bed.faults.send = 'fail';
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    bed.faults.send = null;
    await bed.restart();
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual(['write R1 1']);
  });

  it('and started with another vault key fails what was not sent, and never sends it', async () => {
    const { bed, jobId } = await sending([1], [2]);
    await bed.accept('desk-1', 'R3', key(3));
    await bed.restart({ vaultFile: 'another.key' });
    bed.takeSent();
    await bed.connect('desk-1');
    await bed.clock.advance(60_000);
    expect(brief(bed)).toEqual([]);
    await bed.job('desk-1', {
      jobId,
      known: true,
      entries: [{ keyId: key(1), status: 'written' }],
    });
    expect(bed.statuses('desk-1', 'R1')).toEqual(['written']);
    expect(bed.writes.get({ encoderId: 'desk-1', requestId: 'R2' }).entries).toMatchObject([
      { status: 'failed', error: { code: 'INTERNAL', message: expect.stringContaining('vault key') } },
    ]);
    expect(bed.statuses('desk-1', 'R3')).toEqual(['failed']);
  });

  it('and restored from a backup sends nothing again: what was sent is asked, what was not ends as unknown', async () => {
    const { bed, jobId } = await sending([1], [2]);
    for (const sql of LEAVE_KEY_DATA_OUT) await bed.database.commit(() => bed.database.prepare(sql).run());
    await bed.restart();
    bed.takeSent();
    await bed.connect('desk-1');
    await bed.clock.advance(60_000);
    expect(brief(bed)).toEqual([]);
    await bed.job('desk-1', { jobId, known: true, entries: [{ keyId: key(1), status: 'written' }] });
    expect(bed.statuses('desk-1', 'R1')).toEqual(['written']);
    await bed.clock.advance(EXPIRY_MS + GRACE_MS);
    expect(brief(bed)).toEqual([]);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['unknown']);
  });

  it('lets run end with the reason of its signal', async () => {
    const bed = await openTestbed();
    const end = new AbortController();
    const run = bed.writes.run(end.signal);
    await bed.settle();
    end.abort(new Error('stop'));
    await expect(run).rejects.toThrow('stop');
  });

  it('ends also when its signal fires while it stores, and not only while it sleeps', async () => {
    const bed = await openTestbed();
    const end = new AbortController();
    const run = bed.writes.run(end.signal);
    end.abort(new Error('stop'));
    await expect(run).rejects.toThrow('stop');
  });
});

describe('time', () => {
  it('after a restart is what the wall clock says remains, and a sent job has 60 s even when nothing does', async () => {
    const { bed } = await sending([1], [2]);
    await bed.kill();
    await bed.clock.advance(EXPIRY_MS + DAY_MS);
    await bed.start();
    expect(bed.statuses('desk-1', 'R2')).toEqual(['expired']);
    await bed.clock.advance(GRACE_MS - 1);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
    await bed.clock.advance(1);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['unknown']);
  });

  it('after a restart with a clock years back is never more than the whole', async () => {
    const { bed } = await sending([1], [2]);
    await bed.kill();
    bed.clock.jumpWall(-YEARS_MS);
    await bed.start();
    await bed.clock.advance(EXPIRY_MS);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['expired']);
    await bed.clock.advance(GRACE_MS);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['unknown']);
  });
});

describe('what is measured of keys', () => {
  it('is each key once, as it ended first, from when its request was accepted', async () => {
    const { bed, jobId } = await sending([1, 2, 3], [4]);
    await bed.clock.advance(4_000);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    bed.clock.jumpWall(YEARS_MS);
    await bed.clock.advance(2_000);
    for (const status of ['failed', 'failed', 'written'] as const)
      await bed.progress('desk-1', { jobId, keyId: key(2), status });
    await bed.cancel('desk-1', 'R2');
    expect(measuredKeys(bed.meters)).toEqual({
      written: { count: 1, sum: 4 },
      failed: { count: 1, sum: 6 },
      cancelled: { count: 1, sum: 6 },
    });
    await bed.clock.advance(EXPIRY_MS + GRACE_MS);
    expect(measuredKeys(bed.meters)).toMatchObject({ unknown: { count: 1 } });
  });

  it('is nothing that was not stored', async () => {
    const { bed, jobId } = await sending([1]);
    const report = { jobId, keyId: key(1), status: 'written' } as const;
    const refused = bed.database.commit(() => {
      bed.writes.reports.progress('desk-1', { ...MESSAGE, ...report });
      throw new RangeError('a disk that fails');
    });
    await expect(refused).rejects.toThrow('a disk');
    expect(measuredKeys(bed.meters)).toEqual({});
    await bed.progress('desk-1', report);
    expect(measuredKeys(bed.meters)).toEqual({ written: { count: 1, sum: 0 } });
  });

  it('is of a request that an earlier run accepted what the believed clock says, within its expiry', async () => {
    const { bed, jobId } = await sending([1, 2]);
    await bed.clock.advance(3_000);
    await bed.restart();
    await bed.connect('desk-1');
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    expect(measuredKeys(bed.meters)).toEqual({ written: { count: 1, sum: 3 } });
    await bed.clock.advance(EXPIRY_MS + GRACE_MS);
    expect(measuredKeys(bed.meters)).toMatchObject({ unknown: { count: 1, sum: EXPIRY_MS / 1_000 } });
  });
});

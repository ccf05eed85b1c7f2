import { describe, expect, it } from 'vitest';
import {
  brief,
  CALLER,
  EXPIRY_MS,
  JOURNAL,
  key,
  OTHER_JOURNAL,
  openTestbed,
  sending,
} from '../../../test/resources/writes/testbed.ts';

const GRACE_MS = 60_000;
const YEARS_MS = 10 * 365 * 86_400_000;
const DAY_MS = 86_400_000;

describe('the write message', () => {
  it('carries the entries in order, the blocks as they came, the epoch and what remains of the time', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const data = [3, 1, 2].map((index) => ({ keyId: key(index), blocks: ['ä\u0000"\ud800', 'CAFE'] }));
    const path = { encoderId: 'desk-1', requestId: 'R1' };
    await bed.writes.accept(path, { data, description: 'Room 12' }, CALLER);
    await bed.settle();
    const jobId = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect(bed.takeSent()).toEqual([
      {
        encoderId: 'desk-1',
        channel: 'write',
        message: { epoch: 1, jobId, requestId: 'R1', ttlMs: EXPIRY_MS, description: 'Room 12', data },
      },
    ]);
  });

  it('goes to a connected encoder only, and waits for the end of an upgrade', async () => {
    const { bed, jobId } = await sending([1]);
    await bed.accept('desk-1', 'R2', key(2));
    bed.encoder('desk-1').upgrading = true;
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    await bed.settle();
    expect(brief(bed)).toEqual([]);
    bed.encoder('desk-1').upgrading = false;
    bed.writes.reports.wake('desk-1', 'report');
    await bed.settle();
    expect(brief(bed)).toEqual(['write R2 2']);
    bed.encoder('desk-1').connected = false;
    await bed.clock.advance(30_000);
    expect(brief(bed)).toEqual([]);
  });
});

it('an encoder that becomes ready while its turn is being stored is not forgotten', async () => {
  const { bed, jobId } = await sending([1]);
  await bed.accept('desk-1', 'R2', key(2));
  bed.encoder('desk-1').upgrading = true;
  await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
  await bed.settle();
  expect(brief(bed)).toEqual([]);
  const ready = () => {
    bed.encoder('desk-1').upgrading = false;
    bed.writes.reports.wake('desk-1', 'report');
  };
  bed.writes.reports.wake('desk-1', 'report');
  // Lets the loop queue its commit, so that `ready` runs in the same batch, behind it.
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  await bed.database.commit(ready);
  await bed.settle();
  expect(brief(bed)).toEqual(['write R2 2']);
});

it('a request for an idle encoder is taken in the commit that accepts it, so that it waits for one fsync only', async () => {
  const { bed } = await sending();
  const before = bed.database.figures().batches;
  await bed.accept('desk-1', 'R1', key(1));
  const row = bed.database.prepare<[], { sent_at: number | null }>('SELECT sent_at FROM write_request').get();
  expect(row?.sent_at).toBe(bed.clock.now());
  expect(bed.database.figures().batches - before).toBe(1);
  expect(brief(bed)).toEqual(['write R1 1']);
  await bed.settle();
  expect(brief(bed)).toEqual([]);
});

describe('rule 1: a requestId used again months later is a new job', () => {
  it('once its finished request is forgotten, after 30 days', async () => {
    const { bed, jobId } = await sending([1]);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    await bed.clock.advance(30 * DAY_MS - 7_200_000);
    await bed.accept('desk-1', 'R1', key(1));
    expect(brief(bed)).toEqual([]);
    await bed.clock.advance(2 * 7_200_000);
    await bed.accept('desk-1', 'R1', key(2));
    await bed.settle();
    const [again] = bed.takeSent();
    expect(again?.message.jobId).not.toBe(jobId);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'failed', error: { code: 'NO_CARD' } });
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
  });

  it('and not at once because the wall clock jumped ahead', async () => {
    const { bed, jobId } = await sending([1]);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    bed.clock.jumpWall(YEARS_MS);
    await bed.clock.advance(3_600_000);
    expect(await bed.accept('desk-1', 'R1', key(1))).toMatchObject({ status: 'written' });
    expect(brief(bed)).toEqual([]);
    bed.clock.jumpWall(-YEARS_MS);
    await bed.clock.advance(DAY_MS);
    expect(await bed.accept('desk-1', 'R1', key(1))).toMatchObject({ status: 'written' });
  });

  it('but never while the request is unfinished, whatever the wall clock says', async () => {
    const { bed } = await sending([1]);
    bed.clock.jumpWall(YEARS_MS);
    await bed.clock.advance(10_000);
    await expect(bed.accept('desk-1', 'R1', key(2))).rejects.toThrow('Choose a new requestId');
  });
});

describe('rule 4: "sent" is committed before anything is sent', () => {
  it('so that the row says it when the message leaves', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    expect(bed.takeSent()).toHaveLength(1);
    await bed.restart();
    const row = bed.database
      .prepare<[], { sent_journal: string }>('SELECT sent_journal FROM write_request')
      .get();
    expect(row).toEqual({ sent_journal: JOURNAL });
  });

  it('and nothing leaves when the commit fails, until one succeeds', async () => {
    const { bed, jobId } = await sending([1], [2]);
    const written = bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    // The commit of the outcome is already queued; the next one, "sent", meets the full disk.
    bed.faults.commit = 'fail';
    await written;
    await bed.clock.advance(500);
    expect(brief(bed)).toEqual([]);
    await bed.clock.advance(10_000);
    expect(brief(bed)).toEqual([]);
    bed.faults.commit = null;
    await bed.clock.advance(16_000);
    expect(brief(bed)[0]).toBe('write R2 2');
  });
});

describe('rule 4: a write is repeated', () => {
  it('every 5 s without up/job, and not once it came', async () => {
    const { bed, jobId } = await sending([1, 2]);
    await bed.clock.advance(4_999);
    expect(brief(bed)).toEqual([]);
    await bed.clock.advance(1);
    expect(brief(bed)).toEqual(['write R1 1,2']);
    await bed.clock.advance(5_000);
    expect(brief(bed)).toEqual(['write R1 1,2']);
    await bed.job('desk-1', { jobId, known: true });
    await bed.clock.advance(120_000);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'started' });
    expect(brief(bed)).toEqual([]);
  });

  it('on every new connection until the job is finished, with the entries that have no outcome', async () => {
    const { bed, jobId } = await sending([1, 2, 3]);
    await bed.job('desk-1', { jobId, known: true });
    await bed.progress('desk-1', { jobId, keyId: key(2), status: 'written' });
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'writing' });
    bed.disconnect('desk-1');
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual(['write R1 1,3']);
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual(['write R1 1,3']);
    await bed.job('desk-1', {
      jobId,
      known: true,
      entries: [
        { keyId: key(1), status: 'unknown' },
        { keyId: key(3), status: 'written' },
      ],
    });
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual([]);
  });

  it('when the link refused it, and not while the link still holds it', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    bed.faults.send = 'fail';
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    bed.faults.send = 'hang';
    await bed.clock.advance(5_000);
    expect(brief(bed)).toEqual(['write R1 1']);
    await bed.clock.advance(60_000);
    expect(brief(bed)).toEqual([]);
    bed.faults.send = null;
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual(['write R1 1']);
  });

  it('when the encoder says it does not have the job, at the same pace', async () => {
    const { bed, jobId } = await sending([1]);
    await bed.job('desk-1', { jobId, known: false });
    await bed.job('desk-1', { jobId, known: false });
    expect(brief(bed)).toEqual([]);
    await bed.clock.advance(5_000);
    expect(brief(bed)).toEqual(['write R1 1']);
  });

  it('never to an encoder whose journal is another than the job went to', async () => {
    const { bed } = await sending([1]);
    bed.encoder('desk-1').journal = OTHER_JOURNAL;
    await bed.clock.advance(20_000);
    expect(brief(bed)).toEqual([]);
  });
});

describe('rule 6: time', () => {
  it('ends what was never sent as expired at its deadline, also behind another', async () => {
    const { bed } = await sending([1], [2]);
    await bed.clock.advance(EXPIRY_MS - 1);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['queued']);
    await bed.clock.advance(1);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['expired']);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
  });

  it('ends what was sent as unknown 60 s after its deadline, and then sends the next', async () => {
    const { bed } = await sending([1]);
    await bed.clock.advance(GRACE_MS / 2);
    await bed.accept('desk-1', 'R2', key(2));
    await bed.clock.advance(EXPIRY_MS - GRACE_MS / 2 + GRACE_MS - 1);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['expired']);
    await bed.clock.advance(1);
    expect(bed.writes.get({ encoderId: 'desk-1', requestId: 'R1' })).toMatchObject({
      status: 'unknown',
      entries: [{ status: 'unknown', error: { code: 'ENCODER_TIMEOUT' } }],
    });
    bed.takeSent();
    await bed.accept('desk-1', 'R3', key(3));
    await bed.settle();
    expect(brief(bed)).toEqual(['write R3 3']);
  });

  it('sends the encoder the time that remains at each send, and nothing less than 0', async () => {
    const { bed } = await sending([1]);
    const ttl = async () => {
      await bed.connect('desk-1');
      return bed
        .takeSent()
        .map(({ message }) => 'ttlMs' in message && message.ttlMs)
        .at(-1);
    };
    await bed.clock.advance(100_000);
    expect(await ttl()).toBe(EXPIRY_MS - 100_000);
    await bed.clock.advance(EXPIRY_MS - 100_000 + 10);
    expect(await ttl()).toBe(0);
  });

  it.each([YEARS_MS, -YEARS_MS])('is not moved by a wall clock that jumps by %d ms', async (jump) => {
    const { bed } = await sending([1], [2]);
    bed.clock.jumpWall(jump);
    await bed.clock.advance(EXPIRY_MS - 1);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['queued']);
    await bed.clock.advance(1);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['expired']);
    await bed.clock.advance(GRACE_MS);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['unknown']);
  });

  it('goes on when the storage failed at the deadline', async () => {
    const { bed } = await sending([1], [2]);
    bed.faults.commit = 'fail';
    await bed.clock.advance(EXPIRY_MS + 10);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['queued']);
    bed.faults.commit = null;
    await bed.clock.advance(GRACE_MS);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['expired']);
  });
});

describe('rule 7: one job at a time, in the order of acceptance', () => {
  it('sends the next when the one before is finished', async () => {
    const { bed, jobId } = await sending([1], [2], [3]);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'writing' });
    expect(brief(bed)).toEqual([]);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    expect(brief(bed)).toEqual(['write R2 2']);
    await bed.cancel('desk-1', 'R3');
    expect(bed.writes.get({ encoderId: 'desk-1', requestId: 'R2' }).position).toBe(0);
  });

  it('while encoders do not wait for each other', async () => {
    const { bed } = await sending([1]);
    await bed.connect('desk-2');
    await bed.accept('desk-2', 'R1', key(1));
    await bed.settle();
    expect(brief(bed)).toEqual(['write R1 1']);
  });
});

describe('cancelling a sent job', () => {
  it('sends cancel instead of the write from then on, and the reports settle it', async () => {
    const { bed, jobId } = await sending([1, 2]);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'writing' });
    await bed.cancel('desk-1', 'R1');
    await bed.settle();
    expect(brief(bed)).toEqual(['cancel']);
    await bed.clock.advance(5_000);
    expect(brief(bed)).toEqual(['cancel']);
    bed.disconnect('desk-1');
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual(['cancel']);
    await bed.job('desk-1', { jobId, known: true, entries: [{ keyId: key(1), status: 'writing' }] });
    await bed.progress('desk-1', { jobId, keyId: key(2), status: 'failed', error: { code: 'CANCELLED' } });
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    expect(bed.statuses('desk-1', 'R1')).toEqual(['written', 'cancelled']);
    await bed.clock.advance(10_000);
    expect(brief(bed)).toEqual([]);
  });

  it('that never reached the encoder ends it', async () => {
    const { bed, jobId } = await sending([1]);
    bed.disconnect('desk-1');
    await bed.cancel('desk-1', 'R1');
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
    await bed.connect('desk-1');
    await bed.job('desk-1', { jobId, known: false });
    expect(bed.statuses('desk-1', 'R1')).toEqual(['cancelled']);
  });

  it('survives a restart', async () => {
    const { bed } = await sending([1]);
    await bed.cancel('desk-1', 'R1');
    await bed.restart();
    bed.takeSent();
    await bed.connect('desk-1');
    expect(brief(bed)).toEqual(['cancel']);
  });

  it('of which nothing is ever heard ends unknown', async () => {
    const { bed } = await sending([1]);
    await bed.cancel('desk-1', 'R1');
    bed.disconnect('desk-1');
    await bed.clock.advance(EXPIRY_MS + GRACE_MS);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['unknown']);
  });
});

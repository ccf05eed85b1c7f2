import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { encodeDown } from '../../../drivers/encoder/messages.ts';
import {
  body,
  CALLER,
  EXPIRY_MS,
  JOURNAL,
  key,
  openTestbed,
} from '../../../test/resources/writes/testbed.ts';
import { BODY_LIMIT_BYTES } from './schema.ts';

const R1 = { encoderId: 'desk-1', requestId: 'R1' };
const code = (expected: string) => expect.objectContaining({ code: expected });

describe('accepting', () => {
  it('answers with the status resource', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const status = await bed.writes.accept(R1, { ...body(key(1), key(2)), description: 'Room 12' }, CALLER);
    expect(status).toEqual({
      encoderId: 'desk-1',
      requestId: 'R1',
      description: 'Room 12',
      status: 'queued',
      acceptedAt: '2026-01-01T00:00:00.000Z',
      expiresAt: '2026-01-01T00:15:00.000Z',
      position: 0,
      entries: [
        { keyId: key(1), status: 'queued' },
        { keyId: key(2), status: 'queued' },
      ],
    });
  });

  it('refuses in the order the interface promises', async () => {
    const bed = await openTestbed();
    await expect(bed.accept('desk-9', 'R1', key(1), key(1))).rejects.toEqual(code('DUPLICATE_KEY_ID'));
    await expect(bed.accept('desk-9', 'R1', key(1))).rejects.toEqual(code('NOT_FOUND'));
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    bed.disconnect('desk-1');
    bed.encoder('desk-1').upgrading = true;
    await expect(bed.accept('desk-1', 'R1', key(2))).rejects.toEqual(code('REQUEST_ID_REUSED'));
    await expect(bed.accept('desk-1', 'R2', key(2))).rejects.toEqual(code('NOT_CONNECTED'));
    await expect(bed.accept('desk-1', 'R2', key(2))).rejects.toThrow('Encoder desk-1 is not connected');
    bed.encoder('desk-1').connected = true;
    await expect(bed.accept('desk-1', 'R2', key(2))).rejects.toEqual(code('ENCODER_UPGRADING'));
  });

  it('names each repeated keyId', async () => {
    const bed = await openTestbed();
    const failure = await bed.accept('desk-1', 'R1', key(1), key(2), key(1)).catch((error) => error);
    const message = expect.stringContaining(key(1));
    expect(failure.details).toEqual([{ path: '/data/2/keyId', code: 'DUPLICATE_KEY_ID', message }]);
  });

  it('of a repeat answers with the current status, also offline, and writes nothing twice', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    const [first] = bed.takeSent();
    await bed.progress('desk-1', { jobId: first?.message.jobId ?? '', keyId: key(1), status: 'written' });
    bed.disconnect('desk-1');
    expect(await bed.accept('desk-1', 'R1', key(1))).toMatchObject({ status: 'written', position: null });
    await bed.connect('desk-1');
    expect(bed.takeSent()).toEqual([]);
    expect(bed.audits().filter(({ action }) => action === 'write-request.accept')).toHaveLength(1);
  });

  it('knows a repeat after a restart, and without having kept the blocks', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.restart();
    await expect(bed.accept('desk-1', 'R1', key(1))).resolves.toMatchObject({ requestId: 'R1' });
    const otherBlocks = { data: [{ keyId: key(1), blocks: ['another block'] }] };
    await expect(bed.writes.accept(R1, otherBlocks, CALLER)).rejects.toEqual(code('REQUEST_ID_REUSED'));
  });

  it('holds one request under way and eight that wait, however many come at once', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const attempts = Array.from({ length: 20 }, (_, index) => bed.accept('desk-1', `R${index}`, key(index)));
    const results = await Promise.allSettled(attempts);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(9);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toEqual(code('QUEUE_FULL'));
    }
    expect(bed.writes.get({ encoderId: 'desk-1', requestId: 'R8' }).position).toBe(8);
    await bed.connect('desk-2');
    await expect(bed.accept('desk-2', 'R1', key(1))).resolves.toMatchObject({ position: 0 });
  });

  it('makes one job of the same request sent many times at once', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const attempts = Array.from({ length: 20 }, () => bed.accept('desk-1', 'R1', key(1)));
    await Promise.all(attempts);
    await bed.settle();
    expect(bed.takeSent()).toHaveLength(1);
  });

  it('sends the largest request that HTTP lets through', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const data = Array.from({ length: 10 }, (_, index) => ({
      keyId: key(index),
      blocks: Array(256).fill('\u0001'.repeat(16)),
    }));
    const room = BODY_LIMIT_BYTES - Buffer.byteLength(JSON.stringify({ data, description: '' }));
    const largest = { data, description: 'x'.repeat(room) };
    const requestId = 'R'.repeat(128);
    await bed.writes.accept({ encoderId: 'desk-1', requestId }, largest, CALLER);
    await bed.settle();
    const [sent] = bed.takeSent();
    expect(sent?.channel === 'write' && encodeDown('write', sent.message).length).toBeGreaterThan(room);
  });

  it('promises nothing that was not stored', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    bed.faults.commit = 'fail';
    await expect(bed.accept('desk-1', 'R1', key(1))).rejects.toEqual(code('STORAGE_UNAVAILABLE'));
    bed.faults.commit = null;
    await bed.clock.advance(60_000);
    expect(bed.takeSent()).toEqual([]);
    expect(() => bed.writes.get(R1)).toThrow(code('NOT_FOUND'));
  });
});

describe('key data', () => {
  const secret = `block of ${key(1)}`;
  const stored = (folder: string) =>
    ['gatehouse.db', 'gatehouse.db-wal'].map((file) => readFileSync(join(folder, file), 'latin1')).join();
  const sealed = (database: Awaited<ReturnType<typeof openTestbed>>['database']) =>
    database.prepare<[], { sealed_blocks: Uint8Array | null }>('SELECT sealed_blocks FROM write_entry').all();

  it('is encrypted at rest and wiped with the terminal status', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    expect(stored(bed.folder)).toContain(key(1));
    expect(stored(bed.folder)).not.toContain(secret);
    expect(sealed(bed.database)[0]?.sealed_blocks).toBeInstanceOf(Uint8Array);
    const jobId = bed.takeSent()[0]?.message.jobId ?? '';
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'writing' });
    expect(sealed(bed.database)[0]?.sealed_blocks).toBeInstanceOf(Uint8Array);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    expect(sealed(bed.database)).toEqual([{ sealed_blocks: null }]);
  });

  it('appears in no event, audit or answer', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    const answer = await bed.accept('desk-1', 'R1', key(1));
    await bed.cancel('desk-1', 'R1');
    const said = JSON.stringify([answer, bed.writes.get(R1), bed.events(), bed.audits(), bed.warnings]);
    expect(said).not.toContain(secret);
    expect(said).not.toContain('CAFEF00D');
  });
});

describe('cancelling', () => {
  it('ends a request that was never sent, which then never is', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.accept('desk-1', 'R2', key(2), key(3));
    await bed.settle();
    const status = await bed.cancel('desk-1', 'R2');
    expect(status).toMatchObject({ status: 'cancelled', position: null });
    expect(bed.events().map(({ keyId, status }) => [keyId, status])).toEqual([
      [key(2), 'cancelled'],
      [key(3), 'cancelled'],
    ]);
    await bed.cancel('desk-1', 'R1');
    await bed.settle();
    const jobId = bed.takeSent()[0]?.message.jobId ?? '';
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'failed', error: { code: 'CANCELLED' } });
    expect(bed.takeSent().filter(({ channel }) => channel === 'write')).toEqual([]);
  });

  it('of a sent request is asked of the encoder once, and is audited once', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    const jobId = bed.takeSent()[0]?.message.jobId;
    expect(await bed.cancel('desk-1', 'R1')).toMatchObject({ status: 'queued', position: 0 });
    await bed.cancel('desk-1', 'R1');
    await bed.settle();
    expect(bed.takeSent()).toEqual([
      { encoderId: 'desk-1', channel: 'cancel', message: { epoch: 1, jobId } },
    ]);
    expect(bed.audits().filter(({ action }) => action === 'write-request.cancel')).toHaveLength(1);
  });

  it('of a finished request changes nothing', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.settle();
    const jobId = bed.takeSent()[0]?.message.jobId ?? '';
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    const before = bed.writes.get(R1);
    const [events, audits] = [bed.events(), bed.audits()];
    expect(await bed.cancel('desk-1', 'R1')).toEqual(before);
    expect([bed.events(), bed.audits()]).toEqual([events, audits]);
  });

  it('of what does not exist is 404', async () => {
    const bed = await openTestbed();
    await expect(bed.cancel('desk-1', 'R1')).rejects.toEqual(code('NOT_FOUND'));
    await expect(bed.cancel('desk-9', 'R1')).rejects.toEqual(code('NOT_FOUND'));
  });
});

describe('the list', () => {
  it('is newest first by acceptance, whatever the wall clock did, and goes on at the cursor', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    for (const index of [1, 2, 3, 4, 5]) {
      bed.clock.jumpWall(-86_400_000);
      await bed.accept('desk-1', `R${index}`, key(index));
    }
    const first = bed.writes.list('desk-1', { limit: 2 });
    expect(first.items.map(({ requestId }) => requestId)).toEqual(['R5', 'R4']);
    const second = bed.writes.list('desk-1', { limit: 2, cursor: first.next ?? '' });
    expect(second.items.map(({ requestId }) => requestId)).toEqual(['R3', 'R2']);
    const third = bed.writes.list('desk-1', { limit: 2, cursor: second.next ?? '' });
    expect(third).toMatchObject({ items: [{ requestId: 'R1', position: 0 }], next: null });
  });

  it('finds the requests that write a key, newest first, of this encoder alone', async () => {
    const bed = await openTestbed();
    for (const id of ['desk-1', 'desk-2']) await bed.connect(id);
    await bed.accept('desk-1', 'R1', key(1));
    await bed.accept('desk-1', 'R2', key(2));
    await bed.writes.accept({ ...R1, requestId: 'R3' }, body(key(3), key(1)), CALLER);
    await bed.accept('desk-2', 'R4', key(1));
    const of = (more: object) => bed.writes.list('desk-1', { limit: 1, keyId: key(1), ...more });
    const first = of({});
    expect(first.items).toMatchObject([{ requestId: 'R3' }]);
    expect(of({ cursor: first.next ?? '' })).toMatchObject({ items: [{ requestId: 'R1' }], next: null });
    expect(of({ status: 'written' })).toEqual({ items: [], next: null });
    expect(of({ keyId: key(9) })).toEqual({ items: [], next: null });
  });

  it('filters by status', async () => {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', key(1));
    await bed.accept('desk-1', 'R2', key(2));
    await bed.settle();
    await bed.cancel('desk-1', 'R2');
    await bed.progress('desk-1', {
      jobId: bed.takeSent()[0]?.message.jobId ?? '',
      keyId: key(1),
      status: 'started',
    });
    const ids = (status: 'inProgress' | 'cancelled' | 'written') =>
      bed.writes.list('desk-1', { limit: 50, status }).items.map(({ requestId }) => requestId);
    expect([ids('inProgress'), ids('cancelled'), ids('written')]).toEqual([['R1'], ['R2'], []]);
  });

  it('of an unknown encoder is 404', async () => {
    const bed = await openTestbed();
    expect(() => bed.writes.list('desk-9', { limit: 50 })).toThrow(code('NOT_FOUND'));
  });
});

describe('what encoders report', () => {
  async function underWay(...keyIds: string[]) {
    const bed = await openTestbed();
    await bed.connect('desk-1');
    await bed.accept('desk-1', 'R1', ...keyIds);
    await bed.settle();
    return { bed, jobId: bed.takeSent()[0]?.message.jobId ?? '' };
  }

  it('becomes one event per step, with the running totals', async () => {
    const { bed, jobId } = await underWay(key(1), key(2));
    for (const status of ['started', 'cardRequested', 'cardDetected', 'writing', 'written'] as const) {
      await bed.progress('desk-1', { jobId, keyId: key(1), status });
    }
    await bed.progress('desk-1', {
      jobId,
      keyId: key(2),
      status: 'failed',
      error: { code: 'NO_CARD', message: 'none' },
    });
    expect(bed.events().map(({ keyId, status }) => `${keyId.at(-1)} ${status}`)).toEqual([
      '1 started',
      '1 cardRequested',
      '1 cardDetected',
      '1 writing',
      '1 written',
      '2 failed',
    ]);
    const none = { written: 0, failed: 0, cancelled: 0, expired: 0, unknown: 0 };
    expect(bed.events()[4]).toEqual({
      encoderId: 'desk-1',
      requestId: 'R1',
      jobId,
      keyId: key(1),
      entryIndex: 0,
      entryCount: 2,
      status: 'written',
      totals: { ...none, written: 1, open: 1 },
      correlationId: 'correlation-1',
    });
    expect(bed.events()[5]).toMatchObject({
      error: { code: 'NO_CARD', message: 'none' },
      totals: { ...none, written: 1, failed: 1, open: 0 },
    });
    expect(bed.audits().at(-1)).toMatchObject({
      action: 'write-request.finish',
      object: 'encoder/desk-1/write-request/R1',
      outcome: 'failed',
    });
  });

  it('doubled and out of order makes one terminal event (Rules 5)', async () => {
    const { bed, jobId } = await underWay(key(1));
    for (const status of ['writing', 'started', 'written', 'written', 'writing', 'cardDetected'] as const) {
      await bed.progress('desk-1', { jobId, keyId: key(1), status });
    }
    await bed.job('desk-1', { jobId, known: true, entries: [{ keyId: key(1), status: 'written' }] });
    expect(bed.events().map(({ status }) => status)).toEqual(['writing', 'written']);
    expect(bed.audits().filter(({ action }) => action === 'write-request.finish')).toHaveLength(1);
  });

  it('differently after the end is kept as lateOutcome and audited, without an event (Rules 5)', async () => {
    const { bed, jobId } = await underWay(key(1));
    await bed.clock.advance(EXPIRY_MS + 60_000);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['unknown']);
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'failed', error: { code: 'NO_CARD' } });
    await bed.restart();
    expect(bed.writes.get(R1).entries[0]).toEqual({
      keyId: key(1),
      status: 'unknown',
      error: { code: 'ENCODER_TIMEOUT', message: expect.any(String) },
      lateOutcome: { status: 'written', reportedAt: '2026-01-01T00:16:00.000Z' },
    });
    expect(bed.events()).toHaveLength(1);
    expect(bed.audits().filter(({ action }) => action === 'write-request.late-outcome')).toMatchObject([
      { outcome: 'written', detail: { keyId: key(1), endedAs: 'unknown' } },
    ]);
  });

  it('of jobs and keys that do not exist is acknowledged, and logged at most once a minute', async () => {
    const { bed, jobId } = await underWay(key(1));
    for (let index = 0; index < 100; index += 1) {
      await bed.progress('desk-1', { jobId: key(99), keyId: key(1), status: 'written' });
      await bed.job('desk-1', { jobId, known: true, entries: [{ keyId: key(98), status: 'written' }] });
    }
    expect(bed.warnings).toHaveLength(1);
    await bed.clock.advance(60_000);
    await bed.progress('desk-1', { jobId, keyId: key(98), status: 'written' });
    expect(bed.warnings).toHaveLength(2);
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
  });

  it('of the job of another encoder is ignored', async () => {
    const { bed, jobId } = await underWay(key(1));
    await bed.connect('desk-2');
    await bed.progress('desk-2', { jobId, keyId: key(1), status: 'written' });
    await bed.job('desk-2', { jobId, known: false });
    expect(bed.statuses('desk-1', 'R1')).toEqual(['queued']);
  });

  it('of a job that was never sent is ignored: only a restored backup can know less than the encoder', async () => {
    const { bed } = await underWay(key(1));
    await bed.accept('desk-1', 'R2', key(2));
    const select = 'SELECT job_id FROM write_request WHERE request_id = ?';
    const row = bed.database.prepare<[string], { job_id: string }>(select).get('R2');
    await bed.progress('desk-1', { jobId: row?.job_id ?? '', keyId: key(2), status: 'written' });
    expect(bed.statuses('desk-1', 'R2')).toEqual(['queued']);
    expect(bed.warnings).toMatchObject([{ reason: 'never sent' }]);
  });

  it('under a new journal ends what was sent as unknown and leaves the rest to be sent (Rules 2)', async () => {
    const { bed, jobId } = await underWay(key(1), key(2));
    await bed.accept('desk-1', 'R2', key(3));
    await bed.progress('desk-1', { jobId, keyId: key(1), status: 'written' });
    bed.disconnect('desk-1');
    await bed.connect('desk-1', '10000000-0000-4000-8000-00000000000f');
    expect(bed.statuses('desk-1', 'R1')).toEqual(['written', 'unknown']);
    expect(bed.writes.get(R1).entries[1]?.error?.code).toBe('CONNECTION_LOST');
    expect(bed.takeSent()).toMatchObject([{ channel: 'write', message: { requestId: 'R2' } }]);
    await bed.connect('desk-1', JOURNAL);
    expect(bed.statuses('desk-1', 'R2')).toEqual(['unknown']);
  });
});

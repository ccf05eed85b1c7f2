import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { principalWith } from '../../../test/access-matrix.ts';
import { heldCommits } from '../../../test/held-commits.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { lanApp, send } from '../../../test/things-app.ts';
import type { Database } from '../../platform/database/database.ts';
import { storageUnavailable } from '../../platform/database/faults.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR, type Principal, type Role } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { JobOrder, Progress, ResumeJob } from './job-order.ts';
import { openJobs } from './jobs.ts';
import { jobOperations } from './operations.ts';
import { QUEUED_MAX } from './queues.ts';

const TECHNICIAN = { ...principalWith('service-tool'), id: '11111111-0000-4000-8000-000000000001' };
const PAGE = { limit: 50 };

async function openTestbed(
  database?: Awaited<ReturnType<typeof temporaryDatabase>>,
  resume: Record<string, ResumeJob> = {},
) {
  const kept = database ?? (await temporaryDatabase());
  const clock = manualClock();
  const audits: AuditEntry[] = [];
  const audit = { record: (entry: AuditEntry) => void audits.push(entry) };
  const jobs = openJobs({ database: kept, audit, clock, log: silentLog });
  await jobs.resume(resume);
  onTestFinished(async () => {
    const closed = jobs[Symbol.asyncDispose]();
    await clock.advance(10_000);
    await closed;
  });
  /** Begins a job that does what the test says. */
  async function begin(object = 'bus-1', more: Partial<JobOrder> = {}) {
    const work = Promise.withResolvers<Record<string, string> | null>();
    const given = { progress: (_: Progress) => {}, signal: new AbortController().signal };
    const roles: Role[] = ['service-tool'];
    const order: JobOrder = {
      kind: 'scan',
      object,
      roles,
      principal: TECHNICIAN,
      correlationId: 'c1',
      run(progress, signal) {
        Object.assign(given, { progress, signal });
        signal.addEventListener('abort', () => work.reject(signal.reason));
        return work.promise;
      },
      ...more,
    };
    const job = await jobs.start(order);
    return { id: job.id, job, work, given };
  }
  const app = lanApp({ operations: jobOperations(jobs) });
  return {
    database: kept,
    clock,
    audits,
    jobs,
    begin,
    get: (id: string, principal: Principal = TECHNICIAN) => jobs.get(id, principal),
    call: (method: string, path: string, as = 'service-tool') => send(method, path, { as, app }),
    outcomes: () => audits.map(({ action, object, outcome }) => `${action} ${object} ${outcome}`),
  };
}

describe('a job', () => {
  it('is stored and audited before it begins, and shown as it goes on and ends', async () => {
    const { begin, get, jobs, clock, outcomes } = await openTestbed();
    const { id, job, work, given } = await begin();
    expect(job).toEqual({
      id,
      kind: 'scan',
      object: 'bus-1',
      status: 'running',
      position: null,
      startedBy: TECHNICIAN.id,
      progress: { done: 0, total: null, percent: null },
      startedAt: '2026-01-01T00:00:00.000Z',
      cancelRequestedAt: null,
      finishedAt: null,
      error: null,
      result: null,
    });
    expect(outcomes()).toEqual(['job.scan bus-1 accepted']);
    given.progress({ done: 50, total: 247 });
    expect(get(id).progress).toEqual({ done: 50, total: 247, percent: 20 });
    expect(jobs.running()).toEqual([get(id)]);
    given.progress({ done: 247, total: 247 });
    await clock.advance(1_000);
    work.resolve({ found: '3' });
    await clock.advance(0);
    expect(get(id)).toMatchObject({
      status: 'done',
      progress: { percent: 100 },
      error: null,
      result: { found: '3' },
      finishedAt: '2026-01-01T00:00:01.000Z',
    });
    expect(jobs.running()).toEqual([]);
    expect(outcomes()).toEqual(['job.scan bus-1 accepted', 'job.scan bus-1 done']);
  });

  it('that fails says why, as far as it concerns a client', async () => {
    const { begin, get, clock, outcomes } = await openTestbed();
    const given = await begin('bus-1');
    const internal = await begin('bus-2');
    given.work.reject(new DriverError('LINK_LOST', 'the adapter was unplugged'));
    internal.work.reject(new TypeError('x is not a function'));
    await clock.advance(0);
    expect(get(given.id)).toMatchObject({
      status: 'failed',
      result: null,
      error: { code: 'LINK_LOST', message: 'the adapter was unplugged' },
    });
    expect(get(internal.id).error).toMatchObject({ code: 'INTERNAL' });
    expect(get(internal.id).error?.message).not.toContain('function');
    expect(outcomes().slice(2).toSorted()).toEqual(['job.scan bus-1 failed', 'job.scan bus-2 failed']);
  });

  it('is asked to end when cancelled, and ends cancelled when it obeys', async () => {
    const { begin, get, jobs, clock, outcomes } = await openTestbed();
    const { id, given } = await begin();
    const asked = await jobs.cancel(id, { principal: TECHNICIAN, correlationId: 'c2' });
    expect(asked.cancelRequestedAt).toBe('2026-01-01T00:00:00.000Z');
    expect(given.signal.aborted).toBe(true);
    await clock.advance(0);
    expect(get(id)).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
    const again = await jobs.cancel(id, { principal: TECHNICIAN, correlationId: 'c3' });
    expect(again).toEqual(get(id));
    expect(outcomes()).toEqual([
      'job.scan bus-1 accepted',
      'job.scan bus-1 cancel requested',
      'job.scan bus-1 cancelled',
    ]);
  });

  it('that was done before it heard of the cancellation is done', async () => {
    const { begin, get, jobs, clock } = await openTestbed();
    const done = Promise.withResolvers<null>();
    const { id } = await begin('bus-1', { run: () => done.promise });
    await jobs.cancel(id, { principal: TECHNICIAN, correlationId: 'c2' });
    expect(get(id).status).toBe('running');
    done.resolve(null);
    await clock.advance(0);
    expect(get(id).status).toBe('done');
  });

  it('that is done while its cancellation is stored is done, and was not cancelled', async () => {
    const held = heldCommits(await temporaryDatabase());
    const { begin, get, jobs, clock, outcomes } = await openTestbed(held.database);
    const { id, work } = await begin();
    held.hold();
    work.resolve({ found: '3' });
    await clock.advance(0);
    const cancelled = jobs.cancel(id, { principal: TECHNICIAN, correlationId: 'c2' });
    expect(held.waiting).toHaveLength(2);
    held.release();
    expect(await cancelled).toMatchObject({ status: 'done', cancelRequestedAt: null });
    expect(get(id).result).toEqual({ found: '3' });
    expect(outcomes()).toEqual(['job.scan bus-1 accepted', 'job.scan bus-1 done']);
  });

  it('whose end finds no room is stored once there is some, and that it failed is shown at once', async () => {
    const database = await temporaryDatabase();
    let isFull = false;
    const full = storageUnavailable({ code: 'SQLITE_FULL' });
    const commit: Database['commit'] = (job) => (isFull ? Promise.reject(full) : database.commit(job));
    const { begin, get, jobs, clock, outcomes } = await openTestbed({ ...database, commit });
    const [one, other] = [await begin('bus-1'), await begin('bus-2')];
    isFull = true;
    one.work.resolve({ found: '3' });
    other.work.reject(full);
    await clock.advance(60_000);
    const failed = { status: 'failed', error: { code: 'STORAGE_UNAVAILABLE', message: full.message } };
    expect([get(one.id).status, get(other.id), jobs.running().length]).toMatchObject(['running', failed, 1]);
    isFull = false;
    await clock.advance(10_000);
    expect([get(one.id), get(other.id)]).toMatchObject([{ status: 'done', result: { found: '3' } }, failed]);
    expect(outcomes().slice(2).sort()).toEqual(['job.scan bus-1 done', 'job.scan bus-2 failed']);
  });

  it('that ran when the gateway was killed has failed at the next start, once and with its reason', async () => {
    const { database, begin } = await openTestbed();
    const { id } = await begin();
    const second = await openTestbed(database);
    expect(second.get(id)).toMatchObject({
      status: 'failed',
      finishedAt: '2026-01-01T00:00:00.000Z',
      error: { code: 'INTERRUPTED', message: expect.stringContaining('start it again') },
    });
    expect(second.outcomes()).toEqual(['job.scan bus-1 interrupted']);
    const third = await openTestbed(database);
    expect(third.outcomes()).toEqual([]);
  });

  it('is ended when the gateway closes, and that is stored', async () => {
    const { database, begin, jobs } = await openTestbed();
    const { id } = await begin();
    await jobs[Symbol.asyncDispose]();
    const second = await openTestbed(database);
    expect(second.outcomes()).toEqual([]);
    expect(second.get(id)).toMatchObject({ status: 'failed', error: { code: 'INTERRUPTED' } });
  });

  it('that ignores its signal does not hold the gateway up', async () => {
    const { begin, jobs, clock } = await openTestbed();
    await begin('bus-1', { run: () => new Promise(() => {}) });
    const closed = jobs[Symbol.asyncDispose]();
    await clock.advance(5_000);
    await closed;
  });
});

describe('the bounds of jobs', () => {
  it('are one of a kind on an object, and four at once', async () => {
    const { begin, clock } = await openTestbed();
    const first = await begin('bus-1');
    await expect(begin('bus-1')).rejects.toMatchObject({
      code: 'IN_PROGRESS',
      message: expect.stringContaining(first.id),
    });
    await begin('bus-1', { kind: 'firmware' });
    await begin('bus-2');
    await begin('bus-3');
    await expect(begin('bus-4')).rejects.toMatchObject({ code: 'QUEUE_FULL' });
    first.work.resolve(null);
    await clock.advance(0);
    await begin('bus-1');
  });

  it('hold for two at once', async () => {
    const { begin } = await openTestbed();
    const both = await Promise.allSettled([begin('bus-1'), begin('bus-1')]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it('forget the oldest finished ones', async () => {
    const { database, jobs, begin, clock } = await openTestbed();
    const { id } = await begin('running');
    for (let n = 0; n < 503; n += 1) {
      const { work } = await begin('bus-1');
      work.resolve(null);
      await clock.advance(0);
    }
    const count = database.prepare<[], { n: number }>('SELECT count(*) AS n FROM job').get()?.n;
    expect(count).toBe(501);
    expect(jobs.get(id, TECHNICIAN).status).toBe('running');
  });
});

describe('a queue', () => {
  const queued = (object: string) => ({ kind: 'firmware', queue: { name: 'network-1', input: { object } } });
  const placesOf = ({ jobs }: Awaited<ReturnType<typeof openTestbed>>, ids: string[]) =>
    ids.map((id) => {
      const { status, position } = jobs.get(id, TECHNICIAN);
      return position === null ? status : `${status} ${position}`;
    });

  it('has one job run at a time, in the order in which they were accepted', async () => {
    const bed = await openTestbed();
    const orders = [];
    for (const object of ['a', 'b', 'c']) orders.push(await bed.begin(object, queued(object)));
    const ids = orders.map(({ id }) => id);
    expect(orders.map(({ job }) => job.position)).toEqual([null, 1, 2]);
    expect(placesOf(bed, ids)).toEqual(['running', 'queued 1', 'queued 2']);
    expect(bed.jobs.running().map(({ id }) => id)).toEqual(ids.slice(0, 1));
    await bed.begin('d', { kind: 'firmware', queue: { name: 'network-2', input: {} } });
    orders[0]?.work.reject(new DriverError('NO_REPLY', 'it fetched nothing'));
    await bed.clock.advance(1_000);
    expect(placesOf(bed, ids)).toEqual(['failed', 'running', 'queued 1']);
    expect((await bed.call('GET', '/jobs?status=queued')).body.items).toMatchObject([
      { id: ids[2], status: 'queued', position: 1 },
    ]);
    orders[1]?.work.resolve(null);
    await bed.clock.advance(1_000);
    expect(placesOf(bed, ids)).toEqual(['failed', 'done', 'running']);
    expect(bed.get(ids[2] ?? '').startedAt).toBe('2026-01-01T00:00:01.000Z');
  });

  it('is not refused while all that may run do, and goes on when one ends', async () => {
    const { begin, get, clock } = await openTestbed();
    const others = [];
    for (const object of ['1', '2', '3', '4']) others.push(await begin(object));
    const { id } = await begin('a', queued('a'));
    expect(get(id)).toMatchObject({ status: 'queued', position: 1 });
    others[0]?.work.resolve(null);
    await clock.advance(0);
    expect(get(id).status).toBe('running');
  });

  it('takes a job on an object once, and has a bound', async () => {
    const { begin } = await openTestbed();
    const { id } = await begin('a', queued('a'));
    const same = { code: 'IN_PROGRESS', message: expect.stringContaining(id) };
    await expect(begin('a', queued('a'))).rejects.toMatchObject(same);
    for (let n = 0; n < QUEUED_MAX; n += 1) await begin(`waits-${n}`, queued('x'));
    const full = { code: 'QUEUE_FULL', message: expect.stringContaining('wait in this queue') };
    await expect(begin('one more', queued('x'))).rejects.toMatchObject(full);
    await expect(begin('waits-0', queued('x'))).rejects.toMatchObject({ code: 'IN_PROGRESS' });
  });

  it.each([
    ['is cancelled', 'cancelled', 'CANCELLED'],
    ['cannot be done any more', 'failed', 'DEVICE_OFFLINE'],
  ])('gives up a job that %s while it waits, which never begins', async (_, status, code) => {
    const bed = await openTestbed();
    const { begin, get, jobs, clock } = bed;
    const first = await begin('a', queued('a'));
    const run = vi.fn(async () => null);
    const second = await begin('b', { ...queued('b'), run });
    const third = await begin('c', queued('c'));
    const gone = new DriverError('DEVICE_OFFLINE', '');
    if (status === 'cancelled') await jobs.cancel(second.id, { principal: TECHNICIAN, correlationId: 'c2' });
    else await Promise.all(['a', 'b'].map((object) => jobs.failQueued('firmware', object, gone)));
    expect(get(second.id)).toMatchObject({ status, position: null, error: { code } });
    expect(placesOf(bed, [first.id, third.id])).toEqual(['running', 'queued 1']);
    first.work.resolve(null);
    await clock.advance(0);
    expect(placesOf(bed, [first.id, third.id])).toEqual(['done', 'running']);
    expect(run).not.toHaveBeenCalled();
  });

  it('survives a restart: what was interrupted is next again, with its input, until that ends the gateway each time', async () => {
    const resumed: unknown[] = [];
    const resume: Record<string, ResumeJob> = {
      firmware: (input, id) => (_, signal) => {
        resumed.push([input, id]);
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      },
    };
    let bed = await openTestbed(undefined, resume);
    const { database } = bed;
    const { id: running } = await bed.begin('a', queued('a'));
    const { id: waiting } = await bed.begin('b', queued('b'));
    for (let restart = 1; restart <= 3; restart += 1) {
      // One that is killed, and one that closes.
      if (restart === 2) await bed.jobs[Symbol.asyncDispose]();
      bed = await openTestbed(database, resume);
      await expect.poll(() => placesOf(bed, [running, waiting])).toEqual(['running', 'queued 1']);
      expect(resumed).toHaveLength(restart);
    }
    expect(resumed[0]).toEqual([{ object: 'a' }, running]);
    bed = await openTestbed(database, resume);
    await expect.poll(() => placesOf(bed, [running, waiting])).toEqual(['failed', 'running']);
    expect(bed.get(running).error?.code).toBe('INTERRUPTED');
    expect(resumed.at(-1)).toEqual([{ object: 'b' }, waiting]);
  });
});

describe('the operations of jobs', () => {
  it('show and cancel a job to those who may start it, and to the administrator', async () => {
    const { begin, call, get, jobs } = await openTestbed();
    const { id } = await begin();
    const local = await begin('database', { roles: [], kind: 'backup', principal: LOCAL_ADMINISTRATOR });
    const items = async (as: string) =>
      ((await call('GET', '/jobs', as)).body.items as { id: string }[]).map((one) => one.id);
    expect(await items('service-tool')).toEqual([id]);
    expect(await items('pms')).toEqual([]);
    expect(jobs.list(PAGE, LOCAL_ADMINISTRATOR).items.map((one) => one.id)).toEqual([local.id, id]);
    expect((await call('GET', `/jobs/${id}`)).body.id).toBe(id);
    expect((await call('GET', `/jobs/${id}`, 'front-desk')).status).toBe(403);
    expect((await call('DELETE', `/jobs/${id}`, 'front-desk')).status).toBe(403);
    expect((await call('GET', `/jobs/${local.id}`)).status).toBe(403);
    expect(get(local.id, LOCAL_ADMINISTRATOR).kind).toBe('backup');
    expect((await call('DELETE', `/jobs/${id}`)).status).toBe(200);
    expect((await call('GET', '/jobs/ffffffff-0000-4000-8000-000000000000')).status).toBe(404);
    expect((await call('GET', '/jobs/x')).status).toBe(400);
  });

  it('list newest first, page by page, with filters', async () => {
    const { begin, call, clock } = await openTestbed();
    const ids: string[] = [];
    for (const object of ['bus-1', 'bus-2', 'bus-3']) {
      const { id, work } = await begin(object);
      ids.unshift(id);
      if (object !== 'bus-3') work.resolve(null);
      await clock.advance(0);
    }
    const listed = async (query: string) => {
      const { body } = await call('GET', `/jobs${query}`);
      return { ids: (body.items as { id: string }[]).map(({ id }) => id), next: body.next };
    };
    expect((await listed('')).ids).toEqual(ids);
    const first = await listed('?limit=2');
    expect(first.ids).toEqual(ids.slice(0, 2));
    expect(await listed(`?limit=2&cursor=${first.next}`)).toEqual({ ids: ids.slice(2), next: null });
    expect((await listed('?status=running')).ids).toEqual(ids.slice(0, 1));
    expect((await listed('?object=bus-1')).ids).toEqual(ids.slice(2));
    expect((await listed('?kind=backup')).ids).toEqual([]);
    expect((await call('GET', '/jobs?status=odd')).status).toBe(400);
  });
});

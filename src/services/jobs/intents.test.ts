/** What the audit keeps of the work of a job: accepted with its beginning, and one outcome with its end, also after a kill. */
import { expect, it, onTestFinished } from 'vitest';
import { endedJob } from '../../../test/ended-job.ts';
import { heldCommits } from '../../../test/held-commits.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { JobOrder, JobWork, ResumeJob } from './job-order.ts';
import { openJobs } from './jobs.ts';

const INTENT = { action: 'rs485.pair', object: 'rs485/bus/b', detail: { address: 3 } };

async function openTestbed(database: Database, resume: Record<string, ResumeJob> = {}) {
  const clock = manualClock();
  const audits: AuditEntry[] = [];
  const audit = { record: (entry: AuditEntry) => void audits.push(entry) };
  const jobs = openJobs({ database, audit, clock, log: silentLog });
  await jobs.resume(resume);
  onTestFinished(async () => {
    const closed = jobs[Symbol.asyncDispose]();
    await clock.advance(10_000);
    await closed;
  });
  return {
    jobs,
    /** Of the intent. */
    kept: () =>
      audits.flatMap(({ action, object, outcome, detail, correlationId, principal }) =>
        action === INTENT.action ? [{ object, outcome, detail, correlationId, by: principal.label }] : [],
      ),
    start: (run: JobWork, more: Partial<JobOrder> = {}) =>
      jobs.start({
        kind: 'pairing',
        object: 'b',
        roles: [],
        principal: LOCAL_ADMINISTRATOR,
        correlationId: 'c',
        intent: INTENT,
        run,
        ...more,
      }),
  };
}

const entry = (outcome: string, more: object = {}) => ({
  object: INTENT.object,
  outcome,
  detail: { address: 3, ...more },
  correlationId: 'c',
  by: LOCAL_ADMINISTRATOR.label,
});
const forEver: JobWork = (_, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

it.each<[string, JobWork, object]>([
  ['done', async () => null, entry('done')],
  [
    'failed, with the reason',
    () => Promise.reject(new Error('x')),
    entry('failed', { reason: 'The gateway itself failed; its log says why.' }),
  ],
  [
    'what its work says, also when that fails afterwards',
    (_, __, conclude) => {
      conclude({ outcome: 'done', detail: { hwId: 'reader' } });
      return Promise.reject(new Error('x'));
    },
    entry('done', { hwId: 'reader' }),
  ],
])('its outcome is %s', async (_name, run, outcome) => {
  const { jobs, start, kept } = await openTestbed(await temporaryDatabase());
  const { id } = await start(run);
  await endedJob(jobs, id);
  expect(kept()).toEqual([entry('accepted'), outcome]);
});

it('its outcome, what is stored with that, and the end of the job are one commit', async () => {
  const held = heldCommits(await temporaryDatabase());
  const { jobs, start, kept } = await openTestbed(held.database);
  const steps: string[] = [];
  const { id } = await start(async (_, __, conclude) => {
    held.hold();
    conclude({ outcome: 'done', also: () => steps.push('also'), stored: () => steps.push('stored') });
    return null;
  });
  await expect.poll(() => held.waiting).toHaveLength(1);
  expect([jobs.get(id, LOCAL_ADMINISTRATOR).status, steps, kept().length]).toEqual(['running', [], 1]);
  held.waiting.shift()?.();
  expect(await endedJob(jobs, id)).toMatchObject({ status: 'done' });
  await expect.poll(() => steps).toEqual(['also', 'stored']);
  expect([kept().length, held.waiting]).toEqual([2, []]);
});

it('of a job that a kill has cut short it is unknown, from the next start on and once', async () => {
  const database = await temporaryDatabase();
  await (await openTestbed(database)).start(forEver);
  const next = await openTestbed(database);
  const reason = 'the gateway was stopped before the outcome was known';
  expect(next.kept()).toEqual([entry('unknown', { reason })]);
  expect((await openTestbed(database)).kept()).toEqual([]);
});

it('of a job that goes on after a kill it is what comes of that', async () => {
  const database = await temporaryDatabase();
  const queue = { name: 'q', input: {} };
  const { id } = await (await openTestbed(database)).start(forEver, { queue });
  const resumed: JobWork = async (_, __, conclude) => {
    conclude({ outcome: 'done', detail: { now: 9 } });
    return null;
  };
  const next = await openTestbed(database, { pairing: () => resumed });
  expect(await endedJob(next.jobs, id)).toMatchObject({ status: 'done' });
  expect(next.kept()).toEqual([entry('done', { now: 9 })]);
});

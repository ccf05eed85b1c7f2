import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openTestGateway } from '../../../test/gateway.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { openSource } from '../../platform/config/config-file.ts';
import { silentLog } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { AuditEntry } from '../audit/entry.ts';
import type { LiveEvent } from '../events/cloud-event.ts';
import type { JobOrder } from '../jobs/job-order.ts';
import { archiveName, removable } from './names.ts';
import { isDue, openBackups } from './schedule.ts';

vi.setConfig({ testTimeout: 120_000 });

const PUBLIC = 'age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct';
const HOUR = 3_600_000;
const NIGHT = Date.UTC(2026, 10, 23, 3, 20);

describe('a backup is due', () => {
  const local = (hours: number, minutes: number, day = 23) =>
    new Date(2026, 10, day, hours, minutes).getTime();

  it.each<[string, number, number | undefined, boolean]>([
    ['03:20', local(3, 19), local(3, 20, 22), false],
    ['03:20', local(3, 20), local(3, 20, 22), true],
    ['03:20', local(9, 0), local(3, 21), false],
    // The machine was off in the night.
    ['03:20', local(9, 0), local(3, 20, 22), true],
    ['6h', local(9, 0), local(3, 1), false],
    ['6h', local(9, 0), local(3, 0), true],
    ['6h', local(9, 0), undefined, true],
    // Of a clock that was wrong.
    ['6h', local(9, 0), local(9, 0) + 1_000 * HOUR, true],
  ])('%s at %d after %s: %s', (schedule, now, newest, due) => {
    expect(isDue(schedule, now, newest)).toBe(due);
  });
});

it('only archives are removed, the oldest, and never the one just made', () => {
  const names = [1, 2, 3, 4].map((days) => archiveName(NIGHT + days * 24 * HOUR));
  const [first = '', second = '', , newest = ''] = names;
  const others = ['gatehouse.db.schema-7', 'mine.age', 'gatehouse-20261123T032000Z.age.new', 'damaged-x'];
  expect(removable([...others, ...names], 2, newest)).toEqual([first, second]);
  expect(removable([...others, ...names], 4, newest)).toEqual([]);
  expect(removable(names, 1, first)).toEqual(names.slice(1));
});

/** The schedule of a gateway that works, with a clock of the test's. */
async function scheduled(folder?: string) {
  const gateway = await openTestGateway();
  // Of what it does not read, or it would make archives of its own in this folder after a minute.
  const configuration = JSON.parse(readFileSync(gateway.configFile, 'utf8'));
  configuration.backup = { recipients: [PUBLIC], schedule: '6h', keep: 2, folder };
  writeFileSync(gateway.configFile, JSON.stringify(configuration));
  const clock = manualClock(NIGHT);
  const audited: AuditEntry[] = [];
  const published: LiveEvent[] = [];
  const orders: JobOrder[] = [];
  const source = openSource(gateway.configFile);
  const backups = openBackups({
    config: source.read(),
    source,
    database: { commit: async (job) => job() },
    audit: { record: (entry) => void audited.push(entry) },
    jobs: { start: async (order) => orders.push(order) },
    events: { publish: (event) => void published.push(event), wake() {} },
    clock,
    time: clock,
    log: silentLog,
    execPath: process.execPath,
  });
  const ending = new AbortController();
  const ended = backups.keep(ending.signal).catch(() => {});
  return {
    gateway,
    clock,
    audited,
    published,
    orders,
    backups,
    archives: join(gateway.dataDirectory, 'backups'),
    /** One attempt, after so long. */
    async attempt(milliseconds: number, entries: number) {
      await clock.advance(milliseconds);
      await vi.waitFor(() => expect(audited).toHaveLength(entries), 60_000);
      await vi.waitFor(() => expect(clock.sleepers()).toBe(1), 60_000);
    },
    async end() {
      ending.abort();
      await ended;
    },
  };
}

describe('the daemon', () => {
  it('makes archives, and removes the oldest once the new one is there', async () => {
    const { clock, archives, attempt, audited, backups, end } = await scheduled();
    mkdirSync(archives, { recursive: true });
    const old = [archiveName(NIGHT - 48 * HOUR), archiveName(NIGHT - 24 * HOUR)];
    for (const name of [...old, 'gatehouse.db.schema-7']) writeFileSync(join(archives, name), 'old');
    await attempt(60_000, 1);
    const made = archiveName(clock.now());
    expect(readdirSync(archives).sort()).toEqual([old[1], made, 'gatehouse.db.schema-7'].sort());
    expect(audited).toMatchObject([
      { action: 'backup.make', outcome: 'done', detail: { removed: [old[0]] } },
    ]);
    expect(backups.state()).toMatchObject({ error: null, schedule: '6h' });
    await clock.advance(5 * HOUR);
    expect(audited).toHaveLength(1);
    await attempt(HOUR, 2);
    expect(readdirSync(archives).sort()).toEqual(
      [made, archiveName(clock.now()), 'gatehouse.db.schema-7'].sort(),
    );
    await end();
  });

  it('makes one of the configuration as it was, while there is a mistake in it', async () => {
    const { gateway, clock, archives, attempt, audited, end } = await scheduled();
    const sound = readFileSync(gateway.configFile, 'utf8');
    writeFileSync(gateway.configFile, 'htpp: {}\nopensesame: "');
    await attempt(60_000, 1);
    expect(audited).toMatchObject([{ outcome: 'done', detail: { isEarlierConfiguration: true } }]);
    expect(readdirSync(archives)).toContain(archiveName(clock.now()));
    writeFileSync(gateway.configFile, sound);
    await attempt(6 * HOUR, 2);
    expect(audited[1]).toMatchObject({ outcome: 'done', detail: { isEarlierConfiguration: false } });
    await end();
  });

  it('reports a failure once, keeps the archives there are, and tries again', async () => {
    const stick = join((await openTestGateway()).folder, 'stick');
    const { attempt, audited, published, backups, end, clock } = await scheduled(stick);
    await attempt(60_000, 1);
    expect(audited).toMatchObject([{ action: 'backup.make', outcome: 'failed' }]);
    expect(published).toMatchObject([
      {
        type: 'gatehouse.backup.failed.v1',
        data: { reason: expect.stringContaining(stick), newestAt: null },
      },
    ]);
    expect(backups.state()?.error).toMatch(/There is no backup: .*ENOENT/);
    // It is not reported again before a backup succeeds.
    await clock.advance(HOUR);
    await vi.waitFor(() => expect(clock.sleepers()).toBe(1), 60_000);
    expect(audited).toHaveLength(1);
    mkdirSync(stick);
    await attempt(HOUR, 2);
    expect(audited[1]).toMatchObject({ outcome: 'done' });
    expect(backups.state()?.error).toBe(null);
    expect(published).toHaveLength(1);
    await end();
  });

  it('makes one that is ordered, never beside one that is due, and says how far it is', async () => {
    const { backups, orders, archives, audited, attempt, end, clock } = await scheduled();
    const caller = { principal: SYSTEM_PRINCIPAL, correlationId: 'c' };
    await backups.order(caller);
    const concluded: unknown[] = [];
    const steps: number[] = [];
    const made = orders[0]?.run(
      ({ done, total }) => steps.push(done / (total ?? 0)),
      new AbortController().signal,
      (conclusion) => concluded.push(conclusion),
    );
    await expect(backups.order(caller)).rejects.toMatchObject({ code: 'IN_PROGRESS' });
    // One is due now, and waits.
    await clock.advance(60_000);
    const file = join(archives, archiveName(NIGHT));
    expect(await made).toMatchObject({ file, bytes: expect.any(Number), leftOut: [], removed: [] });
    expect(readdirSync(archives)).toEqual([archiveName(NIGHT)]);
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.every((step) => step > 0 && step < 1)).toBe(true);
    expect(concluded).toMatchObject([{ outcome: 'done', detail: { file } }]);
    expect(audited).toEqual([]);
    await attempt(6 * HOUR, 1);
    expect(readdirSync(archives)).toHaveLength(2);
    await end();
  });

  it('makes one for a technician as a job, and refuses it where there is no key', async () => {
    const gateway = await openTestGateway({ backup: { recipients: [PUBLIC] } });
    const ordered = JSON.parse(await gateway.local('POST', '/backups'));
    expect(ordered).toMatchObject({ kind: 'backup', object: 'backup', status: 'running' });
    await vi.waitFor(async () => {
      const job = JSON.parse(await gateway.local('GET', `/jobs/${ordered.id}`));
      expect(job).toMatchObject({ status: 'done', result: { file: expect.stringMatching(/\.age$/) } });
    }, 60_000);
    const { items } = JSON.parse(await gateway.local('GET', '/audit?action=backup.make'));
    expect(items).toMatchObject([{ outcome: 'done' }, { outcome: 'accepted' }]);
    const without = await openTestGateway();
    expect(JSON.parse(await without.local('POST', '/backups'))).toMatchObject({ error: 'NOT_SUPPORTED' });
  });

  it('says in the status what it does, and where nothing is made', async () => {
    const gateway = await openTestGateway({ backup: { recipients: [PUBLIC], schedule: '6h' } });
    const { backup } = JSON.parse(await gateway.local('GET', '/local/status'));
    expect(backup).toEqual({
      schedule: '6h',
      folder: join(gateway.dataDirectory, 'backups'),
      newest: null,
      ageSeconds: null,
      error: null,
    });
    const without = await openTestGateway();
    expect(JSON.parse(await without.local('GET', '/local/status')).backup).toBe(null);
  });
});

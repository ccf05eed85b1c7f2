/** A change of address that a restart cut short: the device is looked for at both addresses, and nothing is sent again. */
import { expect, it, onTestFinished } from 'vitest';
import { endedJob } from '../../../test/ended-job.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { A } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import { openJobs } from '../../services/jobs/jobs.ts';
import { COMMUNICATION, type CommunicationOptions, openCommunication } from './communication.ts';
import { openKeys } from './keys.ts';
import { openRs485Table } from './table.ts';

const BUS = 'bus-1';
const LINE = { baudRate: 9_600, parity: 'none', stopBits: 1 };
const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c' };

async function openParts(database: Database, known: { at?: number; address: number }) {
  const table = openRs485Table(database);
  const vault = {
    seal: (plain: Uint8Array) => Buffer.from(plain),
    open: (sealed: Uint8Array) => Buffer.from(sealed),
  };
  const keys = openKeys({ table, vault, log: silentLog });
  const clock = manualClock();
  const audits: AuditEntry[] = [];
  const sent: string[] = [];
  const parts = {
    database,
    clock,
    log: silentLog,
    audit: { record: (entry: AuditEntry) => void audits.push(entry) },
  };
  const jobs = openJobs(parts);
  const device = { at: known.at, address: known.address };
  const communication = openCommunication({
    ...parts,
    table,
    keys,
    buses: { assertOsdp: () => ({ id: BUS, line: LINE }) },
    reported: {
      get: () => ({ connected: true, at: device.at, state: { security: 'secure', address: device.address } }),
    },
    polled: { heardAt() {}, changed() {} },
    field: {
      execute: (_: string, { kind }: { kind: string }) => {
        sent.push(kind);
        return new Promise(() => {});
      },
    },
    jobs,
  } as unknown as CommunicationOptions);
  await jobs.resume({ [COMMUNICATION]: communication.resumeReaddress });
  onTestFinished(async () => {
    const closed = jobs[Symbol.asyncDispose]();
    await clock.advance(10_000);
    await closed;
  });
  return {
    ...communication,
    jobs,
    keys,
    clock,
    device,
    sent,
    table,
    outcomes: () =>
      audits.flatMap(({ action, outcome, detail }) =>
        action === 'rs485.communication' ? [[outcome, detail?.outcome, detail?.now]] : [],
      ),
    addresses: () => keys.of(BUS).map(({ address }) => address),
  };
}

async function cutShort() {
  const database = await temporaryDatabase();
  const before = await openParts(database, { at: 0, address: 3 });
  await database.commit(() => {
    before.table.insertFound.run(A, BUS, 'reader-1', 3, 0, 0, '', 0, '');
    before.keys.draw({ bus: BUS, address: 3 }, { now: 0, principalId: '' });
    before.keys.proved({ bus: BUS, address: 3 }, { now: 0, principalId: '' });
  });
  const { id } = (await before.readdress(A, { address: 9 } as never, CALLER)) as { id: string };
  await expect.poll(() => before.sent).toEqual(['readdress']);
  expect([before.addresses(), before.outcomes()]).toEqual([[3, 9], [['accepted', undefined, undefined]]]);
  return { database, id };
}

it.each([
  [9, 'done', 'moved'],
  [3, 'failed', 'stayed'],
  // Neither where it was nor where it was to be: by hand, before.
  [5, 'failed', 'stayed'],
])('a device that answers at address %d has %s', async (address, audited, outcome) => {
  const { database, id } = await cutShort();
  // It was connected before the start: that says nothing.
  const next = await openParts(database, { address: 3 });
  await next.clock.advance(5_000);
  expect(next.outcomes()).toEqual([]);
  Object.assign(next.device, { at: next.clock.monotonic(), address });
  await next.clock.advance(1_000);
  expect(await endedJob(next.jobs, id)).toMatchObject({ status: 'done', result: { outcome, address } });
  expect([next.outcomes(), next.addresses(), next.sent]).toEqual([
    [[audited, outcome, address]],
    [address],
    [],
  ]);
});

it('a device that answers nowhere keeps its key at both addresses, where it goes on to be asked', async () => {
  const { database, id } = await cutShort();
  const next = await openParts(database, { address: 3 });
  await next.clock.advance(130_000);
  expect(await endedJob(next.jobs, id)).toMatchObject({ status: 'done', result: { outcome: 'lost' } });
  expect([next.outcomes(), next.addresses()]).toEqual([[['failed', 'lost', 3]], [3, 9]]);
});

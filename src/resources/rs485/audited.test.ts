/** What was done at a device is done, also when what follows from it cannot be stored: the audit says so. */
import { expect, it, onTestFinished } from 'vitest';
import { endedJob } from '../../../test/ended-job.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { A } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import { openJobs } from '../../services/jobs/jobs.ts';
import { type CommunicationOptions, openCommunication } from './communication.ts';
import { openPairings, type PairingOptions } from './pairing.ts';
import { openRs485Table } from './table.ts';

const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c' };
const LINE = { baudRate: 9_600, parity: 'none', stopBits: 1 };

/** An OSDP bus with one device; a disk that has no room for where a device is. */
async function openParts() {
  const database = await temporaryDatabase();
  const table = openRs485Table(database);
  await database.commit(() => table.insertFound.run(A, 'bus-1', 'reader-1', 3, 0, 0, '', 0, ''));
  const audits: AuditEntry[] = [];
  const refusal = new GatehouseError('STORAGE_UNAVAILABLE', 'the disk is full');
  const full = () => Promise.reject(refusal);
  const parts = {
    database,
    audit: { record: (entry: AuditEntry) => void audits.push(entry) },
    clock: manualClock(),
    log: silentLog,
  };
  const jobs = openJobs(parts);
  await jobs.resume({});
  onTestFinished(() => jobs[Symbol.asyncDispose]());
  const options = {
    ...parts,
    table,
    buses: {
      has: () => true,
      assertOsdp: () => ({ id: 'bus-1', line: LINE }),
      isUp: () => true,
      pairing() {},
    },
    keys: {
      draw: () => ({ key: new Uint8Array(16), isNew: true }),
      discard() {},
      pairing() {},
      proved() {},
      copy() {},
      forget() {},
    },
    reported: { get: () => ({ connected: true, state: { security: 'secure' } }) },
    discovery: { record: full },
    polled: {
      place: full,
      heardAt() {
        throw refusal;
      },
      changed() {},
    },
    field: {
      execute: async (_: string, { kind }: { kind: string }) =>
        kind === 'pair' ? { hwId: 'reader-1' } : { answered: { address: 5, baudRate: 9_600 }, found: 5 },
    },
    jobs,
  } as unknown as PairingOptions & CommunicationOptions;
  const end = (job: unknown) => endedJob(jobs, (job as { id: string }).id);
  const isOwn = ({ action }: AuditEntry) => action.startsWith('rs485.');
  return { options, end, outcomes: () => audits.filter(isOwn).map(({ outcome }) => outcome) };
}

it('a device that was given its key is paired', async () => {
  const { options, end, outcomes } = await openParts();
  const job = await openPairings(options).pair('bus-1', { address: 3, seconds: 60 }, CALLER);
  expect(await end(job)).toMatchObject({ error: { code: 'STORAGE_UNAVAILABLE' } });
  expect(outcomes()).toEqual(['accepted', 'done']);
});

it('a device that took another address has it', async () => {
  const { options, end, outcomes } = await openParts();
  const job = await openCommunication(options).readdress(A, { address: 5 } as never, CALLER);
  expect(await end(job)).toMatchObject({ error: { code: 'STORAGE_UNAVAILABLE' } });
  expect(outcomes()).toEqual(['accepted', 'done']);
});

/** What the gateway keeps of a key that was drawn for a device, by what became of the pairing. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { DriverError, type DriverErrorCode } from '../../../drivers/contract/driver.ts';
import { keyFingerprint } from '../../../drivers/contract/osdp.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { endedJob } from '../../../test/ended-job.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { silentLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import { openJobs } from '../../services/jobs/jobs.ts';
import type { Rs485Context } from './context.ts';
import { openKeys } from './keys.ts';
import { openKeyProofs, openPairings, type PairingOptions } from './pairing.ts';
import { openRs485Table } from './table.ts';

const BUS = 'bus-1';
const ADDRESS = 3;
const PLACE = { bus: BUS, address: ADDRESS };
const HW_ID = 'reader-1';
const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'c' };

async function openParts() {
  const database = await temporaryDatabase();
  const table = openRs485Table(database);
  const vault = {
    seal: (plain: Uint8Array, context: string) => Buffer.from(JSON.stringify([context, [...plain]])),
    open(sealed: Uint8Array, context: string) {
      const [sealedFor, bytes] = JSON.parse(Buffer.from(sealed).toString());
      if (sealedFor !== context) throw new Error('sealed for another place');
      return Buffer.from(bytes);
    },
  };
  const keys = openKeys({ table, vault, log: silentLog });
  const audits: AuditEntry[] = [];
  const changed: string[] = [];
  const sent: Uint8Array[] = [];
  const windows: unknown[] = [];
  const parts = {
    database,
    table,
    keys,
    audit: { record: (entry: AuditEntry) => void audits.push(entry) },
    clock: manualClock(),
    log: silentLog,
    polled: { place: async () => {}, changed: (bus: string) => void changed.push(bus) },
  };
  const jobs = openJobs(parts);
  await jobs.resume({});
  onTestFinished(() => jobs[Symbol.asyncDispose]());
  /** `meanwhile`: between the answer of the device and the end of the job. */
  async function pair(ends: DriverErrorCode | 'paired', meanwhile = async () => {}): Promise<unknown> {
    const options = {
      ...parts,
      buses: {
        has: () => true,
        assertOsdp: () => ({ id: BUS }),
        isUp: () => true,
        pairing: (_: string, window: unknown) => void windows.push(window),
      },
      discovery: { record: meanwhile },
      field: {
        async execute(_: string, { data }: { data: { key: Uint8Array } }) {
          sent.push(data.key);
          if (ends !== 'paired') throw new DriverError(ends, `it said ${ends}`);
          return { hwId: HW_ID };
        },
      },
      jobs,
    } as unknown as PairingOptions;
    const body = { address: ADDRESS, seconds: 60 };
    const job = (await openPairings(options).pair(BUS, body, CALLER)) as { id: string };
    return endedJob(jobs, job.id);
  }
  const takeProof = openKeyProofs(parts as unknown as Rs485Context, keys, parts.polled);
  return {
    database,
    keys,
    changed,
    sent,
    windows,
    pair,
    /** What is handed to the driver of the bus. */
    handedKeys: () => keys.of(BUS),
    async prove(key: Uint8Array | undefined) {
      const proven = key && { provenKey: keyFingerprint(key) };
      takeProof(BUS, { hwId: HW_ID, address: ADDRESS, ...proven } as Rs485Report);
      await database.commit(() => {});
    },
    outcomes: () =>
      audits
        .filter(({ action }) => action === 'rs485.pair')
        .map(({ outcome, principal }) => [outcome, principal.label]),
  };
}

const BY = LOCAL_ADMINISTRATOR.label;

it.each(['paired', 'NO_REPLY'] as const)('shows its window until it has ended: %s', async (end) => {
  const { pair, windows } = await openParts();
  await pair(end);
  expect(windows).toEqual([{ address: ADDRESS, until: '2026-01-01T00:01:00.000Z' }, undefined]);
});

describe('a key that was drawn', () => {
  it('is handed to the driver before anything is sent, and is the device\u2019s own once that has proved it', async () => {
    const { pair, handedKeys, sent } = await openParts();
    await pair('OUTCOME_UNKNOWN');
    expect(handedKeys()).toEqual([{ address: ADDRESS, pending: sent[0] }]);
    await pair('paired');
    expect(sent[1]).toEqual(sent[0]);
    expect(handedKeys()).toEqual([{ address: ADDRESS, key: sent[0] }]);
  });

  it.each(['REFUSED', 'NO_REPLY', 'LINK_LOST', 'BUSY'] as const)(
    'and was not sent is forgotten: %s',
    async (code) => {
      const { pair, handedKeys, outcomes } = await openParts();
      await pair(code);
      expect(handedKeys()).toEqual([]);
      expect(outcomes()).toEqual([
        ['accepted', BY],
        ['failed', BY],
      ]);
    },
  );

  it.each(['OUTCOME_UNKNOWN', 'BAD_REPLY'] as const)('and may have been sent is kept: %s', async (code) => {
    const { pair, handedKeys, sent, outcomes } = await openParts();
    await pair(code);
    expect(handedKeys()).toEqual([{ address: ADDRESS, pending: sent[0] }]);
    expect(outcomes().at(-1)).toEqual(['unknown', BY]);
    // A window in which no one answered says nothing of the one before it.
    await pair('NO_REPLY');
    expect(handedKeys()).toEqual([{ address: ADDRESS, pending: sent[0] }]);
  });

  it('is the device\u2019s own when the device proves it later', async () => {
    const { pair, prove, handedKeys, sent, outcomes, changed } = await openParts();
    await pair('paired');
    await pair('OUTCOME_UNKNOWN');
    expect(handedKeys()).toEqual([{ address: ADDRESS, key: sent[0], pending: sent[1] }]);
    await prove(undefined);
    await prove(sent[0]);
    expect(handedKeys()).toMatchObject([{ pending: sent[1] }]);
    changed.length = 0;
    await prove(sent[1]);
    expect(handedKeys()).toEqual([{ address: ADDRESS, key: sent[1] }]);
    expect(changed).toEqual([BUS]);
    // Reports repeat.
    await prove(sent[1]);
    expect(outcomes().slice(-2)).toEqual([
      ['unknown', BY],
      ['done', SYSTEM_PRINCIPAL.label],
    ]);
  });

  it('is proved by the end of its pairing, and by no report before that', async () => {
    const { pair, prove, sent, outcomes } = await openParts();
    await pair('paired', () => prove(sent[0]));
    expect(outcomes()).toEqual([
      ['accepted', BY],
      ['done', BY],
    ]);
  });

  it('is not kept twice when the device was heard at another address', async () => {
    const { database, keys, pair, handedKeys, sent } = await openParts();
    await pair('paired');
    await database.commit(() => keys.copy(PLACE, 7, { now: 0, principalId: '' }));
    await database.commit(() => keys.moved(BUS, 5, 7));
    expect(handedKeys()).toHaveLength(2);
    await database.commit(() => keys.moved(BUS, ADDRESS, 7));
    expect(handedKeys()).toEqual([{ address: 7, key: sent[0] }]);
  });

  it('goes with the device to another address', async () => {
    const { database, keys, pair, handedKeys, sent } = await openParts();
    await pair('OUTCOME_UNKNOWN');
    await database.commit(() => keys.copy(PLACE, 7, { now: 0, principalId: '' }));
    expect(handedKeys()).toEqual([ADDRESS, 7].map((address) => ({ address, pending: sent[0] })));
  });
});

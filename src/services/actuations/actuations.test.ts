/** Intents and outcomes of what moves a door, on a real database. */
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { measuredActuations } from '../../../test/measured.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import type { Database } from '../../platform/database/database.ts';
import { silentLog } from '../../platform/log.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { openMeters } from '../metrics/meters.ts';
import { type Intent, openActuations } from './actuations.ts';

const principal = { id: '70000000-0000-4000-8000-000000000007', label: 'desk' };
const OBJECT = 'door/1';
const lockOf = (correlationId: string): Intent => {
  return { principal, action: 'door.lock', object: OBJECT, correlationId, way: 'zigbee' };
};

async function open(database: Database) {
  const audited: string[] = [];
  const audit = {
    record: ({ correlationId, outcome }: AuditEntry) => void audited.push(`${correlationId} ${outcome}`),
  };
  const clock = manualClock();
  const meter = openMeters();
  const actuations = await openActuations({ database, audit, clock, log: silentLog, meter });
  return { actuations, audited, clock, meter };
}

it('gives each of two that overlap its own outcome, in either order', async () => {
  const { actuations, audited } = await open(await temporaryDatabase());
  for (const isFirstFirst of [true, false]) {
    audited.length = 0;
    const [first, second] = [lockOf('a'), lockOf('b')];
    await actuations.begin(first, {});
    await actuations.begin(second, {});
    expect(audited).toEqual(['a accepted', 'b accepted']);
    const ends = isFirstFirst ? [first, second] : [second, first];
    for (const intent of ends) {
      expect(actuations.last('door.lock', OBJECT)?.outcome).not.toBe('unknown');
      await actuations.end(intent, intent === first ? 'failed' : 'done', {});
    }
    expect(audited.slice(2).toSorted()).toEqual(['a failed', 'b done']);
    expect(actuations.last('door.lock', OBJECT)?.outcome).toBe('done');
  }
});

it('settles each that was under way at the end of the gateway before', async () => {
  const database = await temporaryDatabase();
  const { actuations } = await open(database);
  for (const id of ['a', 'b']) await actuations.begin(lockOf(id), {});
  const restarted = await open(database);
  expect(restarted.audited).toEqual(['a unknown', 'b unknown']);
  const again = lockOf('c');
  await restarted.actuations.begin(again, {});
  await restarted.actuations.end(again, 'done', {});
  expect(database.prepare('SELECT count(*) AS n FROM actuation').get()).toEqual({ n: 1 });
});

it.each([
  ['failed', { error: 'DEVICE_OFFLINE', reason: 'it is away' }],
  ['done', { outcome: 'confirmed', reason: null }],
  ['unknown', { outcome: 'unknown', reason: 'no answer' }],
])('settles an unlock by the pulse that carried it: %s', async (outcome, detail) => {
  const database = await temporaryDatabase();
  const { actuations } = await open(database);
  const unlock = { ...lockOf('a'), action: 'door.unlock' };
  await actuations.begin(unlock, { via: 'rs485', deviceId: 'd' });
  const pulse = { ...lockOf('a'), action: 'rs485.pulse', object: 'rs485/d' };
  await actuations.begin(pulse, {});
  await actuations.end(pulse, outcome, detail);
  const restarted = await open(database);
  expect(restarted.audited).toEqual([`a ${outcome}`]);
  const settled = { outcome, detail: { via: 'rs485', deviceId: 'd', ...detail } };
  expect(restarted.actuations.last('door.unlock', OBJECT)).toMatchObject(settled);
});

it('orders intents of all runs, also where one takes the row of another that has ended', async () => {
  const database = await temporaryDatabase();
  const { actuations } = await open(database);
  const unlock: Intent = { ...lockOf('a'), action: 'door.unlock' };
  for (const intent of [unlock, lockOf('b')]) {
    await actuations.begin(intent, {});
    await actuations.end(intent, 'done', {});
  }
  const rows = database.prepare<[], { id: number }>('SELECT id FROM actuation ORDER BY id');
  const before = rows.all();
  const restarted = await open(database);
  const again = { ...unlock };
  await restarted.actuations.begin(again, {});
  expect(rows.all()).toEqual(before);
  const ordinalOf = (action: string) => restarted.actuations.last(action, OBJECT)?.ordinal ?? 0;
  expect(restarted.actuations.last('door.unlock', OBJECT)?.outcome).toBeNull();
  expect(ordinalOf('door.unlock')).toBeGreaterThan(ordinalOf('door.lock'));
});

it('settles one whose outcome could not be stored before the next begins', async () => {
  const database = await temporaryDatabase();
  const { actuations, audited } = await open(database);
  const first = lockOf('a');
  await actuations.begin(first, {});
  const refuse = () => {
    throw new Error('a disk that fails');
  };
  expect(await actuations.end(first, 'done', {}, refuse)).toBeInstanceOf(Error);
  expect(actuations.last('door.lock', OBJECT)?.outcome).toBe('unknown');
  await actuations.begin(lockOf('b'), {});
  expect(audited).toEqual(['a accepted', 'a done', 'a unknown', 'b accepted']);
});

it('measures from the request to the outcome, by action, way and outcome', async () => {
  const bed = await open(await temporaryDatabase());
  const { actuations, clock } = bed;
  const asked = { ...lockOf('a'), arrivedAt: clock.monotonic() };
  await clock.advance(500);
  const pulse: Intent = { ...lockOf('b'), action: 'rs485.pulse', way: 'rs485' };
  await actuations.begin(asked, {});
  await actuations.begin(pulse, {});
  expect(measuredActuations(bed.meter)).toEqual({});
  await clock.advance(1_000);
  await actuations.end(asked, 'unknown', {});
  await actuations.end(pulse, 'done', {});
  const expected = {
    'door.lock zigbee unknown': { count: 1, sum: 1.5 },
    'rs485.pulse rs485 done': { count: 1, sum: 1 },
  };
  expect(measuredActuations(bed.meter)).toEqual(expected);
  const test: Intent = { ...lockOf('c'), way: null };
  await actuations.begin(test, {});
  await actuations.end(test, 'done', {});
  expect(measuredActuations(bed.meter)).toEqual(expected);
});

it('measures also what could not be stored: it has happened', async () => {
  const database = await temporaryDatabase();
  const bed = await open(database);
  const first = lockOf('a');
  await bed.actuations.begin(first, {});
  const full = new Error('a disk that is full');
  Object.assign(database, { commit: () => Promise.reject(full) });
  expect(await bed.actuations.end(first, 'failed', {})).toBe(full);
  expect(measuredActuations(bed.meter)).toEqual({ 'door.lock zigbee failed': { count: 1, sum: 0 } });
});

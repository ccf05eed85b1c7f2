/** Doors on a relay that stand open: begun, renewed, ended and lost, and never for what is not in force. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type Estate, openEstate } from '../../test/estate.ts';
import { GatehouseError } from '../errors.ts';
import { HOLD_MS, RENEW_EVERY_MS } from './standing-open.ts';

const DEVICE = '80000000-0000-4000-8000-000000000008';
const OTHER = '90000000-0000-4000-8000-000000000009';
/** A Monday, half a minute before nine. */
const BEFORE_NINE = new Date(2026, 0, 5, 8, 59, 30).getTime();
const OFFICE = { id: 'office', intervals: [{ days: ['mon'], start: '09:00', end: '09:02' }] };
const away = () => Promise.reject(new GatehouseError('DEVICE_OFFLINE', 'it does not answer'));

let estate: Estate;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  estate = await openEstate(undefined, { now: BEFORE_NINE });
  id = (await estate.desk('POST', '/doors', {})).body.id as string;
  estate.played.relays.set(id, { deviceId: DEVICE, settled: true });
  end = estate.run();
});

const put = (body: object) => estate.desk('PUT', `/doors/${id}`, body);
/** It is wanted, and in force. */
async function want(body: object = { standOpenEnabled: true }) {
  await put(body);
  await estate.applyAll();
  await estate.clock.advance(0);
}
const pulses = () => estate.played.held.length;
const state = async () => (await estate.desk('GET', `/doors/${id}/state`)).body.standingOpen;
/** What the audit and live readers were told, which is the same. */
function told() {
  const audited = estate.played.audits.filter(({ action }) => action === 'door.stand-open');
  const published = estate.played.published.filter(({ type }) => type === 'gatehouse.door.standing-open.v1');
  expect(published.map(({ data }) => data.change)).toEqual(audited.map(({ outcome }) => outcome));
  return published.map(({ data: { change, reason } }) => (reason === null ? change : `${change}: ${reason}`));
}

describe('a door on a relay that is to stand open', () => {
  it('is held as soon as that is in force, and renewed well before each pulse is over', async () => {
    expect(await state()).toBeNull();
    await put({ standOpenEnabled: true });
    await estate.clock.advance(0);
    expect([pulses(), await state()]).toEqual([0, null]);
    await estate.applyAll();
    await estate.clock.advance(0);
    expect(estate.played.held).toEqual([
      { deviceId: DEVICE, milliseconds: HOLD_MS, timeoutMs: expect.any(Number), at: 0 },
    ]);
    const { timeoutMs = 0 } = estate.played.held[0] ?? {};
    expect(timeoutMs).toBeLessThan(RENEW_EVERY_MS);
    expect(2 * RENEW_EVERY_MS).toBeLessThan(HOLD_MS);
    const since = new Date(BEFORE_NINE).toISOString();
    expect(await state()).toEqual({ on: true, since, failure: null });
    await estate.clock.advance(3 * RENEW_EVERY_MS);
    expect(estate.played.held.map(({ at }) => at)).toEqual([0, 8_000, 16_000, 24_000]);
    expect(await state()).toEqual({ on: true, since, failure: null });
    expect(told()).toEqual(['begun']);
  });

  it('ends when nobody wants it any more, by nothing being sent', async () => {
    await want();
    await put({ standOpenEnabled: false });
    await estate.clock.advance(60_000);
    expect([pulses(), await state(), told()]).toEqual([
      1,
      null,
      ['begun', 'ended: nobody wants it any more'],
    ]);
    await want({ name: 'Gate' });
    expect(pulses()).toBe(1);
  });

  it('has a renewal that is on its way called off with it', async () => {
    await want();
    const stopped = Promise.withResolvers<void>();
    estate.played.hold = (signal) => {
      signal.addEventListener('abort', () => stopped.resolve());
      return stopped.promise.then(away);
    };
    await estate.clock.advance(RENEW_EVERY_MS);
    await put({ standOpenEnabled: false });
    await estate.clock.advance(0);
    await stopped.promise;
    await estate.clock.advance(60_000);
    expect([pulses(), told()]).toEqual([2, ['begun', 'ended: nobody wants it any more']]);
  });

  it('stays open through a change that is in force at once', async () => {
    await want();
    await put({ name: 'Gate' });
    await estate.clock.advance(10_000);
    expect(pulses()).toBe(1);
    await estate.applyAll();
    await estate.clock.advance(0);
    expect([pulses(), told()]).toEqual([2, ['begun']]);
  });

  it('is let run out while its configuration is not in force, or its device not settled', async () => {
    await want();
    estate.played.relays.set(id, { deviceId: DEVICE, settled: false });
    await estate.clock.advance(60_000);
    expect([pulses(), await state(), told()]).toEqual([
      ...[1, null],
      ['begun', 'ended: its device does not have its settings'],
    ]);
    estate.played.relays.set(id, { deviceId: DEVICE, settled: true });
    estate.doors.wake(id);
    await estate.clock.advance(0);
    expect(pulses()).toBe(2);
    await put({ name: 'Gate' });
    await estate.clock.advance(60_000);
    expect([pulses(), told().at(-1)]).toEqual([2, 'ended: its configuration is not in force']);
  });

  it('is not what its template forbids', async () => {
    await estate.siteImport({ templates: [{ id: 'room', standOpenAllowed: false }] });
    await want({ standOpenEnabled: true, templateId: 'room' });
    await estate.clock.advance(60_000);
    expect([pulses(), await state(), told()]).toEqual([0, null, []]);
    await want({ templateId: null });
    expect([pulses(), told()]).toEqual([1, ['begun']]);
  });

  it('is not held when the wish came too late and was withdrawn', async () => {
    await put({ standOpenEnabled: true });
    await estate.clock.advance(16 * 60_000);
    expect((await estate.desk('GET', `/doors/${id}`)).body.standOpenEnabled).toBe(false);
    await estate.applyAll();
    await estate.clock.advance(60_000);
    expect([pulses(), told()]).toEqual([0, []]);
  });

  it('is left alone where a lock does it, or nothing opens the door', async () => {
    estate.played.relays.clear();
    await want();
    await estate.clock.advance(60_000);
    expect(pulses()).toBe(0);
    estate.played.relays.set(id, { deviceId: DEVICE, settled: true });
    estate.doors.wake(id);
    await want({ name: 'Gate' });
    expect(pulses()).toBe(1);
    estate.played.relays.set(id, { deviceId: OTHER, settled: true });
    estate.doors.wake(id);
    await estate.clock.advance(0);
    expect(estate.played.held.map(({ deviceId }) => deviceId)).toEqual([DEVICE, OTHER]);
    estate.played.relays.clear();
    await estate.clock.advance(60_000);
    expect([pulses(), told().at(-1)]).toEqual([2, 'ended: no RS-485 device opens the door']);
  });
});

describe('a schedule', () => {
  it('lets the door stand open within its intervals alone', async () => {
    await estate.siteImport({ schedules: [OFFICE] });
    await want({ standOpenEnabled: true, scheduleId: 'office' });
    await estate.clock.advance(29_999);
    expect([pulses(), await state()]).toEqual([0, null]);
    await estate.clock.advance(1);
    expect([pulses(), told()]).toEqual([1, ['begun']]);
    await estate.clock.advance(120_000);
    expect(pulses()).toBe(15);
    const reason = 'it is outside the intervals of its schedule';
    await estate.clock.advance(60_000);
    expect([pulses(), told()]).toEqual([15, ['begun', `ended: ${reason}`]]);
  });

  it('goes by the wall clock, also when that is set meanwhile', async () => {
    await estate.siteImport({ schedules: [OFFICE] });
    await want({ standOpenEnabled: true, scheduleId: 'office' });
    estate.clock.jumpWall(60_000);
    await estate.clock.advance(60_000);
    expect(told()[0]).toBe('begun');
    estate.clock.jumpWall(-3_600_000);
    const before = pulses();
    await estate.clock.advance(60_000);
    expect(pulses()).toBeLessThanOrEqual(before);
  });

  it.each([
    ['is not known', []],
    ['has no intervals', [{ id: 'office', intervals: [] }]],
  ])('that %s limits nothing', async (_name, schedules) => {
    await estate.siteImport({ schedules });
    await want({ standOpenEnabled: true, scheduleId: 'office' });
    expect(pulses()).toBe(1);
  });
});

describe('a renewal that fails', () => {
  it('shows in the state; the second in a row is told once as lost, and the door is tried on', async () => {
    await want();
    estate.played.hold = away;
    await estate.clock.advance(RENEW_EVERY_MS);
    const failure = { code: 'DEVICE_OFFLINE', message: 'it does not answer' };
    expect(await state()).toMatchObject({ on: true, since: expect.any(String), failure });
    expect(told()).toEqual(['begun']);
    await estate.clock.advance(5 * RENEW_EVERY_MS);
    expect([pulses(), told()]).toEqual([7, ['begun', 'lost: it does not answer']]);
    expect(await state()).toMatchObject({ on: false, since: null, failure });
    estate.played.hold = async () => ({ outcome: 'confirmed' });
    await estate.clock.advance(RENEW_EVERY_MS);
    expect(told()).toEqual(['begun', 'lost: it does not answer', 'begun']);
    expect(await state()).toMatchObject({ on: true, failure: null });
  });

  it('once is not told', async () => {
    await want();
    for (const hold of [away, async () => ({ outcome: 'confirmed' }) as const, away]) {
      estate.played.hold = hold;
      await estate.clock.advance(RENEW_EVERY_MS);
    }
    expect(told()).toEqual(['begun']);
  });

  it('is one whose outcome nobody knows, or that broke here, too', async () => {
    estate.played.hold = async () => ({ outcome: 'unknown' });
    await want();
    expect(await state()).toMatchObject({ on: false, failure: { code: 'OUTCOME_UNKNOWN' } });
    estate.played.hold = () => Promise.reject(new Error('secret detail'));
    await estate.clock.advance(RENEW_EVERY_MS);
    const message = 'the gateway itself failed; its log says why';
    expect(await state()).toMatchObject({ on: false, failure: { code: 'INTERNAL', message } });
    expect(told()).toEqual([`lost: ${message}`]);
  });

  it('does not keep an unlock from firing', async () => {
    await want();
    expect((await estate.desk('POST', `/doors/${id}/unlock`)).body).toMatchObject({ outcome: 'confirmed' });
    expect(estate.played.pulses).toEqual([DEVICE]);
    await estate.clock.advance(RENEW_EVERY_MS);
    expect(pulses()).toBe(2);
  });

  it('goes on, untold, while the disk takes nothing', async () => {
    const { commit } = estate.database;
    await put({ standOpenEnabled: true });
    await estate.applyAll();
    estate.database.commit = () => Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'full'));
    await estate.clock.advance(RENEW_EVERY_MS);
    estate.database.commit = commit;
    expect([pulses(), told()]).toEqual([2, []]);
  });
});

it('after a restart what was in force goes on', async () => {
  await want();
  await end();
  const before = pulses();
  await estate.clock.advance(60_000);
  expect([before, pulses(), told()]).toEqual([1, 1, ['begun']]);
  estate = await openEstate(estate.database, { now: estate.clock.now() });
  estate.played.relays.set(id, { deviceId: DEVICE, settled: true });
  estate.run();
  await estate.clock.advance(RENEW_EVERY_MS);
  expect([pulses(), told()]).toEqual([2, ['begun']]);
});

/** Standing open by a lock: an explicit actuation with an end, sent once, and locked until it was seen locked. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { Locked } from '../../../drivers/contract/zgate.ts';
import { CALLER, type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';
import { errorOf } from '../../../test/resources/doors/doors.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const MINUTE = 60_000;

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  site = await openDoorSite();
  id = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
  await put({ standOpenEnabled: true });
  end = site.run();
});

async function create(body: object): Promise<string> {
  return (await site.desk('POST', '/doors', body)).body.id as string;
}
const put = (body: object) => site.desk('PUT', `/doors/${id}`, body);
const post = (body: object = { seconds: 600 }) => site.desk('POST', `/doors/${id}/stand-open`, body);
const remove = () => site.desk('DELETE', `/doors/${id}/stand-open`);
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;
const standing = async () => (await state()).standingOpen;
const kinds = () => site.played.actuated.map(({ kind }) => kind);
const events = (what: string) =>
  site.played.published.filter(({ type }) => type === `gatehouse.door.${what}.v1`).map(({ data }) => data);
const changes = () => events('standing-open').map(({ change }) => change);
const audited = () =>
  site.played.audits.filter(({ action }) => action === 'door.stand-open').map(({ outcome }) => outcome);
/** What the lock reports now. */
const shown = (value: string) => ({ value, at: site.clock.now(), heardAt: site.clock.monotonic() });
const offline = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it sleeps'));
/** Another start on the same database. */
async function restart(options: Parameters<typeof openDoorSite>[1] = {}) {
  await end();
  site = await openDoorSite(site.database, { now: site.clock.now(), ...options });
  end = site.run();
  await site.clock.advance(0);
}

describe('standOpenEnabled', () => {
  it('is a permission: it is stored, sent to the lock, never withdrawn, and opens nothing', async () => {
    await site.applyAll();
    expect(site.played.sent.at(-1)?.apply.configuration.standOpenEnabled).toBe(true);
    await site.clock.advance(20 * MINUTE);
    expect((await site.desk('GET', `/doors/${id}`)).body.standOpenEnabled).toBe(true);
    expect([site.played.actuated, await standing()]).toEqual([[], null]);
  });

  it('is needed, and a template may forbid it all the same', async () => {
    await put({ standOpenEnabled: false });
    expect(errorOf(await post())).toEqual([409, 'STAND_OPEN_NOT_ALLOWED']);
    // Programs bring doors and templates in any order.
    await put({ standOpenEnabled: true, templateId: 'room' });
    expect(errorOf(await post())).toEqual([409, 'STAND_OPEN_NOT_ALLOWED']);
    await site.siteImport({ templates: [{ id: 'room', standOpenAllowed: false }] });
    expect(errorOf(await post())).toEqual([409, 'STAND_OPEN_NOT_ALLOWED']);
    expect([kinds(), audited()]).toEqual([[], []]);
  });
});

describe('a door that is to stand open', () => {
  it('sends its lock one command, between intent and outcome, and ends at its time', async () => {
    const { status, body } = await post({ seconds: 600 });
    const until = new Date(site.clock.now() + 600_000).toISOString();
    expect([status, body]).toMatchObject([
      200,
      { doorId: id, outcome: 'confirmed', standingOpen: { state: 'open', on: true, by: CALLER, until } },
    ]);
    expect(site.played.actuated).toMatchObject([{ kind: 'standOpen', hwId: MAC, gatewayId: GATEWAY }]);
    const detail = { mac: MAC, gatewayId: GATEWAY, networkId: 'n', until, extended: false };
    expect(site.played.audits.find(({ outcome }) => outcome === 'accepted')?.detail).toEqual(detail);
    await site.clock.advance(600_000 - 1);
    expect(kinds()).toEqual(['standOpen']);
    await site.clock.advance(1);
    expect([kinds(), await standing()]).toEqual([['standOpen', 'endStandOpen'], null]);
    expect(changes()).toEqual(['begun', 'ending', 'ended']);
    expect(audited()).toEqual(['accepted', 'begun', 'done', 'ending', 'ended']);
  });

  it.each([
    ['neither', {}],
    ['both', { seconds: 5, until: '2026-01-01T00:01:00Z' }],
    ['a time that is over', { until: '2025-12-31T23:59:59Z' }],
    ['too late a time', { until: '2026-01-02T00:00:01Z' }],
    ['too many seconds', { seconds: 86_401 }],
    ['none', { seconds: 0 }],
  ])('takes either until or seconds, and not %s', async (_name, body) => {
    expect(errorOf(await post(body))).toEqual([400, 'VALIDATION_FAILED']);
    expect(kinds()).toEqual([]);
  });

  it.each([
    [{ until: '2025-12-31T23:59:59Z' }, '/until', 'TOO_SMALL', 'expected a time in the future'],
    [{ until: '2026-01-02T00:00:01Z' }, '/until', 'TOO_BIG', 'expected a time 24 h ahead at most'],
    [{ seconds: 0.5 }, '/seconds', 'INVALID_TYPE', 'expected a whole number'],
  ])('says what is expected instead of %j', async (body, path, code, message) => {
    const { body: answer } = await post(body);
    expect([answer.message, answer.details]).toEqual([
      `Not valid: ${path}: ${message}.`,
      [{ path, code, message }],
    ]);
  });

  it('asked again it has another end, and its lock is sent nothing', async () => {
    await post({ seconds: 600 });
    await post({ until: new Date(site.clock.now() + 60_000).toISOString() });
    expect(kinds()).toEqual(['standOpen']);
    await site.clock.advance(60_000);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
    expect(await standing()).toBeNull();
  });

  it('is ended by DELETE, with what the lock showed', async () => {
    await post();
    site.played.actuate = async () => ({ outcome: 'accepted' });
    const { status, body } = await remove();
    expect([status, body]).toMatchObject([200, { outcome: 'accepted', standingOpen: { state: 'ending' } }]);
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    await site.clock.advance(1_000);
    expect([kinds(), await standing()]).toEqual([['standOpen', 'endStandOpen', 'endStandOpen'], null]);
    expect((await remove()).body).toMatchObject({
      outcome: 'confirmed',
      reason: 'the door did not stand open: there was nothing to end',
      standingOpen: null,
    });
    expect(kinds()).toHaveLength(3);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['its permission', () => put({ standOpenEnabled: false })],
    [
      'that of its template',
      async () => {
        await site.siteImport({ templates: [{ id: 'room', standOpenAllowed: false }] });
        await put({ templateId: 'room' });
      },
    ],
    ['its lock, which is another one', () => site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER })],
  ])('ends when it loses %s', async (_name, lose) => {
    await post();
    await lose();
    await site.clock.advance(0);
    expect(site.played.actuated.at(-1)).toMatchObject({ kind: 'endStandOpen', hwId: MAC });
    expect(await standing()).toBeNull();
  });

  it('is not unlocked by itself, which would lock it; a lock that shows it is locked may be', async () => {
    await post();
    expect(errorOf(await site.desk('POST', `/doors/${id}/unlock`))).toEqual([409, 'STANDS_OPEN']);
    await site.clock.advance(1_000);
    site.report(MAC, { lockState: shown('locked') });
    await site.clock.advance(0);
    expect(await standing()).toMatchObject({ state: 'lost', on: false });
    expect((await site.desk('POST', `/doors/${id}/unlock`)).status).toBe(200);
    site.report(MAC, { lockState: shown('unlocked') });
    await site.clock.advance(MINUTE);
    // The unlock ends as any other, and does not put the door back into standing open.
    expect([changes(), kinds()]).toEqual([
      ['begun', 'lost'],
      ['standOpen', 'lock'],
    ]);
    expect(await standing()).toMatchObject({ state: 'lost', on: false });
  });

  it('is open only when the lock has shown it', async () => {
    site.played.actuate = async () => ({ outcome: 'accepted' });
    expect((await post()).body).toMatchObject({
      outcome: 'accepted',
      standingOpen: { state: 'sent', on: false },
    });
    site.report(MAC, { lockState: { ...shown('unlocked'), heardAt: site.clock.monotonic() - 1 } });
    await site.clock.advance(0);
    expect([await standing(), changes()]).toMatchObject([{ on: false }, []]);
    site.report(MAC, { lockState: shown('unlocked') });
    await site.clock.advance(0);
    expect([await standing(), changes()]).toMatchObject([{ state: 'open', on: true }, ['begun']]);
  });

  it('of unknown outcome shows why, and what the lock reports afterwards', async () => {
    site.played.actuate = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer to the write'));
    await post();
    const failure = { code: 'OUTCOME_UNKNOWN', message: 'no answer to the write' };
    expect(await standing()).toMatchObject({ state: 'sent', on: false, failure });
    await site.clock.advance(1_000);
    site.report(MAC, { lockState: shown('locked') });
    await site.clock.advance(0);
    const reported = { code: 'REPORTED_LOCKED', message: 'the lock reported that it is locked' };
    expect(await standing()).toMatchObject({ state: 'sent', on: false, failure: reported });
    site.report(MAC, { lockState: shown('unlocked') });
    await site.clock.advance(0);
    expect(await standing()).toMatchObject({ state: 'open', on: true, failure: null });
  });

  it('is judged by the order of reports when the wall clock is set back', async () => {
    await post();
    await site.clock.advance(1_000);
    site.clock.jumpWall(-3_600_000);
    site.report(MAC, { lockState: shown('locked') });
    await site.clock.advance(0);
    expect(await standing()).toMatchObject({ state: 'lost', on: false });
    expect((await site.desk('POST', `/doors/${id}/unlock`)).status).toBe(200);
  });

  it('is not judged by what an earlier report showed when the wall clock is set forward', async () => {
    site.report(MAC, { lockState: shown('unlocked') });
    await site.clock.advance(1_000);
    site.played.actuate = async () => ({ outcome: 'accepted' });
    await post();
    const later = { ...shown('unlocked'), at: site.clock.now() + 3_600_000, heardAt: 0 };
    site.report(MAC, { lockState: later, lqi: 7 });
    await site.clock.advance(0);
    expect(await standing()).toMatchObject({ state: 'sent', on: false });
  });

  it.each<[string, () => Promise<Locked>]>([
    ['refuses', () => Promise.reject(new DriverError('REFUSED', 'no'))],
    ['jams', async () => ({ outcome: 'jammed' })],
  ])('does not when its lock %s: that is locked', async (_name, conduct) => {
    site.played.actuate = (kind) =>
      kind === 'standOpen' ? conduct() : Promise.resolve({ outcome: 'confirmed' });
    await post();
    await site.clock.advance(0);
    expect([kinds(), await standing()]).toEqual([['standOpen', 'endStandOpen'], null]);
  });
});

it.each([
  ['a first one', false],
  ['one that extends it', true],
])('nothing comes of the request of a client that has hung up: %s', async (_name, extends_) => {
  if (extends_) await post({ seconds: 60 });
  const before = [kinds(), await standing()];
  const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test', isGone: async () => true };
  const gone = site.doors.standOpen.begin(id, { seconds: 600 }, caller);
  await expect(gone).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  expect([kinds(), await standing()]).toEqual(before);
  expect(audited().at(-1)).toBe('failed');
});

it('a lock that is replaced in the commit of the request is not opened', async () => {
  const replaced = site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER });
  const answers = await Promise.all([post(), replaced]);
  expect(site.played.actuated.filter(({ kind, hwId }) => kind === 'standOpen' && hwId === MAC)).toEqual([]);
  expect(answers.map(({ status }) => status)).toEqual([503, 200]);
});

describe('a begin of which nothing was sent', () => {
  it('is tried again, and expires after 15 minutes', async () => {
    site.played.actuate = offline;
    expect((await post({ seconds: 7_200 })).body).toMatchObject({
      outcome: 'waiting',
      standingOpen: { state: 'waiting', on: false },
    });
    await site.clock.advance(14 * MINUTE);
    expect(kinds().length).toBeGreaterThan(5);
    await site.clock.advance(MINUTE);
    expect([changes(), await standing()]).toEqual([['expired'], null]);
    const sent = kinds().length;
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    await site.clock.advance(30 * MINUTE);
    expect(kinds()).toHaveLength(sent);
  });

  it('is sent when its gateway is back in time', async () => {
    site.played.unreachable = 'link zb-1 is down';
    await post();
    expect(kinds()).toEqual([]);
    site.played.unreachable = undefined;
    site.doors.gatewayChanged(GATEWAY, true);
    await site.clock.advance(0);
    expect([kinds(), changes()]).toEqual([['standOpen'], ['begun']]);
  });

  it('is over after a restart', async () => {
    site.played.actuate = offline;
    await post();
    await restart();
    expect([kinds(), await standing(), changes()]).toEqual([[], null, ['expired']]);
  });

  it('whose outcome is unknown is not sent again, and ends at its time', async () => {
    site.played.actuate = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'no answer'));
    expect((await post()).body).toMatchObject({ outcome: 'unknown', standingOpen: { state: 'sent' } });
    await site.clock.advance(599_000);
    expect(kinds()).toEqual(['standOpen']);
    await site.clock.advance(1_000);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
  });
});

describe('the end of standing open', () => {
  it('is tried until the lock was seen locked, and raises an alarm meanwhile', async () => {
    await post({ seconds: 60 });
    site.played.actuate = offline;
    await site.clock.advance(60_000 + 10 * MINUTE);
    expect(kinds().length).toBeGreaterThan(6);
    expect((await state()).relock).toMatchObject({
      pending: [{ mac: MAC, purpose: 'standOpen', alarm: true, failure: { message: expect.any(String) } }],
    });
    expect(events('alarm')).toMatchObject([{ alarm: 'notLocked', raised: true }]);
    site.played.actuate = async () => ({ outcome: 'confirmed' });
    await site.clock.advance(5 * MINUTE);
    expect(events('alarm')).toMatchObject([{ raised: true }, { alarm: 'notLocked', raised: false }]);
    expect([changes().at(-1), await standing()]).toEqual(['ended', null]);
    const sent = kinds().length;
    await site.clock.advance(30 * MINUTE);
    expect(kinds()).toHaveLength(sent);
  });

  it('comes across a restart and a lost link', async () => {
    await post({ seconds: 60 });
    site.played.unreachable = 'link zb-1 is down';
    await site.clock.advance(2 * MINUTE);
    expect(kinds()).toEqual(['standOpen']);
    await restart();
    expect(kinds()).toEqual(['endStandOpen']);
    expect(await standing()).toBeNull();
  });

  it('comes by the monotonic clock of the same boot, whatever the wall clock says', async () => {
    await post({ seconds: 600 });
    await restart({ bootId: site.played.bootId, monotonic: 60_000, now: 0, isClockSynchronised: false });
    await site.clock.advance(539_000);
    expect(kinds()).toEqual([]);
    await site.clock.advance(1_000);
    expect(kinds()).toEqual(['endStandOpen']);
  });

  it.each([
    ['went back', { now: Date.UTC(2025, 0, 1) }],
    ['is not synchronised', { isClockSynchronised: false }],
    ['jumped ahead', { now: Date.UTC(2027, 0, 1) }],
  ])('comes at once after a reboot when the clock %s', async (_name, options) => {
    await post({ seconds: 600 });
    await restart(options);
    expect(kinds()).toEqual(['endStandOpen']);
  });

  it('comes at its time after a reboot with a clock that can be believed', async () => {
    await post({ seconds: 600 });
    await restart({ now: site.clock.now() + 60_000 });
    await site.clock.advance(539_000);
    expect([kinds(), await standing()]).toMatchObject([[], { on: true }]);
    await site.clock.advance(1_000);
    expect(kinds()).toEqual(['endStandOpen']);
  });

  it('is not put off by a wall clock that goes back, also by a reboot after that', async () => {
    await post({ seconds: 600 });
    site.clock.jumpWall(-3_600_000);
    await site.clock.advance(300_000);
    await restart({ now: site.clock.now() + 1_000 });
    await site.clock.advance(298_000);
    expect(kinds()).toEqual([]);
    await site.clock.advance(1_000);
    expect(kinds()).toEqual(['endStandOpen']);
  });

  it('comes early when the wall clock jumps ahead', async () => {
    await post({ seconds: 600 });
    site.clock.jumpWall(3_600_000);
    await site.clock.advance(1_000);
    expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
  });
});

it('is for front-desk-admin and service-tool, at a door that is there and has a lock', async () => {
  expect(errorOf(await site.as('front-desk')('POST', `/doors/${id}/stand-open`, { seconds: 5 }))).toEqual([
    403,
    'FORBIDDEN',
  ]);
  const bare = await create({});
  await site.desk('PUT', `/doors/${bare}`, { standOpenEnabled: true });
  expect(errorOf(await site.desk('POST', `/doors/${bare}/stand-open`, { seconds: 5 }))).toEqual([
    409,
    'NO_LOCK',
  ]);
  site.report(MAC, { standOpen: 'none' });
  expect(errorOf(await post())).toEqual([422, 'NOT_SUPPORTED']);
});

it('what stood open by the former meaning of standOpenEnabled is closed once, and stays permitted', async () => {
  site.database.prepare('UPDATE door SET stood_open_by_setting = 1').run();
  await restart();
  expect(site.played.actuated).toMatchObject([{ kind: 'endStandOpen', hwId: MAC }]);
  expect(audited()).toEqual(['ending', 'ended']);
  expect((await site.desk('GET', `/doors/${id}`)).body.standOpenEnabled).toBe(true);
  await restart();
  expect([kinds(), audited()]).toEqual([[], []]);
});

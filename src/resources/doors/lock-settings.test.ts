/** Settings of the lock of a door: what is wanted, what is sent, and what is shown. */
import { beforeEach, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { lockSettingsApply } from '../../../drivers/contract/lock-settings.ts';
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import type { DoorSite } from '../../../test/door-site.ts';
import { errorOf, MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
});

const WORK = 'settings of locks';
const put = (body: object) => site.desk('PUT', `/doors/${id}/lock-settings`, body);
const get = async () => (await site.desk('GET', `/doors/${id}/lock-settings`)).body;
const sent = () =>
  site.played.commands
    .filter(({ kind }) => kind === 'applyLockSettings')
    .map(({ data }) => lockSettingsApply.parse(data).settings);
const NOTHING = {
  autoRelockSeconds: null,
  soundVolume: null,
  oneTouchLocking: null,
  wrongCodeLimit: null,
  wrongCodeLockoutSeconds: null,
  holidays: null,
};

it('are sent until the lock has them, and shown beside what it reports', async () => {
  expect(await get()).toEqual({
    doorId: id,
    wanted: NOTHING,
    reported: NOTHING,
    state: 'applied',
    failure: null,
  });
  expect(await put({ soundVolume: 0, autoRelockSeconds: 30 })).toMatchObject({
    status: 200,
    body: { state: 'waiting', wanted: { ...NOTHING, soundVolume: 0, autoRelockSeconds: 30 } },
  });
  await site.applySettings();
  expect(sent()).toEqual([{ soundVolume: 0, autoRelockSeconds: 30 }]);
  site.report(MAC, { settings: { soundVolume: 0, autoRelockSeconds: 30 } });
  expect(await get()).toMatchObject({
    state: 'applied',
    reported: { soundVolume: 0, oneTouchLocking: null },
  });
  expect(site.due(WORK)).toEqual([]);
  const actions = site.played.audits.map(({ action }) => action);
  expect(actions).toEqual(expect.arrayContaining(['door.set-lock-settings', 'door.apply-lock-settings']));
});

it('are changed one by one, and left to the lock again', async () => {
  await put({ soundVolume: 0, oneTouchLocking: false });
  await site.applySettings();
  expect((await put({ soundVolume: 0 })).body.state).toBe('applied');
  await put({ soundVolume: null });
  expect(site.due(WORK)).toMatchObject([{ id }]);
  await site.applySettings();
  expect(sent().at(-1)).toEqual({ oneTouchLocking: false });
  await put({ oneTouchLocking: null });
  expect([await get(), site.due(WORK)]).toMatchObject([{ state: 'applied', wanted: NOTHING }, []]);
});

it('are not sent while an earlier frame that the lock did not answer may arrive behind them', async () => {
  await put({ autoRelockSeconds: 300 });
  site.played.command = () => Promise.reject(new DriverError('OUTCOME_UNKNOWN', 'the lock did not answer'));
  await expect(site.applySettings()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  site.played.commands.length = 0;
  site.played.command = async () => null;
  await put({ autoRelockSeconds: 10 });
  const applying = site.applySettings();
  await site.clock.advance(HELD_AT_MOST_MS - 1);
  expect(sent()).toEqual([]);
  await site.clock.advance(1);
  await applying;
  expect(sent()).toEqual([{ autoRelockSeconds: 10 }]);
});

it('are sent to another lock, and to one that joins again', async () => {
  await put({ wrongCodeLimit: 3 });
  await site.applySettings();
  await site.desk('POST', `/doors/${id}/replace-lock`, { mac: '00124b0001a2b3c5' });
  expect((await get()).state).toBe('waiting');
  await site.desk('POST', `/doors/${id}/replace-lock`, { mac: MAC });
  await site.applySettings();
  const joined = {
    hwId: MAC,
    manufacturer: null,
    model: null,
    zigbeeFirmwareVersion: null,
    capabilities: [],
  };
  await site.emit('lockJoined', joined);
  expect((await get()).state).toBe('waiting');
});

it('have holidays, in the local time of the lock, and show those that it has', async () => {
  const holidays = [
    { start: '2027-12-24T12:00', end: '2027-12-27T00:00', mode: 'vacation' },
    { start: '2000-01-02T00:00', end: '2000-01-03T00:00', mode: 'normal' },
  ];
  expect((await put({ holidays })).body).toMatchObject({ state: 'waiting', wanted: { holidays } });
  await site.applySettings();
  const days = { start: 86_400, end: 172_800 };
  expect(sent()).toMatchObject([{ holidays: [{ mode: 'vacation' }, { ...days, mode: 'normal' }] }]);
  // Somebody has set another one at the lock.
  site.report(MAC, { settings: { holidays: [{ ...days, mode: 'passage' }] } });
  expect(await get()).toMatchObject({
    state: 'applied',
    wanted: { holidays },
    reported: { holidays: [{ start: '2000-01-02T00:00', end: '2000-01-03T00:00', mode: 'passage' }] },
  });
  await put({ holidays: [] });
  await site.applySettings();
  expect(sent().at(-1)).toEqual({ holidays: [] });
});

it('wait while the door stands open, whose relock time is put aside', async () => {
  const end = site.run();
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 });
  await put({ autoRelockSeconds: 30 });
  await expect(site.applySettings()).rejects.toMatchObject({ code: 'BUSY' });
  expect(sent()).toEqual([]);
  await end();
});

it('that the lock refuses are shown with why', async () => {
  await put({ soundVolume: 1 });
  const message = 'soundVolume: the lock refused it (UNSUPPORTED_ATTRIBUTE (0x86))';
  site.played.command = () => Promise.reject(new DriverError('REFUSED', message));
  await expect(site.applySettings()).rejects.toMatchObject({ code: 'REFUSED' });
  const failure = { version: 2, code: 'REFUSED', message, at: 0, permanent: true };
  site.played.failures.set(`${WORK}/${id}`, failure);
  expect(await get()).toMatchObject({ state: 'refused', failure: message });
});

it.each<[object, string]>([
  [{ autoRelockSeconds: 0 }, 'VALIDATION_FAILED'],
  [{ soundVolume: 3 }, 'VALIDATION_FAILED'],
  [{ oneTouchLocking: 1 }, 'VALIDATION_FAILED'],
  [{ wrongCodeLimit: 255 }, 'VALIDATION_FAILED'],
  [{ volume: 1 }, 'UNKNOWN_FIELD'],
  ...[
    // It would hold the door open.
    [{ start: '2027-12-24T12:00', end: '2027-12-27T00:00', mode: 'passage' }],
    [{ start: '2027-12-24T12:00', end: '2027-12-24T12:00', mode: 'vacation' }],
    [{ start: '2027-02-30T12:00', end: '2027-12-24T12:00', mode: 'vacation' }],
    [
      { start: '2027-12-24T12:00', end: '2027-12-27T00:00', mode: 'vacation' },
      { start: '2027-12-23T12:00', end: '2027-12-24T12:01', mode: 'normal' },
    ],
  ].map((holidays): [object, string] => [{ holidays }, 'VALIDATION_FAILED']),
])('are refused: %j', async (body, error) => {
  expect(errorOf(await put(body))).toEqual([400, error]);
});

it('are not what the lock has shown from the moment that they are sent, also when the daemon ends then', async () => {
  const holidays = [{ start: 86_400, end: 172_800, mode: 'normal' as const }];
  site.report(MAC, { settings: { soundVolume: 1, wrongCodeLimit: 3, holidays } });
  await put({ holidays: [], soundVolume: 0 });
  site.played.command = () => Promise.reject(new DriverError('LINK_LOST', 'the link is away'));
  await expect(site.applySettings()).rejects.toMatchObject({ code: 'LINK_LOST' });
  expect(await get()).toMatchObject({ state: 'waiting', reported: { ...NOTHING, wrongCodeLimit: 3 } });
  const rows = site.database.prepare<[], { report: string }>('SELECT report FROM lock_report').all();
  expect(rows.map(({ report }) => JSON.parse(report).settings)).toEqual([{ wrongCodeLimit: 3 }]);
});

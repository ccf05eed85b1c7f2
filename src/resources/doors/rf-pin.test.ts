/** The PIN that a lock requires for operations by radio: stored sealed, sent with each command, and never shown. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { errorOf, MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  end = site.run();
  site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
});

const unlock = () => site.desk('POST', `/doors/${id}/unlock`);
const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;
const kinds = () => site.played.actuated.map(({ kind }) => kind);
const audited = (action: string) =>
  site.played.audits.filter((entry) => entry.action === action).map(({ outcome }) => outcome);
async function restart() {
  await end();
  site = await openDoorSite(site.database, { now: site.clock.now() });
  end = site.run();
  await site.clock.advance(0);
}

describe('a lock that requires a PIN by radio', () => {
  const PIN = '4711';
  const put = (pin: unknown) => site.desk('PUT', `/doors/${id}/rf-pin`, { pin });
  beforeEach(() => site.report(MAC, { requiresPin: true }));

  it('is sent nothing until its PIN is stored, and then is sent it', async () => {
    expect((await state()).rfPin).toEqual({ required: true, isStored: false });
    for (const path of ['unlock', 'lock'])
      expect(errorOf(await site.desk('POST', `/doors/${id}/${path}`))).toEqual([409, 'PIN_REQUIRED']);
    expect([site.played.unlocks, kinds()]).toEqual([[], []]);
    expect(await put(PIN)).toMatchObject({ status: 200, body: { isStored: true } });
    await unlock();
    await site.clock.advance(5_000);
    expect(site.played.unlocks[0]?.unlock.pin).toBe(PIN);
    expect(site.played.actuated).toMatchObject([{ kind: 'lock', pin: PIN }]);
    expect((await state()).rfPin).toEqual({ required: true, isStored: true });
    expect((await site.desk('DELETE', `/doors/${id}/rf-pin`)).status).toBe(200);
    expect(errorOf(await unlock())).toEqual([409, 'PIN_REQUIRED']);
  });

  it('keeps it sealed, across restarts, and never shows it', async () => {
    await put(PIN);
    const [row] = site.database.prepare<[], { sealed: Uint8Array }>('SELECT sealed FROM lock_pin').all();
    expect(Buffer.from(row?.sealed ?? []).includes(PIN)).toBe(false);
    expect(audited('door.set-rf-pin')).toEqual(['done']);
    expect(JSON.stringify([site.played.audits, site.played.published, await state()])).not.toContain(PIN);
    await restart();
    await unlock();
    expect(site.played.unlocks[0]?.unlock.pin).toBe(PIN);
  });

  it.each(['', '12a4', '12345678901234567', 4711])('is no PIN: %j', async (pin) => {
    expect(errorOf(await put(pin))).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('keeps it while the lock has to be locked or stands open', async () => {
    await put(PIN);
    await unlock();
    const tooSoon = await site.desk('DELETE', `/doors/${id}/rf-pin`);
    expect([errorOf(tooSoon), tooSoon.body.message]).toEqual([
      [409, 'IN_PROGRESS'],
      expect.stringContaining('up to 5 s'),
    ]);
    await site.clock.advance(5_000);
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 });
    expect(errorOf(await site.desk('DELETE', `/doors/${id}/rf-pin`))).toEqual([409, 'STANDS_OPEN']);
    await site.desk('DELETE', `/doors/${id}/stand-open`);
    expect((await site.desk('DELETE', `/doors/${id}/rf-pin`)).status).toBe(200);
  });

  it('is not given another one while it has to be locked or stands open, until that has failed', async () => {
    await put(PIN);
    await unlock();
    expect(errorOf(await put('4712'))).toEqual([409, 'IN_PROGRESS']);
    await site.clock.advance(5_000);
    expect(site.played.actuated).toMatchObject([{ kind: 'lock', pin: PIN }]);
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 });
    expect(errorOf(await put('4712'))).toEqual([409, 'STANDS_OPEN']);
    // The PIN was changed at the lock meanwhile.
    site.played.actuate = () => Promise.reject(new DriverError('REFUSED', 'the lock refused'));
    await site.desk('DELETE', `/doors/${id}/stand-open`);
    await site.clock.advance(60_000);
    expect(await put('4712')).toMatchObject({ status: 200, body: { isStored: true } });
    await site.desk('POST', `/doors/${id}/lock`);
    expect(site.played.actuated.at(-1)).toMatchObject({ pin: '4712' });
  });

  it('need not keep it for long after a lock that relocks by itself has reported that it did', async () => {
    site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'timedUnlock' });
    await put(PIN);
    await unlock();
    await site.clock.advance(4_000);
    expect(errorOf(await site.desk('DELETE', `/doors/${id}/rf-pin`))).toEqual([409, 'IN_PROGRESS']);
    await site.clock.advance(1_000);
    site.report(MAC, { requiresPin: true, lockState: { value: 'locked', at: site.clock.now() } });
    await site.clock.advance(4_999);
    expect(errorOf(await site.desk('DELETE', `/doors/${id}/rf-pin`))).toEqual([409, 'IN_PROGRESS']);
    await site.clock.advance(1);
    expect((await site.desk('DELETE', `/doors/${id}/rf-pin`)).status).toBe(200);
  });

  it('loses it when it is replaced', async () => {
    await put(PIN);
    await site.desk('POST', `/doors/${id}/replace-lock`, { mac: '00124b0001a2b3c5' });
    expect((await state()).rfPin).toEqual({ required: null, isStored: false });
    expect(site.database.prepare('SELECT * FROM lock_pin').all()).toEqual([]);
  });
});

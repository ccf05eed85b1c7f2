/** The PIN that a lock requires for operations by radio: stored sealed, sent with each command, and never shown. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type Estate, openEstate } from '../../../test/estate.ts';
import { errorOf, MAC, openEstateWithLock } from './test-doors.ts';

let estate: Estate;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  ({ estate, id } = await openEstateWithLock());
  end = estate.run();
  estate.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
});

const unlock = () => estate.desk('POST', `/doors/${id}/unlock`);
const state = async () => (await estate.desk('GET', `/doors/${id}/state`)).body;
const kinds = () => estate.played.actuated.map(({ kind }) => kind);
const audited = (action: string) =>
  estate.played.audits.filter((entry) => entry.action === action).map(({ outcome }) => outcome);
async function restart() {
  await end();
  estate = await openEstate(estate.database, { now: estate.clock.now() });
  end = estate.run();
  await estate.clock.advance(0);
}

describe('a lock that requires a PIN by radio', () => {
  const PIN = '4711';
  const put = (pin: unknown) => estate.desk('PUT', `/doors/${id}/rf-pin`, { pin });
  beforeEach(() => estate.report(MAC, { requiresPin: true }));

  it('is sent nothing until its PIN is stored, and then is sent it', async () => {
    expect((await state()).rfPin).toEqual({ required: true, isStored: false });
    for (const path of ['unlock', 'lock'])
      expect(errorOf(await estate.desk('POST', `/doors/${id}/${path}`))).toEqual([409, 'PIN_REQUIRED']);
    expect([estate.played.unlocks, kinds()]).toEqual([[], []]);
    expect(await put(PIN)).toMatchObject({ status: 200, body: { isStored: true } });
    await unlock();
    await estate.clock.advance(5_000);
    expect(estate.played.unlocks[0]?.unlock.pin).toBe(PIN);
    expect(estate.played.actuated).toMatchObject([{ kind: 'lock', pin: PIN }]);
    expect((await state()).rfPin).toEqual({ required: true, isStored: true });
    expect((await estate.desk('DELETE', `/doors/${id}/rf-pin`)).status).toBe(200);
    expect(errorOf(await unlock())).toEqual([409, 'PIN_REQUIRED']);
  });

  it('keeps it sealed, across restarts, and never shows it', async () => {
    await put(PIN);
    const [row] = estate.database.prepare<[], { sealed: Uint8Array }>('SELECT sealed FROM lock_pin').all();
    expect(Buffer.from(row?.sealed ?? []).includes(PIN)).toBe(false);
    expect(audited('door.set-rf-pin')).toEqual(['done']);
    expect(JSON.stringify([estate.played.audits, estate.played.published, await state()])).not.toContain(PIN);
    await restart();
    await unlock();
    expect(estate.played.unlocks[0]?.unlock.pin).toBe(PIN);
  });

  it.each(['', '12a4', '12345678901234567', 4711])('is no PIN: %j', async (pin) => {
    expect(errorOf(await put(pin))).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('keeps it while the lock has to be locked or stands open', async () => {
    await put(PIN);
    await unlock();
    const tooSoon = await estate.desk('DELETE', `/doors/${id}/rf-pin`);
    expect([errorOf(tooSoon), tooSoon.body.message]).toEqual([
      [409, 'IN_PROGRESS'],
      expect.stringContaining('up to 5 s'),
    ]);
    await estate.clock.advance(5_000);
    await estate.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await estate.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 });
    expect(errorOf(await estate.desk('DELETE', `/doors/${id}/rf-pin`))).toEqual([409, 'STANDS_OPEN']);
    await estate.desk('DELETE', `/doors/${id}/stand-open`);
    expect((await estate.desk('DELETE', `/doors/${id}/rf-pin`)).status).toBe(200);
  });

  it('is not given another one while it has to be locked or stands open, until that has failed', async () => {
    await put(PIN);
    await unlock();
    expect(errorOf(await put('4712'))).toEqual([409, 'IN_PROGRESS']);
    await estate.clock.advance(5_000);
    expect(estate.played.actuated).toMatchObject([{ kind: 'lock', pin: PIN }]);
    await estate.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await estate.desk('POST', `/doors/${id}/stand-open`, { seconds: 60 });
    expect(errorOf(await put('4712'))).toEqual([409, 'STANDS_OPEN']);
    // The PIN was changed at the lock meanwhile.
    estate.played.actuate = () => Promise.reject(new DriverError('REFUSED', 'the lock refused'));
    await estate.desk('DELETE', `/doors/${id}/stand-open`);
    await estate.clock.advance(60_000);
    expect(await put('4712')).toMatchObject({ status: 200, body: { isStored: true } });
    await estate.desk('POST', `/doors/${id}/lock`);
    expect(estate.played.actuated.at(-1)).toMatchObject({ pin: '4712' });
  });

  it('need not keep it for long after a lock that relocks by itself has reported that it did', async () => {
    estate.played.unlock = async () => ({ outcome: 'confirmed', relock: 'timedUnlock' });
    await put(PIN);
    await unlock();
    await estate.clock.advance(4_000);
    expect(errorOf(await estate.desk('DELETE', `/doors/${id}/rf-pin`))).toEqual([409, 'IN_PROGRESS']);
    await estate.clock.advance(1_000);
    estate.report(MAC, { requiresPin: true, lockState: { value: 'locked', at: estate.clock.now() } });
    await estate.clock.advance(4_999);
    expect(errorOf(await estate.desk('DELETE', `/doors/${id}/rf-pin`))).toEqual([409, 'IN_PROGRESS']);
    await estate.clock.advance(1);
    expect((await estate.desk('DELETE', `/doors/${id}/rf-pin`)).status).toBe(200);
  });

  it('loses it when it is replaced', async () => {
    await put(PIN);
    await estate.desk('POST', `/doors/${id}/replace-lock`, { mac: '00124b0001a2b3c5' });
    expect((await state()).rfPin).toEqual({ required: null, isStored: false });
    expect(estate.database.prepare('SELECT * FROM lock_pin').all()).toEqual([]);
  });
});

/** Settings on their way to devices, and what devices say of theirs. */
import { describe, expect, it } from 'vitest';
import type { DriverErrorCode } from '../../../drivers/contract/driver.ts';
import { A, B, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';

const BEFORE = {
  ioPins: NO_PINS,
  relayIndex: null,
  unlockDurationMilliseconds: null,
  useInputPinMemory: false,
};

async function oneDevice(database?: Awaited<ReturnType<typeof temporaryDatabase>>) {
  const bed = await openTestbed(database);
  if (!database) await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
  return bed;
}
const stateOf = async (bed: Awaited<ReturnType<typeof oneDevice>>) => (await bed.get(`/${A}/state`)).body;

describe('settings on their way', () => {
  it('go to the device whole, with their version, and are in force once it has them', async () => {
    const bed = await oneDevice();
    bed.run();
    await bed.put(A, {
      ioPins: { output2: true },
      relayIndex: 3,
      unlockDurationMilliseconds: 5_000,
      useInputPinMemory: true,
    });
    await bed.clock.advance(0);
    const settings = {
      ioPins: { ...NO_PINS, output2: true },
      relayIndex: 3,
      unlockDurationMilliseconds: 5_000,
    };
    expect(bed.commands.at(-1)).toEqual({
      link: 'bus-1',
      kind: 'applySettings',
      timeoutMs: 20_000,
      data: { hwId: 'io-1', settingsVersion: 2, settings: { ...settings, useInputPinMemory: true } },
    });
    expect((await bed.get(`/${A}`)).body).toMatchObject({ settingsVersion: 2, reportedSettingsVersion: 2 });
    expect(await stateOf(bed)).toMatchObject({ inForce: true, failure: null, nextAttempt: null });
  });

  it('have another version than those of every other device, which a poll distinguishes them by', async () => {
    const bed = await oneDevice();
    await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1' });
    const versionOf = async (id: string) => (await bed.get(`/${id}`)).body.settingsVersion;
    expect([await versionOf(A), await versionOf(B)]).toEqual([1, 2]);
    await bed.put(A, { relayIndex: 3 });
    await bed.put(A, { name: 'Back door' });
    expect([await versionOf(A), await versionOf(B)]).toEqual([3, 2]);
    await bed.put(B, { relayIndex: 3 });
    expect([await versionOf(A), await versionOf(B)]).toEqual([3, 4]);
  });

  it('are tried again when the device does not answer, and the state says when and why', async () => {
    const bed = await oneDevice();
    bed.answer('NO_REPLY');
    bed.run();
    await bed.clock.advance(0);
    expect(await stateOf(bed)).toMatchObject({
      inForce: false,
      failure: { version: 1, code: 'NO_REPLY', message: 'it said NO_REPLY', permanent: false },
      nextAttempt: '2026-01-01T00:00:01.000Z',
    });
    bed.answer(({ settingsVersion }) => ({ reportedSettingsVersion: settingsVersion }));
    await bed.clock.advance(1_000);
    expect(await stateOf(bed)).toMatchObject({ inForce: true, failure: null, nextAttempt: null });
  });

  it.each<[DriverErrorCode, number]>([
    ['NO_REPLY', 2],
    ['BAD_REPLY', 2],
    ['OUTCOME_UNKNOWN', 2],
    ['DEVICE_OFFLINE', 1],
  ])('after %s are sent as version %i, as another device may have taken them', async (code, version) => {
    const bed = await oneDevice();
    bed.answer(code);
    bed.run();
    await bed.clock.advance(0);
    expect(await stateOf(bed)).toMatchObject({ failure: { version: 1, code } });
    await bed.clock.advance(1_000);
    await bed.clock.advance(1_000);
    const versions = bed.commands.map(({ data }) => data.settingsVersion);
    expect(versions).toEqual([1, version]);
    // What went before counts: the next attempt is later.
    expect(await stateOf(bed)).toMatchObject({ nextAttempt: '2026-01-01T00:00:03.000Z' });
    bed.answer(({ settingsVersion }) => ({ reportedSettingsVersion: settingsVersion }));
    await bed.clock.advance(1_000);
    const sent = bed.commands.at(-1)?.data.settingsVersion;
    expect(sent).toBe(version === 1 ? 1 : 3);
    expect((await bed.get(`/${A}`)).body).toMatchObject({
      settingsVersion: sent,
      reportedSettingsVersion: sent,
    });
    expect(await stateOf(bed)).toMatchObject({ inForce: true, failure: null });
  });

  it('are sent as another version where they were in force, and the device shows others', async () => {
    const bed = await oneDevice();
    await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1' });
    bed.run();
    await bed.clock.advance(120_000);
    bed.report('io-1', { reportedSettingsVersion: 2, settings: { ...BEFORE, relayIndex: 5 } });
    await bed.clock.advance(0);
    expect(bed.commands.map(({ data }) => [data.hwId, data.settingsVersion])).toEqual([
      ['io-1', 1],
      ['io-2', 2],
      ['io-1', 3],
    ]);
    expect(await stateOf(bed)).toMatchObject({ inForce: true });
  });

  it('are not tried again once the device refused them, until they are others', async () => {
    const bed = await oneDevice();
    bed.answer('REFUSED');
    bed.run();
    await bed.clock.advance(3_600_000);
    expect(bed.commands).toHaveLength(1);
    expect(await stateOf(bed)).toMatchObject({
      failure: { code: 'REFUSED', permanent: true },
      nextAttempt: null,
    });
    await bed.put(A, { relayIndex: 1 });
    await bed.clock.advance(0);
    expect(bed.commands.at(-1)?.data.settingsVersion).toBe(2);
  });

  it.each([
    ['another version', { reportedSettingsVersion: 9 }],
    ['nonsense', 'yes'],
  ])('are not believed to be in force when the device answers with %s', async (_name, answer) => {
    const bed = await oneDevice();
    bed.answer(() => answer);
    bed.run();
    await bed.clock.advance(0);
    expect(await stateOf(bed)).toMatchObject({ inForce: false, failure: { code: 'BAD_REPLY' } });
  });

  it('go to a device that comes back at once, whatever its back-off', async () => {
    const bed = await oneDevice();
    bed.answer('NO_REPLY');
    bed.run();
    await bed.clock.advance(600_000);
    bed.answer(({ settingsVersion }) => ({ reportedSettingsVersion: settingsVersion }));
    bed.report('io-1');
    await bed.clock.advance(0);
    expect(await stateOf(bed)).toMatchObject({ inForce: true });
  });

  it('are not sent to a device that has shown them since an attempt failed', async () => {
    const bed = await oneDevice();
    bed.run();
    bed.report('io-1', { reportedSettingsVersion: 1, settings: BEFORE });
    await bed.clock.advance(120_000);
    const { length } = bed.commands;
    bed.answer('DEVICE_OFFLINE');
    bed.report('io-1', { reportedSettingsVersion: 0, settings: null });
    await bed.clock.advance(0);
    expect(bed.commands).toHaveLength(length + 1);
    bed.report('io-1', { reportedSettingsVersion: 1, settings: BEFORE });
    await bed.clock.advance(600_000);
    expect(bed.commands).toHaveLength(length + 1);
    expect(await stateOf(bed)).toMatchObject({ inForce: true, failure: null, nextAttempt: null });
  });

  it('go again to a device that was swapped for one with other settings of the same version', async () => {
    const bed = await oneDevice();
    bed.run();
    await bed.clock.advance(0);
    bed.report('io-1', { reportedSettingsVersion: 1, settings: BEFORE });
    await bed.clock.advance(120_000);
    expect(bed.commands).toHaveLength(1);
    bed.report('io-1', { reportedSettingsVersion: 1, settings: { ...BEFORE, relayIndex: 5 } });
    await bed.clock.advance(0);
    expect(bed.commands).toHaveLength(2);
    expect(await stateOf(bed)).toMatchObject({ inForce: true });
  });

  it('go only to the device after a restart in the middle, and it is sent again', async () => {
    const database = await temporaryDatabase();
    const first = await oneDevice(database);
    await first.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
    first.answer(() => new Promise(() => {}));
    const stop = new AbortController();
    void first.rs485.settings.reconciler.run(stop.signal).catch(() => undefined);
    await first.clock.advance(0);
    expect(first.commands).toHaveLength(1);

    const second = await oneDevice(database);
    second.run();
    await second.clock.advance(0);
    expect(second.commands).toHaveLength(1);
    expect(await stateOf(second)).toMatchObject({ inForce: true });
    await second.clock.advance(10_000);
    const third = await oneDevice(database);
    expect((await third.get(`/${A}`)).body.reportedSettingsVersion).toBe(1);
    expect(await stateOf(third)).toMatchObject({ inForce: true });
  });

  it('notify the door when its relay has taken them', async () => {
    const bed = await oneDevice();
    await bed.put(A, { doorId: DOOR });
    bed.relays.length = 0;
    bed.run();
    await bed.clock.advance(0);
    expect(bed.relays).toEqual([DOOR]);
    expect(bed.rs485.relay(DOOR)).toMatchObject({ deviceId: A, settled: true });
    expect(bed.rs485.relay('nobody')).toBeUndefined();
  });
});

describe('what a device reports', () => {
  const connection = async (bed: Awaited<ReturnType<typeof oneDevice>>) =>
    (await bed.get(`/${A}`)).body.connectionState;

  it('moves changedOn only when the connection really changes', async () => {
    const bed = await oneDevice();
    await bed.clock.advance(1_000);
    bed.report('io-1');
    const since = { connected: true, changedOn: '2026-01-01T00:00:01.000Z' };
    for (const more of [
      {},
      { type: 'other' },
      { reportedSettingsVersion: 1 },
      { levels: { input0: true } },
    ]) {
      await bed.clock.advance(1_000);
      bed.report('io-1', more);
      expect(await connection(bed)).toEqual(since);
    }
    bed.rs485.link('bus-1', true);
    expect(await connection(bed)).toEqual(since);
    bed.rs485.link('bus-1', false);
    expect(await connection(bed)).toEqual({ connected: false, changedOn: '2026-01-01T00:00:05.000Z' });
    await bed.clock.advance(1_000);
    bed.report('io-1', { connected: false });
    expect(await connection(bed)).toEqual({ connected: false, changedOn: '2026-01-01T00:00:05.000Z' });
  });

  it('is kept over a restart, but for the connection', async () => {
    const database = await temporaryDatabase();
    const first = await oneDevice(database);
    await first.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
    const end = first.run();
    first.report('io-1', { type: 'relay board', reportedSettingsVersion: 1, settings: BEFORE });
    await first.clock.advance(2_000);
    await end();
    const second = await oneDevice(database);
    await second.clock.advance(60_000);
    expect((await second.get(`/${A}`)).body).toMatchObject({
      type: 'relay board',
      reportedSettingsVersion: 1,
      connectionState: { connected: false, changedOn: '2026-01-01T00:00:00.000Z' },
    });
    expect(await stateOf(second)).toMatchObject({ reportAge: null, levels: {} });
  });

  it('costs a commit only when a fact changed, and one for many', async () => {
    const bed = await oneDevice();
    bed.run();
    await bed.clock.advance(10_000);
    const count = () => bed.database.figures().batches;
    const inForce = { reportedSettingsVersion: 1 };
    bed.report('io-1', inForce);
    await bed.clock.advance(2_000);
    const before = count();
    for (let n = 0; n < 100; n += 1) bed.report('io-1', { ...inForce, levels: { input0: n % 2 === 0 } });
    await bed.clock.advance(4_000);
    expect(count()).toBe(before);
    for (let n = 0; n < 100; n += 1) bed.report('io-1', { ...inForce, type: `io ${n}` });
    await bed.clock.advance(4_000);
    expect(count()).toBe(before + 1);
  });

  it('is ignored when it is nonsense, of another bus, or of no one', async () => {
    const bed = await oneDevice();
    bed.rs485.report('bus-1', { subject: 'device:io-1', state: { connected: 'yes' } });
    bed.rs485.report('bus-1', { subject: 'counter', state: { count: 1 } });
    bed.report('io-1', {}, 'bus-2');
    bed.report('io-9');
    expect(await connection(bed)).toMatchObject({ connected: false });
  });
});

/** A write of settings reaches another device than the one meant where the two change places at that moment. */
describe('settings that are not those of the device', () => {
  const shown = (reportedSettingsVersion: number, relayIndex: number) => ({
    reportedSettingsVersion,
    settings: { ...BEFORE, relayIndex },
    levels: { output2: false, output5: true },
  });

  it.each([
    ['wanted of another one', 4],
    ['that were wanted of another one before', 3],
  ])('give no order its relay: those %s', async (_name, version) => {
    const bed = await openTestbed();
    await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', doorId: DOOR, relayIndex: 2 });
    await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1' });
    bed.run();
    bed.report('io-1', shown(1, 2));
    await bed.clock.advance(3_000);
    await bed.put(B, { relayIndex: 6 });
    await bed.put(B, { relayIndex: 5 });
    bed.answer('NO_REPLY');
    const levels = bed.relayLevels.length;
    bed.report('io-1', shown(version, 5));
    await bed.clock.advance(60_000);
    expect((await bed.post(`/${A}/pulse`)).body).toMatchObject({ error: 'NO_RELAY' });
    expect(await stateOf(bed)).toMatchObject({ inForce: false });
    expect(bed.relayLevels.slice(levels).filter(({ isClosed }) => isClosed)).toEqual([]);
    // Nor once others are wanted. But those of before do, until these are in force.
    await bed.put(A, { relayIndex: 7 });
    bed.report('io-1', shown(version, 5));
    expect((await bed.post(`/${A}/pulse`)).body).toMatchObject({ error: 'NO_RELAY' });
    bed.report('io-1', shown(1, 2));
    bed.answer(() => ({ relay: 2, milliseconds: 5_000, timedBy: 'device' }));
    expect((await bed.post(`/${A}/pulse`)).body).toMatchObject({ relay: 2, outcome: 'confirmed' });
    expect(bed.commands.filter(({ kind }) => kind === 'pulse')).toMatchObject([{ data: { relay: 2 } }]);
  });

  it('give it no relay but the one that is wanted, nor another time', async () => {
    const bed = await openTestbed();
    const wanted = { relayIndex: 2, unlockDurationMilliseconds: 1_000 };
    await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', ...wanted });
    bed.answer(() => ({ relay: 2, milliseconds: 1_000, timedBy: 'device' }));
    const pulsed = async (more: object) => {
      bed.report('io-1', { reportedSettingsVersion: 1, settings: { ...BEFORE, ...wanted, ...more } });
      const { body } = await bed.post(`/${A}/pulse`);
      return body.relay ?? body.error;
    };
    expect(await pulsed({ relayIndex: 5 })).toBe('NO_RELAY');
    expect(await pulsed({ unlockDurationMilliseconds: 9_000 })).toBe('NO_RELAY');
    expect(await pulsed({})).toBe(2);
  });

  it('are its own where it has them when it is found, though another one is given that version', async () => {
    const bed = await openTestbed();
    await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1', relayIndex: 5 });
    bed.run();
    bed.answer(() => ({ relay: 2, milliseconds: 5_000, timedBy: 'device' }));
    for (let time = 0; time < 5; time += 1) {
      bed.report('io-1', shown(1, 2));
      await bed.clock.advance(1_000);
    }
    const items = (await bed.get('')).body.items as { deviceId: string; hwId: string }[];
    const found = items.find(({ hwId }) => hwId === 'io-1')?.deviceId;
    expect((await bed.post(`/${found}/pulse`)).body).toMatchObject({ relay: 2, outcome: 'confirmed' });
  });

  it('give it none either where nothing was ever wanted of it; others that it has do', async () => {
    const bed = await openTestbed();
    await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1', relayIndex: 5 });
    bed.run();
    bed.report('io-1', shown(0, 2));
    await bed.clock.advance(3_000);
    const items = (await bed.get('')).body.items as { deviceId: string; hwId: string }[];
    const found = items.find(({ hwId }) => hwId === 'io-1')?.deviceId;
    bed.answer((data) => ({
      relay: (data as unknown as { relay: number }).relay,
      milliseconds: 5_000,
      timedBy: 'device',
    }));
    const relay = async (version: number, relayIndex: number) => {
      bed.report('io-1', shown(version, relayIndex));
      const { body } = await bed.post(`/${found}/pulse`);
      return body.relay ?? body.error;
    };
    expect([await relay(0, 2), await relay(1, 5), await relay(9, 4)]).toEqual([2, 'NO_RELAY', 4]);
    // Nor does that go on once something is wanted of it, before it has that.
    bed.answer('NO_REPLY');
    await bed.put(String(found), { relayIndex: 3 });
    expect([await relay(9, 4), await relay(0, 2)]).toEqual(['NO_RELAY', 'NO_RELAY']);
  });
});

/** Devices that no configuration names: rows by what they say. */
import { describe, expect, it } from 'vitest';
import { inputEvent } from '../../../drivers/contract/rs485.ts';
import { A, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';

type Bed = Awaited<ReturnType<typeof openTestbed>>;
const devices = async (bed: Bed, query = '') =>
  (await bed.get(query)).body.items as (Record<string, unknown> & { deviceId: string })[];
const watched = (bed: Bed) =>
  bed.commands.filter(({ kind }) => kind === 'watch').map(({ link, data }) => ({ link, ...data }));

describe('a device that no configuration names', () => {
  it('has a row within seconds, once, found by the gateway itself', async () => {
    const bed = await openTestbed();
    bed.run();
    for (let n = 0; n < 5; n += 1) {
      bed.report('io-9', { address: 7, levels: { input1: true } });
      await bed.clock.advance(1_000);
    }
    const [device, ...others] = await devices(bed);
    expect(others).toEqual([]);
    expect(device).toMatchObject({
      hwId: 'io-9',
      type: 'io',
      ioPins: NO_PINS,
      settingsVersion: 0,
      reportedSettingsVersion: 0,
      connectionState: { connected: true },
    });
    const state = (await bed.get(`/${device?.deviceId}/state`)).body;
    expect(state).toMatchObject({ address: 7, levels: { input1: true }, inForce: true });
    expect(bed.audits).toMatchObject([
      {
        action: 'rs485.found',
        object: `rs485/${device?.deviceId}`,
        outcome: 'done',
        principal: { label: 'gatehouse' },
        detail: { bus: 'bus-1', hwId: 'io-9', address: 7 },
      },
    ]);
  });

  it('shows no levels and no pulse while it is not connected', async () => {
    const bed = await openTestbed();
    bed.run();
    const shown = { levels: { output1: true }, pulse: { relay: 1, remainingMilliseconds: 3_000 } };
    // A device gets its row by two reports.
    for (let time = 0; time < 2; time += 1) {
      bed.report('io-9', { address: 7, ...shown });
      await bed.clock.advance(1_000);
    }
    const [device] = await devices(bed);
    const state = async () => (await bed.get(`/${device?.deviceId}/state`)).body;
    expect(await state()).toMatchObject({ levels: shown.levels, pulse: { relay: 1 } });
    bed.report('io-9', { connected: false, address: 7, ...shown });
    expect(await state()).toMatchObject({ levels: {}, pulse: null });
  });

  it('is left as it is until somebody wants something of it; then gets it all', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io-9', { reportedSettingsVersion: 4, settings: null });
    await bed.clock.advance(3_600_000);
    expect(bed.commands.filter(({ kind }) => kind === 'applySettings')).toEqual([]);
    const [device] = await devices(bed);
    await bed.put(String(device?.deviceId), { relayIndex: 2 });
    await bed.clock.advance(0);
    expect(bed.commands.at(-1)).toMatchObject({
      kind: 'applySettings',
      data: { settingsVersion: 1, settings: { relayIndex: 2, ioPins: NO_PINS } },
    });
  });

  it('is one of 256 at most on its bus, and others have their room', async () => {
    const bed = await openTestbed();
    bed.run();
    for (let n = 0; n < 1_000; n += 1) bed.report(`io-${n}`);
    await bed.clock.advance(1_000);
    for (let n = 1_000; n < 2_000; n += 1) bed.report(`io-${n}`);
    await bed.clock.advance(1_000);
    bed.report('lone', {}, 'bus-2');
    await bed.clock.advance(1_000);
    const count = (bus: string) => bed.rs485.list({ limit: 1_000, bus }).items.length;
    expect([count('bus-1'), count('bus-2')]).toEqual([256, 1]);
  });

  it('is none when its name is not fit for a screen, or is not the one of its subject', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io\u001b[2J');
    const state = { connected: true, hwId: 'io-8', type: null, platform: null, apps: [] };
    const more = { reportedSettingsVersion: 0, settings: null, levels: {} };
    bed.rs485.report('bus-1', { subject: 'device:io-9', state: { ...state, ...more } });
    bed.rs485.report('no-bus', { subject: 'device:io-8', state: { ...state, ...more } });
    await bed.clock.advance(2_000);
    expect(await devices(bed)).toEqual([]);
    // Nor is it tried again and again.
    const { jobs } = bed.database.figures();
    await bed.clock.advance(10_000);
    expect(bed.database.figures().jobs).toBe(jobs);
  });

  it('is as it said last, when it has its row from an event before what it said first was written', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io-9', { connected: false });
    const data = { hwId: 'io-9', alarm: 'tamper', raised: true, at: 0 };
    await bed.rs485.event('bus-1', { id: 'e-1', kind: 'alarm', data });
    bed.report('io-9', { address: 7 });
    await bed.clock.advance(3_000);
    expect(await devices(bed)).toMatchObject([{ hwId: 'io-9', connectionState: { connected: true } }]);
  });

  it('is not there yet when its bus went down before its row was written', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io-9', { address: 7 });
    bed.rs485.link('bus-1', false);
    await bed.clock.advance(3_000);
    expect(await devices(bed)).toEqual([]);
    bed.report('io-9', { address: 7 });
    await bed.clock.advance(3_000);
    expect(await devices(bed)).toMatchObject([{ hwId: 'io-9', connectionState: { connected: true } }]);
  });

  it('gets the deviceId of a file that is imported afterwards, and stays connected', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io-9', { address: 7 });
    await bed.clock.advance(3_000);
    const [found] = await devices(bed);
    const plan = bed.rs485.importPlan([{ deviceId: A, hwId: 'io-9', bus: 'bus-1', name: 'Lobby' }], {
      principal: bed.caller.principal,
      correlationId: 'test',
    });
    await bed.database.commit(plan.write);
    await plan.written?.();
    await bed.clock.advance(3_000);
    expect(await devices(bed)).toMatchObject([
      { deviceId: A, name: 'Lobby', connectionState: found?.connectionState },
    ]);
    expect((await bed.get(`/${A}/state`)).body).toMatchObject({ address: 7 });
    expect((await bed.get(`/${found?.deviceId}`)).status).toBe(404);
  });
});

describe('what a bus polls', () => {
  it('is sent once its link is up and whenever devices come or move', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io-1', { address: 7 });
    bed.report('io-2', { address: 8 });
    await bed.clock.advance(3_000);
    expect(watched(bed)).toEqual([]);
    bed.rs485.link('bus-1', true);
    await bed.clock.advance(0);
    const list = (...pairs: [number, string][]) => ({
      link: 'bus-1',
      devices: pairs.map(([address, hwId]) => ({ address, hwId })),
    });
    expect(watched(bed)).toEqual([list([7, 'io-1'], [8, 'io-2'])]);
    bed.report('io-1', { address: 9 });
    await bed.clock.advance(3_000);
    expect(watched(bed).slice(1)).toEqual([list([8, 'io-2'], [9, 'io-1'])]);
    bed.report('without-address');
    await bed.clock.advance(60_000);
    expect(watched(bed)).toHaveLength(2);
    bed.rs485.link('bus-1', false);
    bed.report('io-1', { address: 10 });
    await bed.clock.advance(60_000);
    expect(watched(bed)).toHaveLength(2);
    bed.rs485.link('bus-1', true);
    await bed.clock.advance(0);
    expect(watched(bed)).toHaveLength(3);
  });

  it('has one device at an address: the one that was heard there last, not one that is gone', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.rs485.link('bus-1', true);
    bed.report('old', { address: 7 });
    await bed.clock.advance(3_000);
    bed.report('new', { address: 7 });
    await bed.clock.advance(3_000);
    bed.report('old', { address: 7, connected: false });
    await bed.clock.advance(6_000);
    expect(watched(bed).at(-1)).toMatchObject({ devices: [{ address: 7, hwId: 'new' }] });
  });

  it('is sent again when the driver did not take it', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report('io-1', { address: 7 });
    await bed.clock.advance(3_000);
    bed.answer('BUSY');
    bed.rs485.link('bus-1', true);
    await bed.clock.advance(12_000);
    expect(watched(bed)).toHaveLength(3);
    bed.answer(() => null);
    await bed.clock.advance(60_000);
    expect(watched(bed)).toHaveLength(4);
  });
});

describe('a restart of the gateway', () => {
  async function restarted() {
    const database = await temporaryDatabase();
    const first = await openTestbed(database);
    await first.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
    const end = first.run();
    first.report('io-1');
    await first.clock.advance(5_000);
    const since = (await first.get(`/${A}`)).body.connectionState;
    await end();
    const second = await openTestbed(database);
    second.clock.jumpWall(86_400_000);
    second.run();
    return { second, since };
  }
  const connection = async (bed: Bed) => (await bed.get(`/${A}`)).body.connectionState;

  it('is no change for a device that is heard of again soon', async () => {
    const { second, since } = await restarted();
    expect(await connection(second)).toMatchObject({ connected: false });
    // A driver that has just begun has not heard of it yet.
    second.report('io-1', { connected: false, type: 'other' });
    await second.clock.advance(10_000);
    second.report('io-1');
    await second.clock.advance(120_000);
    expect(await connection(second)).toEqual(since);
    expect(second.published).toEqual([]);
    second.report('io-1', { connected: false });
    await second.clock.advance(3_000);
    expect(second.published).toMatchObject([{ data: { deviceId: A, connected: false } }]);
  });

  it('is when it went for one that is not', async () => {
    const { second } = await restarted();
    await second.clock.advance(120_000);
    const gone = await connection(second);
    expect(gone).toMatchObject({ connected: false });
    expect(second.published).toMatchObject([
      { type: 'gatehouse.rs485.connection.v1', subject: A, data: gone },
    ]);
  });
});

describe('events of a bus', () => {
  const input = {
    hwId: 'io-1',
    input: 'input2',
    activations: 2,
    total: 5,
    at: Date.UTC(2026, 0, 2),
  } as const;

  it('are published to live readers, each once, whatever the driver repeats', async () => {
    const bed = await openTestbed();
    await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
    const event = { id: 'e-1', kind: 'input', data: inputEvent.parse(input) };
    expect(await bed.rs485.event('bus-1', event)).toBe(true);
    expect(await bed.rs485.event('bus-1', event)).toBe(true);
    const data = { hwId: 'io-1', alarm: 'tamper', raised: true, at: input.at };
    await bed.rs485.event('bus-1', { id: 'e-2', kind: 'alarm', data });
    expect(bed.published).toEqual([
      {
        type: 'gatehouse.rs485.input.v1',
        source: `rs485/${A}`,
        subject: A,
        data: { deviceId: A, input: 'input2', activations: 2, total: 5, at: '2026-01-02T00:00:00.000Z' },
      },
      {
        type: 'gatehouse.rs485.alarm.v1',
        source: `rs485/${A}`,
        subject: A,
        data: { deviceId: A, alarm: 'tamper', raised: true, at: '2026-01-02T00:00:00.000Z' },
      },
    ]);
  });

  it('make a row for a device that has none, and are refused while the disk takes nothing', async () => {
    const bed = await openTestbed();
    bed.run();
    const event = { id: 'e-1', kind: 'input', data: input };
    await bed.rs485.event('bus-1', event);
    const [device] = await devices(bed);
    expect(bed.published).toMatchObject([{ subject: device?.deviceId }]);
    bed.database.commit = () => Promise.reject(new Error('full'));
    await expect(bed.rs485.event('bus-1', { ...event, id: 'e-2' })).rejects.toThrow('full');
  });

  it('that are nonsense are dropped, and others are none of ours', async () => {
    const bed = await openTestbed();
    expect(await bed.rs485.event('bus-1', { id: 'x', kind: 'input', data: { hwId: 'io-1' } })).toBe(true);
    expect(await bed.rs485.event('bus-1', { id: 'x', kind: 'emitted', data: null })).toBe(false);
    expect(await bed.rs485.event('no-bus', { id: 'x', kind: 'input', data: input })).toBe(false);
    expect(bed.published).toEqual([]);
  });
});

it('a relay that did not open after its pulse is audited, published as an alarm and shown', async () => {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
  const at = Date.UTC(2026, 0, 2);
  bed.report('io-1', { relayFault: { relay: 2, fault: 'stillClosed', at } });
  const alarm = { hwId: 'io-1', alarm: 'relay', at };
  await bed.rs485.event('bus-1', { id: 'e-1', kind: 'alarm', data: { ...alarm, raised: true } });
  await bed.rs485.event('bus-1', { id: 'e-2', kind: 'alarm', data: { ...alarm, raised: false } });
  expect(bed.audits).toMatchObject([
    { action: 'rs485.relayFault', object: `rs485/${A}`, outcome: 'failed' },
    { action: 'rs485.relayFault', object: `rs485/${A}`, outcome: 'done' },
  ]);
  expect(bed.published.map(({ data }) => data)).toMatchObject([
    { deviceId: A, alarm: 'relay', raised: true },
    { deviceId: A, alarm: 'relay', raised: false },
  ]);
  expect(bed.rs485.state(A).relayFault).toEqual({
    relay: 2,
    fault: 'stillClosed',
    at: '2026-01-02T00:00:00.000Z',
  });
});

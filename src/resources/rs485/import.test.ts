/** RS-485 devices of a site document. */
import { describe, expect, it } from 'vitest';
import { A, B, CALLER, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';
import type { Rs485Entry } from './site-entry.ts';

const entry = (more: Partial<Rs485Entry> = {}): Rs485Entry => ({ hwId: 'io-1', bus: 'bus-1', ...more });

async function bed() {
  const bed = await openTestbed();
  const run = async (...entries: Rs485Entry[]) => {
    const plan = await bed.database.commit(() => {
      const plan = bed.rs485.importPlan(entries, CALLER);
      plan.write();
      return plan;
    });
    await plan.written?.();
    return plan.changes;
  };
  const devices = async () => (await bed.get('')).body.items as Record<string, unknown>[];
  return { ...bed, runAll: bed.run, run, devices };
}

describe('the import of RS-485 devices', () => {
  it('adds a device with all it says, and knows it again without its id', async () => {
    const { run, devices, audits } = await bed();
    const all = {
      name: 'Lobby',
      description: 'd',
      doorId: DOOR,
      groupId: 'g1',
      relayIndex: 2,
      unlockDurationMilliseconds: 500,
      useInputPinMemory: true,
    };
    const [added] = await run(entry({ ...all, ioPins: { input1: true } }));
    expect(added).toMatchObject({ resource: 'rs485 device', change: 'added', name: 'Lobby' });
    const ioPins = { ...NO_PINS, input1: true };
    expect(await devices()).toMatchObject([{ ...all, deviceId: added?.id, ioPins, settingsVersion: 1 }]);
    expect(audits).toMatchObject([{ action: 'rs485.import', object: `rs485/${added?.id}` }]);

    audits.length = 0;
    expect(await run(entry({ ...all, ioPins: { input1: true } }))).toMatchObject([
      { change: 'unchanged', id: added?.id },
    ]);
    expect(audits).toEqual([]);
  });

  it('takes back what is exported, and makes the same of it elsewhere', async () => {
    const here = await bed();
    await here.run(
      entry({
        deviceId: A,
        name: 'Lobby',
        description: 'd\ne',
        doorId: DOOR,
        relayIndex: 2,
        ioPins: { output0: true },
      }),
      entry({ deviceId: B, hwId: 'io-2', useInputPinMemory: true, unlockDurationMilliseconds: 700 }),
    );
    const exported = here.rs485.entries();
    expect((await here.run(...exported)).map(({ change }) => change)).toEqual(['unchanged', 'unchanged']);
    const elsewhere = await bed();
    await elsewhere.run(...exported);
    expect(elsewhere.rs485.entries()).toEqual(exported);
    expect(await elsewhere.devices()).toEqual(await here.devices());
  });

  it('exports of a device that was found only what someone wants of it, and nothing that would travel', async () => {
    const { rs485, run: _, ...found } = await bed();
    const stop = found.runAll();
    found.report('io-9', { address: 7 });
    await found.clock.advance(10_000);
    expect(rs485.entries()).toEqual([]);
    const [device] = await found.devices();
    await found.put(String(device?.deviceId), { name: 'Attic' });
    expect(rs485.entries()).toEqual([
      {
        deviceId: device?.deviceId,
        hwId: 'io-9',
        bus: 'bus-1',
        name: 'Attic',
        description: null,
        doorId: null,
        groupId: null,
      },
    ]);
    await stop();
  });

  it('changes only what the file says, and raises the version of what travels', async () => {
    const { run, devices } = await bed();
    await run(entry({ deviceId: A, name: 'Lobby', relayIndex: 1 }));
    const changes = await run(entry({ deviceId: A, relayIndex: 2 }));
    expect(changes).toMatchObject([{ change: 'changed', fields: [{ field: 'relayIndex', from: 1, to: 2 }] }]);
    expect(await devices()).toMatchObject([{ name: 'Lobby', relayIndex: 2, settingsVersion: 2 }]);
    await run(entry({ deviceId: A, name: 'Hall' }));
    expect(await devices()).toMatchObject([{ name: 'Hall', settingsVersion: 2 }]);
  });

  it('leaves devices alone that the file does not name', async () => {
    const { run, devices } = await bed();
    await run(entry({ deviceId: A, name: 'Lobby' }));
    expect(await run()).toMatchObject([{ change: 'left alone', id: A, name: 'Lobby' }]);
    expect(await devices()).toHaveLength(1);
  });

  it('moves a device to another address by its id; nothing it had is believed any more', async () => {
    const { run, devices, report } = await bed();
    await run(entry({ deviceId: A }));
    report('io-1', { reportedSettingsVersion: 1 });
    await run({ deviceId: A, hwId: 'io-7', bus: 'bus-2' });
    expect(await devices()).toMatchObject([
      { hwId: 'io-7', reportedSettingsVersion: 0, connectionState: { connected: false } },
    ]);
  });

  it('exchanges the doors of two devices', async () => {
    const { run, devices } = await bed();
    await run(entry({ deviceId: A, doorId: 'x' }), entry({ deviceId: B, hwId: 'io-2', doorId: 'y' }));
    await run(entry({ deviceId: A, doorId: 'y' }), entry({ deviceId: B, hwId: 'io-2', doorId: 'x' }));
    expect((await devices()).map(({ doorId }) => doorId)).toEqual(['y', 'x']);
  });

  it('plans without writing', async () => {
    const { rs485, devices } = await bed();
    expect(rs485.importPlan([entry()], CALLER).changes).toMatchObject([{ change: 'added' }]);
    expect(await devices()).toEqual([]);
  });

  it.each<[string, Rs485Entry[], string, string]>([
    ['the address of another device', [entry({ deviceId: B })], 'VALIDATION_FAILED', '/0/hwId'],
    [
      'a device twice, by id and by address',
      [entry(), entry({ deviceId: A, hwId: 'io-3' })],
      'VALIDATION_FAILED',
      '/1/deviceId',
    ],
    [
      'a door that a device keeps',
      [entry(), entry({ hwId: 'io-2', doorId: DOOR })],
      'VALIDATION_FAILED',
      '/1/doorId',
    ],
    [
      'a door of a device that is left alone',
      [entry({ hwId: 'io-2', doorId: DOOR })],
      'RELAY_IN_USE',
      '/0/doorId',
    ],
  ])('refuses %s, already when it plans', async (_name, entries, code, path) => {
    const { run, rs485, devices } = await bed();
    await run(entry({ deviceId: A, doorId: DOOR }));
    const before = await devices();
    expect(() => rs485.importPlan(entries, CALLER)).toThrow(
      expect.objectContaining({ code, details: [expect.objectContaining({ path })] }),
    );
    expect(await devices()).toEqual(before);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});

async function create(mac = MAC): Promise<string> {
  const { body } = await site.desk('POST', '/doors', { mac, gatewayId: GATEWAY, networkId: 'n' });
  return body.id as string;
}
const door = async (id: string) => (await site.desk('GET', `/doors/${id}`)).body;
const state = async (id: string) => (await site.desk('GET', `/doors/${id}/state`)).body;
const configuration = async (id: string) => (await state(id)).configuration as Record<string, unknown>;
const published = () => site.played.published.filter(({ type }) => type === 'gatehouse.door.connection.v1');

describe('what a lock reports', () => {
  const REPORT = {
    lastSeen: START,
    lastContact: START - 1,
    lastEvent: START - 2,
    lqi: 60,
    rssi: -85,
    dueBatteryUnderLoad: 2_900,
    dueBatteryWithoutLoad: 3_100,
    bleFirmwareVersion: 'b',
    lccVersion: 'c',
    lcuFirmwareVersion: 'u',
    samVersion: 's',
    zigbeeFirmwareVersion: 'z',
    capabilities: ['standOpen'],
  };

  it('shows at its door, judged by the thresholds', async () => {
    const id = await create();
    site.report(MAC, REPORT);
    const { lastSeen, lastContact: _, lastEvent: __, lqi, rssi, ...shown } = REPORT;
    expect(await door(id)).toMatchObject({
      ...shown,
      connectionState: {
        lastSeen,
        lqi,
        rssi,
        lastContact: '2025-12-31T23:59:59.999Z',
        lastEvent: '2025-12-31T23:59:59.998Z',
        evaluatedStates: { lastReceivedEvent: true, lqiOK: true, recentlySeen: true, rssiOK: true },
      },
    });
    site.report(MAC, { lqi: 59, rssi: -86 });
    await site.clock.advance(120 * MINUTE);
    const { connectionState } = await door(id);
    expect(connectionState).toMatchObject({
      evaluatedStates: { lqiOK: false, rssiOK: false, recentlySeen: true, lastReceivedEvent: true },
      // What it did not report this time still holds.
      lastSeen,
    });
    await site.clock.advance(22 * 60 * MINUTE);
    expect((await door(id)).connectionState).toMatchObject({
      evaluatedStates: { recentlySeen: false, lastReceivedEvent: false },
    });
  });

  it('is known of a door that comes later, and published', async () => {
    site.run();
    site.report(MAC, { lqi: 77 });
    await site.clock.advance(4_000);
    const id = await create();
    expect((await door(id)).connectionState).toMatchObject({ lqi: 77 });
    await site.clock.advance(4_000);
    expect(published()).toMatchObject([{ data: { doorId: id, status: 'connected' } }]);
  });

  it('is taken from the gateway of its door alone', async () => {
    const id = await create();
    site.report(MAC, { lqi: 200 }, 'zb-2');
    expect((await door(id)).connectionState).toMatchObject({ lqi: null });
    const { connection } = await state(id);
    expect(connection).toMatchObject({ status: 'unknown', reportAge: null });
  });

  it.each([
    ['another address', { hwId: '00124b0000000000' }],
    ['a link quality of 256', { lqi: 256 }],
    ['a version below 0', { configVersion: -1 }],
    ['more capabilities than a lock has', { capabilities: Array(65).fill('x') }],
  ])('is ignored with %s', async (_name, more) => {
    const id = await create();
    site.report(MAC, { ...more, rssi: -40 });
    expect((await door(id)).connectionState).toMatchObject({ rssi: null });
  });

  it.each([-86_400_000, 86_400_000])(
    'was seen lately or not whatever the wall clock is set by: %i ms',
    async (jump) => {
      const id = await create();
      const seen = async () => {
        const { connectionState } = await door(id);
        return (connectionState as { evaluatedStates: object }).evaluatedStates;
      };
      site.report(MAC, { lastSeen: START, heardAt: 0 });
      site.clock.jumpWall(jump);
      expect(await seen()).toMatchObject({ recentlySeen: true });
      await site.clock.advance(121 * MINUTE);
      site.clock.jumpWall(-121 * MINUTE - jump);
      expect(await seen()).toMatchObject({ recentlySeen: false });
    },
  );

  it('with times that no date can show does no harm', async () => {
    const id = await create();
    site.report(MAC, { lastContact: Number.MAX_SAFE_INTEGER, lastEvent: -1, lastSeen: START + 1, lqi: 9 });
    expect((await door(id)).connectionState).toMatchObject({
      lastContact: null,
      lastEvent: null,
      lastSeen: START + 1,
      lqi: 9,
      // A clock that was set back: no one knows when that was.
      evaluatedStates: { recentlySeen: false },
    });
  });

  it('is there after a restart, with the age unknown', async () => {
    const id = await create();
    const end = site.run();
    site.report(MAC, REPORT);
    await site.clock.advance(2_000);
    await end();
    site = await openDoorSite(site.database);
    expect((await door(id)).connectionState).toMatchObject({ lqi: 60, lastSeen: START });
    expect((await state(id)).connection).toEqual({
      status: 'unknown',
      since: '2026-01-01T00:00:00.000Z',
      reportAge: null,
      leftAt: null,
    });
  });

  it('and where it was not there, or stayed on another channel, is known after a restart', async () => {
    await create();
    const end = site.run();
    site.report(MAC, { ...REPORT, heardOn: 15 });
    await site.clock.advance(2_000);
    // Nothing else of it changes.
    site.report(MAC, { ...REPORT, heardOn: 15, connected: false });
    await site.clock.advance(2_000);
    await end();
    site = await openDoorSite(site.database);
    expect(site.doors.locksOf(GATEWAY)).toMatchObject([
      { mac: MAC, presence: 'unknown', isMissed: true, heardOn: 15 },
    ]);
    // A report of a driver that has not heard it since says nothing new of it.
    site.report(MAC, { connected: false });
    expect(site.doors.locksOf(GATEWAY)).toMatchObject([{ presence: 'disconnected', heardOn: 15 }]);
  });

  it('costs the disk nothing while only its link quality and its times move, which are kept hourly', async () => {
    const id = await create();
    const end = site.run();
    const jobs = () => site.database.figures().jobs;
    const report = (minute: number) =>
      site.report(MAC, { lqi: 100 + (minute % 100), lastSeen: START + minute * MINUTE });
    report(0);
    await site.clock.advance(2_000);
    const before = jobs();
    for (let minute = 1; minute <= 120; minute += 1) {
      await site.clock.advance(MINUTE);
      report(minute);
    }
    expect(jobs() - before).toBe(2);
    await end();
    site = await openDoorSite(site.database);
    expect((await door(id)).connectionState).toMatchObject({ lastSeen: START + 62 * MINUTE });
  });

  it('is not written again when it is reported again after a restart', async () => {
    await create();
    const end = site.run();
    site.report(MAC, REPORT);
    await site.clock.advance(4_000);
    await end();
    site = await openDoorSite(site.database);
    site.run();
    const jobs = () => site.database.figures().jobs;
    await site.clock.advance(0);
    const before = jobs();
    site.report(MAC, { ...REPORT, lqi: 70 });
    await site.clock.advance(4_000);
    expect(jobs()).toBe(before);
  });

  it('keeps the times of many locks in one go, and of those that were heard of alone', async () => {
    await create();
    await create('00124b0001a2b3c5');
    site.run();
    for (const mac of [MAC, '00124b0001a2b3c5']) site.report(mac, { lastContact: START + 1 });
    await site.clock.advance(3 * MINUTE);
    site.report(MAC, { lastContact: START + 2 });
    const kept = () =>
      site.database.prepare<[], unknown>('SELECT mac, last_contact FROM lock_times ORDER BY mac').all();
    const other = { mac: '00124b0001a2b3c5', last_contact: START + 1 };
    expect(kept()).toEqual([{ mac: MAC, last_contact: START + 1 }, other]);
    const before = site.database.figures().jobs;
    await site.clock.advance(60 * MINUTE);
    expect(kept()).toEqual([{ mac: MAC, last_contact: START + 2 }, other]);
    expect(site.database.figures().jobs - before).toBe(1);
  });
});

it('what a lock cannot carry of its configuration is named', async () => {
  const id = await create();
  expect((await configuration(id)).unsupported).toEqual([]);
  site.report(MAC, { unsupported: ['schedule', 'name'] });
  expect((await configuration(id)).unsupported).toEqual(['schedule', 'name']);
});

describe('a configuration the lock has lost', () => {
  it.each([0, 7])(
    'is due again when it reports version %i; applied stays what it acknowledged',
    async (version) => {
      const id = await create();
      await site.applyAll();
      const { applied } = await door(id);
      site.report(MAC, { configVersion: 1 });
      expect(await configuration(id)).toMatchObject({ inForce: true, reported: 1, waiting: false });
      site.played.woken.length = 0;
      site.report(MAC, { configVersion: version });
      expect(site.played.woken).toEqual([id]);
      expect(await configuration(id)).toMatchObject({
        wanted: 1,
        applied: 1,
        reported: version,
        inForce: false,
        waiting: true,
      });
      expect((await door(id)).applied).toEqual(applied);
      await site.applyAll();
      await site.applyAll();
      expect(await configuration(id)).toMatchObject({ inForce: true, waiting: false });
      expect(site.configuration.due()).toEqual([]);
    },
  );

  it('of a higher version than ours gets one that is higher still, as the lock takes no other', async () => {
    const id = await create();
    site.report(MAC, { configVersion: 41 });
    await site.applyAll();
    expect(site.played.sent).toEqual([]);
    expect(await door(id)).toMatchObject({ configVersion: 42, version: 1 });
    await site.applyAll();
    expect(site.played.sent).toMatchObject([{ apply: { configVersion: 42 } }]);
    expect(await configuration(id)).toMatchObject({ wanted: 42, applied: 42, reported: 42, inForce: true });
    expect(site.played.audits).toMatchObject([{}, { outcome: 'renumbered' }, { outcome: 'done' }]);
  });

  it('of the last version there is cannot be overtaken, and is sent as it is', async () => {
    const id = await create();
    site.report(MAC, { configVersion: 0xff_ff_ff_ff });
    await site.applyAll();
    expect((await door(id)).configVersion).toBe(1);
  });
});

describe('the presence of a lock', () => {
  it('is unknown since its gateway was lost, until the lock is heard of again', async () => {
    const id = await create();
    site.report(MAC, { heardAt: site.clock.monotonic() });
    await site.clock.advance(MINUTE);
    // Its driver says so by itself, and has not heard it again.
    site.report(MAC);
    expect((await state(id)).connection).toEqual({
      status: 'connected',
      since: '2026-01-01T00:00:00.000Z',
      reportAge: MINUTE,
      leftAt: null,
    });
    site.connectGateway(false);
    await site.clock.advance(MINUTE);
    const lost = { status: 'unknown', since: '2026-01-01T00:01:00.000Z' };
    expect((await state(id)).connection).toMatchObject({ ...lost, reportAge: 2 * MINUTE });
    site.connectGateway(true);
    expect((await state(id)).connection).toMatchObject(lost);
    site.report(MAC, { connected: false });
    expect((await state(id)).connection).toMatchObject({ status: 'disconnected' });
    expect((await state(await create('00124b0001a2b3c5'))).connection).toMatchObject({ status: 'unknown' });
    expect((await state((await site.desk('POST', '/doors', {})).body.id as string)).connection).toBeNull();
  });

  it('that comes back wakes the doors that wait, by the lock and by its gateway', async () => {
    const id = await create();
    const settled = await create('00124b0001a2b3c5');
    await site.configuration.apply({ id: settled, version: 1 }, new AbortController().signal);
    site.played.woken.length = 0;
    site.report(MAC);
    site.report('00124b0001a2b3c5');
    expect(site.played.woken).toEqual([id]);
    site.connectGateway(false);
    site.connectGateway(true);
    expect(site.played.woken).toEqual([id, id]);
  });

  it('is published, and unknown only after a while', async () => {
    const id = await create();
    site.run();
    site.report(MAC);
    await site.clock.advance(2_000);
    site.connectGateway(false);
    await site.clock.advance(9_000);
    expect(published()).toEqual([
      {
        type: 'gatehouse.door.connection.v1',
        source: `doors/${id}`,
        subject: id,
        data: {
          doorId: id,
          name: null,
          accessPointId: 1,
          status: 'connected',
          since: '2026-01-01T00:00:00.000Z',
          reason: null,
        },
      },
    ]);
    await site.clock.advance(4_000);
    expect(published().at(-1)?.data).toMatchObject({ status: 'unknown', since: '2026-01-01T00:00:02.000Z' });
    site.connectGateway(true);
    site.report(MAC);
    await site.clock.advance(2_000);
    expect(published()).toHaveLength(3);
    expect(published().at(-1)?.data).toMatchObject({ status: 'connected' });
  });

  it('of a lock that does not come back after a restart is published as unknown', async () => {
    const id = await create();
    const end = site.run();
    site.report(MAC);
    await site.clock.advance(2_000);
    await end();
    site = await openDoorSite(site.database);
    site.run();
    await site.clock.advance(14_000);
    expect(published().map(({ data }) => data)).toMatchObject([
      { doorId: id, status: 'unknown', reason: { code: 'NOT_REPORTED' }, since: '2026-01-01T00:00:00.000Z' },
    ]);
  });

  it('of many locks on a gateway that flaps is published rarely, and of a lasting loss in portions', async () => {
    const macs = Array.from({ length: 120 }, (_, n) =>
      (0x00_12_4b_00_00_00n + BigInt(n)).toString(16).padStart(16, '0'),
    );
    await site.siteImport({
      doors: macs.map((mac, n) => ({ accessPointId: n + 1, mac, gatewayId: GATEWAY })),
    });
    site.run();
    for (const mac of macs) site.report(mac, { configVersion: 0 });
    await site.clock.advance(8_000);
    expect(published()).toHaveLength(120);
    const before = site.database.figures().jobs;
    for (let flap = 0; flap < 20; flap += 1) {
      site.connectGateway(false);
      await site.clock.advance(1_500);
      site.connectGateway(true);
      for (const mac of macs) site.report(mac, { configVersion: 0 });
      await site.clock.advance(1_500);
    }
    expect(published()).toHaveLength(120);
    expect(site.database.figures().jobs).toBe(before);
    site.connectGateway(false);
    await site.clock.advance(11_000);
    expect(published().length - 120).toBeLessThanOrEqual(50);
    await site.clock.advance(6_000);
    expect(published()).toHaveLength(240);
  });
});

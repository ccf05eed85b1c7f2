import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { lockApply } from '../../../drivers/contract/settings.ts';
import { CALLER, type DoorSite, openDoorSite, playedRelay } from '../../../test/door-site.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';

const OTHER = '0a4b7f52-6c1e-4d0b-9a57-5d1f6f0c8e21';
const MAC = '00124b0001a2b3c4';
const DEVICE = '80000000-0000-4000-8000-000000000008';
const CATALOGUE = {
  systemConfigVersion: 4,
  groups: [{ id: 'floor-1', name: 'First floor' }],
  schedules: [
    { id: 'office', version: 3, intervals: [{ days: ['mon', 'sun'], start: '08:00', end: '18:30' }] },
  ],
  templates: [
    {
      id: 'room',
      version: 2,
      onlineEnabled: true,
      relaySetup: 'pulse',
      type: 'room',
      standOpenAllowed: false,
    },
  ],
};

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});

async function create(body: object = { mac: MAC, gatewayId: 'g', networkId: 'n' }): Promise<string> {
  return (await site.desk('POST', '/doors', body)).body.id as string;
}
const put = (id: string, body: unknown, headers = {}) => site.desk('PUT', `/doors/${id}`, body, headers);
const get = async (id: string) => (await site.desk('GET', `/doors/${id}`)).body;
const configuration = async (id: string) =>
  (await site.desk('GET', `/doors/${id}/state`)).body.configuration as Record<string, unknown>;

describe('what travels to a lock', () => {
  it('is all of it, with the catalogue resolved and stand-open only where the template allows it', async () => {
    const id = await create();
    expect((await site.siteImport(CATALOGUE)).status).toBe(200);
    await put(id, {
      name: 'Room 1',
      number: 1,
      standOpenEnabled: true,
      scheduleId: 'office',
      templateId: 'room',
      options: {
        // A lock could not hold an id that is no UUID, and no door has one.
        accessInternal: {
          doors: [{ id: OTHER.toUpperCase(), type: 'room' }, { id: 'Lift A' }],
          interval: { start: 60, end: 120 },
        },
        outputs: [{ doorId: 'Lift A', access: { doors: [{ id }, { id: 'Lift B' }] } }],
      },
    });
    await site.applyAll();
    expect(site.played.sent).toEqual([
      {
        lock: { doorId: id, gatewayId: 'g', networkId: 'n' },
        apply: {
          hwId: MAC,
          configVersion: 3,
          doorVersion: 3,
          scheduleVersion: 3,
          templateVersion: 2,
          systemConfigVersion: 4,
          configuration: {
            name: 'Room 1',
            number: 1,
            type: 'room',
            relaySetup: 'pulse',
            standOpenEnabled: false,
            onlineEnabled: true,
            accessInternal: { doors: [OTHER], interval: { start: 60, end: 120 } },
            outputs: [{ doorId: 'Lift A', doors: [id] }],
            schedule: [{ weekdays: 0b1000001, start: 480, end: 1110 }],
          },
        },
      },
    ]);
    expect(() => lockApply.parse(site.played.sent[0]?.apply)).not.toThrow();
    expect((await site.desk('GET', `/doors/${id}/state`)).body.unknown).toEqual([
      { field: 'options.accessInternal.doors', id: OTHER },
      { field: 'options.accessInternal.doors', id: 'Lift A' },
      { field: 'options.outputs.doorId', id: 'Lift A' },
      { field: 'options.outputs.access.doors', id: 'Lift B' },
    ]);
    expect(await get(id)).toMatchObject({
      standOpenEnabled: true,
      onlineEnabled: true,
      relaySetup: 'pulse',
      type: 'room',
      applied: {
        appliedBy: CALLER,
        appliedOn: '2026-01-01T00:00:00.000Z',
        payloads: ['AQID'],
        versions: {
          doorVersion: 3,
          systemConfigVersion: 4,
          schedule: { id: 'office', version: 3 },
          template: { id: 'room', version: 2 },
        },
      },
    });
    expect((await site.desk('GET', `/doors/${id}/state`)).body).toMatchObject({
      effective: {
        standOpenEnabled: false,
        schedule: { id: 'office', version: 3 },
        template: { id: 'room', version: 2 },
      },
      configuration: { wanted: 3, applied: 3, waiting: false, failure: null, nextAttempt: null },
    });
  });

  it('says 0 and null for what the door does not have or the site does not know', async () => {
    const id = await create();
    await put(id, { scheduleId: 'gone' });
    await site.applyAll();
    expect(site.played.sent[0]?.apply).toMatchObject({
      scheduleVersion: 0,
      templateVersion: 0,
      systemConfigVersion: 0,
      configuration: { schedule: [], type: null, onlineEnabled: false, standOpenEnabled: false },
    });
    expect((await get(id)).applied).toMatchObject({ versions: { schedule: null, template: null } });
  });
});

describe('a change', () => {
  it('is answered with what it made of the door, though another one shares its commit', async () => {
    const id = await create();
    const answers = await Promise.all(['a', 'b'].map((name) => put(id, { name })));
    expect(answers.map(({ body, headers }) => [body.name, body.configVersion, headers.get('etag')])).toEqual([
      ['a', 2, '"2"'],
      ['b', 3, '"3"'],
    ]);
    expect(await get(id)).toMatchObject({ name: 'b', configVersion: 3, version: 3 });
  });

  it('leaves alone what it does not name', async () => {
    const id = await create();
    const all = {
      name: 'Room 1',
      groupId: 'floor-1',
      number: 1,
      pmsId: '101',
      scheduleId: 'office',
      templateId: 'room',
      standOpenEnabled: true,
      options: { accessInternal: { interval: { start: 60, end: 120 } } },
    };
    await put(id, all);
    const whole = await get(id);
    await put(id, { pmsId: '102' });
    const after = await get(id);
    const changes = { pmsId: '102', version: 3, updatedAt: after.updatedAt };
    expect(after).toEqual({ ...whole, ...changes });
    expect((await site.desk('GET', `/doors/${id}/options`)).body).toMatchObject({ number: 1 });
  });

  it('of the catalogue shows in a door that was read before', async () => {
    const id = await create();
    await site.siteImport(CATALOGUE);
    await put(id, { templateId: 'room', groupId: 'floor-1' });
    expect(await get(id)).toMatchObject({ type: 'room', relaySetup: 'pulse' });
    const templates = [{ id: 'room', version: 3, type: 'suite' }];
    const groups = [{ id: 'floor-1', name: 'Ground floor' }];
    expect((await site.siteImport({ templates, groups })).status).toBe(200);
    expect(await get(id)).toMatchObject({ type: 'suite', relaySetup: null });
    expect((await site.desk('GET', `/doors/${id}/state`)).body.group).toBe('Ground floor');
  });
});

describe('a door', () => {
  it('is due while its lock has another configuration, and not at all without a lock', async () => {
    const id = await create();
    await create({});
    expect(site.configuration.due()).toEqual([{ id, version: 1 }]);
    await site.applyAll();
    expect(site.configuration.due()).toEqual([]);
    await put(id, { pmsId: '7' });
    expect(site.configuration.due()).toEqual([]);
    await put(id, { name: 'a' });
    expect(site.configuration.due()).toEqual([{ id, version: 2 }]);
  });

  it('stays due when it is changed while its configuration is on the way', async () => {
    const id = await create();
    site.played.lock = async ({ hwId: _, configuration: __, ...versions }) => {
      await put(id, { name: 'changed meanwhile' });
      return { ...versions, payloads: [] };
    };
    await site.applyAll();
    expect(await get(id)).toMatchObject({ configVersion: 2, applied: { versions: { doorVersion: 1 } } });
    expect(site.configuration.due()).toEqual([{ id, version: 2 }]);
  });

  it('is not sent what is superseded already, nor goes back to it', async () => {
    const id = await create();
    await put(id, { name: 'a' });
    const signal = new AbortController().signal;
    await site.configuration.apply({ id, version: 1 }, signal);
    expect(site.played.sent).toEqual([]);
    await site.applyAll();
    site.table.setApplied.run(1, '{}', '{}', 1, id);
    expect((await get(id)).applied).toMatchObject({ versions: { doorVersion: 2 } });
  });

  it('reports a refusal once, however often it is tried again: another one, or of another version, is news', async () => {
    const id = await create();
    const refusals: unknown[] = [];
    const tryFor = async (reason: string, { database }: DoorSite) => {
      const next = await openDoorSite(database);
      next.played.lock = () => Promise.reject(new DriverError('REFUSED', reason));
      await expect(next.applyAll()).rejects.toMatchObject({ code: 'REFUSED' });
      const counts = [next.played.audits, next.played.published].map(({ length }) => length);
      refusals.push(counts.join(' and '));
    };
    for (const reason of ['no clock', 'no clock', 'no room', 'no room']) await tryFor(reason, site);
    await put(id, { name: 'a' });
    await tryFor('no room', site);
    expect(refusals).toEqual(['1 and 1', '0 and 0', '1 and 1', '0 and 0', '1 and 1']);
  });

  it('keeps what was applied when the lock refuses the next, with the reason in the audit', async () => {
    const id = await create();
    await site.applyAll();
    await put(id, { name: 'a' }, { 'X-Request-Id': 'request-7' });
    site.played.audits.length = 0;
    site.played.lock = () => Promise.reject(new DriverError('REFUSED', 'not supported'));
    await expect(site.applyAll()).rejects.toMatchObject({ code: 'REFUSED' });
    expect((await get(id)).applied).toMatchObject({ versions: { doorVersion: 1 } });
    expect(site.played.audits).toEqual([
      {
        principal: SYSTEM_PRINCIPAL,
        action: 'door.configure',
        object: `door/${id}`,
        outcome: 'refused',
        detail: { configVersion: 2, reason: 'not supported' },
        correlationId: 'request-7',
      },
    ]);
  });

  it('names no schedule as applied to a lock that cannot carry one', async () => {
    const id = await create();
    expect((await site.siteImport(CATALOGUE)).status).toBe(200);
    await put(id, { scheduleId: 'office', templateId: 'room' });
    site.played.lock = async ({ hwId: _, configuration: __, ...versions }) => ({
      ...versions,
      payloads: [],
      unsupported: ['schedule'],
    });
    await site.applyAll();
    expect((await get(id)).applied).toMatchObject({
      versions: { schedule: null, template: { id: 'room', version: 2 } },
    });
  });

  it('does not believe a lock that acknowledges another version', async () => {
    const id = await create();
    site.played.lock = async ({ hwId: _, configuration: __, ...versions }) => ({
      ...versions,
      configVersion: 9,
      payloads: [],
    });
    await expect(site.applyAll()).rejects.toMatchObject({ code: 'BAD_REPLY' });
    expect((await get(id)).applied).toBeNull();
  });

  it('shows in its state what waits, why it failed and when it is tried again', async () => {
    const id = await create();
    const at = site.clock.now();
    const failure = { version: 1, code: 'NO_REPLY', message: 'silence', permanent: false };
    site.played.failures.set(id, { ...failure, at });
    site.played.attempts.set(id, at + 60_000);
    expect(await configuration(id)).toEqual({
      wanted: 1,
      applied: null,
      acknowledged: null,
      reported: null,
      inForce: false,
      waiting: true,
      unsupported: [],
      failure: { ...failure, at: '2026-01-01T00:00:00.000Z' },
      nextAttempt: '2026-01-01T00:01:00.000Z',
    });
  });
});

describe('a door on a relay', () => {
  it('waits for the settings of its device, and is in force with them, by the gateway itself', async () => {
    const id = await create({});
    expect((await configuration(id)).waiting).toBe(false);
    site.played.relays.set(id, { ...playedRelay(DEVICE), settled: false });
    expect((await get(id)).connectionType).toBe('rs485');
    expect((await configuration(id)).waiting).toBe(true);
    await expect(site.applyAll()).rejects.toMatchObject({ code: 'NO_REPLY' });
    site.played.relays.set(id, playedRelay(DEVICE));
    await site.applyAll();
    expect(site.played.sent).toEqual([]);
    expect(await get(id)).toMatchObject({ applied: { payloads: [], versions: { doorVersion: 1 } } });
    expect((await site.desk('GET', `/doors/${id}/state`)).body.relay).toEqual({
      deviceId: DEVICE,
      settled: true,
    });
  });
});

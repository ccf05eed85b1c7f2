/** The RS-485 device over HTTP: reads, 4.5, roles and refusals. */
import { describe, expect, it } from 'vitest';
import { PINS } from '../../../drivers/contract/settings.ts';
import { A, B, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';

async function oneDevice() {
  const bed = await openTestbed();
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1' });
  return bed;
}
const names = (body: { details?: { path: string; code: string }[] }) =>
  (body.details ?? []).map(({ path, code }) => `${path} ${code}`);

describe('an RS-485 device', () => {
  it('has exactly the fields of the specification, and nothing set', async () => {
    const { get } = await oneDevice();
    const { status, body, headers } = await get(`/${A}`);
    expect(status).toBe(200);
    expect(headers.get('etag')).toMatch(/^"\d+"$/);
    expect(body).toEqual({
      deviceId: A,
      name: null,
      description: null,
      doorId: null,
      groupId: null,
      group: null,
      hwId: 'io-1',
      type: null,
      relayIndex: null,
      unlockDurationMilliseconds: null,
      useInputPinMemory: false,
      ioPins: NO_PINS,
      reportedSettingsVersion: 0,
      settingsVersion: 1,
      apps: [],
      platform: null,
      connectionState: { changedOn: '2026-01-01T00:00:00.000Z', connected: false },
      upgradeJobInfo: null,
    });
  });

  it('shows what the device reports', async () => {
    const { report, get, clock } = await oneDevice();
    await clock.advance(1_000);
    const apps = [{ name: 'main', version: '7' }];
    report('io-1', { apps, reportedSettingsVersion: 4, levels: { input0: true, output3: false } });
    await clock.advance(500);
    expect((await get(`/${A}`)).body).toMatchObject({
      type: 'io',
      platform: { version: '2.1' },
      apps,
      reportedSettingsVersion: 4,
      connectionState: { connected: true, changedOn: '2026-01-01T00:00:01.000Z' },
      ioPins: NO_PINS,
    });
    expect((await get(`/${A}/state`)).body).toEqual({
      deviceId: A,
      bus: 'bus-1',
      busUp: true,
      inForce: false,
      failure: null,
      nextAttempt: null,
      unknown: [],
      reportAge: 500,
      readAge: null,
      levels: { input0: true, output3: false },
      address: null,
      profile: null,
      edges: {},
      tamper: null,
      security: null,
      supplyFault: null,
      sessionFault: null,
      lastCredential: null,
      lastPulse: null,
      pulse: null,
      relayFault: null,
      effectiveUnlockMilliseconds: null,
      watchdog: null,
      unsupported: [],
      wire: null,
    });
  });
});

describe('4.5', () => {
  const everything = {
    name: 'Lobby I/O',
    description: 'Behind the desk, second rail',
    doorId: DOOR,
    groupId: 'g1',
    relayIndex: 7,
    unlockDurationMilliseconds: 600_000,
    useInputPinMemory: true,
    ioPins: { input3: true, output0: true },
  };

  it('sets every field, merges pins one by one, and audits the names', async () => {
    const { put, audits } = await oneDevice();
    const { status, body } = await put(A, everything, 'front-desk-admin');
    expect(status).toBe(200);
    const ioPins = { ...NO_PINS, input3: true, output0: true };
    expect(body).toMatchObject({ ...everything, ioPins, group: 'Ground floor', settingsVersion: 2 });
    expect(audits).toMatchObject(
      [
        {
          action: 'rs485.update',
          object: `rs485/${A}`,
          outcome: 'done',
          detail: { fields: Object.keys(everything).toSorted() },
        },
      ].map((row) => ({ ...row, detail: { fields: expect.arrayContaining(row.detail.fields) } })),
    );

    const merged = await put(A, { ioPins: { output0: false, output7: true } });
    expect(merged.body.ioPins).toEqual({ ...NO_PINS, input3: true, output7: true });
    expect(merged.body.name).toBe('Lobby I/O');
  });

  it('clears what may be cleared with null', async () => {
    const { put } = await oneDevice();
    await put(A, everything);
    const cleared = Object.fromEntries(
      Object.keys(everything)
        .filter((name) => name !== 'useInputPinMemory')
        .map((name) => [name, null]),
    );
    const { body } = await put(A, cleared);
    expect(body).toMatchObject({ ...cleared, group: null, ioPins: NO_PINS, useInputPinMemory: true });
  });

  it('writes nothing for {}, an identical body, or the device as it was read', async () => {
    const { put, get, audits } = await oneDevice();
    const first = await put(A, everything);
    audits.length = 0;
    for (const body of [{}, everything, first.body, { ioPins: {} }, { ioPins: { input3: true } }]) {
      const again = await put(A, body);
      expect([again.status, again.headers.get('etag')]).toEqual([200, first.headers.get('etag')]);
      expect(again.body).toEqual(first.body);
    }
    expect(audits).toEqual([]);
    expect((await get(`/${A}`)).body).toEqual(first.body);
  });

  it.each([
    ['ioPins', { ioPins: { input0: true } }],
    ['relayIndex', { relayIndex: 0 }],
    ['unlockDurationMilliseconds', { unlockDurationMilliseconds: 100 }],
    ['useInputPinMemory', { useInputPinMemory: true }],
  ])('raises settingsVersion for %s, which travels', async (_name, body) => {
    const { put } = await oneDevice();
    expect((await put(A, body)).body.settingsVersion).toBe(2);
  });

  it('raises only the ETag for what stays here', async () => {
    const { put, get } = await oneDevice();
    const tag = (await get(`/${A}`)).headers.get('etag');
    const { body, headers } = await put(A, { name: 'n', description: 'd', doorId: DOOR, groupId: 'g' });
    expect(body.settingsVersion).toBe(1);
    expect(headers.get('etag')).not.toBe(tag);
  });

  it.each<[string, unknown, string]>([
    ['relayIndex 8', { relayIndex: 8 }, '/relayIndex'],
    ['relayIndex -1', { relayIndex: -1 }, '/relayIndex'],
    ['relayIndex 1.5', { relayIndex: 1.5 }, '/relayIndex'],
    ['99 ms', { unlockDurationMilliseconds: 99 }, '/unlockDurationMilliseconds'],
    ['600001 ms', { unlockDurationMilliseconds: 600_001 }, '/unlockDurationMilliseconds'],
    ['a duration as text', { unlockDurationMilliseconds: '100' }, '/unlockDurationMilliseconds'],
    ['memory of null', { useInputPinMemory: null }, '/useInputPinMemory'],
    ['a pin of null', { ioPins: { input0: null } }, '/ioPins/input0'],
    ['a pin as a number', { ioPins: { input0: 1 } }, '/ioPins/input0'],
    ['pins as a list', { ioPins: [true] }, '/ioPins'],
    ['a blank name', { name: ' ' }, '/name'],
    ['a long name', { name: 'x'.repeat(129) }, '/name'],
    ['a name with a line feed', { name: 'a\nb' }, '/name'],
    ['a long description', { description: 'x'.repeat(1_025) }, '/description'],
    ['an empty doorId', { doorId: '' }, '/doorId'],
    ['a groupId that is a number', { groupId: 1 }, '/groupId'],
  ])('refuses %s and changes nothing', async (_name, body, path) => {
    const { put, get } = await oneDevice();
    const before = (await get(`/${A}`)).body;
    const answer = await put(A, body);
    expect([answer.status, answer.body.error, answer.body.details?.[0]?.path]).toEqual([
      400,
      'VALIDATION_FAILED',
      path,
    ]);
    expect((await get(`/${A}`)).body).toEqual(before);
  });

  it('names fields that do not exist, pins too, and ignores read-only ones', async () => {
    const { put } = await oneDevice();
    const answer = await put(A, { bus: 'x', ioPins: { input4: true } });
    expect([answer.status, answer.body.error]).toEqual([400, 'UNKNOWN_FIELD']);
    expect(names(answer.body).toSorted()).toEqual(['/bus UNKNOWN_FIELD', '/ioPins/input4 UNKNOWN_FIELD']);
    const readOnly = { hwId: 'other', type: 1, settingsVersion: 99, connectionState: null, group: 'x' };
    const ignored = await put(A, readOnly);
    expect([ignored.status, ignored.body.hwId, ignored.body.settingsVersion]).toEqual([200, 'io-1', 1]);
  });

  it('takes every pin', async () => {
    const { put } = await oneDevice();
    const all = Object.fromEntries(PINS.map((pin) => [pin, true]));
    expect((await put(A, { ioPins: all })).body.ioPins).toEqual(all);
  });

  it('checks in order: 401, 403, 415, 400, 404, 412, 409', async () => {
    const { add, put, send } = await oneDevice();
    await add({ deviceId: B, hwId: 'io-2', bus: 'bus-1', doorId: DOOR });
    const path = `/network/rs485/${A}`;
    const unknown = '/network/rs485/ffffffff-0000-4000-8000-000000000000';
    const bad = JSON.stringify({ relayIndex: 8 });
    const status = async (answer: ReturnType<typeof send>) => {
      const { status, body } = await answer;
      return `${status} ${body.error}`;
    };
    expect(await status(send('PUT', unknown, { body: bad }))).toBe('401 UNAUTHORIZED');
    for (const as of ['front-desk', 'pms'])
      expect(await status(send('PUT', unknown, { as, body: bad }))).toBe('403 FORBIDDEN');
    const text = { 'content-type': 'text/plain' };
    expect(await status(send('PUT', unknown, { as: 'service-tool', body: bad, headers: text }))).toBe(
      '415 UNSUPPORTED_MEDIA_TYPE',
    );
    expect(await status(send('PUT', unknown, { as: 'service-tool', body: bad }))).toBe(
      '400 VALIDATION_FAILED',
    );
    expect(await status(put('ffffffff', { deviceId: A }))).toBe('400 ID_MISMATCH');
    for (const id of ['%00', 'x'.repeat(3_000)])
      expect(await status(put(id, {}))).toBe('400 VALIDATION_FAILED');
    for (const id of ['ffffffff-0000-4000-8000-000000000000', 'no-uuid'])
      expect(await status(put(id, {}, 'service-tool', { 'if-match': '"9"' }))).toBe('404 NOT_FOUND');
    expect(await status(put(A, { doorId: DOOR }, 'service-tool', { 'if-match': '"9"' }))).toBe(
      '412 PRECONDITION_FAILED',
    );
    expect(await status(put(A, { doorId: DOOR }))).toBe('409 RELAY_IN_USE');
    for (const wrong of [{ doorId: `${DOOR} ` }, { groupId: ' g' }, { description: 'a\0b' }])
      expect(await status(put(A, wrong))).toBe('400 VALIDATION_FAILED');
    expect(await status(send('POST', path, { as: 'service-tool' }))).toBe('405 METHOD_NOT_ALLOWED');
  });

  it('knows the device whatever the case of its id', async () => {
    const { put } = await oneDevice();
    expect((await put(A.toUpperCase(), { deviceId: A.toUpperCase(), name: 'x' })).status).toBe(200);
  });

  it('honours If-Match', async () => {
    const { put, get } = await oneDevice();
    const tag = String((await get(`/${A}`)).headers.get('etag'));
    expect((await put(A, { name: 'x' }, 'service-tool', { 'if-match': tag })).status).toBe(200);
    expect((await put(A, { name: 'y' }, 'service-tool', { 'if-match': tag })).status).toBe(412);
  });
});

describe('one device per door', () => {
  it('lets one of two at once have it, and names the other', async () => {
    const { add, put, get, relays } = await oneDevice();
    await add({ deviceId: B, hwId: 'io-2', bus: 'bus-1' });
    const answers = await Promise.all([put(A, { doorId: DOOR }), put(B, { doorId: DOOR.toUpperCase() })]);
    expect(answers.map(({ status }) => status)).toEqual([200, 409]);
    expect(answers[1]?.body).toMatchObject({ error: 'RELAY_IN_USE', details: [{ path: '/doorId' }] });
    expect((await get(`/${B}`)).body.doorId).toBeNull();
    expect(relays).toEqual([DOOR]);
  });

  it('frees the door once the first lets go of it', async () => {
    const { add, put } = await oneDevice();
    await add({ deviceId: B, hwId: 'io-2', bus: 'bus-1', doorId: DOOR });
    await put(B, { doorId: null });
    expect((await put(A, { doorId: DOOR })).status).toBe(200);
  });

  it('keeps what it does not know, and says so in the state', async () => {
    const { put, get } = await oneDevice();
    expect((await put(A, { doorId: 'door-to-come', groupId: 'nobody' })).body).toMatchObject({
      doorId: 'door-to-come',
      groupId: 'nobody',
      group: null,
    });
    expect((await get(`/${A}/state`)).body.unknown).toEqual([
      { field: 'groupId', id: 'nobody' },
      { field: 'doorId', id: 'door-to-come' },
    ]);
  });
});

describe('the list', () => {
  it('goes page by page, with filters', async () => {
    const { add, get, report } = await openTestbed();
    const id = (n: number) => `${String(n).padStart(8, '0')}-0000-4000-8000-000000000000`;
    await add(
      ...[1, 2, 3, 4, 5].map((n) => ({
        deviceId: id(n),
        hwId: `io-${n}`,
        bus: n < 4 ? 'bus-1' : 'bus-2',
        name: `Device ${n}`,
        groupId: n % 2 ? 'g1' : null,
        doorId: n === 5 ? DOOR : `door-${n}`,
      })),
    );
    report('io-2');
    const ids = async (query: string) => {
      const { body } = await get(query);
      const items = body.items as { deviceId: string }[];
      return [items.map(({ deviceId }) => Number(deviceId.slice(0, 8))), body.next];
    };
    expect(await ids('')).toEqual([[1, 2, 3, 4, 5], null]);
    expect(await ids('?limit=2')).toEqual([[1, 2], id(2)]);
    expect(await ids(`?limit=2&cursor=${id(2)}`)).toEqual([[3, 4], id(4)]);
    expect(await ids('?bus=bus-2')).toEqual([[4, 5], null]);
    expect(await ids('?groupId=g1')).toEqual([[1, 3, 5], null]);
    expect(await ids('?doorId=door-4')).toEqual([[4], null]);
    expect(await ids(`?doorId=${DOOR.toUpperCase()}`)).toEqual([[5], null]);
    expect(await ids('?connected=true')).toEqual([[2], null]);
    expect(await ids('?connected=false&limit=3')).toEqual([[1, 3, 4], id(4)]);
    expect(await ids('?name=VICE%203')).toEqual([[3], null]);
    for (const query of ['?limit=0', '?limit=101', '?color=red', '?connected=maybe'])
      expect((await get(query)).status).toBe(400);
    expect((await get('', 'pms')).status).toBe(403);
    expect((await get('', 'front-desk')).status).toBe(200);
  });
});

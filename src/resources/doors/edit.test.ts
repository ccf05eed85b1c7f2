/** An update of a door (4.4). */
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { deskOf, errorOf } from '../../../test/resources/doors/doors.ts';
import { send } from '../../../test/things-app.ts';

const UNKNOWN = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
const OTHER = '0a4b7f52-6c1e-4d0b-9a57-5d1f6f0c8e21';
const MAC = '00124b0001a2b3c4';

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});
const { create, put, get } = deskOf(() => site);

describe('an update', () => {
  const WANTED = {
    name: 'Room 101',
    groupId: 'floor-1',
    number: 101,
    standOpenEnabled: true,
    pmsId: '101',
    scheduleId: 'office',
    templateId: 'room',
    options: {
      accessInternal: { doors: [{ id: OTHER, type: 'room' }], interval: { start: 1380, end: 360 } },
      outputs: [{ doorId: OTHER, access: { doors: [{ id: UNKNOWN, type: null }] } }],
    },
  };

  it('stores every field of 4.4 and names what changed in the audit', async () => {
    const id = await create();
    await site.clock.advance(60_000);
    const { status, body, headers } = await put(id, { id: id.toUpperCase(), version: 1, ...WANTED });
    const { options, number, ...shown } = WANTED;
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...shown,
      interval: { start: 1380, end: 360 },
      version: 2,
      configVersion: 2,
    });
    expect(body.updatedAt).toBe('2026-01-01T00:01:00.000Z');
    expect(body.createdAt).toBe('2026-01-01T00:00:00.000Z');
    expect(headers.get('etag')).toBe('"2"');
    expect(await get(id, '/options')).toEqual({ id, number, options });
    expect(site.played.woken).toEqual([id]);
    expect(site.played.audits).toMatchObject([
      {
        action: 'door.update',
        object: `door/${id}`,
        detail: { fields: expect.arrayContaining(Object.keys(WANTED)) },
      },
    ]);
  });

  it.each([
    ['name', true],
    ['number', true],
    ['options', true],
    ['standOpenEnabled', true],
    ['scheduleId', true],
    ['templateId', true],
    ['groupId', false],
    ['pmsId', false],
  ] as const)('of %s grows version; configVersion: %s', async (field, travels) => {
    const id = await create();
    const { body } = await put(id, { [field]: WANTED[field] });
    expect([body.version, body.configVersion]).toEqual([2, travels ? 2 : 1]);
    expect(site.played.woken).toEqual(travels ? [id] : []);
    expect(site.played.audits[0]?.detail).toEqual({ fields: [field] });
  });

  it('with null clears, with absence keeps, inside options too', async () => {
    const id = await create();
    await put(id, WANTED);
    // 1440 is how many systems write the end of the day.
    await put(id, { options: { accessInternal: { interval: { start: 600, end: 1_440 } } } });
    expect(await get(id)).toMatchObject({ interval: { start: 600, end: 0 } });
    await put(id, { options: { accessInternal: { interval: null } } });
    expect((await get(id, '/options')).options).toEqual({
      ...WANTED.options,
      accessInternal: { ...WANTED.options.accessInternal, interval: null },
    });
    await put(id, { options: { accessInternal: { doors: null } } });
    await put(id, { options: { outputs: null }, number: null, name: null, groupId: null });
    await put(id, { pmsId: null, scheduleId: null, templateId: null });
    await put(id, { name: 'Room 101' });
    await put(id, { name: '' });
    const empty = { accessInternal: { doors: [], interval: null }, outputs: [] };
    expect(await get(id, '/options')).toEqual({ id, number: null, options: empty });
    const cleared = { name: null, groupId: null, pmsId: null, scheduleId: null, templateId: null };
    expect(await get(id)).toMatchObject({ ...cleared, standOpenEnabled: true, interval: null });
    await put(id, WANTED);
    await put(id, { options: { accessInternal: null } });
    expect((await get(id, '/options')).options).toEqual({ ...empty, outputs: WANTED.options.outputs });
    await put(id, { options: null });
    expect((await get(id, '/options')).options).toEqual(empty);
  });

  it.each([[{}], [{ options: {} }], [{ options: { accessInternal: {} } }], [WANTED]])(
    'that changes nothing writes nothing: %j',
    async (body) => {
      const id = await create();
      await put(id, WANTED);
      site.played.audits.length = 0;
      const before = await get(id);
      expect(await put(id, body)).toMatchObject({ status: 200, body: before });
      expect(site.played.audits).toEqual([]);
    },
  );

  it('changes nothing when what was read is put back', async () => {
    const id = await create({ mac: MAC, gatewayId: 'g' });
    const text = fc.option(fc.stringMatching(/^[a-zß]([a-z0-9äß ]{0,18}[a-z0-9äß])?$/));
    const minute = fc.integer({ min: 0, max: 1439 });
    const references = fc.array(
      fc.record({ id: fc.uuid(), type: fc.option(fc.constant('room')) }, { requiredKeys: ['id'] }),
      { maxLength: 3 },
    );
    const edit = fc.record(
      {
        name: text,
        groupId: text,
        pmsId: text,
        scheduleId: text,
        templateId: text,
        number: fc.option(fc.nat()),
        standOpenEnabled: fc.boolean(),
        options: fc.option(
          fc.record(
            {
              accessInternal: fc.option(
                fc.record(
                  {
                    doors: fc.option(references),
                    interval: fc.option(fc.record({ start: minute, end: minute })),
                  },
                  { requiredKeys: [] },
                ),
              ),
              outputs: fc.option(
                fc.array(fc.record({ doorId: fc.uuid(), access: fc.record({ doors: references }) }), {
                  maxLength: 3,
                }),
              ),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(edit, async (body) => {
        expect((await put(id, body)).status).toBe(200);
        const shown = await get(id);
        for (const read of [shown, await get(id, '/options'), body])
          expect(await put(id, read)).toMatchObject({ status: 200, body: shown });
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    [{ number: -1 }],
    [{ number: 2 ** 31 }],
    [{ standOpenEnabled: null }],
    [{ name: 'x'.repeat(129) }],
    [{ groupId: 'x'.repeat(65) }],
    [{ id: 'not-a-uuid' }],
    [{ version: 0 }],
    [{ options: [] }],
    [{ options: { accessInternal: { interval: { start: 0 } } } }],
    [{ options: { accessInternal: { interval: { start: 0, end: 1441 } } } }],
    [{ name: '   ' }],
    [{ options: { accessInternal: { doors: [{ id: '' }] } } }],
    [{ options: { outputs: [{ access: { doors: [] } }] } }],
  ])('is refused when not valid: %j', async (body) => {
    const id = await create();
    expect(errorOf(await put(id, body))).toEqual([400, 'VALIDATION_FAILED']);
    expect(await get(id)).toMatchObject({ version: 1 });
  });

  it('names a field that does not exist, also inside options', async () => {
    const id = await create();
    const answer = await put(id, { colour: 'red', options: { lights: true } });
    expect(errorOf(answer)).toEqual([400, 'UNKNOWN_FIELD']);
    expect(answer.body.details?.map(({ path }) => path).toSorted()).toEqual(['/colour', '/options/lights']);
  });

  it('is refused for another version, and answered with the present one', async () => {
    const id = await create();
    await put(id, { name: 'a' });
    const answer = await put(id, { name: 'b', version: 1 });
    expect(errorOf(answer)).toEqual([409, 'VERSION_CONFLICT']);
    expect(answer.body).toMatchObject({
      message: expect.stringContaining('version 2'),
      details: [{ path: '/version', message: 'expected 2' }],
    });
    expect(await get(id)).toMatchObject({ name: 'a' });
  });

  it('honours If-Match', async () => {
    const id = await create();
    expect(errorOf(await put(id, { name: 'b' }, { 'If-Match': '"7"' }))).toEqual([
      412,
      'PRECONDITION_FAILED',
    ]);
    expect((await put(id, { name: 'b' }, { 'If-Match': '"1"' })).headers.get('etag')).toBe('"2"');
    expect((await put(id, { name: 'c' }, { 'If-Match': '*' })).status).toBe(200);
  });

  it('is checked in order: 401, 403, 415, 400, 404, 412, 409', async () => {
    const id = await create();
    const path = `/access/doors/${id}`;
    const wrong = JSON.stringify({ id: OTHER, version: 9 });
    const ask = (as: string | undefined, body: string, headers = {}, to = path) =>
      send('PUT', to, { app: site.lan, body, headers, ...(as !== undefined && { as }) });
    const admin = 'front-desk-admin';
    expect((await ask(undefined, wrong)).status).toBe(401);
    expect((await ask('pms', 'not json', { 'content-type': 'text/plain' })).status).toBe(403);
    expect((await ask(admin, wrong, { 'content-type': 'text/plain' })).status).toBe(415);
    const match = { 'If-Match': '"5"' };
    expect(errorOf(await ask(admin, wrong, match, `/access/doors/${UNKNOWN}`))).toEqual([400, 'ID_MISMATCH']);
    expect(errorOf(await ask(admin, '{"version":9}', match, `/access/doors/${UNKNOWN}`))).toEqual([
      404,
      'NOT_FOUND',
    ]);
    expect(errorOf(await ask(admin, '{"version":9}', match))).toEqual([412, 'PRECONDITION_FAILED']);
    expect(errorOf(await ask(admin, '{"version":9}'))).toEqual([409, 'VERSION_CONFLICT']);
  });

  it('of two at once from the same version lets one through', async () => {
    const id = await create();
    const answers = await Promise.all(['a', 'b'].map((name) => put(id, { name, version: 1 })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  });
});

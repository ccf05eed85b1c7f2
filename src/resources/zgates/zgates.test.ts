import { describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { A, B, GATEWAY, NETWORK, openTestbed } from '../../../test/resources/zgates/testbed.ts';

describe('a Zigbee gateway', () => {
  it('comes from the configuration with exactly the fields of the specification, and nothing set', async () => {
    const { get } = await openTestbed();
    expect((await get(`/${A}`)).body).toEqual({
      deviceId: A,
      name: 'Second floor',
      description: null,
      groupId: null,
      group: null,
      hwId: null,
      type: null,
      networkId: NETWORK,
      allowedChannels: [],
      zigbeeChannel: null,
      permitJoin: false,
      apps: [],
      platform: null,
      connectionState: { changedOn: '2026-01-01T00:00:00.000Z', connected: false },
      upgradeJobInfo: null,
    });
  });

  it('shows what the gateway reports; without it the join window counts as closed', async () => {
    const { get, report, zgates } = await openTestbed();
    report({ permitJoin: true });
    const facts = {
      hwId: '00124b0001020304',
      type: 'EFR32',
      platform: { version: '7.4' },
      zigbeeChannel: 11,
    };
    expect((await get(`/${A}`)).body).toMatchObject({ ...facts, permitJoin: true });
    zgates.link('zb-1', false);
    expect((await get(`/${A}`)).body).toMatchObject({
      ...facts,
      permitJoin: false,
      connectionState: { connected: false },
    });
  });

  it('shows the stack of its coordinator, and what it gives to one of its locks', async () => {
    const { get, report, played } = await openTestbed();
    report({ apps: [{ name: 'ZStack3x0', version: '2.7.1' }] });
    played.upgrade = { id: 'job', door: 'd1', file: 'lock.ota' };
    expect((await get(`/${A}`)).body).toMatchObject({
      apps: [{ name: 'ZStack3x0', version: '2.7.1' }],
      upgradeJobInfo: {
        id: 'job',
        app: [{ name: 'door/d1', version: 'lock.ota' }],
        platform: { version: '7.4' },
      },
    });
    played.upgrade = null;
    expect((await get(`/${A}`)).body).toMatchObject({ upgradeJobInfo: null });
  });

  it('follows the configuration at the next start, keeps its name, and is kept when it is not named', async () => {
    const { database, put } = await openTestbed();
    await put(A, { name: 'Renamed' });
    const next = { ...GATEWAY, link: 'zb-2', name: 'Other' };
    const second = await openTestbed({ database, declared: [next] });
    expect((await second.get(`/${A}`)).body.name).toBe('Renamed');
    expect((await second.get(`/${A}/state`)).body).toMatchObject({ link: 'zb-2', linkUp: true });
    const third = await openTestbed({ database, declared: [] });
    third.report({}, 'zb-2');
    expect((await third.get(`/${A}`)).body).toMatchObject({ connectionState: { connected: false } });
    expect((await third.get(`/${A}/state`)).body).toMatchObject({ linkUp: null });
  });
});

it('the connection of a gateway is published once it is stored, and not at all when it is back by then', async () => {
  const { report, run, clock, published, zgates } = await openTestbed();
  run();
  report();
  await clock.advance(2_000);
  expect(published).toEqual([
    {
      type: 'gatehouse.zgate.connection.v1',
      source: `zgates/${A}`,
      subject: A,
      data: { deviceId: A, connected: true, changedOn: '2026-01-01T00:00:00.000Z' },
    },
  ]);
  for (let flap = 0; flap < 100; flap += 1) {
    zgates.link('zb-1', false);
    report();
  }
  await clock.advance(2_000);
  expect(published).toHaveLength(1);
  zgates.link('zb-1', false);
  await clock.advance(2_000);
  expect(published.at(-1)?.data).toMatchObject({ connected: false, changedOn: '2026-01-01T00:00:04.000Z' });
});

describe('4.6', () => {
  const everything = { name: 'n', description: 'd', groupId: 'g1', allowedChannels: [25, 11, 20] };

  it('sets every field, channels lowest first, and audits the names', async () => {
    const { put, audits } = await openTestbed();
    const { status, body } = await put(A, everything, 'front-desk-admin');
    expect([status, body.allowedChannels, body.group]).toEqual([200, [11, 20, 25], 'Floor 2']);
    expect(body).toMatchObject({ name: 'n', description: 'd', groupId: 'g1' });
    expect(audits).toMatchObject([
      {
        action: 'zgate.update',
        object: `zgate/${A}`,
        detail: { fields: ['name', 'description', 'groupId', 'allowedChannels'] },
      },
    ]);
  });

  it('writes nothing for {}, the same in another order, or the gateway as it was read', async () => {
    const { put, audits } = await openTestbed();
    const first = await put(A, everything);
    audits.length = 0;
    for (const body of [{}, { allowedChannels: [20, 25, 11] }, first.body]) {
      const again = await put(A, body);
      expect(again.body).toEqual(first.body);
      expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
    }
    expect(audits).toEqual([]);
  });

  it('clears with null, and lifts the restriction with null or []', async () => {
    const { put } = await openTestbed();
    for (const [allowedChannels, name] of [
      [null, null],
      [[], ''],
    ]) {
      await put(A, everything);
      const cleared = await put(A, { name, description: null, groupId: null, allowedChannels });
      expect(cleared.body).toMatchObject({
        name: null,
        description: null,
        groupId: null,
        allowedChannels: [],
      });
    }
  });

  it.each<[string, unknown, string]>([
    ['channel 10', { allowedChannels: [10] }, '/allowedChannels/0'],
    ['channel 27', { allowedChannels: [11, 27] }, '/allowedChannels/1'],
    ['a channel as text', { allowedChannels: ['11'] }, '/allowedChannels/0'],
    ['a channel twice', { allowedChannels: [11, 11] }, '/allowedChannels'],
    ['seventeen channels', { allowedChannels: Array(17).fill(11) }, '/allowedChannels'],
    ['one channel without a list', { allowedChannels: 11 }, '/allowedChannels'],
    ['a blank name', { name: ' ' }, '/name'],
    ['a long description', { description: 'x'.repeat(1_025) }, '/description'],
    ['a group with a tab', { groupId: 'a\tb' }, '/groupId'],
  ])('refuses %s', async (_name, body, path) => {
    const { put } = await openTestbed();
    const answer = await put(A, body);
    expect([answer.status, answer.body.error]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.details?.map((detail) => detail.path)).toContain(path);
  });

  it('checks in order: 401, 403, 400, 404, 412', async () => {
    const { put, send } = await openTestbed();
    const path = `/network/zgate/${B}`;
    const bad = JSON.stringify({ allowedChannels: [1] });
    const status = async (answer: ReturnType<typeof put>) => {
      const { status, body } = await answer;
      return `${status} ${body.error}`;
    };
    expect(await status(send('PUT', path, { body: bad }))).toBe('401 UNAUTHORIZED');
    for (const as of ['front-desk', 'pms'])
      expect(await status(send('PUT', path, { as, body: bad }))).toBe('403 FORBIDDEN');
    expect(await status(put(B, { allowedChannels: [1] }))).toBe('400 VALIDATION_FAILED');
    expect(await status(put(B, { description: 'a\0b' }))).toBe('400 VALIDATION_FAILED');
    expect(await status(put(B, { link: 'x' }))).toBe('400 UNKNOWN_FIELD');
    expect(await status(put(B, { deviceId: A }))).toBe('400 ID_MISMATCH');
    for (const id of ['%00', 'x'.repeat(3_000)])
      expect(await status(put(id, {}))).toBe('400 VALIDATION_FAILED');
    for (const id of [B, 'no-uuid'])
      expect(await status(put(id, {}, 'service-tool', { 'if-match': '"9"' }))).toBe('404 NOT_FOUND');
    expect(await status(put(A, {}, 'service-tool', { 'if-match': '"9"' }))).toBe('412 PRECONDITION_FAILED');
  });

  it('keeps a group it does not know, and says so in the state', async () => {
    const { put, get } = await openTestbed();
    expect((await put(A, { groupId: 'nobody' })).body).toMatchObject({ groupId: 'nobody', group: null });
    expect((await get(`/${A}/state`)).body.unknown).toEqual([{ field: 'groupId', id: 'nobody' }]);
  });
});

describe('allowed channels on their way', () => {
  it('go to the gateway, whose channel follows', async () => {
    const { put, get, run, clock, commands } = await openTestbed();
    run();
    await put(A, { allowedChannels: [15, 20] });
    await clock.advance(0);
    expect(commands).toEqual([{ link: 'zb-1', kind: 'applyChannels', data: { allowedChannels: [15, 20] } }]);
    expect((await get(`/${A}`)).body.zigbeeChannel).toBe(15);
    expect((await get(`/${A}/state`)).body).toMatchObject({ inForce: true, failure: null });
  });

  it('are sent to no gateway while there is no restriction', async () => {
    const { report, run, clock, commands, get } = await openTestbed();
    run();
    report();
    await clock.advance(0);
    expect(commands).toEqual([]);
    expect((await get(`/${A}/state`)).body.inForce).toBe(true);
  });

  it('show in the state why the gateway does not take them', async () => {
    const { put, get, run, clock, played } = await openTestbed();
    played.answer = () => {
      throw new DriverError('REFUSED', 'no free channel');
    };
    run();
    await put(A, { allowedChannels: [15] });
    await clock.advance(0);
    expect((await get(`/${A}/state`)).body).toMatchObject({
      inForce: false,
      failure: { code: 'REFUSED', message: 'no free channel', permanent: true },
      nextAttempt: null,
    });
  });

  it('are not believed in force on a channel that is not among them', async () => {
    const { put, get, run, clock, played } = await openTestbed();
    played.answer = () => ({ zigbeeChannel: 11 });
    run();
    await put(A, { allowedChannels: [15] });
    await clock.advance(0);
    expect((await get(`/${A}/state`)).body).toMatchObject({ inForce: false, failure: { code: 'BAD_REPLY' } });
  });

  it('go again to a gateway that reports another channel', async () => {
    const { put, report, run, clock, commands } = await openTestbed();
    run();
    await put(A, { allowedChannels: [15] });
    await clock.advance(120_000);
    report({ zigbeeChannel: 15 });
    await clock.advance(0);
    expect(commands).toHaveLength(1);
    report({ zigbeeChannel: 26 });
    await clock.advance(0);
    expect(commands).toHaveLength(2);
  });

  it('are in force after a restart without another word', async () => {
    const { database, put, run, clock } = await openTestbed();
    const end = run();
    await put(A, { allowedChannels: [15] });
    await clock.advance(0);
    await end();
    const second = await openTestbed({ database });
    second.run();
    await second.clock.advance(0);
    expect(second.commands).toEqual([]);
    expect((await second.get(`/${A}`)).body.zigbeeChannel).toBe(15);
  });
});

describe('the list of gateways', () => {
  it('has pages and filters', async () => {
    const other = { deviceId: B, link: 'zb-2', networkId: 'ffffffff-0000-4000-8000-00000000000f' };
    const { get, put, report } = await openTestbed({ declared: [GATEWAY, other] });
    await put(B, { groupId: 'g1' });
    report();
    const ids = async (query: string) =>
      ((await get(query)).body.items as { deviceId: string }[]).map(({ deviceId }) => deviceId);
    expect(await ids('')).toEqual([A, B]);
    expect((await get('?limit=1')).body.next).toBe(A);
    expect(await ids(`?limit=1&cursor=${A}`)).toEqual([B]);
    expect(await ids(`?networkId=${NETWORK}`)).toEqual([A]);
    expect(await ids('?groupId=g1')).toEqual([B]);
    expect(await ids('?connected=true')).toEqual([A]);
    expect(await ids('?name=second')).toEqual([A]);
    expect((await get('', 'pms')).status).toBe(403);
    expect((await get('?color=red')).status).toBe(400);
  });
});

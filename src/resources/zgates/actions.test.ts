import { describe, expect, it, vi } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { failingDatabase } from '../../../test/failing-database.ts';
import { A, B, CALLER, openTestbed } from '../../../test/resources/zgates/testbed.ts';
import { GatehouseError } from '../../platform/errors.ts';

const MAC = '00124b0001a2b3c4';
const CODE = '83fed3407a939723a5c639b26916d505c3b5';
type Testbed = Awaited<ReturnType<typeof openTestbed>>;

const state = async ({ get }: Testbed) => (await get(`/${A}/state`)).body;
const audited = ({ audits }: Testbed) =>
  audits.filter(({ action }) => action === 'zgate.permit-join').map(({ outcome }) => outcome);
const kinds = ({ commands }: Testbed) => commands.map(({ kind }) => kind);

describe('the join window', () => {
  it('is opened on behalf of somebody, for some, and closes at its end', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report();
    const code = CODE;
    const answer = await bed.post(`/${A}/permit-join`, {
      seconds: 60,
      allowed: [MAC.toUpperCase()],
      installCodes: [{ mac: MAC, code }],
    });
    const window = {
      openedAt: '2026-01-01T00:00:00.000Z',
      until: '2026-01-01T00:01:00.000Z',
      openedBy: CALLER,
      allowed: [MAC],
    };
    expect([answer.status, answer.body]).toEqual([200, { deviceId: A, joinWindow: window }]);
    expect(bed.commands).toEqual([
      {
        link: 'zb-1',
        kind: 'permitJoin',
        data: { seconds: 60, allowed: [MAC], installCodes: [{ hwId: MAC, code }] },
      },
    ]);
    expect(JSON.stringify(bed.audits)).not.toContain(code);
    expect((await state(bed)).joinWindow).toMatchObject({ allowed: [MAC] });
    bed.report({ permitJoin: true });
    await bed.clock.advance(59_000);
    expect(audited(bed)).toEqual(['accepted', 'done']);
    bed.report({ permitJoin: false });
    await bed.clock.advance(2_000);
    expect(audited(bed)).toEqual(['accepted', 'done', 'closed']);
    expect((await state(bed)).joinWindow).toBe(null);
    expect(kinds(bed)).toEqual(['permitJoin']);
  });

  it('is closed by a command when the gateway has not closed it', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report({ permitJoin: true });
    await bed.post(`/${A}/permit-join`, { seconds: 10 });
    await bed.clock.advance(16_000);
    expect(bed.commands.map(({ data }) => data)).toMatchObject([{ seconds: 10 }, { seconds: 0 }]);
    await bed.clock.advance(10_000);
    expect(bed.commands).toHaveLength(3);
  });

  it.each([90, -90, 27_000, -20_000])(
    'lasts its seconds while the wall clock jumps by %d days',
    async (days) => {
      const bed = await openTestbed();
      bed.run();
      bed.report({ permitJoin: true });
      await bed.post(`/${A}/permit-join`, { seconds: 60 });
      bed.clock.jumpWall(days * 86_400_000);
      await bed.clock.advance(59_000);
      expect(audited(bed)).toEqual(['accepted', 'done']);
      expect((await state(bed)).joinWindow).not.toBe(null);
      await bed.clock.advance(10_000);
      expect(audited(bed)).toEqual(['accepted', 'done', 'closed']);
      expect(bed.commands.map(({ data }) => data)).toMatchObject([{ seconds: 60 }, { seconds: 0 }]);
      expect((await state(bed)).joinWindow).toBe(null);
    },
  );

  it('is closed by 0, and by a restart', async () => {
    const bed = await openTestbed();
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    expect((await bed.post(`/${A}/permit-join`, { seconds: 0 })).body.joinWindow).toBe(null);
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    const second = await openTestbed({ database: bed.database });
    expect((await state(second)).joinWindow).toBe(null);
    expect(audited(second)).toEqual(['closed']);
  });

  it('is closed at the radio by 0 also when that cannot be stored', async () => {
    const bed = await openTestbed();
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    const refusal = new GatehouseError('STORAGE_UNAVAILABLE', 'the disk is full');
    vi.spyOn(bed.database, 'commit').mockRejectedValue(refusal);
    expect(await bed.post(`/${A}/permit-join`, { seconds: 0 })).toMatchObject({ status: 503 });
    expect(bed.commands.at(-1)).toMatchObject({ kind: 'permitJoin', data: { seconds: 0 } });
  });

  it('is closed at the radio by 0 also while nothing can be read', async () => {
    const disk = await failingDatabase();
    const bed = await openTestbed({ database: disk.database });
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    disk.fail('reads and commits');
    const answer = await bed.post(`/${A}/permit-join`, { seconds: 0 });
    expect([answer.status, answer.body.message]).toEqual([
      503,
      expect.stringContaining('has closed its join window'),
    ]);
    expect(bed.commands.map(({ data }) => data)).toMatchObject([{ seconds: 254 }, { seconds: 0 }]);
    expect((await bed.post(`/${B}/permit-join`, { seconds: 0 })).body).toMatchObject({
      error: 'STORAGE_UNAVAILABLE',
    });
  });

  it.each(['commits', 'reads and commits'] as const)(
    'is closed by a command at its end while %s fail, when the gateway has not closed it',
    async (fault) => {
      const disk = await failingDatabase();
      const bed = await openTestbed({ database: disk.database });
      bed.run();
      bed.report({ permitJoin: true });
      await bed.post(`/${A}/permit-join`, { seconds: 10 });
      disk.fail(fault);
      await bed.clock.advance(16_000);
      expect(bed.commands.map(({ data }) => data)).toMatchObject([{ seconds: 10 }, { seconds: 0 }]);
      disk.heal();
      bed.report({ permitJoin: false });
      await bed.clock.advance(60_000);
      expect((await state(bed)).joinWindow).toBe(null);
    },
  );

  it('ends with its link', async () => {
    const bed = await openTestbed();
    bed.run();
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    bed.zgates.link('zb-1', false);
    await bed.clock.advance(1_000);
    expect(audited(bed)).toEqual(['accepted', 'done', 'closed']);
  });

  it('ends when the gateway has closed it before its time', async () => {
    const bed = await openTestbed();
    bed.run();
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    await bed.clock.advance(2_000);
    // It has yet to say that it is open.
    expect((await state(bed)).joinWindow).not.toBe(null);
    bed.report({ permitJoin: true });
    await bed.clock.advance(2_000);
    bed.report({ permitJoin: false });
    await bed.clock.advance(2_000);
    expect((await state(bed)).joinWindow).toBe(null);
    expect(bed.audits.at(-1)).toMatchObject({
      outcome: 'closed',
      detail: { reason: 'the gateway has closed it' },
    });
  });

  it('is for those with an install code alone, where no others are named', async () => {
    const bed = await openTestbed();
    const installCodes = [{ mac: MAC, code: CODE }];
    const { body } = await bed.post(`/${A}/permit-join`, { seconds: 60, installCodes });
    expect(body).toMatchObject({ joinWindow: { allowed: [MAC] } });
  });

  it('takes an install code as it is printed, in groups', async () => {
    const bed = await openTestbed();
    bed.run();
    const printed = CODE.toUpperCase().replaceAll(/(.{4})(?=.)/g, '$1-');
    await bed.post(`/${A}/permit-join`, { seconds: 60, installCodes: [{ mac: MAC, code: printed }] });
    expect(bed.commands).toMatchObject([
      { data: { installCodes: [{ hwId: MAC, code: CODE.toUpperCase() }] } },
    ]);
  });

  it('stays as it was when an install code is mistyped, and says so', async () => {
    const bed = await openTestbed();
    bed.run();
    await bed.post(`/${A}/permit-join`, { seconds: 254 });
    bed.report({ permitJoin: true });
    const { joinWindow } = await state(bed);
    bed.played.answer = () => {
      throw new DriverError('INVALID_COMMAND', 'the install code is mistyped');
    };
    const installCodes = [{ mac: MAC, code: '83fed3407a939723a5c639b26916d505c3b6' }];
    expect(await bed.post(`/${A}/permit-join`, { seconds: 60, installCodes })).toMatchObject({
      status: 400,
      body: { error: 'VALIDATION_FAILED', details: [{ path: '/installCodes' }] },
    });
    await bed.clock.advance(5_000);
    expect((await state(bed)).joinWindow).toEqual(joinWindow);
    expect(audited(bed)).toEqual(['accepted', 'done', 'accepted', 'failed']);
  });

  it('that no one knows to be open is none, and is closed', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.played.answer = () => {
      throw new DriverError('OUTCOME_UNKNOWN', 'no answer');
    };
    expect(await bed.post(`/${A}/permit-join`, { seconds: 254 })).toMatchObject({
      status: 503,
      body: { error: 'DEVICE_OFFLINE' },
    });
    bed.report({ permitJoin: true });
    await bed.clock.advance(5_000);
    expect(bed.commands.at(-1)).toMatchObject({ data: { seconds: 0 } });
    expect(audited(bed)).toEqual(['accepted', 'unknown', 'closed']);
  });

  it.each([
    ['255 seconds', { seconds: 255 }],
    ['an address that is none', { seconds: 9, allowed: ['lock'] }],
    ['a code that is none', { seconds: 9, installCodes: [{ mac: MAC, code: 'x' }] }],
    ['the address of no one', { seconds: 9, allowed: ['0000000000000000'] }],
    ['the address of everybody', { seconds: 9, installCodes: [{ mac: 'FFFFFFFFFFFFFFFF', code: CODE }] }],
    [
      'two codes for one lock',
      {
        seconds: 9,
        installCodes: [
          { mac: MAC, code: CODE },
          { mac: MAC.toUpperCase(), code: CODE },
        ],
      },
    ],
  ])('refuses %s', async (_name, body) => {
    const { post, commands } = await openTestbed();
    expect(await post(`/${A}/permit-join`, body)).toMatchObject({ status: 400 });
    expect(commands).toEqual([]);
  });

  it('is not opened to all by a list that names no one, which means no one besides with install codes', async () => {
    const { post, commands } = await openTestbed();
    expect(await post(`/${A}/permit-join`, { seconds: 9, allowed: [] })).toMatchObject({
      status: 400,
      body: { details: [{ path: '/allowed', message: expect.stringContaining('leave it out') }] },
    });
    expect(commands).toEqual([]);
    const installCodes = [{ mac: MAC, code: CODE }];
    expect(await post(`/${A}/permit-join`, { seconds: 9, allowed: [], installCodes })).toMatchObject({
      status: 200,
      body: { joinWindow: { allowed: [MAC] } },
    });
    expect((await post(`/${A}/permit-join`, { seconds: 0, allowed: [] })).status).toBe(200);
  });

  it('is for technicians, and for gateways that are there', async () => {
    const { get, post, played } = await openTestbed();
    for (const as of ['front-desk-admin', 'front-desk', 'pms'])
      expect((await post(`/${A}/permit-join`, { seconds: 9 }, as)).status).toBe(403);
    expect((await post(`/${B}/permit-join`, { seconds: 9 })).status).toBe(404);
    expect((await get(`/${A}/state`)).body).toMatchObject({ linkUp: true, linkError: null });
    played.linkUp = false;
    expect(await post(`/${A}/permit-join`, { seconds: 9 })).toMatchObject({
      status: 503,
      body: { message: expect.stringContaining('link zb-1 is down: the port is gone') },
    });
    expect((await get(`/${A}/state`)).body).toMatchObject({ linkUp: false, linkError: 'the port is gone' });
  });
});

describe('the map of a network', () => {
  it('is drawn by a job', async () => {
    const bed = await openTestbed();
    const map = { nodes: [{ hwId: MAC, type: 'coordinator' }], links: [], silent: [] };
    bed.played.answer = () => map;
    expect((await bed.post(`/${A}/map`)).status).toBe(202);
    expect(await bed.jobs[0]?.ended).toEqual(map);
    bed.played.answer = () => ({ nodes: 'many' });
    await bed.post(`/${A}/map`);
    await expect(bed.jobs[1]?.ended).rejects.toMatchObject({ code: 'BAD_REPLY' });
  });
});

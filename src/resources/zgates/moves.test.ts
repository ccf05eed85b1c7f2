/** Moves of a network to another channel: who confirms them, when they begin by themselves, and who is left behind. */
import { describe, expect, it } from 'vitest';
import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import { A, B, openTestbed } from '../../../test/resources/zgates/testbed.ts';
import type { GatewayLock } from './gateway-locks.ts';

const MAC = '00124b0001a2b3c4';
const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
type Testbed = Awaited<ReturnType<typeof openTestbed>>;

const lock = (more: Partial<GatewayLock> = {}): GatewayLock => ({
  doorId: B,
  name: 'Suite',
  mac: MAC,
  lastSeen: START,
  isSeenLately: true,
  presence: 'connected',
  isMissed: false,
  heardOn: 11,
  ...more,
});
const state = async ({ get }: Testbed) => (await get(`/${A}/state`)).body;
const kinds = ({ commands }: Testbed) => commands.map(({ kind }) => kind);

describe('a channel move', () => {
  it('sends one command to the network, and names who did not follow', async () => {
    const bed = await openTestbed();
    bed.report();
    const [stays, follows] = [lock(), lock({ doorId: A, mac: '1' })];
    bed.played.locks = [stays, follows];
    expect((await bed.post(`/${A}/channel-move`, { channel: 15 })).status).toBe(202);
    await expect.poll(() => bed.jobs[0]?.progress).toEqual({ done: 0, total: 2 });
    const move = { link: 'zb-1', kind: 'moveChannel', data: { channel: 15 } };
    await expect.poll(() => bed.commands).toEqual([move]);
    bed.played.locks = [stays, { ...follows, heardOn: 15 }];
    await bed.clock.advance(1_000);
    expect(bed.jobs[0]?.progress).toEqual({ done: 1, total: 2 });
    await bed.clock.advance(15 * MINUTE);
    expect(await bed.jobs[0]?.ended).toEqual({
      channel: 15,
      before: 11,
      locks: 2,
      followed: 1,
      stragglers: [{ doorId: B, name: 'Suite', mac: MAC, lastSeen: START, heardOn: 11 }],
      energies: null,
      warning: null,
    });
    expect((await bed.get(`/${A}`)).body.zigbeeChannel).toBe(15);
    expect(bed.commands).toHaveLength(1);
  });

  it.each([
    ['has moved', { zigbeeChannel: 15 }],
    ['did not move', new DriverError('BAD_REPLY', 'it did not')],
  ])('is under way until the gateway %s, and its locks are looked at again then', async (_, end) => {
    const bed = await openTestbed();
    bed.report();
    bed.changes.length = 0;
    const { promise: moving, resolve, reject } = Promise.withResolvers<Plain>();
    bed.played.answer = () => moving;
    await bed.post(`/${A}/channel-move`, { channel: 15 });
    await expect.poll(() => bed.zgates.moving(A)?.since).toBe(bed.clock.now());
    expect(bed.zgates.moving(B)).toBeUndefined();
    expect(bed.changes).toEqual([]);
    const over = bed.zgates.moving(A)?.over;
    if (end instanceof Error) reject(end);
    else resolve(end);
    await over;
    expect(bed.zgates.moving(A)).toBeUndefined();
    expect(bed.changes).toEqual([[A, true]]);
  });

  it.each(['LINK_LOST', 'OUTCOME_UNKNOWN'] as const)(
    'that fails with %s goes on until its link is up again, which takes it up, or was away for a minute',
    async (code) => {
      const bed = await openTestbed();
      bed.report();
      const lose = async () => {
        const { promise: moving, reject } = Promise.withResolvers<Plain>();
        bed.played.answer = () => moving;
        await bed.post(`/${A}/channel-move`, { channel: 15 });
        await expect.poll(() => bed.zgates.moving(A)).toBeDefined();
        const over = bed.zgates.moving(A)?.over;
        // That the link is down is said after it, or before.
        reject(new DriverError(code, 'the connection is gone'));
        bed.zgates.link('zb-1', false);
        await bed.clock.advance(59_999);
        expect(bed.zgates.moving(A)?.over).toBe(over);
        return { over };
      };
      const first = await lose();
      bed.zgates.link('zb-1', true);
      await first.over;
      expect(bed.zgates.moving(A)).toBeUndefined();
      await expect(bed.jobs[0]?.ended).rejects.toMatchObject({ code });

      const second = await lose();
      await bed.clock.advance(1);
      await second.over;
      expect(bed.zgates.moving(A)).toBeUndefined();
      // Of a daemon that ends nothing is waited for.
      const third = await lose();
      bed.jobs[2]?.stop.abort();
      await third.over;
    },
  );

  it('goes to a busy channel when it is ordered, and says that it is busy', async () => {
    const bed = await openTestbed();
    bed.report();
    bed.played.energies = () => ({
      channels: [11, 15].map((channel) => ({ channel, energy: channel * 15 })),
    });
    await bed.post(`/${A}/channel-move`, { channel: 15 });
    expect(await bed.jobs[0]?.ended).toMatchObject({
      channel: 15,
      energies: {
        channels: [
          { energy: 165, isBusy: false },
          { energy: 225, isBusy: true },
        ],
      },
      warning: expect.stringMatching(/channel 15 is busy .*quietest is channel 11/),
    });
  });

  it('is done as soon as all have followed', async () => {
    const bed = await openTestbed();
    bed.report();
    bed.played.locks = [lock()];
    bed.played.answer = () => {
      bed.played.locks = [lock({ heardOn: 15 })];
      return { zigbeeChannel: 15 };
    };
    await bed.post(`/${A}/channel-move`, { channel: 15 });
    expect(await bed.jobs[0]?.ended).toMatchObject({ followed: 1, stragglers: [] });
  });

  it('counts those that speak before its answer comes, whatever time they report, and no frame of before', async () => {
    const bed = await openTestbed();
    bed.report();
    const locks = Array.from({ length: 20 }, (_, n) => lock({ mac: `${n}` }));
    bed.played.locks = locks;
    bed.played.answer = () => {
      // The clock on the wall is set back meanwhile. One reported a frame of before the move as late as this.
      bed.clock.jumpWall(-60 * MINUTE);
      bed.played.locks = locks.map((one, n) =>
        n === 0
          ? { ...one, lastSeen: START + MINUTE }
          : { ...one, lastSeen: bed.clock.now() - 1, heardOn: 15 },
      );
      return { zigbeeChannel: 15 };
    };
    await bed.post(`/${A}/channel-move`, { channel: 15 });
    await expect.poll(() => bed.jobs[0]?.progress).toEqual({ done: 19, total: 20 });
    // It stayed on this channel in an earlier move and has not spoken since: by its report it is not there.
    bed.played.locks = bed.played.locks.map((one, n) =>
      n === 0 ? { ...one, heardOn: 15, isMissed: true } : one,
    );
    await bed.clock.advance(1_000);
    expect(bed.jobs[0]?.progress).toEqual({ done: 19, total: 20 });
    bed.played.locks = bed.played.locks.map((one) => ({ ...one, heardOn: 15, isMissed: false }));
    await bed.clock.advance(1_000);
    expect(await bed.jobs[0]?.ended).toMatchObject({ locks: 20, followed: 20, stragglers: [] });
  });

  it('waits for no lock that joins or leaves meanwhile', async () => {
    const bed = await openTestbed();
    bed.report();
    bed.played.locks = [lock(), lock({ mac: 'leaver' })];
    await bed.post(`/${A}/channel-move`, { channel: 15 });
    await expect.poll(() => bed.jobs[0]?.progress).toEqual({ done: 0, total: 2 });
    bed.played.locks = [lock({ heardOn: 15 }), lock({ mac: 'newcomer', heardOn: null, lastSeen: null })];
    await bed.clock.advance(1_000);
    expect(await bed.jobs[0]?.ended).toMatchObject({ locks: 1, followed: 1, stragglers: [] });
  });

  it('names in …/state and in the status the locks that stayed behind, until they are heard of there', async () => {
    const bed = await openTestbed();
    bed.report({ zigbeeChannel: 20 });
    const [stays, follows] = [
      lock({ presence: 'disconnected', isMissed: true }),
      lock({ mac: '1', heardOn: 20 }),
    ];
    bed.played.locks = [stays, follows];
    const behind = {
      locks: [{ doorId: B, name: 'Suite', mac: MAC, heardOn: 11 }],
      message: expect.stringContaining('join again'),
    };
    expect((await state(bed)).stayedBehind).toMatchObject(behind);
    expect(bed.zgates.counts()).toMatchObject({
      stayedBehind: [{ deviceId: A, zigbeeChannel: 20, ...behind }],
    });
    bed.played.locks = [lock({ heardOn: 20 }), follows];
    expect((await state(bed)).stayedBehind).toBe(null);
    expect(bed.zgates.counts()).toMatchObject({ stayedBehind: [] });
  });

  it.each([
    ['is disconnected', lock({ presence: 'disconnected' }), 'DISCONNECTED'],
    ['stayed behind in an earlier move', lock({ heardOn: 26 }), 'STAYED_BEHIND'],
    ['was not reported since its gateway started', lock({ presence: 'unknown' }), 'UNKNOWN'],
  ])('is refused without confirmation while a lock %s', async (_, one, code) => {
    const bed = await openTestbed();
    bed.report();
    bed.played.locks = [lock({ mac: '1' }), one];
    expect((await bed.post(`/${A}/channel-move`, { channel: 15 })).body).toMatchObject({
      error: 'CONFIRMATION_NEEDED',
      message: expect.stringContaining('1 of 2'),
      details: [{ path: '/confirm', code, message: expect.stringContaining(MAC) }],
    });
    expect(bed.commands).toEqual([]);
    await bed.post(`/${A}/channel-move`, { channel: 15, confirm: true });
    await expect.poll(() => kinds(bed)).toEqual(['moveChannel']);
  });

  it('is refused as out of reach, and not for want of confirmation, while its link is down', async () => {
    const bed = await openTestbed();
    bed.report();
    bed.played.linkUp = false;
    bed.played.locks = [lock({ presence: 'unknown' })];
    expect((await bed.post(`/${A}/channel-move`, { channel: 15 })).body.error).toBe('DEVICE_OFFLINE');
  });

  it('is refused while locks were not seen lately, unless it is confirmed', async () => {
    const bed = await openTestbed();
    bed.report();
    bed.played.locks = [lock({ isSeenLately: false }), lock({ isSeenLately: false, lastSeen: null })];
    const answer = await bed.post(`/${A}/channel-move`, { channel: 15 });
    expect([answer.status, answer.body.error]).toEqual([409, 'CONFIRMATION_NEEDED']);
    expect(answer.body.details).toMatchObject([
      { path: '/confirm', message: expect.stringContaining('2026-01-01') },
      { message: expect.stringContaining('never seen') },
    ]);
    expect(bed.commands).toEqual([]);
    await bed.post(`/${A}/channel-move`, { channel: 15, confirm: true });
    await expect.poll(() => kinds(bed)).toEqual(['moveChannel']);
  });

  it('goes to a channel that is allowed, and to another than the present one', async () => {
    const { post, put, report } = await openTestbed();
    report({ zigbeeChannel: 15 });
    await put(A, { allowedChannels: [15, 20] });
    for (const body of [{}, { channel: 15 }, { channel: 11 }])
      expect((await post(`/${A}/channel-move`, body)).body.details).toMatchObject([{ path: '/channel' }]);
  });

  it('fails when the network is elsewhere then, and is not tried again', async () => {
    const bed = await openTestbed();
    bed.report();
    await bed.post(`/${A}/channel-move`, { channel: 20 });
    await expect(bed.jobs[0]?.ended).rejects.toMatchObject({ code: 'BAD_REPLY' });
    expect(bed.commands).toHaveLength(1);
  });
});

describe('allowed channels that exclude the present one', () => {
  it('move the network by itself, as a job, when all its locks were seen lately', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report();
    bed.played.locks = [lock()];
    await bed.put(A, { allowedChannels: [15, 20] });
    await bed.clock.advance(0);
    expect(bed.jobs.map(({ order }) => [order.kind, order.principal.label])).toEqual([
      ['zigbee-channel-move', 'gatehouse'],
    ]);
    expect(bed.commands).toEqual([{ link: 'zb-1', kind: 'moveChannel', data: { channel: 15 } }]);
    await expect.poll(() => state(bed)).toMatchObject({ inForce: true, move: null, failure: null });
  });

  it('wait for confirmation otherwise, and say so', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report();
    bed.played.locks = [lock({ isSeenLately: false })];
    await bed.put(A, { allowedChannels: [15] });
    await bed.clock.advance(60 * MINUTE);
    expect(bed.commands).toEqual([]);
    expect(await state(bed)).toMatchObject({
      inForce: false,
      failure: { code: 'REFUSED', permanent: true },
      move: { from: 11, to: 15, unseen: [{ doorId: B, mac: MAC }] },
    });
    await bed.post(`/${A}/channel-move`, { confirm: true });
    await expect.poll(() => state(bed)).toMatchObject({ inForce: true, move: null });
    await bed.clock.advance(60 * MINUTE);
    expect(kinds(bed)).toEqual(['moveChannel']);
  });

  it.each([
    ['is disconnected', lock({ presence: 'disconnected' }), 'DISCONNECTED'],
    ['stayed behind in an earlier move', lock({ heardOn: 26 }), 'STAYED_BEHIND'],
  ])('do not move it by itself while a lock %s', async (_, one, reason) => {
    const bed = await openTestbed();
    bed.run();
    bed.report();
    bed.played.locks = [lock({ mac: '1' }), one];
    await bed.put(A, { allowedChannels: [15] });
    await bed.clock.advance(60 * MINUTE);
    expect(bed.commands).toEqual([]);
    expect(await state(bed)).toMatchObject({
      failure: { code: 'REFUSED' },
      move: { to: 15, unseen: [{ mac: MAC, reason }] },
    });
  });

  it('wait for the gateway to report its locks after a start, and then move it', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report();
    bed.played.locks = [lock({ presence: 'unknown' })];
    await bed.put(A, { allowedChannels: [15] });
    await bed.clock.advance(0);
    expect(bed.commands).toEqual([]);
    expect(await state(bed)).toMatchObject({ failure: { code: 'BUSY', permanent: false } });
    bed.played.locks = [lock()];
    await bed.clock.advance(MINUTE);
    expect(kinds(bed)).toEqual(['moveChannel']);
  });

  it('do not move it when a lock is lost between the decision and the command', async () => {
    const bed = await openTestbed();
    bed.run();
    bed.report();
    const reads = [[lock()], [lock()], [lock({ presence: 'disconnected' })]];
    Object.defineProperty(bed.played, 'locks', { get: () => (reads.length > 1 ? reads.shift() : reads[0]) });
    await bed.put(A, { allowedChannels: [15] });
    await bed.clock.advance(60 * MINUTE);
    expect(bed.commands).toEqual([]);
    expect(await state(bed)).toMatchObject({ failure: { code: 'REFUSED' }, move: { to: 15 } });
  });

  it('move it once: a failure is reported, and waits for somebody, also across a restart', async () => {
    const bed = await openTestbed();
    const end = bed.run();
    bed.report();
    bed.played.answer = () => {
      throw new DriverError('OUTCOME_UNKNOWN', 'no answer');
    };
    await bed.put(A, { allowedChannels: [15] });
    await bed.clock.advance(60 * MINUTE);
    expect(kinds(bed)).toEqual(['moveChannel']);
    expect(await state(bed)).toMatchObject({ failure: { code: 'REFUSED' }, move: { to: 15 } });
    await end();
    const second = await openTestbed({ database: bed.database });
    second.run();
    second.report();
    await second.clock.advance(60 * MINUTE);
    expect(second.commands).toEqual([]);
    await second.put(A, { allowedChannels: [15, 25] });
    await second.clock.advance(0);
    expect(kinds(second)).toEqual(['moveChannel']);
  });
});

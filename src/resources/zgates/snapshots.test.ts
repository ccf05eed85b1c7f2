import { describe, expect, it } from 'vitest';
import { A, B, openTestbed } from '../../../test/resources/zgates/testbed.ts';
import { LOCAL_ADMINISTRATOR, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';

const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test' };
const HW_ID = '00124b0001020304';
type Testbed = Awaited<ReturnType<typeof openTestbed>>;

const emit = ({ zgates }: Testbed, text: string, id = text, more: object = {}) =>
  zgates.event('zb-1', {
    id,
    kind: 'snapshot',
    data: { archive: Buffer.from(text), locks: text.length, hwId: HW_ID, zigbeeChannel: 15, ...more },
  });
const start = ({ zgates }: Testbed) => zgates.startOptions(A);
const archive = (bed: Testbed) => {
  const { snapshot } = start(bed);
  return snapshot === null ? null : Buffer.from(snapshot as Uint8Array).toString();
};
const numbers = ({ zgates }: Testbed) => zgates.snapshots()[0]?.snapshots.map(({ number }) => number) ?? [];

describe('what a gateway is started with', () => {
  it('are secrets of its own, drawn once for good, and sealed', async () => {
    const bed = await openTestbed();
    const { network } = start(bed);
    expect(network).toEqual({
      panId: expect.any(Number),
      extPanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      networkKey: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    const again = await openTestbed({ database: bed.database });
    expect(start(again).network).toEqual(network);
    const other = { deviceId: B, link: 'zb-2', networkId: A };
    const third = await openTestbed({ database: bed.database, declared: [other] });
    expect(third.zgates.startOptions(B).network).not.toEqual(network);
    const rows = bed.database.prepare<[], { sealed: Buffer }>('SELECT sealed FROM zgate_network').all();
    expect(rows.map(({ sealed }) => sealed.subarray(0, 6).toString())).toEqual(['sealed', 'sealed']);
  });

  it('are the channels that are allowed, the certificates of its network, and the locks of its doors', async () => {
    const bed = await openTestbed();
    expect(start(bed)).toMatchObject({
      allowedChannels: [15, 20, 25],
      cert: 'PEM',
      knownLocks: [],
      lastSeen: {},
      heardOn: {},
      missed: [],
      snapshot: null,
      restore: false,
      withoutKeys: false,
      stateDirectory: `/state/${A}`,
    });
    await bed.put(A, { allowedChannels: [26, 11] });
    const lock = { doorId: B, name: null, isSeenLately: false, presence: 'unknown' } as const;
    const other = `${HW_ID.slice(0, -1)}f`;
    bed.played.locks = [
      { ...lock, mac: HW_ID, lastSeen: 1_767_225_600_000, heardOn: 15, isMissed: true },
      { ...lock, mac: other, lastSeen: null, heardOn: null, isMissed: false },
    ];
    expect(start(bed)).toMatchObject({ allowedChannels: [11, 26], knownLocks: [HW_ID, other] });
    expect(start(bed).lastSeen).toEqual({ [HW_ID]: 1_767_225_600_000 });
    expect(start(bed)).toMatchObject({ heardOn: { [HW_ID]: 15 }, missed: [HW_ID] });
  });
});

describe('snapshots of a network', () => {
  it('are kept sealed, the newest twenty, and the latest is given back', async () => {
    const bed = await openTestbed();
    for (let turn = 1; turn <= 21; turn += 1) await emit(bed, `snapshot ${turn}`);
    expect(archive(bed)).toBe('snapshot 21');
    expect(numbers(bed)).toHaveLength(20);
    expect(bed.zgates.snapshots()[0]?.snapshots[0]).toEqual({
      number: 21,
      takenAt: '2026-01-01T00:00:00.000Z',
      locks: 11,
      hwId: HW_ID,
      zigbeeChannel: 15,
      bytes: 11,
    });
  });

  it('are taken in once, and only those that are some', async () => {
    const bed = await openTestbed();
    await emit(bed, 'a', 'id');
    expect(await emit(bed, 'b', 'id')).toBe(true);
    expect(archive(bed)).toBe('a');
    expect(await emit(bed, 'c', 'c', { archive: Buffer.alloc(200_001) })).toBe(true);
    expect(await emit(bed, 'd', 'd', { archive: 'text' })).toBe(true);
    expect(numbers(bed)).toHaveLength(1);
    expect(await bed.zgates.event('zb-1', { id: 'x', kind: 'lockJoined', data: {} })).toBe(false);
    expect(await bed.zgates.event('bus-1', { id: 'x', kind: 'snapshot', data: {} })).toBe(false);
  });

  it('go back to the coordinator on request, until the link is up, and not again when it breaks', async () => {
    const bed = await openTestbed();
    for (const text of ['a', 'b', 'c']) await emit(bed, text);
    const [, , oldest] = numbers(bed);
    expect(await bed.zgates.restore(A, { snapshot: oldest }, CALLER)).toMatchObject({
      snapshot: oldest,
      locks: 1,
    });
    expect([archive(bed), start(bed).restore, bed.restarts]).toEqual(['a', true, ['zb-1']]);
    const restored = { action: 'zgate.restore', object: `zgate/${A}` };
    expect(bed.audits.at(-1)).toMatchObject({ ...restored, outcome: 'accepted' });
    expect(start(bed).withoutKeys).toBe(false);
    await bed.zgates.restore(A, { snapshot: oldest, withoutKeys: true }, CALLER);
    expect(bed.audits.at(-1)).toMatchObject({ outcome: 'accepted', detail: { withoutKeys: true } });
    const again = await openTestbed({ database: bed.database });
    expect(start(again)).toMatchObject({ restore: true, withoutKeys: true });
    expect(archive(again)).toBe('a');
    again.zgates.link('zb-1', true);
    await expect.poll(() => again.restarts).toEqual(['zb-1']);
    expect(again.audits).toMatchObject([{ ...restored, outcome: 'done', detail: { snapshot: oldest } }]);
    expect([archive(again), start(again).restore, start(again).withoutKeys]).toEqual(['c', false, false]);
    again.zgates.link('zb-1', true);
    await again.database.commit(() => undefined);
    expect(again.restarts).toEqual(['zb-1']);
  });

  it('that are to be restored outlive twenty newer ones', async () => {
    const bed = await openTestbed();
    await emit(bed, 'first');
    await bed.zgates.restore(A, {}, CALLER);
    for (let turn = 1; turn <= 21; turn += 1) await emit(bed, `later ${turn}`);
    expect(archive(bed)).toBe('first');
  });

  it('that a disk has damaged are passed over, and not put back', async () => {
    const bed = await openTestbed();
    for (const text of ['a', 'b']) await emit(bed, text);
    const [newest] = numbers(bed);
    bed.database.prepare('UPDATE zgate_snapshot SET sealed = randomblob(60) WHERE seq = ?').run(newest ?? 0);
    expect(archive(bed)).toBe('a');
    await expect(bed.zgates.restore(A, { snapshot: newest }, CALLER)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await bed.zgates.restore(A, {}, CALLER);
    expect([archive(bed), start(bed).restore]).toEqual(['a', true]);
    bed.database.prepare('UPDATE zgate_snapshot SET sealed = randomblob(60)').run();
    expect([archive(bed), start(bed).restore]).toEqual([null, false]);
  });

  it('of another number, or of another gateway, are not found', async () => {
    const bed = await openTestbed();
    await expect(bed.zgates.restore(A, {}, CALLER)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await emit(bed, 'a');
    await expect(bed.zgates.restore(A, { snapshot: 9 }, CALLER)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(bed.zgates.restore(B, { snapshot: 1 }, CALLER)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(bed.restarts).toEqual([]);
  });
});

describe('what somebody wants on a coordinator', () => {
  const OTHER = '95af-0eded6c885830d49';
  const FOREIGN = `the coordinator carries the network ${OTHER} that is not of this gateway`;
  const ACTION = { action: 'zgate.restore', object: `zgate/${A}` };
  const NOTHING = { newNetwork: null, restore: false, snapshot: null, askedUntil: null };
  /** A gateway without a network, with the coordinator of another one. */
  async function openForeign(more: Parameters<typeof openTestbed>[0] = {}) {
    const bed = await openTestbed(more);
    Object.assign(bed.played, { linkUp: false, linkError: FOREIGN });
    return bed;
  }
  const order = ({ zgates }: Testbed) => zgates.restore(A, { newNetwork: true }, CALLER);
  const shown = ({ zgates }: Testbed) => zgates.state(A).restore;

  it('is a new network in the place of the one that is there, until the link is up', async () => {
    const bed = await openForeign();
    expect([start(bed), shown(bed)]).toMatchObject([NOTHING, null]);
    expect(await order(bed)).toEqual({ deviceId: A, snapshot: null, takenAt: null, locks: 0 });
    const detail = { newNetwork: true, over: OTHER };
    expect(bed.audits.at(-1)).toMatchObject({ ...ACTION, outcome: 'accepted', detail });
    const again = await openForeign({ database: bed.database });
    expect(start(again)).toMatchObject({ newNetwork: OTHER, restore: false, snapshot: null });
    const until = '2026-01-01T00:15:00.000Z';
    expect(start(again).askedUntil).toBe(Date.parse(until));
    expect(shown(again)).toEqual({ snapshot: null, newNetwork: OTHER, until });
    again.played.linkUp = true;
    again.zgates.link('zb-1', true);
    await expect.poll(() => again.restarts).toEqual(['zb-1']);
    expect(again.audits).toMatchObject([{ outcome: 'done', detail: { newNetwork: true } }]);
    expect([start(again), shown(again)]).toMatchObject([NOTHING, null]);
    await expect(order(again)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    again.played.linkUp = false;
    await emit(again, 'a');
    await expect(order(again)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
  });

  it('is no new network where no coordinator has one to be given up', async () => {
    const bed = await openTestbed();
    bed.played.linkUp = false;
    await expect(order(bed)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect([start(bed), bed.restarts]).toMatchObject([NOTHING, []]);
  });

  it.each(['a new network', 'a snapshot'])('is %s for a quarter of an hour', async (what) => {
    const bed = await openForeign();
    if (what === 'a snapshot') await emit(bed, 'a');
    await (what === 'a snapshot' ? bed.zgates.restore(A, {}, CALLER) : order(bed));
    await bed.clock.advance(15 * 60_000 - 1);
    expect(shown(bed)).not.toBeNull();
    await bed.clock.advance(1);
    expect(shown(bed)).toBeNull();
    expect(start(bed)).toMatchObject({ newNetwork: null, restore: false, askedUntil: null });
    bed.zgates.link('zb-1', true);
    await bed.database.commit(() => undefined);
    expect([bed.restarts, bed.audits.length]).toEqual([['zb-1'], 1]);
  });

  it('ends with the gateway', async () => {
    const bed = await openForeign();
    await order(bed);
    await bed.zgates.declare([]);
    const outcome = { ...ACTION, outcome: 'withdrawn', principal: SYSTEM_PRINCIPAL };
    expect(bed.audits.at(-1)).toMatchObject(outcome);
    await bed.zgates.declare([{ deviceId: A, link: 'zb-2', networkId: B }]);
    expect([start(bed), shown(bed)]).toMatchObject([NOTHING, null]);
    // Also while the daemon does not run.
    await bed.zgates.declare([{ deviceId: A, link: 'zb-1', networkId: B }]);
    await order(bed);
    await openForeign({ database: bed.database, declared: [] });
    expect(start(await openForeign({ database: bed.database }))).toMatchObject(NOTHING);
  });

  it('ends, and the audit says so, where an earlier version has stored it, without its time', async () => {
    const bed = await openForeign();
    await order(bed);
    await bed.database.commit(() =>
      bed.database.prepare('UPDATE zgate_network SET restore_at = NULL, restore_over = NULL').run(),
    );
    const again = await openForeign({ database: bed.database });
    const detail = { reason: expect.stringContaining('give it again') };
    expect(again.audits).toMatchObject([
      { ...ACTION, outcome: 'ended', principal: SYSTEM_PRINCIPAL, detail },
    ]);
    expect(start(again)).toMatchObject(NOTHING);
    expect((await openForeign({ database: bed.database })).audits).toEqual([]);
  });

  it('can be withdrawn', async () => {
    const bed = await openForeign();
    expect(await bed.zgates.withdrawRestore(A, CALLER)).toEqual({ deviceId: A, withdrawn: false });
    await order(bed);
    expect(await bed.zgates.withdrawRestore(A, CALLER)).toEqual({ deviceId: A, withdrawn: true });
    expect([start(bed), shown(bed), bed.restarts]).toMatchObject([NOTHING, null, ['zb-1', 'zb-1']]);
    expect(bed.audits.at(-1)).toMatchObject({ ...ACTION, outcome: 'withdrawn' });
    await expect(bed.zgates.withdrawRestore(B, CALLER)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

/** Scans as jobs, and the overview of the buses. */

import { describe, expect, it } from 'vitest';
import { busWarning } from '../../../drivers/contract/bus-warnings.ts';
import type { Probe, Probed } from '../../../drivers/contract/rs485.ts';
import { A, openTestbed } from '../../../test/resources/rs485/testbed.ts';

type Bed = Awaited<ReturnType<typeof openTestbed>>;
const SILENCE = { replies: 0, timeouts: 2, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 };

function answers({ addresses, repeats }: Probe, present: Record<number, string>): Probed {
  return {
    results: addresses.map((address) => {
      const hwId = present[address];
      if (hwId === undefined) return { address, counters: SILENCE, turnaroundMs: null, identity: null };
      return {
        address,
        counters: { ...SILENCE, replies: repeats, timeouts: 0 },
        turnaroundMs: { min: 1, median: 2, max: 3 },
        identity: { hwId, type: 'io', version: '1', profile: null },
      };
    }),
  };
}
async function bedWith(present: Record<number, string>, link?: { protocol: string; port: string }) {
  const bed = await openTestbed(undefined, link);
  bed.answer((data, kind) => (kind === 'probe' ? answers(data as unknown as Probe, present) : null));
  return bed;
}
/** Asks for a scan and does its work. */
async function scan(bed: Bed, body: object, signal = new AbortController().signal) {
  const { status } = await bed.post('/scan', body);
  expect(status).toBe(202);
  const progress: unknown[] = [];
  const job = bed.jobs.at(-1);
  if (!job) throw new Error('no job was started');
  const result = await job.run(
    (now) => progress.push(now),
    signal,
    () => {},
  );
  return { job, progress, result: result as { addresses: Record<string, unknown>[] } };
}
const probes = (bed: Bed) =>
  bed.commands.filter(({ kind }) => kind === 'probe').map(({ data }) => data as unknown as Probe);

describe('a scan', () => {
  it('asks every address of a range, some at a time, and says how far it is', async () => {
    const bed = await bedWith({});
    const { job, progress } = await scan(bed, { bus: 'bus-1', from: 1, to: 31, repeats: 3 });
    expect(job).toMatchObject({ kind: 'rs485-scan', object: 'rs485/bus/bus-1', roles: ['service-tool'] });
    expect(probes(bed).map(({ addresses }) => addresses.length)).toEqual([16, 15]);
    expect(probes(bed).flatMap(({ addresses }) => addresses)).toEqual(
      Array.from({ length: 31 }, (_, index) => index + 1),
    );
    expect(probes(bed).every(({ repeats }) => repeats === 3)).toBe(true);
    expect(progress).toEqual([0, 16, 31].map((done) => ({ done, total: 31 })));
  });

  it.each([
    [{ from: 32 }, '/from', 'expected 0 to 31: bus bus-1 speaks loopback'],
    [{ from: 30, to: 32 }, '/to', 'expected 30 to 31: bus bus-1 speaks loopback'],
  ])('asks no address that the protocol does not have: %j', async (body, path, message) => {
    const bed = await bedWith({});
    const { status, body: answer } = await bed.post('/scan', { bus: 'bus-1', ...body });
    expect([status, answer]).toMatchObject([400, { details: [{ path, message }] }]);
    expect(bed.jobs).toEqual([]);
  });

  it('asks on modbus-tcp no reserved unit id', async () => {
    const bed = await bedWith({}, { protocol: 'modbus', port: 'modbus-tcp://10.0.0.7:502' });
    await scan(bed, { bus: 'bus-1' });
    const asked = probes(bed).flatMap(({ addresses }) => addresses);
    expect(asked).toEqual([...Array.from({ length: 247 }, (_, index) => index + 1), 255]);
  });

  it('shows who answered and who should have, and makes rows of those that are new', async () => {
    const bed = await bedWith({ 3: 'io-3', 9: 'io-9' });
    await bed.add({ deviceId: A, hwId: 'io-9', bus: 'bus-1' });
    const end = bed.run();
    bed.report('gone', { address: 5 });
    await bed.clock.advance(3_000);
    await end();
    bed.audits.length = 0;
    const { result } = await scan(bed, { bus: 'bus-1', from: 0, to: 15 });
    const rows = (await bed.get('')).body.items as { deviceId: string; hwId: string }[];
    const idOf = (hwId: string) => rows.find((row) => row.hwId === hwId)?.deviceId;
    expect(result.addresses).toMatchObject([
      { address: 3, answered: true, identity: { hwId: 'io-3' }, deviceId: idOf('io-3'), isNew: true },
      { address: 5, answered: false, identity: null, deviceId: idOf('gone'), isNew: false },
      { address: 9, answered: true, turnaroundMs: { median: 2 }, deviceId: A, isNew: false },
    ]);
    expect((await bed.get(`/${idOf('io-3')}/state`)).body.address).toBe(3);
    expect((await bed.get(`/${A}/state`)).body.address).toBe(9);
    expect(bed.audits).toMatchObject([{ action: 'rs485.found', principal: { label: 'service-tool' } }]);
  });

  it('creates nothing, and moves no one, where it is only to show', async () => {
    const bed = await bedWith({ 3: 'io-3', 9: 'io-9' });
    await bed.add({ deviceId: A, hwId: 'io-9', bus: 'bus-1' });
    const { result } = await scan(bed, { bus: 'bus-1', from: 0, to: 15, record: false });
    expect(result.addresses).toMatchObject([
      { address: 3, answered: true, identity: { hwId: 'io-3' }, deviceId: null, isNew: true },
      { address: 9, answered: true, deviceId: A, isNew: false },
    ]);
    expect((await bed.get('')).body.items).toMatchObject([{ hwId: 'io-9' }]);
    expect((await bed.get(`/${A}/state`)).body.address).toBe(null);
    expect(bed.audits).toEqual([]);
  });

  it('makes no row of a product that is known by its place, where the profile has a name', async () => {
    const bed = await bedWith({ 3: 'bus-1-3' });
    const { result } = await scan(bed, { bus: 'bus-1', from: 0, to: 15 });
    expect(result.addresses).toMatchObject([{ address: 3, answered: true, deviceId: null, isNew: false }]);
    expect((await bed.get('')).body.items).toEqual([]);
  });

  it('has devices watched that it found', async () => {
    const bed = await bedWith({ 3: 'io-3' });
    bed.run();
    bed.rs485.link('bus-1', true);
    await scan(bed, { bus: 'bus-1', from: 0, to: 4 });
    await bed.clock.advance(0);
    expect(bed.commands.at(-1)).toMatchObject({
      kind: 'watch',
      data: { devices: [{ address: 3, hwId: 'io-3' }] },
    });
  });

  it('keeps what it found when it is cancelled, and asks no further', async () => {
    const bed = await bedWith({ 3: 'io-3' });
    const stop = new AbortController();
    bed.answer((data) => {
      stop.abort(new Error('cancelled'));
      return answers(data as unknown as Probe, { 3: 'io-3' });
    });
    await expect(scan(bed, { bus: 'bus-1', from: 0, to: 31 }, stop.signal)).rejects.toThrow('cancelled');
    expect(probes(bed)).toHaveLength(1);
    expect((await bed.get('')).body.items).toMatchObject([{ hwId: 'io-3' }]);
  });

  it('fails with the reason of the driver', async () => {
    const bed = await bedWith({});
    bed.answer('LINK_LOST');
    await expect(scan(bed, { bus: 'bus-1' })).rejects.toMatchObject({ code: 'LINK_LOST' });
    bed.answer(() => ({ results: 'none' }));
    await expect(scan(bed, { bus: 'bus-1' })).rejects.toMatchObject({ code: 'BAD_REPLY' });
  });

  it.each<[object, string]>([
    [{}, '400 VALIDATION_FAILED'],
    [{ bus: 'attic' }, '400 VALIDATION_FAILED'],
    [{ bus: 'bus-1', from: 9, to: 8 }, '400 VALIDATION_FAILED'],
    [{ bus: 'bus-1', to: 256 }, '400 VALIDATION_FAILED'],
    [{ bus: 'bus-1', repeats: 101 }, '400 VALIDATION_FAILED'],
    [{ bus: 'bus-2' }, '503 DEVICE_OFFLINE'],
  ])('%j is refused', async (body, answer) => {
    const bed = await bedWith({});
    const { status, body: said } = await bed.post('/scan', body);
    expect(`${status} ${said.error}`).toBe(answer);
    expect(bed.jobs).toEqual([]);
  });
});

describe('the buses', () => {
  const report = (alive: boolean) => ({
    utilisation: 0.5,
    pollsPerSecond: 30,
    strayBytes: 2,
    warnings: [busWarning('ECHO', {})],
    devices: [{ address: 7, alive, turnaroundMs: 1.5, refreshMs: 200, heardMsAgo: 100, counters: SILENCE }],
  });
  /** Of the metrics alone. */
  const commandSeconds = { atMost: [{ bound: 0.1, count: 1 }], count: 2, sum: 0.35 };
  const wire = (alive: boolean) => ({
    address: 7,
    alive,
    turnaroundMs: 1.5,
    refreshMs: 200,
    replyAge: 350,
    counters: SILENCE,
  });

  it('are shown with who is asked on them, and the device with its wire', async () => {
    const bed = await openTestbed();
    const end = bed.run();
    bed.report('io-1', { address: 7 });
    await bed.clock.advance(3_000);
    await end();
    const [row] = (await bed.get('')).body.items as { deviceId: string }[];
    bed.rs485.report('bus-1', { subject: 'bus', state: { ...report(true), commandSeconds } });
    await bed.clock.advance(250);
    const { status, body } = await bed.get('/buses', 'front-desk-admin');
    expect([status, body.items]).toEqual([
      200,
      [
        {
          id: 'bus-1',
          protocol: 'loopback',
          port: null,
          up: true,
          lastError: null,
          since: '2026-01-01T00:00:00.000Z',
          reportAge: 250,
          pairing: null,
          ...report(true),
          devices: [{ ...wire(true), hwId: 'io-1', deviceId: row?.deviceId }],
        },
        expect.objectContaining({ id: 'bus-2', up: false, utilisation: null, devices: [], warnings: [] }),
      ],
    ]);
    const state = async () => (await bed.get(`/${row?.deviceId}/state`)).body;
    expect(await state()).toMatchObject({ reportAge: 350, wire: wire(true) });
    // A driver repeats what it knows of a device that has fallen silent meanwhile.
    await bed.clock.advance(4_000);
    bed.report('io-1', { address: 7 });
    expect(await state()).toMatchObject({ reportAge: 4_350 });
    expect(bed.rs485.buses.reports()).toEqual([
      { bus: 'bus-1', report: { ...report(true), commandSeconds } },
    ]);
    bed.report('io-1', { address: 7, connected: false });
    bed.rs485.report('bus-1', { subject: 'bus', state: { ...report(false), commandSeconds } });
    expect(await state()).toMatchObject({ reportAge: 100, wire: { alive: false } });
    bed.rs485.link('bus-1', false);
    expect(bed.rs485.buses.reports()).toEqual([]);
    for (const as of ['front-desk', 'pms']) expect((await bed.get('/buses', as)).status).toBe(403);
  });

  it('are shown in figures that people can read', async () => {
    const bed = await openTestbed();
    const [device] = report(true).devices;
    const devices = [{ ...device, turnaroundMs: 4.013_000_999_887_787, refreshMs: 200.06 }];
    const raw = { ...report(true), commandSeconds, utilisation: 0.123_456, pollsPerSecond: 30.049, devices };
    bed.rs485.report('bus-1', { subject: 'bus', state: raw });
    const { body } = await bed.get('/buses');
    expect(body.items).toMatchObject([
      { utilisation: 0.12, pollsPerSecond: 30, devices: [{ turnaroundMs: 4, refreshMs: 200.1 }] },
      {},
    ]);
  });

  it('are not believed when they report nonsense', async () => {
    const bed = await openTestbed();
    bed.rs485.report('bus-1', { subject: 'bus', state: { ...report(true), utilisation: 7 } });
    expect(bed.rs485.buses.reports()).toEqual([]);
  });
});

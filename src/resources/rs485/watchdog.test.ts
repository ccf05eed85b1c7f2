/** A relay that the gateway times, and the proof that its device opens it when the gateway is dead. */
import { describe, expect, it, vi } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { A, B, DOOR, NO_PINS, openTestbed } from '../../../test/resources/rs485/testbed.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { JobOrder, Progress } from '../../services/jobs/job-order.ts';

const SETTINGS = {
  ioPins: NO_PINS,
  relayIndex: 2,
  unlockDurationMilliseconds: 1_000,
  useInputPinMemory: false,
};
const WATCHDOG = { proof: 'one', milliseconds: 5_000 };
const TESTED = { relay: 2, waitedMilliseconds: 6_500, proof: 'one' };

async function ready(
  watchdog: (typeof WATCHDOG & { isNamedByPlace?: boolean }) | null = WATCHDOG,
  protocol?: string,
) {
  const bed = await openTestbed(undefined, { protocol });
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', doorId: DOOR, ...SETTINGS });
  const report = (more: object = {}) =>
    bed.report('io-1', { reportedSettingsVersion: 1, settings: SETTINGS, watchdog, ...more });
  report();
  bed.answer((_, kind) =>
    kind === 'testWatchdog' ? TESTED : { relay: 2, milliseconds: 1_000, timedBy: 'gateway' },
  );
  const pulse = async () => {
    const { status, body } = await bed.post(`/${A}/pulse`);
    return status === 200 ? 200 : `${status} ${body.error}`;
  };
  const run = async (order = bed.jobs.at(-1) as JobOrder) => {
    let isOver = false;
    const ended = order
      .run(
        () => {},
        new AbortController().signal,
        () => {},
      )
      .finally(() => (isOver = true));
    ended.catch(() => undefined);
    for (let waited = 0; !isOver && waited < 100; waited += 1) await bed.clock.advance(1_000);
    return await ended;
  };
  const prove = async () => {
    expect((await bed.post(`/${A}/watchdog-test`, { confirm: true })).status).toBe(202);
    const result = await run();
    expect((await bed.post(`/${A}/watchdog-test`, { openedByItself: true })).status).toBe(202);
    await run();
    return result;
  };
  const watchdogShown = () => bed.rs485.state(A).watchdog;
  return { bed, report, pulse, run, prove, watchdogShown };
}

/** The device answers, on a bus that is too slow for its watchdog. */
const BUS = {
  utilisation: 1,
  pollsPerSecond: 1,
  strayBytes: 0,
  commandSeconds: { atMost: [], count: 0, sum: 0 },
  warnings: [],
  devices: [
    {
      address: 3,
      alive: true,
      turnaroundMs: 4,
      refreshMs: 4_500,
      heardMsAgo: 0,
      counters: { replies: 9, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 },
    },
  ],
};

describe('a relay on a host watchdog', () => {
  it('that is not fed in time shows that in its state, in the status, and as the reason of a refusal', async () => {
    const { bed, report, watchdogShown } = await ready();
    const unfed = { pauseMilliseconds: 4_500, at: 1_000 };
    const watchdog = { ...WATCHDOG, unfed };
    report({ connected: false, address: 3, watchdog });
    bed.rs485.report('bus-1', { subject: 'bus', state: BUS });
    await bed.clock.advance(15_000);
    expect(watchdogShown()).toMatchObject({
      unfed: { pauseMilliseconds: 4_500, at: '1970-01-01T00:00:01.000Z' },
    });
    const reason = /its watchdog of 5000 ms was not fed for 4500 ms, as .* the bus is too slow/;
    expect(bed.rs485.missing()).toMatchObject([{ deviceId: A, message: expect.stringMatching(reason) }]);
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body.error, body.message]).toEqual([
      503,
      'DEVICE_OFFLINE',
      expect.stringMatching(reason),
    ]);
  });

  it('is not fired before its watchdog was proved, and says how to do that', async () => {
    const { bed, pulse, watchdogShown } = await ready();
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body.error]).toEqual([409, 'WATCHDOG_NOT_PROVEN']);
    expect(body.message).toMatch(/gatehouse bus watchdog-test io-1/);
    await expect(
      bed.rs485.holdRelay(
        { deviceId: A, bus: 'bus-1', hwId: 'io-1', relayIndex: 0 },
        { milliseconds: 1_000, timeoutMs: 1_000 },
        new AbortController().signal,
      ),
    ).rejects.toMatchObject({ code: 'WATCHDOG_NOT_PROVEN' });
    expect(() => bed.rs485.assertRelayProven(A)).toThrow(/gatehouse bus watchdog-test io-1/);
    expect([bed.commands, bed.audits]).toEqual([[], []]);
    expect(watchdogShown()).toEqual({
      milliseconds: 5_000,
      proven: false,
      provenAt: null,
      provenBy: null,
      awaitsWitness: false,
      unfed: null,
    });
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
  });

  it('is fired once it was proved, which is stored with who did it, and audited before and after', async () => {
    const { bed, pulse, prove, watchdogShown } = await ready();
    const at = new Date(bed.clock.now()).toISOString();
    expect(await prove()).toMatchObject({ deviceId: A, hwId: 'io-1', relay: 2, waitedMilliseconds: 6_500 });
    expect(bed.audits.map(({ action, outcome }) => [action, outcome])).toEqual([
      ['rs485.watchdogTest', 'accepted'],
      ['rs485.watchdogTest', 'done'],
      ['rs485.watchdogWitness', 'accepted'],
      ['rs485.watchdogWitness', 'done'],
    ]);
    expect(bed.audits[1]?.detail).toMatchObject({ relay: 2, proof: 'one', waitedMilliseconds: 6_500 });
    expect(bed.commands).toMatchObject([
      { kind: 'testWatchdog', data: { hwId: 'io-1', relay: 2 }, timeoutMs: 45_000 },
    ]);
    expect(await pulse()).toBe(200);
    expect(watchdogShown()).toMatchObject({ proven: true, provenBy: expect.any(String) });
    expect((watchdogShown()?.provenAt ?? '') >= at).toBe(true);
  });

  it.each([
    ['its profile says something else of the watchdog', { watchdog: { ...WATCHDOG, proof: 'two' } }, {}],
    [
      'another relay is in force',
      { reportedSettingsVersion: 2, settings: { ...SETTINGS, relayIndex: 3 } },
      { relayIndex: 3 },
    ],
  ])('is not fired any more when %s', async (_, more, edit) => {
    const { bed, report, pulse, prove } = await ready();
    await prove();
    await bed.put(A, edit);
    report(more);
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
    report();
    expect(await pulse()).toBe(200);
  });

  it('is not fired any more when another device is in its place', async () => {
    const { bed, pulse, prove } = await ready();
    await prove();
    expect((await bed.post(`/${A}/replace`, { hwId: 'io-9', confirm: true })).status).toBe(200);
    bed.report('io-9', { reportedSettingsVersion: 2, settings: SETTINGS, watchdog: WATCHDOG });
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
  });

  it('whose test has failed is not fired, also when an earlier one had not', async () => {
    const { bed, pulse, run, prove } = await ready();
    await prove();
    bed.answer(() => {
      throw new DriverError('REFUSED', 'output2 is still closed');
    });
    await bed.post(`/${A}/watchdog-test`, { confirm: true });
    await expect(run()).rejects.toThrow('output2 is still closed');
    expect(bed.audits.at(-1)).toMatchObject({
      outcome: 'failed',
      detail: { reason: 'output2 is still closed' },
    });
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
  });

  it.each([
    ['the test', 'REFUSED'],
    ['a person', undefined],
  ] as const)(
    'is not fired once %s has shown that it stays closed, although the disk fails',
    async (_, code) => {
      const { bed, pulse, run, prove } = await ready();
      await prove();
      expect(await pulse()).toBe(200);
      const failDisk = () =>
        vi
          .spyOn(bed.database, 'commit')
          .mockRejectedValue(new GatehouseError('STORAGE_UNAVAILABLE', 'the disk failed'));
      let failing: ReturnType<typeof failDisk> | undefined;
      bed.answer((_, kind) => {
        if (kind !== 'testWatchdog') return { relay: 2, milliseconds: 1_000, timedBy: 'gateway' };
        if (code === undefined) return TESTED;
        failing = failDisk();
        throw new DriverError(code, 'output2 is still closed');
      });
      await bed.post(`/${A}/watchdog-test`, { confirm: true });
      await run().catch(() => undefined);
      if (code === undefined) {
        await bed.post(`/${A}/watchdog-test`, { openedByItself: false });
        const { commit } = bed.database;
        let commits = 0;
        failing = vi.spyOn(bed.database, 'commit').mockImplementation((job, urgency) => {
          commits += 1;
          if (commits === 1) return commit(job, urgency);
          return Promise.reject(new GatehouseError('STORAGE_UNAVAILABLE', 'the disk failed'));
        });
        await run().catch(() => undefined);
      }
      expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
      failing?.mockRestore();
      expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
      const proofs = bed.database.prepare('SELECT * FROM rs485_watchdog_proof');
      await vi.waitFor(() => expect(proofs.all()).toEqual([]));
    },
  );

  it('keeps its proof when a test was broken off before it showed anything', async () => {
    const { bed, pulse, run, prove } = await ready();
    await prove();
    bed.answer(() => {
      throw new DriverError('LINK_LOST', 'the port is gone');
    });
    await bed.post(`/${A}/watchdog-test`, { confirm: true });
    await expect(run()).rejects.toThrow('the port is gone');
    bed.answer(() => ({ relay: 2, milliseconds: 1_000, timedBy: 'gateway' }));
    expect(await pulse()).toBe(200);
  });

  it('is not fired while its watchdog is tested: the refusal says that, and until when', async () => {
    const { bed, pulse, prove, report } = await ready();
    await prove();
    const tested = Promise.withResolvers<typeof TESTED>();
    bed.answer(() => tested.promise);
    await bed.post(`/${A}/watchdog-test`, { confirm: true });
    const shown: Progress[] = [];
    const running = bed.jobs.at(-1)?.run(
      (progress) => shown.push(progress),
      new AbortController().signal,
      () => {},
    );
    await expect.poll(() => shown.length).toBe(1);
    report({ connected: false });
    const { status, body } = await bed.post(`/${A}/pulse`);
    expect([status, body.error]).toEqual([409, 'IN_PROGRESS']);
    const until = new Date(bed.clock.now() + 45_000).toISOString();
    expect(body.message).toContain(`a watchdog test of device ${A} runs until ${until}`);
    expect(() => bed.rs485.assertRelayProven(A)).toThrow(/a watchdog test/);
    tested.resolve(TESTED);
    await running;
    expect(shown.at(-1)).toEqual({ done: 45_000, total: 45_000 });
    report();
    bed.answer(() => ({ relay: 2, milliseconds: 1_000, timedBy: 'gateway' }));
    expect(await pulse()).toBe(200);
  });

  it('is not fired before a person has said that the relay opened by itself, and never when it did not', async () => {
    const { bed, pulse, prove, run, watchdogShown } = await ready();
    const say = (openedByItself: boolean) => bed.post(`/${A}/watchdog-test`, { openedByItself });
    expect(await say(true)).toMatchObject({ status: 409, body: { error: 'WATCHDOG_NOT_PROVEN' } });
    await bed.post(`/${A}/watchdog-test`, { confirm: true });
    await run();
    expect(watchdogShown()).toMatchObject({ proven: false, awaitsWitness: true });
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
    await bed.clock.advance(601_000);
    expect((await say(true)).status).toBe(409);
    await prove();
    expect(await pulse()).toBe(200);
    await bed.post(`/${A}/watchdog-test`, { confirm: true });
    await run();
    // The earlier proof stands until then.
    expect(await pulse()).toBe(200);
    expect((await say(false)).status).toBe(202);
    await run();
    expect(bed.audits.at(-1)).toMatchObject({ action: 'rs485.watchdogWitness', outcome: 'failed' });
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
  });

  it('is tested only when somebody confirms that nothing hangs on it', async () => {
    const { bed } = await ready();
    const { status, body } = await bed.post(`/${A}/watchdog-test`, {});
    expect([status, body.error]).toEqual([409, 'CONFIRMATION_NEEDED']);
    expect(bed.jobs).toEqual([]);
  });
});

it('a device that opens its relay by itself needs no proof, and has nothing to test', async () => {
  const { bed, pulse, watchdogShown } = await ready(null);
  expect(await pulse()).toBe(200);
  expect(watchdogShown()).toBeNull();
  const { status, body } = await bed.post(`/${A}/watchdog-test`, { confirm: true });
  expect([status, body.error]).toEqual([409, 'NO_RELAY']);
});

describe('a proof of a product without a serial number', () => {
  const PLACED = { ...WATCHDOG, isNamedByPlace: true };

  it('is void while another product, or another version, is in its place', async () => {
    const { report, pulse, prove } = await ready(PLACED);
    await prove();
    for (const other of [{ type: 'other' }, { platform: { version: '2.2' } }, { profile: 'other' }]) {
      report(other);
      expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
    }
    report();
    expect(await pulse()).toBe(200);
  });

  it('is withdrawn when the device alone was away for long enough to be exchanged', async () => {
    const { bed, report, pulse, prove } = await ready(PLACED);
    await prove();
    report({ connected: false });
    await bed.clock.advance(299_000);
    report();
    expect(await pulse()).toBe(200);
    report({ connected: false });
    await bed.clock.advance(300_000);
    report();
    expect(await pulse()).toBe('409 WATCHDOG_NOT_PROVEN');
    const withdrawn = () => bed.audits.filter(({ action }) => action === 'rs485.watchdogProof');
    await expect.poll(withdrawn).toMatchObject([
      {
        outcome: 'withdrawn',
        detail: { reason: expect.stringMatching(/another one may be in its place/) },
      },
    ]);
    await prove();
    expect(await pulse()).toBe(200);
  });

  it.each([
    ['stays when the whole bus was away, as without power', true, 200],
    ['is withdrawn when another device of the bus stayed', false, '409 WATCHDOG_NOT_PROVEN'],
  ])('%s', async (_, bothGo, expected) => {
    const { bed, report, pulse, prove } = await ready(PLACED);
    await bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1' });
    bed.report('io-2');
    await prove();
    await bed.clock.advance(1_000);
    report({ connected: false });
    if (bothGo) bed.report('io-2', { connected: false });
    await bed.clock.advance(400_000);
    bed.report('io-2');
    report();
    expect(await pulse()).toBe(expected);
  });
});

it('a product with a serial number keeps its proof, however long it was away', async () => {
  const { bed, report, pulse, prove } = await ready();
  await prove();
  report({ connected: false });
  await bed.clock.advance(900_000);
  report();
  expect(await pulse()).toBe(200);
});

describe('on a bus whose modules are fed by one broadcast', () => {
  async function withOther() {
    const all = await ready(WATCHDOG, 'dcon');
    await all.bed.add({ deviceId: B, hwId: 'io-2', bus: 'bus-1', ...SETTINGS });
    const other = (more: object = {}) =>
      all.bed.report('io-2', { reportedSettingsVersion: 1, settings: SETTINGS, ...more });
    other();
    return { ...all, other };
  }

  it('no watchdog is tested while the relay of another device is closed', async () => {
    const { bed, other } = await withOther();
    other({ pulse: { relay: 2, remainingMilliseconds: 20_000 } });
    const { status, body } = await bed.post(`/${A}/watchdog-test`, { confirm: true });
    expect([status, body.error]).toEqual([409, 'IN_PROGRESS']);
    expect(body.message).toMatch(new RegExp(`relay of device ${B} is closed for another 20 s.*stands open`));
    await bed.clock.advance(20_000);
    expect((await bed.post(`/${A}/watchdog-test`, { confirm: true })).status).toBe(202);
  });

  it('no relay is fired while the watchdog of another device is tested', async () => {
    const { bed } = await withOther();
    const tested = Promise.withResolvers<typeof TESTED>();
    bed.answer(() => tested.promise);
    await bed.post(`/${A}/watchdog-test`, { confirm: true });
    const shown: Progress[] = [];
    const running = bed.jobs.at(-1)?.run(
      (progress) => shown.push(progress),
      new AbortController().signal,
      () => {},
    );
    await expect.poll(() => shown.length).toBe(1);
    const { status, body } = await bed.post(`/${B}/pulse`);
    expect([status, body.error]).toEqual([409, 'IN_PROGRESS']);
    expect(() => bed.rs485.assertRelayProven(B)).toThrow(/a watchdog test/);
    tested.resolve(TESTED);
    await running;
  });
});

/** Who may be active: no relay closes and no lock opens by the word of a gateway whose time is over. */
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { seeded } from '../../../test/faults/delivery/random.ts';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { silentLog } from '../../platform/log.ts';
import { JetStreamError } from '../../platform/nats/jetstream.ts';
import type { Bucket, Key } from './bucket.ts';
import { LEASE_MS, MARGIN_MS, openLease, RENEW_EVERY_MS, type Tenure } from './lease.ts';
import type { OwnState } from './own-state.ts';
import type { Records } from './record.ts';

const SITE = 'one';
const away = () => new JetStreamError('unavailable', 'no answer within 1000 ms');

/** As JetStream keeps it: one revision for all keys, and writes that expect one. */
function openPlayedBucket() {
  let records: Records = { lease: undefined, standby: undefined, wanted: undefined };
  let revision = 0;
  let cut = new Set<string>();
  const of = (name: string): Bucket => ({
    async read() {
      if (cut.has(name)) throw away();
      return structuredClone(records);
    },
    async write(key: Key, value: object, expected: number | undefined) {
      if (cut.has(name)) throw away();
      if (expected !== undefined && (records[key]?.revision ?? 0) !== expected)
        throw new JetStreamError('conflict', 'wrong last sequence');
      revision += 1;
      records = { ...records, [key]: { value: structuredClone(value), revision } };
      return revision;
    },
  });
  return {
    of,
    records: () => records,
    cutOff: (...names: string[]) => {
      cut = new Set(names);
    },
    remove: () => {
      records = { lease: undefined, standby: undefined, wanted: undefined };
      revision = 0;
    },
    /** As a server that was restored from an older copy of its disk. */
    restore: (older: Records) => {
      records = older;
    },
    /** What `gatehouse cluster promote` writes. */
    promote(active: string, after: number, force = false) {
      revision += 1;
      records = { ...records, wanted: { value: { active, force, after }, revision } };
    },
  };
}

type Played = ReturnType<typeof openPlayedBucket>;

interface Gateway {
  own: OwnState;
  tenure: Tenure | undefined;
  waits: string[];
  failed: Error | undefined;
  ended: string[];
}

/** Without a disk, so that its time is the clock's alone. */
function openPlayedState(): OwnState {
  let current: OwnState['current'] = {
    instance: randomUUID(),
    role: 'new',
    epoch: 0,
    standby: null,
    unplaced: null,
  };
  return {
    get current() {
      return current;
    },
    async change(to) {
      current = { ...current, ...to };
    },
  };
}

/** Acquires, keeps, and begins again when it has lost it, as the program does under systemd. */
function runGateway(
  name: string,
  { played, clock, ready = true, own = openPlayedState() }: RunOptions,
): Gateway {
  const bucket = played.of(name);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const gateway: Gateway = { own, tenure: undefined, waits: [], failed: undefined, ended: [] };
  const identity = { name, site: SITE, version: '1' };
  const lease = openLease({ bucket, own, identity, clock, log: silentLog });
  const run = async () => {
    while (!stop.signal.aborted) {
      const tenure = await lease.acquire((reason) => gateway.waits.push(reason), stop.signal);
      gateway.tenure = tenure;
      void tenure.keep(stop.signal);
      gateway.ended.push((await tenure.ended).reason);
      await tenure.release();
      gateway.tenure = undefined;
    }
  };
  run().catch((error) => {
    gateway.failed = error;
  });
  const announce = async () => {
    for (let beat = 0; !stop.signal.aborted; beat += 1) {
      const { instance } = own.current;
      const record = {
        site: SITE,
        name,
        instance,
        version: '1',
        ready,
        reason: null,
        position: 0,
        lacksSnapshot: false,
        beat,
      };
      if (!gateway.tenure)
        await bucket.write('standby', record, undefined, stop.signal).catch(() => undefined);
      await clock.sleep(1_000, stop.signal);
    }
  };
  announce().catch(() => undefined);
  return gateway;
}

interface RunOptions {
  played: Played;
  clock: ManualClock;
  ready?: boolean;
  own?: OwnState;
}

/** By the word of an operator, as the cluster is new. */
async function first({ played, clock }: RunOptions): Promise<Gateway> {
  const a = runGateway('a', { played, clock });
  played.promote('a', 0, true);
  await turn(clock, LEASE_MS + 1_000);
  return a;
}

/** One active gateway, and one that may take over. */
async function site() {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  const b = runGateway('b', { played, clock });
  await turn(clock, 5_000);
  expect(played.records().lease?.value).toMatchObject({ holder: 'a', standby: 'b' });
  return { played, clock, a, b };
}

const turn = (clock: ManualClock, milliseconds: number) => clock.advance(milliseconds);

const mayAct = ({ tenure }: Gateway, clock: ManualClock) =>
  tenure !== undefined && clock.monotonic() < tenure.until();

it('is of the first one, and the second takes over when the first is gone', async () => {
  const { played, clock, a, b } = await site();
  expect(mayAct(a, clock)).toBe(true);
  expect(b.waits.at(-1)).toBe('a is active');
  played.cutOff('a');
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(b.tenure?.epoch).toBe(2);
  expect(mayAct(a, clock)).toBe(false);
  expect(a.ended).toEqual([]);
  played.cutOff();
  await turn(clock, 3_000);
  expect(a.ended).toEqual(['b has the lease']);
  expect(a.waits.at(-1)).toBe('b is active');
  expect(a.tenure).toBeUndefined();
});

it('leaves a gateway that was stopped and wakes no time, before any timer of it has fired', async () => {
  const { clock, a } = await site();
  const until = a.tenure?.until() ?? 0;
  expect(until - clock.monotonic()).toBeLessThanOrEqual(LEASE_MS - MARGIN_MS);
  clock.hold(LEASE_MS);
  expect(clock.monotonic()).toBeGreaterThan(until);
  expect(mayAct(a, clock)).toBe(false);
});

it('is kept for good while NATS is away and no other one was named to take over', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  const b = runGateway('b', { played, clock, ready: false });
  await turn(clock, 3_000);
  played.cutOff('a');
  await turn(clock, 4 * LEASE_MS);
  expect(mayAct(a, clock)).toBe(true);
  expect(b.tenure).toBeUndefined();
});

it('is not held for a standby that has gone, so that NATS may go as well', async () => {
  const { played, clock, a } = await site();
  played.cutOff('b');
  await turn(clock, 32_000);
  expect(played.records().lease?.value.standby).toBeNull();
  played.cutOff('a', 'b');
  await turn(clock, 2 * LEASE_MS);
  expect(mayAct(a, clock)).toBe(true);
});

it('is written again by the active gateway when the bucket was deleted', async () => {
  const { played, clock, a, b } = await site();
  played.remove();
  await turn(clock, 3_000);
  expect(played.records().lease?.value).toMatchObject({ holder: 'a', standby: 'b' });
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([true, false]);
});

it('is kept by one that moves nothing while NATS is away, and goes on with the same epoch', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a', 'b');
  await turn(clock, 10 * LEASE_MS);
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([false, false]);
  played.cutOff();
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect([mayAct(a, clock), a.tenure?.epoch, a.ended]).toEqual([true, 1, []]);
  await turn(clock, 5_000);
  expect(mayAct(b, clock)).toBe(false);
});

it('is begun by no gateway where there is none, but by the word of an operator', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = runGateway('a', { played, clock });
  await turn(clock, 3 * LEASE_MS);
  expect(a.tenure).toBeUndefined();
  expect(a.waits.at(-1)).toContain('gatehouse cluster promote');
  played.promote('a', 0, true);
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect(mayAct(a, clock)).toBe(true);
});

it('is begun by no gateway where the bucket was deleted while the active one was cut off alone', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  played.cutOff('a');
  played.remove();
  const c = runGateway('c', { played, clock });
  await turn(clock, 5 * LEASE_MS);
  expect([mayAct(a, clock), mayAct(c, clock)]).toEqual([true, false]);
});

it('is not written again by a gateway that cannot know whether it was taken before the bucket was deleted', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a');
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(mayAct(b, clock)).toBe(true);
  played.cutOff('b');
  played.remove();
  await turn(clock, 5 * LEASE_MS);
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([false, true]);
  // b was switched off, says the operator.
  played.promote('a', 1, true);
  await turn(clock, 2 * RENEW_EVERY_MS);
  expect(mayAct(a, clock)).toBe(true);
});

it('is taken again by none that has seen a newer one than NATS knows', async () => {
  const { played, clock, a, b } = await site();
  const older = played.records();
  played.promote('b', 1);
  await turn(clock, 5_000);
  expect([mayAct(b, clock), a.own.current.epoch]).toEqual([true, 2]);
  played.cutOff('b');
  await turn(clock, 500);
  played.restore(older);
  await turn(clock, 5 * LEASE_MS);
  expect(a.tenure).toBeUndefined();
  expect(a.waits.at(-1)).toContain('NATS has lost the lease');
});

it('goes at once to the one that an operator has promoted', async () => {
  const { played, clock, a, b } = await site();
  played.promote('b', 1);
  await turn(clock, 3_000);
  expect(a.ended).toEqual(['b was promoted']);
  expect(mayAct(b, clock)).toBe(true);
});

it('is taken by one that is not named by the word of an operator, once', async () => {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  const b = runGateway('b', { played, clock, ready: false });
  await turn(clock, 3_000);
  played.cutOff('a');
  played.promote('b', 1, true);
  await turn(clock, LEASE_MS + 2 * RENEW_EVERY_MS);
  expect(b.tenure?.epoch).toBe(2);
  played.cutOff();
  await turn(clock, 3_000);
  expect(a.waits.at(-1)).toBe('b is active');
  played.promote('a', 2);
  await turn(clock, 5_000);
  expect(a.tenure?.epoch).toBe(3);
  played.cutOff('a');
  await turn(clock, 5 * LEASE_MS);
  expect(b.tenure).toBeUndefined();
});

it('refuses a data directory that was copied from the other gateway', async () => {
  const { clock, played, a } = await site();
  const copied = runGateway('c', { played, clock, own: a.own });
  await turn(clock, 1_000);
  expect(copied.failed?.message).toContain('the data directory is that of a');
});

it('refuses another site, and a second gateway of the same name', async () => {
  const { clock, played } = await site();
  const again = runGateway('a', { played, clock });
  await turn(clock, 1_000);
  expect(again.failed?.message).toContain('give each its own cluster.name');
});

it('lets at no time two act, whatever is cut off, stopped or deleted', async () => {
  let takeovers = 0;
  for (let seed = 1; seed <= 12; seed += 1) {
    const random = seeded(seed);
    const { played, clock, a, b } = await site();
    const c = runGateway('c', { played, clock });
    for (let step = 0; step < 25; step += 1) {
      const draw = random();
      const who = ['a', 'b', 'c'].filter(() => random() < 0.5);
      if (draw < 0.5) played.cutOff(...who);
      else if (draw < 0.55) played.remove();
      // Both see it as a process that was stopped does: time has passed, and no timer has fired.
      else if (draw < 0.7) clock.hold(random() * 1.5 * LEASE_MS);
      const epochs = [a, b, c].filter((one) => mayAct(one, clock)).map(({ tenure }) => tenure?.epoch);
      expect(epochs.length, `seed ${seed}, step ${step}`).toBeLessThan(2);
      await turn(clock, 250 * Math.ceil(random() * 40));
      expect([a, b, c].filter((one) => mayAct(one, clock)).length, `seed ${seed}`).toBeLessThan(2);
    }
    takeovers += a.ended.length + b.ended.length;
  }
  expect(takeovers).toBeGreaterThan(3);
});

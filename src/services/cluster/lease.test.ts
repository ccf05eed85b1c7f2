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
  };
}

type Played = ReturnType<typeof openPlayedBucket>;

interface Gateway {
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
    unplaced: false,
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
function runGateway(name: string, { played, clock, ready = true }: RunOptions): Gateway {
  const bucket = played.of(name);
  const own = openPlayedState();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const gateway: Gateway = { tenure: undefined, waits: [], failed: undefined, ended: [] };
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
}

/** One active gateway, and one that may take over. */
async function site() {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = runGateway('a', { played, clock });
  await turn(clock, LEASE_MS + 1_000);
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
  expect(a.ended).toEqual(['the lease could not be renewed in time']);
  expect(mayAct(a, clock)).toBe(false);
  played.cutOff();
  await turn(clock, 3_000);
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
  const a = runGateway('a', { played, clock });
  await turn(clock, LEASE_MS + 1_000);
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

it('is made anew by the active gateway when the bucket was deleted', async () => {
  const { played, clock, a, b } = await site();
  played.remove();
  await turn(clock, 3_000);
  expect(played.records().lease?.value).toMatchObject({ holder: 'a', standby: 'b' });
  expect([mayAct(a, clock), mayAct(b, clock)]).toEqual([true, false]);
});

it('is begun by no standby where the bucket was deleted, but by the word of an operator', async () => {
  const { played, clock, a, b } = await site();
  played.cutOff('a');
  played.remove();
  await turn(clock, 3 * LEASE_MS);
  expect(b.tenure).toBeUndefined();
  expect(b.waits.at(-1)).toContain('there is no lease');
  expect(mayAct(a, clock)).toBe(false);
  played.cutOff();
  await turn(clock, 2 * LEASE_MS);
  expect([a.tenure, b.tenure]).toEqual([undefined, undefined]);
  await played
    .of('cli')
    .write('wanted', { active: 'b', force: false }, undefined, new AbortController().signal);
  await turn(clock, 2_000);
  expect(mayAct(b, clock)).toBe(true);
});

it('goes at once to the one that an operator has promoted', async () => {
  const { played, clock, a, b } = await site();
  await played
    .of('cli')
    .write('wanted', { active: 'b', force: false }, undefined, new AbortController().signal);
  await turn(clock, 3_000);
  expect(a.ended).toEqual(['b was promoted']);
  expect(mayAct(b, clock)).toBe(true);
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
    for (let step = 0; step < 25; step += 1) {
      const draw = random();
      const who = ['a', 'b'].filter(() => random() < 0.5);
      if (draw < 0.5) played.cutOff(...who);
      else if (draw < 0.55) played.remove();
      // Both see it as a process that was stopped does: time has passed, and no timer has fired.
      else if (draw < 0.7) clock.hold(random() * 1.5 * LEASE_MS);
      const epochs = [a, b].filter((one) => mayAct(one, clock)).map(({ tenure }) => tenure?.epoch);
      expect(epochs.length, `seed ${seed}, step ${step}`).toBeLessThan(2);
      await turn(clock, 250 * Math.ceil(random() * 40));
      expect([a, b].filter((one) => mayAct(one, clock)).length, `seed ${seed}`).toBeLessThan(2);
    }
    takeovers += a.ended.length + b.ended.length;
  }
  expect(takeovers).toBeGreaterThan(3);
});

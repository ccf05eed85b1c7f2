/** Gateways of a cluster that do nothing but hold a lease, or wait for it, in a bucket that each can be cut off from. */
import { randomUUID } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { silentLog } from '../../../src/platform/log.ts';
import { JetStreamError } from '../../../src/platform/nats/jetstream.ts';
import type { Bucket, Key } from '../../../src/services/cluster/bucket.ts';
import { LEASE_MS, openLease, type Tenure } from '../../../src/services/cluster/lease.ts';
import type { OwnState } from '../../../src/services/cluster/own-state.ts';
import type { Records } from '../../../src/services/cluster/record.ts';
import { type ManualClock, manualClock } from '../../manual-clock.ts';

const SITE = 'one';
const away = () => new JetStreamError('unavailable', 'no answer within 1000 ms');

/** As JetStream keeps it: one revision for all keys, and writes that expect one. */
export function openPlayedBucket() {
  let records: Records = { lease: undefined, standby: undefined, wanted: undefined };
  let revision = 0;
  let cut = new Set<string>();
  let isFrozen = false;
  const of = (name: string): Bucket => ({
    async read() {
      if (cut.has(name)) throw away();
      return structuredClone(records);
    },
    async write(key: Key, value: object, expected: number | undefined) {
      if (cut.has(name) || isFrozen) throw away();
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
    /** As a server that has lost the others: what it has is read, and nothing is stored. */
    freeze: (frozen: boolean) => {
      isFrozen = frozen;
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
  /** As a crash ends it: what it remembers is on its disk. */
  kill(): void;
}

/** Without a disk, so that its time is the clock's alone. */
function openPlayedState(): OwnState {
  let current: OwnState['current'] = {
    instance: randomUUID(),
    role: 'new',
    epoch: 0,
    begun: 0,
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
export function runGateway(
  name: string,
  { played, clock, ready = true, own = openPlayedState() }: RunOptions,
): Gateway {
  const bucket = played.of(name);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const kill = () => stop.abort();
  const gateway: Gateway = { own, tenure: undefined, waits: [], failed: undefined, ended: [], kill };
  const identity = { name, site: SITE, version: '1' };
  const lease = openLease({ bucket, own, identity, clock, log: silentLog });
  const run = async () => {
    while (!stop.signal.aborted) {
      const tenure = await lease.acquire((reason) => gateway.waits.push(reason), stop.signal);
      gateway.tenure = tenure;
      void tenure.keep(stop.signal);
      const { reason } = await tenure.ended;
      if (stop.signal.aborted) return;
      gateway.ended.push(reason);
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
export async function first({ played, clock }: RunOptions): Promise<Gateway> {
  const a = runGateway('a', { played, clock });
  played.promote('a', 0, true);
  await turn(clock, LEASE_MS + 1_000);
  return a;
}

/** One active gateway, and one that may take over. */
export async function site() {
  const played = openPlayedBucket();
  const clock = manualClock();
  const a = await first({ played, clock });
  const b = runGateway('b', { played, clock });
  await turn(clock, 5_000);
  expect(played.records().lease?.value).toMatchObject({ holder: 'a', standby: 'b' });
  return { played, clock, a, b };
}

export const turn = (clock: ManualClock, milliseconds: number) => clock.advance(milliseconds);

export const mayAct = ({ tenure }: Gateway, clock: ManualClock) =>
  tenure !== undefined && clock.monotonic() < tenure.until();

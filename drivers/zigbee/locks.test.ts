/** What the locks of a gateway tell of themselves, whatever the radio knows of them now. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { StateReport } from '../driver.ts';
import { openLocks } from './locks.ts';
import { LOCK_CLUSTER, type Radio } from './radio.ts';

const LOCK = '00158d0001000001';
const DOOR_LOCK = 0x0101;
const OWN = 0xfc11;
const HOUR_MS = 3_600_000;

function openTestbed() {
  const clock = manualClock();
  const reports: StateReport[] = [];
  let knows = true;
  const device = {
    ieee: LOCK,
    interviewed: true,
    endpoints: [{ id: 1, inputs: [DOOR_LOCK, OWN], outputs: [] }],
  };
  const radio = {
    devices: () => [device],
    device: () => device,
    addCluster() {},
    memory: () => ({}),
    attribute(_: string, __: number, cluster: string) {
      if (cluster === LOCK_CLUSTER && !knows) throw new Error('UNSUPPORTED_CLUSTER');
      return undefined;
    },
  };
  const locks = openLocks({
    radio: () => radio as unknown as Radio,
    configurer: { configure: async () => true, read: async () => true },
    context: {
      clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      report: (one) => void reports.push(one),
    },
    outbox: { tell() {}, told: async () => undefined },
    usesOwnCluster: true,
    lastSeen: {},
    joinFailed() {},
    changed() {},
  });
  return {
    clock,
    locks,
    reports,
    knows(whether: boolean) {
      knows = whether;
    },
  };
}

it('bears a look at the locks while the radio is opened anew and does not know their cluster yet', () => {
  const { locks, reports, knows } = openTestbed();
  locks.begin();
  expect(reports).toHaveLength(1);
  knows(false);
  locks.review();
  locks.note(LOCK, { configVersion: 3 });
  expect(reports).toHaveLength(1);
  knows(true);
  locks.begin();
  expect(reports.at(-1)).toMatchObject({ state: { hwId: LOCK, configVersion: 3 } });
});

it('takes a lock that did not answer for there when it has spoken meanwhile, and else for missing', async () => {
  const { clock, locks, reports } = openTestbed();
  locks.begin();
  const speak = () => locks.take({ kind: 'seen', ieee: LOCK, lqi: 100, spoke: true });
  speak();
  const ended = locks.exchange(LOCK);
  await clock.advance(4_000);
  speak();
  await clock.advance(4_000);
  ended(false);
  await clock.advance(1_000);
  expect(reports.at(-1)).toMatchObject({ state: { connected: true } });
  locks.exchange(LOCK)(false);
  await clock.advance(1_000);
  expect(reports.at(-1)).toMatchObject({ state: { connected: false } });
  speak();
  await clock.advance(1_000);
  expect(reports.at(-1)).toMatchObject({ state: { connected: true } });
});

it('is there, or is not, by the time that has passed, whatever becomes of the clock on the wall', async () => {
  const { clock, locks, reports } = openTestbed();
  const reported = () => {
    locks.review();
    return reports.at(-1)?.state;
  };
  locks.begin();
  locks.take({ kind: 'seen', ieee: LOCK, lqi: 100, spoke: true });
  // A board without a clock of its own hears what time it is.
  clock.jumpWall(5 * HOUR_MS);
  expect(reported()).toMatchObject({ connected: true });
  clock.jumpWall(-24 * HOUR_MS);
  await clock.advance(3 * HOUR_MS);
  expect(reported()).toMatchObject({ connected: false });
});

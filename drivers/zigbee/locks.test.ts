/** The reports of the locks of a gateway, whatever the radio knows of them now. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { StateReport } from '../contract/driver.ts';
import type { LockReport } from '../contract/settings.ts';
import type { LockEvent } from '../contract/zgate.ts';
import type { Earlier } from './lock-record.ts';
import { openLocks } from './locks.ts';
import type { Facts } from './messages.ts';
import { LOCK_CLUSTER, type Radio } from './radio.ts';

const LOCK = '00158d0001000001';
const DOOR_LOCK = 0x0101;
const OWN = 0xfc11;
const HOUR_MS = 3_600_000;

function openTestbed({ heardOn = {}, missed = [], restore = false }: Partial<Earlier> = {}) {
  const clock = manualClock();
  const reports: StateReport[] = [];
  const events: LockEvent[] = [];
  const unreported: string[] = [];
  let knows = true;
  let channel = 15;
  const device = {
    ieee: LOCK,
    interviewed: true,
    endpoints: [{ id: 1, inputs: [DOOR_LOCK, OWN], outputs: [] }],
  };
  const radio = {
    get channel() {
      return channel;
    },
    devices: () => [device],
    device: () => device,
    addCluster() {},
    memory: () => ({}),
    sharing: () => [],
    attribute(_: string, __: number, cluster: string) {
      if (cluster === LOCK_CLUSTER && !knows) throw new Error('UNSUPPORTED_CLUSTER');
      return undefined;
    },
  };
  const locks = openLocks({
    radio: () => radio as unknown as Radio,
    configurer: { configure: async () => [], read: async () => true },
    context: {
      clock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      report: (one) => void reports.push(one),
    },
    outbox: { emit: (_, data) => void events.push(data as LockEvent), emitDurably: async () => undefined },
    usesOwnCluster: true,
    earlier: { lastSeen: { [LOCK]: clock.now() }, heardOn, missed, restore },
    unreported: (ieee) => void unreported.push(ieee),
    joinFailed() {},
    changed() {},
  });
  return {
    clock,
    locks,
    unreported,
    reports,
    events,
    move(to: number) {
      channel = to;
      locks.begin();
    },
    reported: () => {
      locks.review();
      return reports.at(-1)?.state;
    },
    knows(whether: boolean) {
      knows = whether;
    },
  };
}

it('bears a look at the locks while the radio is opened again and does not know their cluster yet', () => {
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

/** A report of its door-lock cluster. */
function speak(locks: ReturnType<typeof openTestbed>['locks'], data: object, tsn?: number): void {
  locks.take({
    kind: 'heard',
    ieee: LOCK,
    endpoint: 1,
    cluster: 'closuresDoorLock',
    type: 'attributeReport',
    tsn,
    data,
  });
  locks.take({ kind: 'seen', ieee: LOCK, lqi: 100, spoke: true });
}

it('does not go back in time by a report that was held up: the lock is asked', async () => {
  const { clock, locks, reports, events, unreported } = openTestbed();
  locks.begin();
  speak(locks, { lockState: 1 }, 4);
  const heard: Facts[] = [];
  locks.listen(LOCK, (facts) => heard.push(facts));
  speak(locks, { lockState: 2 }, 6);
  speak(locks, { lockState: 1 }, 5);
  await clock.advance(3_000);
  expect(reports.at(-1)).toMatchObject({ state: { lockState: { value: 'unlocked' } } });
  expect(events).toMatchObject([{ kind: 'bolt', what: 'unlocked' }]);
  expect(heard.filter((facts) => !facts.isThere)).toEqual([{ lockState: 2 }]);
  expect(unreported).toEqual([LOCK]);
});

it('reports at once that a bolt moved, and of the rest in a moment', async () => {
  const { clock, locks, reports } = openTestbed();
  locks.begin();
  const before = reports.length;
  speak(locks, { lockState: 2 });
  expect(reports.slice(before)).toMatchObject([
    { state: { connected: true, lockState: { value: 'unlocked' } } },
  ]);
  speak(locks, { autoRelockTime: 5 });
  expect(reports).toHaveLength(before + 1);
  await clock.advance(20);
  expect(reports).toHaveLength(before + 2);
});

it('reports a bolt that moved under a command behind its answer, or in a moment', async () => {
  const { clock, locks, reports } = openTestbed();
  locks.begin();
  const move = (lockState: number) => speak(locks, { lockState });
  const reported = () => reports.flatMap(({ state }) => (state as LockReport).lockState?.value ?? []);
  const answered = locks.listen(LOCK, () => undefined);
  move(2);
  answered();
  expect(reported()).toEqual([]);
  await clock.advance(0);
  expect(reported()).toEqual(['unlocked']);
  await clock.advance(20);
  expect(reported()).toEqual(['unlocked']);

  locks.listen(LOCK, () => undefined);
  move(1);
  await clock.advance(19);
  expect(reported()).toEqual(['unlocked']);
  await clock.advance(1);
  expect(reported()).toEqual(['unlocked', 'locked']);
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

const heard = (cluster: string, type: string, data: unknown, tsn?: number) => ({
  kind: 'heard' as const,
  ieee: LOCK,
  endpoint: 1,
  cluster,
  type,
  data,
  tsn,
});
const state = (lockState: number, tsn?: number) =>
  heard('closuresDoorLock', 'attributeReport', { lockState }, tsn);
const operation = (opereventcode: number, opereventsrc: number, tsn?: number) =>
  heard('closuresDoorLock', 'commandOperationEventNotification', { opereventcode, opereventsrc }, tsn);

it('reports the states of bolt, door and battery with their times', async () => {
  const { clock, locks, reports } = openTestbed();
  locks.begin();
  const first = clock.now();
  locks.take(heard('closuresDoorLock', 'attributeReport', { lockState: 1, doorState: 0 }));
  locks.take(
    heard('genPowerCfg', 'attributeReport', { batteryPercentageRemaining: 20, batteryAlarmState: 1 }),
  );
  await clock.advance(60_000);
  const second = clock.now();
  locks.take(state(0));
  locks.review();
  expect(reports.at(-1)?.state).toMatchObject({
    lockState: { value: 'notFullyLocked', at: second, heardAt: clock.monotonic() },
    doorState: { value: 'open', at: first },
    battery: 10,
    batteryLow: true,
    batteryAt: first,
  });
  // A lock that warns by an alarm takes it back by its new batteries.
  locks.take(heard('genPowerCfg', 'attributeReport', { batteryPercentageRemaining: 200 }));
  locks.review();
  expect(reports.at(-1)?.state).toMatchObject({ battery: 100, batteryLow: false, batteryAt: second });
});

it('keeps the time of the percentage when only the alarm is reported', async () => {
  const { clock, locks, reports } = openTestbed();
  locks.begin();
  const first = clock.now();
  locks.take(heard('genPowerCfg', 'attributeReport', { batteryPercentageRemaining: 174 }));
  await clock.advance(720_000);
  locks.take(heard('genPowerCfg', 'attributeReport', { batteryAlarmState: 1 }));
  locks.review();
  expect(reports.at(-1)?.state).toMatchObject({
    battery: 87,
    batteryAt: first,
    batteryLow: true,
    batteryLowAt: clock.now(),
  });
});

it('makes an event of a bolt that moved without one', async () => {
  const { clock, locks, events } = openTestbed();
  locks.begin();
  locks.take(state(1));
  await clock.advance(10_000);
  expect(events).toEqual([]);
  const at = clock.now();
  locks.take(state(0));
  await clock.advance(500);
  locks.take(state(2));
  await clock.advance(10_000);
  expect(events).toEqual([
    { hwId: LOCK, kind: 'bolt', what: 'unlocked', source: null, userId: null, heardAt: null, at: at + 500 },
  ]);
});

it('makes one event of a movement that has an operation event, whichever came first', async () => {
  const { clock, locks, events } = openTestbed();
  locks.begin();
  locks.take(state(1));
  locks.take(operation(2, 0));
  locks.take(state(2));
  await clock.advance(10_000);
  locks.take(state(1));
  await clock.advance(1_000);
  locks.take(operation(10, 2));
  await clock.advance(10_000);
  expect(events.map(({ what }) => what)).toEqual(['unlocked', 'lockedAutomatically']);
  // A failed entry is no movement.
  locks.take(operation(5, 0));
  locks.take(state(2));
  await clock.advance(10_000);
  expect(events.map(({ what }) => what).slice(2)).toEqual(['unlockFailedPin', 'unlocked']);
});

it('makes no second event of a frame that came twice', async () => {
  const { clock, locks, events } = openTestbed();
  locks.begin();
  const opened: unknown[] = [];
  locks.listen(LOCK, (facts) => opened.push(facts));
  locks.take(operation(2, 0, 7));
  await clock.advance(1_600);
  locks.take(operation(2, 0, 7));
  expect(opened).toHaveLength(1);
  // Another number, another content, and the same number much later.
  locks.take(operation(2, 0, 8));
  locks.take(operation(5, 0, 8));
  await clock.advance(60_000);
  locks.take(operation(2, 0, 7));
  await clock.advance(1_000);
  expect(events).toHaveLength(4);
});

const seen = { kind: 'seen', ieee: LOCK, lqi: 100, spoke: true } as const;

it('leaves a lock disconnected that was so before a channel move, until it is heard of on the new channel', () => {
  const { locks, move, reported } = openTestbed();
  locks.begin();
  locks.take(seen);
  locks.exchange(LOCK)(false);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  move(20);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  expect(locks.missed()).toHaveLength(1);
  locks.take(seen);
  expect(reported()).toMatchObject({ connected: true, heardOn: 20 });
  expect(locks.missed()).toEqual([]);
});

it('takes no lock for connected after a channel move that it did not show to have followed', () => {
  const { locks, move, reported } = openTestbed();
  locks.begin();
  locks.take(seen);
  // Its answer came before the move, and is credited after it.
  const ended = locks.exchange(LOCK);
  locks.take(seen);
  move(20);
  ended(true);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  // Back where it stayed, it has to speak as well.
  move(15);
  expect(reported()).toMatchObject({ connected: false, heardOn: 15 });
  locks.take(seen);
  expect(reported()).toMatchObject({ connected: true, heardOn: 15 });
});

it('takes a lock for disconnected after a start when it was so before, or was heard on another channel', () => {
  const before = openTestbed({ heardOn: { [LOCK]: 15 }, missed: [LOCK] });
  before.locks.begin();
  expect(before.reported()).toMatchObject({ connected: false, heardOn: 15 });
  // The host died between the move of the coordinator and the first word of the lock.
  const moved = openTestbed({ heardOn: { [LOCK]: 11 } });
  moved.locks.begin();
  expect(moved.reported()).toMatchObject({ connected: false, heardOn: 11 });
  moved.locks.take(seen);
  expect(moved.reported()).toMatchObject({ connected: true, heardOn: 15 });
});

it('takes no lock for connected to a coordinator that got its network by a restore, until it is heard of', () => {
  const restored = openTestbed({ heardOn: { [LOCK]: 15 }, restore: true });
  restored.locks.begin();
  expect(restored.reported()).toMatchObject({ connected: false });
  restored.locks.take(seen);
  expect(restored.reported()).toMatchObject({ connected: true });
  const asBefore = openTestbed({ heardOn: { [LOCK]: 15 } });
  asBefore.locks.begin();
  expect(asBefore.reported()).toMatchObject({ connected: true });
});

it('takes an answer to a question of somebody else for the state of the bolt, and not for the outcome of a command', () => {
  const { locks, reported } = openTestbed();
  locks.begin();
  const heard: unknown[] = [];
  locks.listen(LOCK, ({ lockState }) => heard.push(lockState));
  const take = (type: string, tsn: number) =>
    locks.take({
      kind: 'heard',
      ieee: LOCK,
      endpoint: 1,
      cluster: 'closuresDoorLock',
      type,
      tsn,
      data: { lockState: 2 },
    });
  // Asked when the bolt was unlocked still, and heard when the next unlock had been sent.
  take('readResponse', 1);
  expect(reported()).toMatchObject({ lockState: { value: 'unlocked' } });
  take('attributeReport', 2);
  expect(heard).toEqual([undefined, 2]);
});

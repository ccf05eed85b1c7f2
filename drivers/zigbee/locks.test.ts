/** The reports of the locks of a gateway, whatever the radio knows of them now. */
import { expect, it } from 'vitest';
import { LOCK, openHeardLocks } from '../../test/drivers/zigbee/heard-locks.ts';
import type { LockReport } from '../contract/settings.ts';
import type { Facts } from './messages.ts';

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

it('bears a look at the locks while the radio is opened again and does not know their cluster yet', () => {
  const { locks, reports, knows } = openHeardLocks();
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

/** A report of its door-lock cluster. */
function speak(locks: ReturnType<typeof openHeardLocks>['locks'], data: object, tsn?: number): void {
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
  const { clock, locks, reports, events, unreported } = openHeardLocks();
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
  const { clock, locks, reports } = openHeardLocks();
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
  const { clock, locks, reports } = openHeardLocks();
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

it('reports the states of bolt, door and battery with their times', async () => {
  const { clock, locks, reports } = openHeardLocks();
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
  const { clock, locks, reports } = openHeardLocks();
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
  const { clock, locks, events } = openHeardLocks();
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
  const { clock, locks, events } = openHeardLocks();
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
  const { clock, locks, events } = openHeardLocks();
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

it('takes an answer to a question of somebody else for the state of the bolt, and not for the outcome of a command', () => {
  const { locks, reported } = openHeardLocks();
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

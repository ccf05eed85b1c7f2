import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { Plain } from '../../../../drivers/contract/driver.ts';
import { manualClock } from '../../../../test/manual-clock.ts';
import { silentLog } from '../../log.ts';
import { EVENT_CREDITS, type HostMessage, SUBJECTS_MAX } from '../ipc.ts';
import { openEvents, openReports } from './outbox.ts';

const never = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));
const event = (id: string) => ({ id, kind: 'k', data: null });
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    (error: unknown) => error,
  );

const oldSpaceBytes = () =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ??
  Number.NaN;

function outgoing() {
  const sent: HostMessage[] = [];
  const send = async (message: HostMessage) => void sent.push(message);
  const ids = () => sent.map((message) => (message.type === 'event' ? message.id : message.type));
  return { sent, send, ids };
}

describe('reports', () => {
  it('leave at once, and then the latest of each subject every 20 ms', async () => {
    const { sent, send } = outgoing();
    const clock = manualClock();
    const reports = openReports(send, clock, silentLog);
    for (let n = 1; n <= 100; n += 1) {
      reports.report('a', { subject: 'x', state: n });
      reports.report('a', { subject: 'y', state: -n });
      await settled();
    }
    expect(sent).toHaveLength(2);
    await clock.advance(20);
    expect(sent.slice(2)).toEqual([
      { type: 'report', linkId: 'a', subject: 'x', state: 100 },
      { type: 'report', linkId: 'a', subject: 'y', state: -100 },
    ]);
    await clock.advance(100);
    expect(sent).toHaveLength(4);
    reports.report('a', { subject: 'x', state: 0 });
    await settled();
    expect(sent).toHaveLength(5);
  });

  it('wait while the daemon does not read', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const sent: HostMessage[] = [];
    const clock = manualClock();
    const send = (message: HostMessage) => {
      sent.push(message);
      return promise;
    };
    const reports = openReports(send, clock, silentLog);
    for (let n = 1; n <= 100; n += 1) {
      reports.report('a', { subject: 'x', state: n });
      await clock.advance(20);
    }
    expect(sent).toHaveLength(1);
    resolve();
    await clock.advance(20);
    expect(sent.at(-1)).toMatchObject({ state: 100 });
  });

  it('leave nothing that only a full garbage collection takes away', async () => {
    setFlagsFromString('--expose-gc');
    const collect: (options: { type: 'minor' | 'major' }) => void = runInNewContext('gc');
    const clock = manualClock();
    const reports = openReports(async () => undefined, clock, silentLog);
    const round = async () => {
      for (let subject = 0; subject < 9; subject += 1) {
        const state = Array.from({ length: 200 }, (_, index) => index / 3);
        reports.report('a', { subject: `${subject}`, state });
      }
      await clock.advance(20);
      // Promotes what is still reachable the second time.
      for (let time = 0; time < 2; time += 1) collect({ type: 'minor' });
    };
    await round();
    collect({ type: 'major' });
    const before = oldSpaceBytes();
    for (let times = 0; times < 100; times += 1) await round();
    expect(oldSpaceBytes() - before).toBeLessThan(500_000);
  });

  it('that the daemon would refuse stay here', async () => {
    const { sent, send } = outgoing();
    const clock = manualClock();
    const reports = openReports(send, clock, silentLog);
    reports.report('a', { subject: 'x', state: Number.NaN });
    reports.report('a', { subject: '', state: 1 });
    for (let n = 0; n < SUBJECTS_MAX + 10; n += 1) reports.report('a', { subject: `s${n}`, state: n });
    reports.report('b', { subject: 'x', state: 1 });
    await clock.advance(100);
    expect(sent).toHaveLength(SUBJECTS_MAX + 1);
  });
});

describe('events', () => {
  it('wait for a credit of their link, first come first served', async () => {
    const { send, ids } = outgoing();
    const events = openEvents(send);
    const emitted = Array.from({ length: EVENT_CREDITS + 2 }, (_, n) =>
      events.emit('a', event(`${n}`), never),
    );
    await settled();
    expect(ids()).toHaveLength(EVENT_CREDITS);
    void events.emit('b', event('other'), never);
    await settled();
    expect(ids().at(-1)).toBe('other');
    events.durable(5);
    await emitted[4];
    await settled();
    expect(ids().at(-1)).toBe(`${EVENT_CREDITS}`);
    expect(ids()).toHaveLength(EVENT_CREDITS + 2);
  });

  it('of a driver that waits for none of them are refused in the end', async () => {
    const { send } = outgoing();
    const events = openEvents(send);
    for (let n = 0; n < EVENT_CREDITS + 1_024; n += 1) void events.emit('a', event(`${n}`), never);
    expect(await failure(events.emit('a', event('x'), never))).toMatchObject({ code: 'BUSY' });
  });

  it('no one waits for any more keep their credit until they are durable', async () => {
    const { send, ids } = outgoing();
    const events = openEvents(send);
    const stop = new AbortController();
    const ends = Array.from({ length: EVENT_CREDITS + 1 }, (_, n) =>
      failure(events.emit('a', event(`${n}`), stop.signal)),
    );
    await settled();
    stop.abort('link lost');
    expect(new Set(await Promise.all(ends))).toEqual(new Set(['link lost']));
    void events.emit('a', event('next'), never);
    await settled();
    expect(ids()).not.toContain('next');
    events.durable(1);
    await settled();
    expect(ids().at(-1)).toBe('next');
    expect(ids()).toHaveLength(EVENT_CREDITS + 1);
  });

  it('given up in the moment their credit comes take no one else out of the queue', async () => {
    const { send, ids } = outgoing();
    const events = openEvents(send);
    const stop = new AbortController();
    for (let n = 0; n < EVENT_CREDITS; n += 1) void events.emit('a', event(`${n}`), never);
    void failure(events.emit('a', event('given up'), stop.signal));
    void events.emit('a', event('patient'), never);
    await settled();
    events.durable(1);
    stop.abort('cancelled');
    events.durable(2);
    await settled();
    expect(ids()).toContain('patient');
  });

  it('that were refused are sent again, once each time', async () => {
    const { send, ids } = outgoing();
    const events = openEvents(send);
    const emitted = events.emit('a', event('x'), never);
    void events.emit('a', event('y'), never);
    await settled();
    events.refused(1);
    events.sendRefused();
    events.sendRefused();
    expect(ids()).toEqual(['x', 'y', 'x']);
    events.durable(1);
    await emitted;
    expect(() => events.durable(1)).toThrow();
  });

  it('that were refused are sent again before the next one of their link, which would overtake them', async () => {
    const { send, ids } = outgoing();
    const events = openEvents(send);
    void events.emit('a', event('left'), never);
    await settled();
    events.refused(1);
    void events.emit('b', event('elsewhere'), never);
    void events.emit('a', event('joined'), never);
    await settled();
    events.sendRefused();
    expect(ids()).toEqual(['left', 'elsewhere', 'left', 'joined']);
  });

  it.each([
    { id: '', kind: 'k', data: null },
    { id: 'x', kind: 'k'.repeat(65), data: null },
    { id: 'x', kind: 'k', data: (() => 1) as unknown as Plain },
  ])('that the daemon would refuse are refused here', async (bad) => {
    const { send } = outgoing();
    expect(await failure(openEvents(send).emit('a', bad, never))).toBeInstanceOf(TypeError);
  });
});

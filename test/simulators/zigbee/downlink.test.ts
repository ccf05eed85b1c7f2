import { expect, it } from 'vitest';
import { openDownlink } from './air/downlink.ts';
import type { Aps, Node, Station } from './air/frames.ts';
import type { Losses } from './air/losses.ts';
import type { Time } from './time.ts';

/** IEEE 802.15.4-2011, 5.1.6.3: a device that polls is given the first frame that is kept for it. */
it('gives a sleeping node its frames in the order they came, also when it wakes in between', () => {
  let now = 0;
  const timers: { at: number; action: () => void }[] = [];
  const after = (milliseconds: number, action: () => void) => {
    timers.push({ at: now + milliseconds, action });
    return () => undefined;
  };
  const heard: unknown[] = [];
  let pollMs = 4_000;
  const node = {
    ieee: 'lock',
    nwk: 1,
    network: {},
    nextPoll: (at: number) => at + pollMs,
    accepts: () => true,
    misses: () => false,
    hear: (frame: Aps) => heard.push(frame.data),
  } as unknown as Node;
  const downlink = openDownlink({
    time: { now: () => now, after } as Time,
    nodes: new Map([['lock', node]]),
    station: { hasChild: () => true, nextFrameCounter: () => 1, epoch: () => 1 } as unknown as Station,
    losses: { options: () => ({ airMs: 0 }), fault: () => undefined } as unknown as Losses,
    counters: { down: 0, expired: 0 } as never,
    reaches: () => true,
  });
  const confirms: number[] = [];
  const send = (data: string) =>
    downlink.unicast({ destination: 1, data } as never, false, (status) => void confirms.push(status));
  send('first');
  pollMs = 50;
  send('second');
  for (const { at, action } of timers.toSorted((one, other) => one.at - other.at)) {
    now = at;
    action();
  }
  expect(heard).toEqual(['first', 'second']);
  expect(confirms).toEqual([0, 0]);
});

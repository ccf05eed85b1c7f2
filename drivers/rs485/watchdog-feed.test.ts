import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { Exchange } from '../bus/exchange.ts';
import { openWatchdogFeed } from './watchdog-feed.ts';

const ANSWERED: Exchange<null> = {
  address: 1,
  operation: '6',
  replyLength: 1,
  request: () => new Uint8Array(1),
  read: () => ({ kind: 'reply', reply: null }),
};

function openFed(outstanding: () => number) {
  const clock = manualClock();
  const feed = openWatchdogFeed(10_000, clock, outstanding);
  return {
    feed,
    /** `ago`: the answer may belong to a request that was sent so long before. */
    async askAfter(milliseconds: number, ago = 0) {
      await clock.advance(milliseconds);
      const exchange = feed.feeding(ANSWERED);
      exchange.request();
      exchange.replied?.(clock.monotonic() - ago);
    },
  };
}

it('is fed by an answer that can be of no other device', async () => {
  const { feed, askAfter } = openFed(() => 0);
  await askAfter(0);
  feed.armed();
  await askAfter(5_000);
  await askAfter(5_000);
  expect(feed.lapsedMs()).toBeUndefined();
});

it('is not fed by answers that late ones of other devices may be', async () => {
  let outstanding = 0;
  const { feed, askAfter } = openFed(() => outstanding);
  await askAfter(0);
  feed.armed();
  outstanding = 2;
  await askAfter(4_000);
  await askAfter(4_000);
  expect(feed.lapsedMs()).toBe(8_000);
});

it('is fed by one of more answers than can be late', async () => {
  let outstanding = 0;
  const { feed, askAfter } = openFed(() => outstanding);
  await askAfter(0);
  feed.armed();
  outstanding = 2;
  for (let count = 0; count < 8; count += 1) await askAfter(1_000);
  expect(feed.lapsedMs()).toBeUndefined();
});

it('is fed when the request was sent that the answer may belong to', async () => {
  const { feed, askAfter } = openFed(() => 0);
  await askAfter(0);
  feed.armed();
  await askAfter(7_000, 7_000);
  expect(feed.lapsedMs()).toBeUndefined();
  await askAfter(1_000, 8_000);
  expect(feed.lapsedMs()).toBe(8_000);
});

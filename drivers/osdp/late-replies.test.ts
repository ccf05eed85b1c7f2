/** What a reply that comes too late explains, and what it does not. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openLateReplies } from './late-replies.ts';
import type { Examined } from './protocol/transmission.ts';

const examined = (incidents: Examined['incidents'], foreignAddresses: number[] = []): Examined => ({
  answer: null,
  replyMac: null,
  fault: 'foreign',
  incidents,
  foreignAddresses,
  isFollowed: false,
  isOdd: false,
});

it('explains as many incidents as questions were missed, and no more', () => {
  const lateReplies = openLateReplies(manualClock());
  const reported = () => lateReplies.credible(1, examined(['stale'])).incidents;
  expect(reported()).toEqual(['stale']);
  lateReplies.missed(1);
  lateReplies.missed(1);
  expect([reported(), reported(), reported()]).toEqual([[], [], ['stale']]);
});

it('explains what a device says that missed its own question, and not another', () => {
  const lateReplies = openLateReplies(manualClock());
  lateReplies.missed(2);
  expect(lateReplies.credible(1, examined(['forged'])).incidents).toEqual(['forged']);
  expect(lateReplies.credible(1, examined(['foreignAddress', 'foreignAddress'], [3, 2])).incidents).toEqual([
    'foreignAddress',
  ]);
});

it('explains clear text by a question in clear text alone', () => {
  const lateReplies = openLateReplies(manualClock());
  const reported = () => lateReplies.credible(1, examined(['clearText'])).incidents;
  lateReplies.missed(1);
  expect(reported()).toEqual(['clearText']);
  lateReplies.missed(1, true);
  expect([reported(), reported()]).toEqual([[], ['clearText']]);
});

it('explains nothing that comes long after', async () => {
  const clock = manualClock();
  const lateReplies = openLateReplies(clock);
  lateReplies.missed(1);
  await clock.advance(10_001);
  expect(lateReplies.credible(1, examined(['second'])).incidents).toEqual(['second']);
});

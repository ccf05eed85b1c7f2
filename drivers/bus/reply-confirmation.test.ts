import { expect, it } from 'vitest';
import { openReplyTimes } from './reply-confirmation.ts';

it('counts an answer from when it was asked for', () => {
  const times = openReplyTimes<number>(() => 0);
  expect([times.readAt(1, 10), times.readAt(1, 20), times.readAt(2, 30)]).toEqual([10, 20, 30]);
});

it('counts from the oldest of as many equal answers as may be late ones of others, and one', () => {
  const times = openReplyTimes<number>(() => 2);
  const asked = [10, 20, 30, 40].map((at) => times.readAt(1, at));
  expect(asked).toEqual([undefined, undefined, 10, 20]);
  expect(times.readAt(2, 50)).toBeUndefined();
});

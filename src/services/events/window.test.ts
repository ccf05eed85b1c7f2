import { expect, it } from 'vitest';
import { ACKNOWLEDGEMENT_DEADLINE_MS, openWindow, type Sent } from './window.ts';

const message = (seq: number, sentAt = 0): Sent => ({
  row: { seq } as Sent['row'],
  isAhead: false,
  sentAt,
  state: 'in flight',
  failures: 0,
  reason: '',
});

const settledBy = (window: ReturnType<typeof openWindow>) => window.takeSettled().map(({ row }) => row.seq);

function windowOf(...messages: Sent[]) {
  const window = openWindow();
  for (const each of messages) window.add(each);
  return window;
}

it('settles only the beginning, whatever the order of the acknowledgements', () => {
  const [first, second, third] = [message(1), message(2), message(5)] as const;
  const window = windowOf(first, second, third);
  third.state = 'acknowledged';
  first.state = 'acknowledged';
  expect(settledBy(window)).toEqual([1]);
  expect(settledBy(window)).toEqual([]);
  expect(window.inFlight()).toBe(1);
  second.state = 'buried';
  expect(settledBy(window)).toEqual([2, 5]);
  expect(window.sent).toEqual([]);
});

it('waits for the deadline from the last sign of life, for a slow line is not a dead one', () => {
  const window = windowOf(message(1, 0), message(2, 0));
  expect(window.overdue(ACKNOWLEDGEMENT_DEADLINE_MS - 1, 0)).toBe(false);
  expect(window.overdue(ACKNOWLEDGEMENT_DEADLINE_MS, 0)).toBe(true);
  expect(window.overdue(ACKNOWLEDGEMENT_DEADLINE_MS, 1)).toBe(false);
});

it('waits no longer for a message that later ones have overtaken', () => {
  const later = message(2, 0);
  const window = windowOf(message(1, 0), later);
  later.state = 'acknowledged';
  expect(window.overdue(ACKNOWLEDGEMENT_DEADLINE_MS, ACKNOWLEDGEMENT_DEADLINE_MS - 1)).toBe(true);
});

it('is never overdue with nothing in flight', () => {
  expect(windowOf().overdue(1e9, 0)).toBe(false);
});

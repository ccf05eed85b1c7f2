import { expect, it } from 'vitest';
import { openHistogram } from '../../../drivers/contract/histogram.ts';
import { openMeters } from './meters.ts';

it('counts each measurement in every range it is within', () => {
  const histogram = openHistogram([1, 2, 5]);
  for (const value of [0, 1, 1.5, 5, 6]) histogram.observe(value);
  expect(histogram.read()).toEqual({
    atMost: [
      { bound: 1, count: 2 },
      { bound: 2, count: 3 },
      { bound: 5, count: 4 },
    ],
    count: 5,
    sum: 13.5,
  });
});

it('counts requests by method, route and status', () => {
  const { request, read } = openMeters();
  request('GET', '/encoder/{encoderId}', 200, 3);
  request('GET', '/encoder/{encoderId}', 200, 5);
  request('GET', '/encoder/{encoderId}', 404, 1);
  const [first, second, ...more] = read().requests;
  expect(first).toMatchObject({
    method: 'GET',
    route: '/encoder/{encoderId}',
    status: 200,
    seconds: { count: 2, sum: 0.008 },
  });
  expect(second).toMatchObject({ status: 404, seconds: { count: 1 } });
  expect(more).toEqual([]);
});

it('holds a bounded number of series, whatever clients send', () => {
  const { request, read } = openMeters();
  for (let index = 0; index < 5_000; index += 1) request(`M${index}`, 'none', 404, 1);
  expect(read().requests).toMatchObject([{ method: 'OTHER', seconds: { count: 5_000 } }]);
  for (let index = 0; index < 5_000; index += 1) request('GET', `/${index}`, 404, 1);
  expect(read().requests).toHaveLength(2_000);
});

it('has the series that alarms ask for before the first of them, and few others', () => {
  const { actuation, key, read } = openMeters();
  expect(read().keys.map(({ outcome, seconds }) => [outcome, seconds.count])).toEqual(
    ['written', 'failed', 'cancelled', 'expired', 'unknown'].map((outcome) => [outcome, 0]),
  );
  const unlocks = read().actuations.filter(({ action }) => action === 'door.unlock');
  expect(unlocks.map(({ way, outcome }) => `${way} ${outcome}`)).toEqual([
    'zigbee failed',
    'zigbee unknown',
    'rs485 failed',
    'rs485 unknown',
    'zigbee late',
  ]);
  for (let index = 0; index < 1_000; index += 1) {
    actuation({ action: `a${index}`, way: 'zigbee', outcome: 'done' }, 1);
    key(`k${index}`, 1);
  }
  expect([read().actuations.length, read().keys.length]).toEqual([100, 5]);
});

it('costs a request no more than a few microseconds', () => {
  const { request } = openMeters();
  const routes = Array.from({ length: 100 }, (_, index) => `/thing-${index}/{thingId}`);
  const measure = () => {
    const started = performance.now();
    for (let index = 0; index < 100_000; index += 1)
      request('GET', routes[index % 100] ?? '', 200, index % 300);
    return (performance.now() - started) / 100;
  };
  measure();
  // The best of some, since other programs run here as well.
  expect(Math.min(...Array.from({ length: 5 }, measure))).toBeLessThan(3);
});

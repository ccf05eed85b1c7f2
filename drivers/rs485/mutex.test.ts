/** Commands of one device, one after the other. */
import { expect, it } from 'vitest';
import { forever, outcomeOf } from '../../test/drivers/bus/bus.ts';
import { openMutex } from './mutex.ts';

it('lets one begin when the one before has ended, however it ended', async () => {
  const mutex = openMutex();
  const first = Promise.withResolvers<string>();
  const begun: string[] = [];
  const work = (name: string, until: Promise<string>) => () => {
    begun.push(name);
    return until;
  };
  const one = outcomeOf(mutex(work('one', first.promise), forever));
  const two = mutex(work('two', Promise.resolve('done')), forever);
  await new Promise(setImmediate);
  expect(begun).toEqual(['one']);
  first.reject(new Error('broken'));
  expect(await two).toBe('done');
  expect([one(), begun]).toEqual(['broken', ['one', 'two']]);
});

it('rejects a command at once when its time is over, and never begins it', async () => {
  const mutex = openMutex();
  const first = Promise.withResolvers<void>();
  const stop = new AbortController();
  void mutex(() => first.promise, forever);
  let isBegun = false;
  const late = mutex(async () => {
    isBegun = true;
  }, stop.signal);
  stop.abort();
  await expect(late).rejects.toMatchObject({ code: 'DEADLINE_PASSED' });
  const next = outcomeOf(mutex(async () => 'next', forever));
  await new Promise(setImmediate);
  expect(next()).toBe('pending');
  first.resolve();
  await expect.poll(next).toBe('next');
  expect(isBegun).toBe(false);
  await expect(mutex(async () => 1, stop.signal)).rejects.toMatchObject({ code: 'DEADLINE_PASSED' });
});

it('lets no more wait than people can want', async () => {
  const mutex = openMutex();
  const hung = new Promise<never>(() => {});
  for (let command = 0; command < 8; command += 1) void mutex(() => hung, forever);
  await expect(mutex(() => hung, forever)).rejects.toMatchObject({ code: 'BUSY' });
});

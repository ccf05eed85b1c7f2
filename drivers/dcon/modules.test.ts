/** Modules that come and go while the bus runs. */
import { expect, it, vi } from 'vitest';
import type { Module } from './module.ts';
import { openModules } from './modules.ts';

/** Modules that leave when they are let go; what happens is reported in `events`. */
function fakes() {
  const events: string[] = [];
  let leave = Promise.resolve();
  const open = (address: number) =>
    ({
      address,
      run: async (signal: AbortSignal) => {
        events.push(`${address} runs`);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        await leave;
        events.push(`${address} ends`);
        throw signal.reason;
      },
      close: async () => void events.push(`${address} closes`),
    }) as unknown as Module;
  return {
    events,
    open,
    slowly() {
      const held = Promise.withResolvers<void>();
      leave = held.promise;
      return held.resolve;
    },
  };
}

it('has the configured modules and the watched ones, each once', () => {
  const { open } = fakes();
  const modules = openModules([1, 1, 2], open);
  modules.watch([2, 3]);
  expect(modules.all().map(({ address }) => address)).toEqual([1, 2, 3]);
  modules.watch([]);
  expect(modules.all().map(({ address }) => address)).toEqual([1, 2]);
});

it('takes a module again that has not left yet when it is asked for again', async () => {
  const { events, open, slowly } = fakes();
  const modules = openModules([], open);
  const stop = new AbortController();
  const run = modules.run(stop.signal).catch((error: unknown) => error);
  modules.watch([3]);
  const release = slowly();
  modules.watch([]);
  await vi.waitFor(() => expect(events).toEqual(['3 runs', '3 closes']));
  await new Promise(setImmediate);
  modules.watch([3]);
  release();
  await vi.waitFor(() => expect(events).toEqual(['3 runs', '3 closes', '3 ends', '3 runs']));
  stop.abort(new Error('enough'));
  expect(await run).toMatchObject({ message: 'enough' });
});

/** What happened at devices while the bus was about to end. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { DriverEvent } from '../contract/driver.ts';
import { openEventQueue } from './event-queue.ts';

it('is emitted when its link has ended before the events ahead of it were stored', async () => {
  const emitted: string[] = [];
  const room = Promise.withResolvers<void>();
  // As a host does: what it has no room for yet is dropped when the signal fires.
  async function emit({ kind }: DriverEvent, signal: AbortSignal): Promise<void> {
    await room.promise;
    signal.throwIfAborted();
    emitted.push(kind);
  }
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const events = openEventQueue({ emit, clock: manualClock(), log });
  const stop = new AbortController();
  const run = events.run(stop.signal);
  events.add({ kind: 'input', hwId: 'io-1', since: null, input: 'input0', activations: 1, total: 1 });
  await new Promise(setImmediate);
  events.add({ kind: 'alarm', hwId: 'io-1', alarm: 'tamper', raised: true });
  stop.abort(new Error('the cable is cut'));
  await expect(run).rejects.toThrow('the cable is cut');
  room.resolve();
  await expect.poll(() => emitted).toEqual(['input', 'alarm']);
});

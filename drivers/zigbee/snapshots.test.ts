import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { Radio } from './radio.ts';
import { openSnapshots } from './snapshots.ts';
import type { Prepared } from './state-files.ts';

it('end with their link, also while the coordinator sits on a backup', async () => {
  const clock = manualClock();
  const asked = Promise.withResolvers<void>();
  const save = () => {
    asked.resolve();
    return new Promise<never>(() => undefined);
  };
  const snapshots = openSnapshots({
    network: { radio: () => ({ formed: true, save }) as unknown as Radio, files: {} as Prepared },
    context: { clock, log: { debug() {}, info() {}, warn() {}, error() {} } },
    outbox: { emit: () => undefined, emitDurably: async () => undefined },
    locks: () => 0,
  });
  const link = new AbortController();
  const running = snapshots.run(link.signal);
  await clock.advance(5_000);
  await asked.promise;
  link.abort(new Error('the link has ended'));
  await expect(running).rejects.toThrow('the link has ended');
});

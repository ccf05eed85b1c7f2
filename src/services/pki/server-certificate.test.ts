import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { openServerCertificate } from './server-certificate.ts';

it('is looked at every minute, and handed over when it is another one', async () => {
  const clock = manualClock();
  let name = 'first';
  const identity = async () => ({ chain: name, key: name, notBefore: 0, notAfter: 1 });
  const certificate = await openServerCertificate(identity, clock);
  const shown: string[] = [];
  const stop = new AbortController();
  const kept = certificate.keep(({ chain }) => void shown.push(chain), stop.signal);
  await clock.advance(180_000);
  expect(shown).toEqual([]);
  name = 'second';
  // A jump of the wall clock does not delay the next look.
  clock.jumpWall(-86_400_000);
  await clock.advance(60_000);
  expect([...shown, certificate.current().chain]).toEqual(['second', 'second']);
  stop.abort(new Error('stopped'));
  await expect(kept).rejects.toThrow('stopped');
});

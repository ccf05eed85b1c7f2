/** Lock commands to a lock that was away when they were sent. */
import { expect, it } from 'vitest';
import { LOCK, unlockOf } from '../../test/drivers/zigbee/gateway.ts';
import { openPlayed, SILENT } from '../../test/drivers/zigbee/played-lock.ts';

/** It hears nothing of the first frame, which is a lock command. */
async function openAway() {
  const asked = Promise.withResolvers<void>();
  const played = await openPlayed({
    async before() {
      const [first, next] = played.requests;
      if (next) return;
      asked.resolve();
      await new Promise((resolve) => first?.known?.addEventListener('abort', resolve));
    },
    reply: () => (played.sent.length > 1 ? undefined : SILENT),
  });
  const locking = played.begin('lock');
  await asked.promise;
  return { ...played, locking };
}

it('sends a lock command once more to a lock that was away and speaks', async () => {
  const { say, clock, sent, locking } = await openAway();
  say({ isThere: true });
  await clock.advance(1_000);
  expect(sent).toEqual(['lockDoor', 'lockDoor', 'read']);
  expect(await locking.end).toEqual({ outcome: 'confirmed' });
});

it('does not lock a lock once more that is unlocked meanwhile', async () => {
  const { run, clock, sent, locking } = await openAway();
  expect(await run('unlock', unlockOf(LOCK))).toMatchObject({ outcome: 'confirmed' });
  await clock.advance(5_000);
  expect(sent).toEqual(['lockDoor', 'unlockWithTimeout']);
  locking.stop();
  await expect(locking.end).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
});

import { expect, it, onTestFinished } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { silentLog } from '../log.ts';
import { feedWatchdog, type Vital } from './watchdog.ts';

const WATCHDOG_MS = 30_000;

async function feeding(vitals: Vital[], watchdogMs = WATCHDOG_MS) {
  const clock = manualClock();
  const said: string[] = [];
  const logged: string[] = [];
  const stop = new AbortController();
  const fed = feedWatchdog(
    {
      notifier: {
        watchdogMs: watchdogMs || undefined,
        ready: (status) => said.push(`ready ${status}`),
        status: (text) => said.push(text),
        alive: () => said.push('alive'),
        stopping: () => said.push('stopping'),
      },
      vitals,
      describe: () => 'well',
      clock,
      log: { ...silentLog, error: (_fields, message) => logged.push(message) },
    },
    stop.signal,
  );
  onTestFinished(async () => {
    stop.abort();
    await fed;
  });
  /** What was said in so many milliseconds. */
  const during = async (milliseconds: number) => {
    said.length = 0;
    await clock.advance(milliseconds);
    return said.splice(0);
  };
  return { during, logged, fed };
}

const well: Vital = { name: 'a', check: async () => {} };

it('gives a sign of life three times within what systemd allows', async () => {
  const { during } = await feeding([well, well]);
  const said = await during(WATCHDOG_MS);
  expect(said.filter((word) => word === 'alive').length).toBeGreaterThanOrEqual(3);
  expect(new Set(said)).toEqual(new Set(['alive', 'well']));
});

it.each<[string, () => Promise<unknown>]>([
  ['fails', () => Promise.reject(new Error('no'))],
  ['never answers', () => new Promise(() => {})],
])('gives none while a vital %s, says which, and goes on when it works again', async (_how, broken) => {
  let works = true;
  const { during, logged } = await feeding([
    well,
    { name: 'the writer', check: () => (works ? well.check() : broken()) },
  ]);
  await during(WATCHDOG_MS);
  works = false;
  await during(WATCHDOG_MS / 3);
  const said = await during(10 * WATCHDOG_MS);
  expect(new Set(said)).toEqual(new Set(['not working: the writer']));
  expect(logged).toEqual([expect.stringMatching(/^the writer does not work; systemd will restart/)]);
  works = true;
  await during(WATCHDOG_MS);
  expect(await during(WATCHDOG_MS)).toContain('alive');
});

it('looks after nothing when systemd does not ask', async () => {
  const looked: string[] = [];
  const { fed } = await feeding([{ name: 'a', check: async () => looked.push('a') }], 0);
  await fed;
  expect(looked).toEqual([]);
});

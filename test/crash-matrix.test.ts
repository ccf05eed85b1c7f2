/**
 * Daemon or encoder, or both, killed with -9 in every state of an entry. Afterwards each key has exactly one outcome
 * upstream, no card was written twice, and `written` means that the card holds the key.
 *
 * CRASH_SEED repeats a run. CRASH_RUNS is the least number of crashes: there are more until every state was struck.
 */
import { expect, it } from 'vitest';
import { type Finished, runOnce } from './crash/lane.ts';
import { drawRuns, type Run } from './crash/plan.ts';
import type { PhysicalRecord } from './simulators/encoder/cards.ts';
import type { SiteEncoder } from './simulators/site.ts';
import { openTestSite, type TestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';

const SEED = Number(process.env.CRASH_SEED ?? Date.now() % 1_000_000);
/** Every moment meets every victim twice. */
const RUNS = Number(process.env.CRASH_RUNS ?? 66);
const RUNS_MAX = Math.max(RUNS, 200);
const LANES = 6;
const STATES = ['queued', 'started', 'cardRequested', 'cardDetected', 'writing', 'written'];
const TIMINGS = {
  // Long enough that a process that shares its processor still strikes in each of them.
  startMs: 60,
  placeMs: 30,
  detectMs: 30,
  writeMs: 40,
  reconnectMs: 20,
  repeatMs: 500,
};

it(`keeps its promises through ${RUNS} crashes (CRASH_SEED=${SEED})`, { timeout: 600_000 }, async () => {
  await using site = await openTestSite();
  const finished = await crash(site);
  await settle(site, finished);

  const outcomes: Record<string, number> = {};
  for (const result of finished) {
    const log = result.encoder.physicalLog();
    for (const { keyId, blocks } of result.entries) {
      const outcome = checkEvents(site, result, keyId);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      checkCards(log, keyId, outcome, blocks, result);
    }
  }
  checkOrder(site);
  const counts = struck(finished);
  console.log(`CRASH_SEED=${SEED}`, outcomes, counts);
  expect(neverStruck(finished)).toEqual([]);
});

/** How often each victim was struck in each state. */
function struck(finished: Finished[]): Record<string, number> {
  const hits = Object.groupBy(finished, ({ run, struckIn }) => `${run.victim} in ${struckIn}`);
  return Object.fromEntries(Object.entries(hits).map(([where, all]) => [where, all?.length ?? 0]));
}

function neverStruck(finished: Finished[]): string[] {
  const counts = struck(finished);
  return STATES.flatMap((state) =>
    ['daemon', 'encoder']
      .filter((victim) => !counts[`${victim} in ${state}`] && !counts[`both in ${state}`])
      .map((victim) => `${victim} in ${state}`),
  );
}

async function crash(site: TestSite): Promise<Finished[]> {
  const runs = drawRuns(SEED, RUNS_MAX);
  const isMore = ({ number }: Run) => number < RUNS || neverStruck(finished).length > 0;
  const finished: Finished[] = [];
  let daemonIsBack = Promise.resolve();
  const crashDaemon = () => {
    daemonIsBack = daemonIsBack.then(async () => {
      await site.daemon.kill();
      await site.daemon.start();
    });
    return daemonIsBack;
  };
  const encoders: SiteEncoder[] = [];
  for (let lane = 0; lane < LANES; lane += 1) {
    encoders.push(await site.addEncoder(`encoder-${lane}`, { timings: TIMINGS }));
  }
  await Promise.all(
    encoders.map(async (encoder) => {
      encoder.start();
      for (let run = runs.shift(); run && isMore(run); run = runs.shift()) {
        finished.push(await runOnce({ site, encoder, crashDaemon, daemonIsBack: () => daemonIsBack }, run));
      }
    }),
  );
  return finished;
}

/** One more key on each encoder: whatever was still to come upstream comes before it. */
async function settle(site: TestSite, finished: Finished[]): Promise<void> {
  const encoders = new Set(finished.map(({ encoder }) => encoder));
  for (const [index, encoder] of [...encoders].entries()) {
    const run = { ...drawRuns(SEED, 1)[0], number: RUNS_MAX + index, victim: 'encoder', losesJournal: false };
    const lane = { site, encoder, crashDaemon: nothing, daemonIsBack: nothing };
    await runOnce(lane, run as Finished['run']);
  }
}

const nothing = () => Promise.resolve();

/** The one outcome of a key. */
function checkEvents({ upstream }: TestSite, { run }: Finished, keyId: string): string {
  const events = upstream.events.filter(({ subject }) => subject === keyId);
  const terminal = events.filter(isTerminalEvent);
  expect(terminal, `outcomes of ${keyId} in ${JSON.stringify(run)}`).toHaveLength(1);
  expect(events.at(-1)).toBe(terminal[0]);
  return terminal[0]?.data.status ?? '';
}

function checkCards(
  log: PhysicalRecord[],
  keyId: string,
  outcome: string,
  blocks: string[],
  { run }: Finished,
) {
  const begun = log.filter((entry) => entry.what === 'partial' && entry.keyId === keyId);
  const complete = log.filter((entry) => entry.what === 'complete' && entry.keyId === keyId);
  const where = `${keyId} ended ${outcome} in ${JSON.stringify(run)}`;
  expect(begun.length, where).toBeLessThanOrEqual(1);
  expect(['written', 'unknown'], where).toContain(outcome);
  if (outcome === 'written') expect(complete, where).toMatchObject([{ blocks }]);
  // A daemon may die as it likes: only an encoder that died does not know what became of its card.
  if (outcome === 'unknown') expect(run.victim, where).not.toBe('daemon');
  for (const { cardId } of begun) {
    const keysOnCard = log.filter((entry) => entry.what === 'partial' && entry.cardId === cardId);
    expect(keysOnCard, where).toHaveLength(1);
  }
}

/** No event is missing and none overtook another, whatever was repeated. */
function checkOrder({ upstream }: TestSite): void {
  const last = new Map<string, number>();
  for (const { source, sequence } of upstream.events) {
    expect(Number(sequence)).toBe((last.get(source) ?? 0) + 1);
    last.set(source, Number(sequence));
  }
}

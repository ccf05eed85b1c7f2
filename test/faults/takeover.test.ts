/**
 * Campaigns of takeover: orders and changes for a pair of gateways, while they are killed, stopped, cut off from NATS, half cut off and promoted. `npm run faults -- takeover --seeds 20` runs more of them.
 */
import { expect, it } from 'vitest';
import { manualClock } from '../manual-clock.ts';
import { seeded } from './delivery/random.ts';
import { faultsOf } from './takeover/checker.ts';
import { openPlayedGateway, type Records } from './takeover/gateway.ts';
import { openPlayedStreams, type Way } from './takeover/streams.ts';

const { FAULT_SEEDS = '1,2,3', FAULT_STEPS = '40' } = process.env;
const SEEDS = FAULT_SEEDS.split(',').map(Number);
const DAY_MS = 86_400_000;
const KINDS = [
  'kill',
  'start',
  'stop',
  'wake',
  'cut',
  'half',
  'slow',
  'away',
  'open',
  'promote',
  'clock',
] as const;
type Kind = (typeof KINDS)[number];
/** Twice, so that a run is not all outage. */
const DRAWN: readonly Kind[] = [...KINDS, 'open', 'open', 'wake', 'start'];

async function campaign(seed: number) {
  const random = seeded(seed);
  const clock = manualClock();
  const streams = openPlayedStreams();
  let happened = 0;
  const records: Records = {
    next: () => ++happened,
    tenures: [],
    closed: [],
    answered: [],
    faults: [],
    refused: 0,
    notKept: 0,
    late: 0,
  };
  const both = (['a', 'b'] as const).map((name) => openPlayedGateway(name, { streams, clock, records }));
  const reached = new Set<Kind>();
  let number = 0;
  const drawn = () => both[random() < 0.5 ? 0 : 1] as (typeof both)[number];
  const ways: Partial<Record<Kind, Way>> = { cut: 'cut', half: 'half', slow: 'slow', open: 'open' };

  async function work(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += 500) {
      for (const one of both) {
        if (random() < 0.5) one.order(random());
        number += 1;
        one.commit(`row ${number}`);
      }
      await clock.advance(500);
    }
  }
  async function disturb(kind: Kind): Promise<void> {
    const one = drawn();
    const way = ways[kind];
    if (way) one.way = way;
    else if (kind === 'away') for (const each of both) each.way = 'cut';
    else if (kind === 'kill') one.kill();
    else if (kind === 'start' && !one.isRunning()) one.start();
    else if (kind === 'stop') one.stop();
    else if (kind === 'wake') one.wake();
    else if (kind === 'promote') void one.promote().catch(() => undefined);
    else if (kind === 'clock') clock.jumpWall((random() < 0.5 ? -90 : 90) * DAY_MS);
    else return;
    reached.add(kind);
  }
  async function heal(): Promise<void> {
    for (const one of both) {
      one.way = 'open';
      one.wake();
      if (!one.isRunning()) one.start();
    }
    await work(40_000);
  }

  const [a, b] = both as [(typeof both)[number], (typeof both)[number]];
  a.start();
  void a.promote();
  await work(15_000);
  b.start();
  await work(10_000);
  for (let step = 0; step < Number(FAULT_STEPS); step += 1) {
    await disturb(DRAWN[Math.floor(random() * DRAWN.length)] as Kind);
    await work(500 + random() * 9_000);
    if (random() < 0.15) await heal();
  }
  await heal();
  const active = both.find((one) => one.tenure());
  const faults = faultsOf(records, active?.rows() ?? []);
  if (!active) faults.push('no one is active, and nothing is wrong any more');
  for (const one of both) one.kill();
  faults.push(...records.faults);
  return { faults, records, reached };
}

it('lets no fenced gateway close a relay, and loses nothing that was answered', {
  timeout: 600_000,
}, async () => {
  const reached = new Set<Kind>();
  const sum = { takeovers: 0, closed: 0, late: 0, answered: 0, refused: 0, notKept: 0 };
  for (const seed of SEEDS) {
    const { faults, records, reached: here } = await campaign(seed);
    expect(faults, `seed ${seed}`).toEqual([]);
    for (const kind of here) reached.add(kind);
    const { tenures, closed, answered } = records;
    const names = tenures.map(({ name }) => name);
    sum.takeovers += names.filter((name, index) => index > 0 && name !== names[index - 1]).length;
    sum.closed += closed.length;
    sum.answered += answered.length;
    for (const key of ['late', 'refused', 'notKept'] as const) sum[key] += records[key];
    console.log(`seed ${seed}: sound; ${JSON.stringify(sum)} so far`);
  }
  expect([...reached].toSorted()).toEqual([...KINDS].toSorted());
  for (const [what, count] of Object.entries(sum)) expect(count, what).toBeGreaterThan(0);
});

/**
 * From the request to the lock and back, in turns: ours over HTTPS and without TLS, the least that takes what ours
 * promises, zigbee2mqtt over MQTT.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { openRandom } from '../../simulators/bus/random.ts';
import { monotonicMs } from '../../simulators/bus/time.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../../simulators/zigbee/gateway.ts';
import { type BenchTable, quantile, type Row } from '../table.ts';
import { openFloor } from './floor.ts';
import { ratioRow } from './peer-rows.ts';
import { type BenchSite, macsOf, openBenchSite, planOf } from './site.ts';
import { installPeer, openPeer, PEER } from './zigbee2mqtt.ts';

const LOCKS = 20;
/** The first warms both up. */
const ROUNDS = 11;
/** Of zigbee2mqtt's time, by the latency of the air in milliseconds. */
const TARGET_RATIOS = { 0: 1.4, 15: 1.05 } as const;
type AirMs = keyof typeof TARGET_RATIOS;
/** What a bolt that is thrown by hand has its gateway do is over by then. */
const SETTLE_MS = 700;
const SPACING_MS = 25;
/**
 * For so long after its start a gateway also reads the bolt after each unlock: what a process before it has sent may
 * still arrive (drivers/zigbee/held-frames.ts).
 */
const STARTED_MS = 35_000;

interface Contender {
  simulated: SimulatedGateway;
  macs: readonly string[];
  unlock(mac: string): Promise<void>;
  samples: Samples;
}
interface Samples {
  heardMs: number[];
  answeredMs: number[];
}

type Adapter = SimulatedGateway['adapter'];

export const benchUnlock = (options: { cache: string }) => unlocks(options, 0, 'zstack');
export const benchUnlockAir = (options: { cache: string }) => unlocks(options, 15, 'zstack');
export const benchUnlockEmber = (options: { cache: string }) => unlocks(options, 0, 'ember');

const contender = (one: Omit<Contender, 'samples'>): Contender => ({
  ...one,
  samples: { heardMs: [], answeredMs: [] },
});

/** What it takes at least, of Z-Stack alone. */
async function openFloors(stack: AsyncDisposableStack, airMs: AirMs, adapter: Adapter): Promise<Contender[]> {
  if (adapter !== 'zstack') return [];
  const macs = macsOf(1, LOCKS);
  const prepared = stack.use(await openBenchSite([planOf(1, LOCKS, { airMs })]));
  await prepared.stop();
  const simulated = simulatedOf(prepared);
  const { unlock } = stack.use(await openFloor(simulated, macs));
  return [contender({ simulated, macs, unlock })];
}

async function unlocks({ cache }: { cache: string }, airMs: AirMs, adapter: Adapter): Promise<BenchTable> {
  await using stack = new AsyncDisposableStack();
  const plan = planOf(0, LOCKS, { airMs, adapter });
  const macs = macsOf(0, LOCKS);
  const floors = await openFloors(stack, airMs, adapter);
  const site = stack.use(await openBenchSite([plan]));
  const openedAt = monotonicMs();
  const simulated = simulatedOf(site);
  const ours = contender({ simulated, macs, unlock: site.unlock });
  const local = contender({ simulated, macs, unlock: site.unlockLocally });

  const installed = installPeer(cache);
  let theirs: Contender | undefined;
  if ('entry' in installed) {
    const coordinator = stack.use(await openSimulatedGateway(plan));
    const peer = stack.use(await openPeer(installed, coordinator));
    await peer.join(coordinator, macs);
    theirs = contender({ simulated: coordinator, macs, unlock: peer.unlock });
  }
  await takeTurns([ours, local, ...floors, ...(theirs ? [theirs] : [])], openedAt + STARTED_MS);
  const median = quantile(ours.samples.answeredMs, 0.5);
  const theirMedian = theirs && quantile(theirs.samples.answeredMs, 0.5);
  return {
    title: `Zigbee: unlock, ${LOCKS} locks, ${airMs} ms of air, ${adapter}`,
    rows: [
      { what: 'POST …/unlock → command at the lock', figure: figureOf(ours.samples.heardMs) },
      {
        what: 'POST …/unlock → answer, confirmed by the lock',
        figure: figureOf(ours.samples.answeredMs),
      },
      {
        what: 'the same without TLS, over the local socket',
        figure: figureOf(local.samples.answeredMs),
      },
      ...floors.map(({ samples }) => ({
        what: 'the floor: bare HTTPS, two durable writes, a process for the coordinator',
        figure: figureOf(samples.answeredMs),
      })),
      ...peerRows(theirs, 'missing' in installed ? installed.missing : ''),
      ratioRow({
        what: `ours / ${PEER}, p50 to the answer`,
        ours: median,
        target: TARGET_RATIOS[airMs],
        ...(theirMedian !== undefined && { theirs: theirMedian }),
      }),
      ...floors.flatMap(({ samples }) => floorRows(quantile(samples.answeredMs, 0.5), median, theirMedian)),
    ],
    notes: [
      'Both end with the report of the bolt. Ours also waits twice for the disk (intent and outcome in the audit), for the',
      'coordinator to show that it reads its port, and for the response of the lock, which follows its report here;',
      'zigbee2mqtt waits for neither, and stores nothing. HTTPS over a kept connection; MQTT over mosquitto, without TLS.',
    ],
  };
}

function floorRows(floor: number, ours: number, theirs: number | undefined): Row[] {
  return [
    {
      what: `the floor / ${PEER}, p50 to the answer`,
      figure: theirs === undefined ? 'not measured' : `${(floor / theirs).toFixed(2)} ×`,
    },
    { what: 'ours / the floor, p50 to the answer', figure: `${(ours / floor).toFixed(2)} ×` },
  ];
}

function simulatedOf({ gateways: [gateway] }: BenchSite): SimulatedGateway {
  if (!gateway) throw new Error('there is no gateway');
  return gateway.simulated;
}

/** `from`: of monotonic time. What comes before it is not measured. */
async function takeTurns(contenders: readonly Contender[], from: number): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const one of contenders) {
      const samples = await unlockAll(one);
      if (round === 0) continue;
      one.samples.heardMs.push(...samples.heardMs);
      one.samples.answeredMs.push(...samples.answeredMs);
    }
    if (round === 0) await sleep(Math.max(0, from - monotonicMs()));
  }
}

function peerRows(theirs: Contender | undefined, missing: string): Row[] {
  if (!theirs) return [{ what: PEER, figure: `not measured: ${missing}`, met: false }];
  return [
    { what: `${PEER}: set UNLOCK → command at the lock`, figure: figureOf(theirs.samples.heardMs) },
    { what: `${PEER}: set UNLOCK → its published state`, figure: figureOf(theirs.samples.answeredMs) },
  ];
}

function figureOf(samples: readonly number[]): string {
  return `p50 ${quantile(samples, 0.5).toFixed(2)} ms, p99 ${quantile(samples, 0.99).toFixed(1)} ms`;
}

async function unlockAll({ simulated, macs, unlock }: Contender): Promise<Samples> {
  const random = openRandom(1);
  for (const mac of macs) await simulated.set(mac, { manual: 'lock' });
  await sleep(SETTLE_MS);
  const samples: Samples = { heardMs: [], answeredMs: [] };
  const begun = new Map<string, number>();
  for (const mac of macs) {
    await sleep(SPACING_MS * (1 + random()));
    const at = monotonicMs();
    begun.set(mac, at);
    await unlock(mac);
    samples.answeredMs.push(monotonicMs() - at);
  }
  for (const [mac, at] of begun) {
    const { executed } = await simulated.state(mac);
    // A lock of ours locks again by itself after a while.
    const heard = executed.find(({ source, startedMs }) => source === 'rf' && startedMs >= at);
    if (!heard) throw new Error(`lock ${mac} was not reached by radio`);
    samples.heardMs.push(heard.startedMs - at);
  }
  return samples;
}

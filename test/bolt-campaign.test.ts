/**
 * Doors are unlocked, locked and made to stand open while answers, confirms and links are lost, locks are slow, elsewhere or
 * do not what they say, frames come late, again or from strangers, and hosts and the gateway are killed with -9. The locks' own logs then say whether a bolt was drawn unasked, twice, late,
 * or although nothing was sent, and whether what was confirmed was done. In the end each lock has its own relock time and mode.
 *
 * BOLT_SEED repeats a run, BOLT_STEPS lengthens it.
 */
import { expect, it, vi } from 'vitest';
import { type Command, judge } from './bolts/judge.ts';
import { type Lane, planOf, run, TROUBLES } from './bolts/lane.ts';
import { generator } from './crash/plan.ts';
import type { LockState } from './simulators/zigbee/lock.ts';
import { MAKES } from './simulators/zigbee/makes.ts';
import type { GatewayPlan } from './simulators/zigbee/plan.ts';
import { openZigbeeSite, waitFor, type ZigbeeSite } from './zigbee-site.ts';

const SEED = Number(process.env.BOLT_SEED ?? 11);
const STEPS = Number(process.env.BOLT_STEPS ?? 48);
const LOCKS_EACH = 6;
/**
 * After an unlock of unknown outcome the frame may arrive for 35 s, a lock that relocks by itself has 15 s for that and its
 * report, and a command to lock it has 20 s.
 */
const RELOCKED = { timeout: 80_000, interval: 100 };
const addresses = (first: number) =>
  Array.from({ length: LOCKS_EACH }, (_, index) => `00158d00020000${(first + index).toString(16)}`);
const MACS = [addresses(0x10), addresses(0x40)] as const;
const now = () => Number(process.hrtime.bigint()) / 1e6;

it(`draws no bolt unasked, twice or late, and confirms nothing else (BOLT_SEED=${SEED})`, async () => {
  const [first, second] = MACS;
  const { zstack, ember } = MAKES;
  const plans = [
    planOf(first, '00124b0014d9a001', zstack.adapter),
    planOf(second, '00124b0014d9a002', ember.adapter),
  ] as const;
  await using site = await openZigbeeSite(plans);
  const strikes = strikesOf(site);
  const lanes: Lane[] = [];
  for (const [index, macs] of MACS.entries())
    for (const mac of macs) lanes.push(await laneOf(site, plans, index as 0 | 1, mac, strikes));
  const { next, reached } = troublesOf(generator(SEED));
  const own = await Promise.all(lanes.map(ownOf));
  const commands = await Promise.all(lanes.map((lane) => run(lane, next)));
  await strikes.isServing();

  const outcomes: Record<string, number> = {};
  const violations: Record<string, string[]> = {};
  for (const [index, { gateway, mac }] of lanes.entries()) {
    // No matter what opened it and what relocks it.
    const restored = { lockState: 1, ...own[index] };
    await vi.waitFor(
      async () => expect(await gateway.simulated.state(mac)).toMatchObject(restored),
      RELOCKED,
    );
    const sent = commands[index] ?? [];
    for (const { kind, outcome } of sent)
      outcomes[`${kind} ${outcome}`] = (outcomes[`${kind} ${outcome}`] ?? 0) + 1;
    const state = await gateway.simulated.state(mac);
    const found = judge(sent, state);
    if (found.length > 0) {
      violations[mac] = found;
      console.log(historyOf(mac, sent, state));
    }
  }
  console.log(`BOLT_SEED=${SEED}`, outcomes, reached);
  expect(violations).toEqual({});
  expect(outcomes).toMatchObject({
    'unlock confirmed': expect.any(Number),
    'unlock unknown': expect.any(Number),
    'standOpen confirmed': expect.any(Number),
  });
  expect(Object.keys(reached)).toHaveLength(Object.keys(TROUBLES).length);
}, 300_000);

/** Each trouble is drawn once before any is drawn again. */
function troublesOf(random: () => number) {
  const reached: Record<string, number> = {};
  let left: string[] = [];
  return {
    reached,
    next(): string {
      if (left.length === 0) left = Object.keys(TROUBLES);
      const [name = 'nothing'] = left.splice(Math.floor(random() * left.length), 1);
      reached[name] = (reached[name] ?? 0) + 1;
      return name;
    },
  };
}

/** What standing open changes for a time. */
async function ownOf({
  gateway,
  mac,
}: Lane): Promise<Pick<LockState, 'autoRelockSeconds' | 'operatingMode'>> {
  const { autoRelockSeconds, operatingMode } = await gateway.simulated.state(mac);
  return { autoRelockSeconds, operatingMode };
}

/** What the door was asked, and what its lock heard and did, by time. */
function historyOf(mac: string, commands: readonly Command[], { received, executed }: LockState): string {
  const lines = [
    ...commands.flatMap(({ kind, begunMs, answeredMs, overMs, outcome }) => [
      [begunMs, `${kind} is asked`] as const,
      [answeredMs, `${kind} of ${begunMs.toFixed(0)}: ${outcome}`] as const,
      ...(kind === 'standOpen' ? [[overMs, `${kind} of ${begunMs.toFixed(0)} has ended`] as const] : []),
    ]),
    ...received.map(({ monotonicMs, tsn, cluster, command, isFoundation, payload }) => {
      const scope = isFoundation ? 'foundation' : 'cluster';
      return [monotonicMs, `heard ${scope} ${cluster}/${command} tsn ${tsn}: ${payload}`] as const;
    }),
    ...executed.map(({ startedMs, monotonicMs, what, source, tsn }) => {
      return [startedMs, `${what} by ${source}, tsn ${tsn}, until ${monotonicMs.toFixed(0)}`] as const;
    }),
  ];
  const sorted = lines.toSorted(([one], [other]) => one - other);
  return [`lock ${mac}`, ...sorted.map(([at, what]) => `${at.toFixed(0)} ${what}`)].join('\n');
}

async function laneOf(
  site: ZigbeeSite,
  plans: readonly GatewayPlan[],
  index: 0 | 1,
  mac: string,
  strikes: ReturnType<typeof strikesOf>,
): Promise<Lane> {
  const gateway = site.gateways[index];
  const isConnected = () =>
    waitFor(async () => expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }));
  await isConnected();
  const { id } = await site.join(gateway, mac);
  const { status } = await site.call('PUT', `/access/doors/${id}`, { standOpenEnabled: true });
  expect(status).toBe(200);
  await gateway.simulated.set(mac, { clearLog: true });
  const random = generator(SEED + Number.parseInt(mac.slice(-2), 16));
  return {
    site,
    gateway,
    mac,
    sleepy: plans[index]?.locks?.find(({ ieee }) => ieee === mac)?.sleepy,
    doorId: id,
    random,
    now,
    isServing: strikes.isServing,
    async mayGoOn() {
      const isMore = await strikes.mayGoOn();
      if (isMore) await isConnected();
      return isMore;
    },
  };
}

/** Between commands: a cut link, a stick without power, a host that is killed, then the gateway itself. */
function strikesOf({ site, gateways: [one, other] }: ZigbeeSite) {
  let step = 0;
  let serving: Promise<unknown> = Promise.resolve();
  const isServing = async () => void (await serving);
  return {
    isServing,
    async mayGoOn(): Promise<boolean> {
      step += 1;
      if (step === Math.floor(STEPS / 4)) {
        await other.simulated.setGateway({ plugged: false, selfReset: true });
        await other.simulated.replug();
      }
      if (step === Math.floor(STEPS / 3)) await one.simulated.drop();
      if (step === Math.floor(STEPS / 2)) process.kill(other.hostPid(), 'SIGKILL');
      if (step === Math.floor((2 * STEPS) / 3)) serving = site.daemon.kill().then(() => site.daemon.start());
      await serving;
      return step <= STEPS;
    },
  };
}

/** Commands to one door after another, each with something else that goes wrong, and what the gateway answered to each. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayPlan, LockChange } from '../simulators/zigbee/plan.ts';
import type { Gateway, ZigbeeSite } from '../zigbee-site.ts';
import type { Command } from './judge.ts';

const ROUTER = '00158d00010000aa';
/** A lock that hears a command, does it so much later, and is not heard of meanwhile: its unlock ends unknown. */
const SLOWER_THAN_DEADLINE_MS = 10_600;

/** A parent may hold a frame for so long (docs/interface.md). */
const HELD_AT_MOST_MS = 35_000;

/** How a parent that keeps frames so long hands one over after the deadline, and when it has done so. */
const SLEEPS_LONG = { pollMs: 18_000, awakeMs: 0 };
const HANDED_OVER_MS = 20_000;
const LOCKED = 1;
const LOOK_MS = 100;
/** What no device of a simulated network has. */
const FOREIGN_NWK = 0x7777;
const DOOR_LOCK = 0x0101;
/** An operation event of ZCL (7.3.2.18): unlocked by radio. */
const UNLOCKED_BY_RADIO = '0977200102ffff000000000000';
const HEALED: LockChange = { faults: null, parent: null };

/** Locks of every kind that DESIGN knows: timed, relocking by themselves, bare, with passage mode, and sleeping. */
export function planOf(
  addresses: readonly string[],
  stick: string,
  adapter: NonNullable<GatewayPlan['adapter']>,
): GatewayPlan {
  const kinds = [
    { supportedOperatingModes: 1 },
    { lacksCommands: [3], autoRelockSeconds: 4, supportedOperatingModes: 1 },
    { lacksCommands: [3], supportedOperatingModes: 1 },
    {},
    { sleepy: {}, supportedOperatingModes: 1 },
    { sleepy: { pollMs: 4_000 } },
  ];
  return {
    ieee: stick,
    adapter,
    // Its serial line takes the time of its baud rate, and it that of its start.
    pace: 1,
    routers: [{ ieee: ROUTER, joined: true, holdMs: 30_000 }],
    locks: addresses.map((ieee, index) => ({ ieee, vendorCluster: false, ...kinds[index % kinds.length] })),
  };
}

export interface Lane {
  site: ZigbeeSite;
  gateway: Gateway;
  mac: string;
  /** Of the lock as it is. */
  sleepy: NonNullable<GatewayPlan['locks']>[number]['sleepy'];
  doorId: string;
  random: () => number;
  now(): number;
  /** Resolves when the gateway takes requests and its link is up; false: enough was done. */
  mayGoOn(): Promise<boolean>;
  /** Resolves when the gateway takes requests. */
  isServing(): Promise<void>;
}

type Step = (lane: Lane) => Promise<Command[]>;

const during =
  (change: LockChange): Step =>
  async (lane) => {
    await lane.gateway.simulated.set(lane.mac, change);
    return [await send(lane, kindOf(lane))];
  };

async function isLocked({ gateway, mac }: Lane): Promise<void> {
  while ((await gateway.simulated.state(mac)).lockState !== LOCKED) await sleep(LOOK_MS);
}

function kindOf({ random }: Lane): Command['kind'] {
  const draw = Math.floor(random() * 7);
  return draw < 5 ? 'unlock' : draw < 6 ? 'lock' : 'standOpen';
}

/** What goes wrong during a command. */
export const TROUBLES: Record<string, Step> = {
  async nothing(lane) {
    const commands: Command[] = [];
    for (const kind of ['standOpen', 'unlock', 'lock', 'standOpen'] as const)
      commands.push(await send(lane, kind));
    return commands;
  },
  lostAnswer: during({ faults: { lostResponses: 1 } }),
  lostAnswers: during({ faults: { lostResponses: 20 } }),
  lostRequest: during({ faults: { lostRequests: 1 } }),
  noRoute: during({ faults: { confirm: { status: 'NO_ROUTE', frames: 1 } } }),
  lostAcknowledgement: during({ faults: { confirm: { status: 'MAC_NO_ACK', frames: 1, delivered: true } } }),
  expiredThoughDelivered: during({
    faults: { confirm: { status: 'TRANSACTION_EXPIRED', frames: 1, delivered: true }, lostResponses: 1 },
  }),
  duplicates: during({ faults: { duplicates: 3 } }),
  slow: during({ faults: { slowMs: 2_000 } }),
  jammed: during({ faults: { jammed: true } }),
  offline: during({ faults: { offline: true } }),
  answersByDefault: during({ faults: { answersByDefault: true } }),
  missedParent: during({ missedParent: ROUTER }),
  async stuck(lane) {
    // A lock that is open already, and says that it opens, looks like one that does.
    await isLocked(lane);
    return during({ faults: { stuck: true } })(lane);
  },
  relocksAtOnce: during({ faults: { relocksMs: 150 } }),
  saysNotFullyLocked: during({ faults: { misreports: 0 } }),
  lateAnswers: during({ faults: { lagMs: 4_000 } }),
  async slowerThanDeadline(lane) {
    const { simulated } = lane.gateway;
    await simulated.set(lane.mac, { faults: { slowMs: SLOWER_THAN_DEADLINE_MS } });
    const first = await send(lane, 'unlock');
    // The event of the first arrives while the second is lost.
    await simulated.set(lane.mac, { faults: { slowMs: null, lostRequests: 1 } });
    return [first, await send(lane, 'unlock')];
  },
  async lostEvent(lane) {
    const { simulated } = lane.gateway;
    // The event of the first is lost, and repeated before the second is done, which jams.
    await simulated.set(lane.mac, { faults: { lostEvents: 1 } });
    const first = await send(lane, 'unlock');
    await simulated.set(lane.mac, { faults: { lostEvents: null, jammed: true, slowMs: 2_000 } });
    return [first, await send(lane, 'unlock')];
  },
  async replayed(lane) {
    const { simulated } = lane.gateway;
    await simulated.set(lane.mac, { faults: { replays: { frames: 20, afterMs: 4_000 } } });
    const first = await send(lane, 'unlock');
    // What was said to the first is said once more during the second, which does not arrive.
    await simulated.set(lane.mac, { faults: { replays: null, lostRequests: 20 } });
    return [first, await send(lane, 'unlock')];
  },
  async forgedEvent(lane) {
    const { simulated } = lane.gateway;
    await simulated.set(lane.mac, { faults: { lostRequests: 1 } });
    const sent = send(lane, 'unlock');
    const event = { source: FOREIGN_NWK, cluster: DOOR_LOCK, data: UNLOCKED_BY_RADIO };
    await simulated.setGateway({ forged: event });
    return [await sent];
  },
  async forgedJoin(lane) {
    const { simulated } = lane.gateway;
    await simulated.setGateway({ forgedJoin: { ieee: lane.mac, nwk: FOREIGN_NWK } });
    const sent = await send(lane, 'unlock');
    await simulated.set(lane.mac, { announce: true });
    return [sent];
  },
  async forgedJoinElsewhere(lane) {
    const { simulated } = lane.gateway;
    const { locks } = await simulated.stats();
    const other = locks.find(({ ieee }) => ieee !== lane.mac)?.ieee ?? lane.mac;
    const { nwk } = await simulated.state(other);
    // What is sent to the one goes to the other.
    await simulated.setGateway({ forgedJoin: { ieee: lane.mac, nwk } });
    const sent = [await send(lane, 'lock'), await send(lane, 'unlock')];
    for (const mac of [lane.mac, other]) await simulated.set(mac, { announce: true });
    return sent;
  },
  async heldByParent(lane) {
    const { simulated } = lane.gateway;
    await simulated.set(lane.mac, { parent: ROUTER, sleepy: SLEEPS_LONG });
    const begunMs = lane.now();
    const sent = await send(lane, 'unlock');
    await sleep(Math.max(0, begunMs + HANDED_OVER_MS - lane.now()));
    await simulated.set(lane.mac, { sleepy: lane.sleepy ?? null });
    return [{ ...sent, overMs: begunMs + HELD_AT_MOST_MS }];
  },
};

/** `next`: the name of a trouble. */
export async function run(lane: Lane, next: () => string): Promise<Command[]> {
  const commands: Command[] = [];
  while (await lane.mayGoOn()) {
    commands.push(...((await TROUBLES[next()]?.(lane)) ?? []));
    await lane.gateway.simulated.set(lane.mac, HEALED);
  }
  return commands;
}

async function send(lane: Lane, kind: Command['kind']): Promise<Command> {
  const { doorId, now } = lane;
  const begunMs = now();
  const path = kind === 'standOpen' ? 'stand-open' : kind;
  const body = kind === 'standOpen' ? { seconds: 20 } : undefined;
  const outcome = await ask(lane, 'POST', `/access/doors/${doorId}/${path}`, body);
  const answeredMs = now();
  if (kind !== 'standOpen') return { kind, begunMs, answeredMs, overMs: begunMs, outcome };
  const isCertain = (await endStandOpen(lane)) === 'confirmed';
  return { kind, begunMs, answeredMs, overMs: now() + (isCertain ? 0 : HELD_AT_MOST_MS), outcome };
}

async function endStandOpen(lane: Lane): Promise<string> {
  for (;;) {
    const outcome = await ask(lane, 'DELETE', `/access/doors/${lane.doorId}/stand-open`);
    if (outcome !== 'none') return outcome;
    await lane.isServing();
  }
}

async function ask(
  { site }: Lane,
  method: string,
  path: string,
  body?: { seconds: number },
): Promise<string> {
  try {
    const answer = await site.call(method, path, body);
    return answer.status === 200 ? String(answer.body.outcome) : 'unsent';
  } catch {
    // The gateway was killed.
    return 'none';
  }
}

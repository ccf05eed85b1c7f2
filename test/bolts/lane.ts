/** Commands to one door after another, each with something else that goes wrong, and what the gateway answered to each. */
import type { GatewayPlan, LockChange } from '../simulators/zigbee/plan.ts';
import type { Gateway, ZigbeeSite } from '../zigbee-site.ts';
import type { Command } from './judge.ts';

const ROUTER = '00158d00010000aa';
/** A lock that hears a command, does it so much later, and is not heard of meanwhile: its unlock ends unknown. */
const SLOWER_THAN_DEADLINE_MS = 10_600;

/** A parent may hold a frame for so long (docs/interface.md). */
const HELD_AT_MOST_MS = 35_000;

/** What goes wrong during a command. */
const TROUBLES: readonly LockChange[] = [
  {},
  {},
  { faults: { lostResponses: 1 } },
  { faults: { lostResponses: 20 } },
  { faults: { lostRequests: 1 } },
  { faults: { confirm: { status: 'NO_ROUTE', frames: 1 } } },
  { faults: { confirm: { status: 'MAC_NO_ACK', frames: 1, delivered: true } } },
  { faults: { confirm: { status: 'TRANSACTION_EXPIRED', frames: 1, delivered: true }, lostResponses: 1 } },
  { faults: { duplicates: 3 } },
  { faults: { slowMs: 2_000 } },
  { faults: { jammed: true } },
  { faults: { offline: true } },
  { faults: { answersByDefault: true } },
  { missedParent: ROUTER },
];
const HEALED: LockChange = { faults: null, parent: null };

/** Locks of every kind that DESIGN knows: timed, relocking by themselves, bare, with passage mode, and sleeping. */
export function planOf(addresses: readonly string[], stick: string): GatewayPlan {
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
    // Its serial line takes the time of its baud rate, and it that of its start.
    pace: 1,
    routers: [{ ieee: ROUTER, joined: true }],
    locks: addresses.map((ieee, index) => ({ ieee, vendorCluster: false, ...kinds[index % kinds.length] })),
  };
}

export interface Lane {
  site: ZigbeeSite;
  gateway: Gateway;
  mac: string;
  doorId: string;
  random: () => number;
  now(): number;
  /** Resolves when the gateway takes requests and its link is up; false: enough was done. */
  mayGoOn(): Promise<boolean>;
  /** Resolves when the gateway takes requests. */
  isServing(): Promise<void>;
}

export async function run(lane: Lane): Promise<Command[]> {
  const { gateway, mac, random } = lane;
  const { simulated } = gateway;
  const commands: Command[] = [];
  const below = (limit: number) => Math.floor(random() * limit);
  while (await lane.mayGoOn()) {
    const draw = below(10);
    if (draw === 0) {
      await simulated.set(mac, { faults: { slowMs: SLOWER_THAN_DEADLINE_MS } });
      commands.push(await send(lane, 'unlock'));
      // The event of the first arrives while the second is lost.
      await simulated.set(mac, { faults: { slowMs: null, lostRequests: 1 } });
      commands.push(await send(lane, 'unlock'));
    } else if (draw === 1) {
      // The event of the first is lost, and repeated before the second is done, which jams.
      await simulated.set(mac, { faults: { lostEvents: 1 } });
      commands.push(await send(lane, 'unlock'));
      await simulated.set(mac, { faults: { lostEvents: null, jammed: true, slowMs: 2_000 } });
      commands.push(await send(lane, 'unlock'));
    } else {
      await simulated.set(mac, TROUBLES[below(TROUBLES.length)] ?? {});
      commands.push(await send(lane, draw < 7 ? 'unlock' : draw < 8 ? 'lock' : 'standOpen'));
    }
    await simulated.set(mac, HEALED);
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
  const isCertain = kind !== 'standOpen' || (await endStandOpen(lane)) === 'confirmed';
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

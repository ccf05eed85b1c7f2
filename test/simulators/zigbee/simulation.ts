/** A simulated Zigbee network in this process: a stick behind a port, and locks around it. gateway.ts runs it in one of its own. */
import { openRandom } from '../bus/random.ts';
import { openPtyTransport, type Transport } from '../bus/transport.ts';
import { openAir } from './air/air.ts';
import type { Air, AirCounters } from './air/frames.ts';
import type { OpenNode } from './air/node.ts';
import { type Lock, type LockState, openLock } from './lock.ts';
import { openMemoryFile } from './memory-file.ts';
import { openNcp } from './ncp/ncp.ts';
import type { CheckedPlan, GatewayChange, LockChange } from './plan.ts';
import { openRouter } from './router.ts';
import type { JoinOutcome } from './stick/admissions.ts';
import { openStick, type Stick, type StickOptions, type StickState } from './stick/stick.ts';
import { openTime } from './time.ts';
import { openTcpStick } from './transport.ts';

export interface GatewayStats {
  port: string;
  stick: StickState;
  air: AirCounters & { airMs: number; lossRate: number };
  locks: { ieee: string; isJoined: boolean; isReachable: boolean }[];
}

export interface Simulation extends AsyncDisposable {
  readonly port: string;
  readonly locks: readonly string[];
  /** Undefined: there is no such lock. */
  state(ieee: string): LockState | undefined;
  /** A lock or a router asks to join. */
  join(ieee: string): JoinOutcome | undefined;
  /** False: there is no such lock. */
  change(ieee: string, change: LockChange): boolean;
  changeGateway(change: GatewayChange): Promise<void>;
  stats(): GatewayStats;
}

/** Of a frame that is forged nearby. */
const FORGED_LQI = 150;
/** A CC2652 from power-up or reset to SYS_RESET_IND, and an EFR32 to RSTACK. */
const BOOT_MS = 1_000;

export async function openSimulation(plan: CheckedPlan): Promise<Simulation> {
  await using stack = new AsyncDisposableStack();
  const time = stack.use(openTime());
  const random = openRandom(plan.seed);
  const nodes = new Map<string, OpenNode>();
  const routers = new Map<string, OpenNode>();
  const locks = new Map<string, Lock>();
  const memory = stack.use(openMemoryFile(plan.memory, time, () => stick.dump()));
  let { pace } = plan;
  const { stick, plugIn } = openSocket(plan, {
    time,
    pace: () => pace,
    air: () => air,
    kept: memory.kept,
    write: (bytes) => transport.write(bytes),
    started: () => adopt(plan, nodes),
  });
  const air: Air = openAir(time, nodes, stick, plan);
  const parts = { time, random, stick, routers, air: () => air };
  for (const one of plan.routers) {
    const node = openRouter(one, parts);
    routers.set(one.ieee, node);
    nodes.set(one.ieee, node);
  }
  for (const one of plan.locks) {
    const lock = openLock(one, parts);
    locks.set(one.ieee, lock);
    nodes.set(one.ieee, lock.node);
  }
  stick.setSilent(plan.silent);
  const receive = memory.touchedBy((bytes: Uint8Array) => stick.receive(bytes));
  const transport: Transport = stack.use(
    plan.transport === 'tcp'
      ? await openTcpStick(receive, () => stick.cut(), plan.tcpPort)
      : openPtyTransport(plan.link, receive),
  );
  const plug = openPlug(transport);
  const open = stack.move();

  return {
    get port() {
      return plug.port();
    },
    locks: [...locks.keys()],
    state: (ieee) => locks.get(ieee)?.state(),
    join: (ieee) => nodes.get(ieee)?.join(),
    change(ieee, change) {
      const lock = locks.get(ieee);
      const parent = change.parent ?? change.missedParent;
      if (lock && parent && !routers.has(parent)) throw new RangeError(`${parent} is no router`);
      lock?.change(change);
      return lock !== undefined;
    },
    changeGateway(change) {
      pace = change.pace ?? pace;
      return changeGateway({ stick, plugIn, air, transport, plug, nodes }, change);
    },
    stats: () => ({
      port: plug.port(),
      stick: stick.state(),
      air: { ...air.counters, airMs: air.options().airMs, lossRate: air.options().lossRate },
      locks: [...locks.values()].map(({ node }) => ({
        ieee: node.ieee,
        isJoined: node.network !== undefined,
        isReachable: air.reaches(node),
      })),
    }),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

type Surroundings = Pick<StickOptions, 'time' | 'pace' | 'kept' | 'write' | 'started'> & { air: () => Air };

/** `stick`: the one that is plugged in at present, whatever its make. */
function openSocket(plan: CheckedPlan, surroundings: Surroundings) {
  let { adapter } = plan;
  let plugged = openCoordinator(plan, surroundings);
  return {
    stick: new Proxy({} as Stick, { get: (_, name) => Reflect.get(plugged, name) }),
    plugIn(next: NonNullable<GatewayChange['newStick']>): void {
      if (next.adapter === undefined || next.adapter === adapter) {
        plugged.replace(next);
        return;
      }
      ({ adapter } = next);
      plugged.reset(0);
      plugged.setSilent(true);
      const { ieee, stack = plan.stack, keyTable = plan.keyTable } = next;
      plugged = openCoordinator(
        { ...plan, ieee, stack, keyTable, adapter },
        { ...surroundings, kept: undefined },
      );
    },
  };
}

function openCoordinator(plan: CheckedPlan, surroundings: Surroundings): Stick {
  const { ieee, children: childrenMax } = plan;
  const bootMs = plan.bootMs ?? plan.pace * BOOT_MS;
  const both = { ...surroundings, ieee, bootMs, childrenMax };
  if (plan.adapter === 'ember')
    return openNcp({ ...both, version: plan.ezspVersion, keyTable: plan.keyTable });
  const { revision, stack, requireKeyExchange: requiresKeyExchange, joinTimeoutMs } = plan;
  return openStick({ ...both, revision, stack, requiresKeyExchange, joinTimeoutMs });
}

interface Parts {
  stick: Stick;
  plugIn(next: NonNullable<GatewayChange['newStick']>): void;
  air: Air;
  transport: Transport;
  plug: ReturnType<typeof openPlug>;
  nodes: ReadonlyMap<string, OpenNode>;
}

async function changeGateway(
  { stick, plugIn, air, transport, plug, nodes }: Parts,
  change: GatewayChange,
): Promise<void> {
  if (change.silent !== undefined) stick.setSilent(change.silent);
  if (change.reading !== undefined) transport.setReading(change.reading);
  if (change.confirm !== undefined) air.fail(change.confirm);
  if (change.full !== undefined) stick.fill(change.full);
  if (change.ash) stick.failAsh?.(change.ash);
  if (change.frames !== undefined) {
    const frameCounter = stick.skipFrames(change.frames);
    for (const node of nodes.values()) node.accepts(frameCounter);
  }
  const { airMs, lossRate, seed, lqiSpread, energies } = change;
  air.change({
    ...(airMs !== undefined && { airMs }),
    ...(lossRate !== undefined && { lossRate }),
    ...(seed !== undefined && { seed }),
    ...(lqiSpread !== undefined && { lqiSpread }),
    ...(energies && { energies }),
  });
  if (change.forged) forge(stick, change.forged);
  if (change.forgedJoin) stick.forgeJoin(change.forgedJoin);
  if (change.newStick) plugIn(change.newStick);
  if (change.selfReset) stick.reset(2);
  if (change.plugged === false) {
    stick.cut();
    await plug.pull();
  }
  if (change.plugged === true || change.drop) await plug.putBack();
}

function forge(stick: Stick, { data, ...head }: NonNullable<GatewayChange['forged']>): void {
  const { source, cluster, profile = 0x0104, endpoint = 1, sourceEndpoint = 1, destination = 0 } = head;
  const body = Buffer.from(data, 'hex');
  const frame = { source, cluster, profile, endpoint, sourceEndpoint, destination, data: body };
  if (stick.network()) stick.hear(frame, { nwk: source, lqi: FORGED_LQI, hops: 1 });
}

/** What is pulled out of the host, and put back. */
function openPlug(transport: Transport) {
  let isIn = true;
  let lastPort = transport.port;
  return {
    /** The one it had, while it is pulled: a pty that is hung up has none. */
    port(): string {
      if (isIn) lastPort = transport.port;
      return lastPort;
    },
    async pull(): Promise<void> {
      isIn = false;
      await transport.hangUp();
    },
    async putBack(): Promise<void> {
      await transport.replug();
      isIn = true;
    },
  };
}

/** Those who have been of the network all along. */
function adopt(plan: CheckedPlan, nodes: ReadonlyMap<string, OpenNode>): void {
  for (const { ieee, joined } of [...plan.routers, ...plan.locks]) {
    const node = nodes.get(ieee);
    if (joined && node && !node.network) node.adopt();
  }
}

/** The coordinator as the device profile sees it. */
import { energyIn, type Neighbour, type ZdoSubject } from '../air/zdo.ts';
import { STATUS } from '../mt/status.ts';
import type { Core, Memory } from './core.ts';
import type { Network } from './nib.ts';

/** Alternate coordinator, router, mains, receiver on, takes addresses. */
const CAPABILITY = 0x8f;
/** A change of the channel waits for its own broadcast to be through (nwkcMaxBroadcastDeliveryTime is 9 s; here less). */
const CHANNEL_MOVE_MS = 500;

/** What of a coordinator of either make the device profile has to do with. */
export interface SubjectCore extends Pick<Core, 'time' | 'air' | 'ieee' | 'later'> {
  memory(): Pick<Memory, 'network' | 'endpoints' | 'children' | 'permitUntil'>;
  nv(): { keep(network: Network): void };
}

export function coordinatorSubject(core: SubjectCore, manufacturerCode: number): ZdoSubject {
  const memory = core.memory();
  return {
    ieee: core.ieee(),
    nwk: 0,
    logicalType: 0,
    capability: CAPABILITY,
    manufacturerCode,
    extendedPanId: memory.network?.extendedPanId ?? Buffer.alloc(8),
    activeEndpoints: [...memory.endpoints.keys()],
    simple: (endpoint) => memory.endpoints.get(endpoint),
    neighbours: () => neighbours(core),
    routes: () =>
      core.air
        .nodes()
        .filter((node) => node.parent !== undefined && node.network)
        .flatMap((node) => {
          const router = node.parent === undefined ? undefined : core.air.byIeee(node.parent);
          return router ? [{ destination: node.nwk, nextHop: router.nwk }] : [];
        }),
    children: () => [...memory.children.values()],
    bindings: [],
    bindingsMax: 0,
    permitJoin(seconds) {
      memory.permitUntil = seconds === 255 ? Number.POSITIVE_INFINITY : core.time.now() + seconds * 1_000;
    },
    energy: energyIn(core.air),
    leave: () => STATUS.zdoNotSupported,
    moveChannel: (mask, updateId) =>
      void core.later(CHANNEL_MOVE_MS, () => {
        const channel = Math.log2(mask);
        if (!memory.network || !Number.isInteger(channel) || channel < 11 || channel > 26) return;
        memory.network = { ...memory.network, channel, updateId, channelMask: mask };
        core.nv().keep(memory.network);
        for (const node of core.air.nodes()) if (!core.air.reaches(node)) node.lost();
      }),
  };
}

function neighbours(core: SubjectCore): Neighbour[] {
  return core.air
    .nodes()
    .filter((node) => node.parent === undefined && core.air.reaches(node))
    .map((node) => ({
      ieee: node.ieee,
      nwk: node.nwk,
      depth: 1,
      lqi: node.lqi,
      type: node.isRouter ? 'router' : 'endDevice',
      isReceiverOn: node.nextPoll(core.time.now()) === undefined,
      relationship: node.isRouter ? 'sibling' : 'child',
    }));
}

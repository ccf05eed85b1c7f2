/** The nodes that a node hears: its parent and its children, as Mgmt_Lqi has them. */
import type { Stick } from '../stick/stick.ts';
import type { Time } from '../time.ts';
import type { Air, Node } from './frames.ts';
import type { Neighbour } from './zdo.ts';

interface Surroundings {
  /** Of the node. */
  ieee: string;
  stick: Stick;
  time: Time;
  air(): Air;
}

/** Of a router. */
export function childrenOf(air: Air, router: string): Node[] {
  return air.nodes().filter((one) => one.parent === router && air.reaches(one));
}

/** `lqi`: of its link to the coordinator. */
export function neighbours(options: Surroundings, lqi: number): Neighbour[] {
  const { ieee: coordinator } = options.stick.state();
  const parent: Neighbour = {
    ieee: coordinator,
    nwk: 0,
    type: 'coordinator',
    isReceiverOn: true,
    relationship: 'parent',
    lqi,
    depth: 0,
  };
  const children = childrenOf(options.air(), options.ieee).map((one): Neighbour => {
    const isReceiverOn = one.nextPoll(options.time.now()) === undefined;
    const head = { ieee: one.ieee, nwk: one.nwk, type: 'endDevice' as const, isReceiverOn };
    return { ...head, relationship: 'child', lqi: one.lqi, depth: 2 };
  });
  return [parent, ...children];
}

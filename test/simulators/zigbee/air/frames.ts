/** What goes through the air of a network, and who takes part. */
import type { ConfirmFaults } from '../plan.ts';
import type { Network } from '../stick/nib.ts';

export interface Aps {
  source: number;
  sourceEndpoint: number;
  destination: number;
  endpoint: number;
  group?: number;
  profile: number;
  cluster: number;
  data: Buffer;
}

/** What of a node the air has to do with. */
export interface Node {
  readonly ieee: string;
  readonly isRouter: boolean;
  /** So long it keeps a frame for a child that sleeps; undefined: as the coordinator does. */
  readonly holdMs: number | undefined;
  readonly nwk: number;
  /** IEEE address of its router; undefined: the coordinator itself. */
  readonly parent: string | undefined;
  /** Of its link to its parent. */
  readonly lqi: number;
  readonly network: Network | undefined;
  readonly isOnline: boolean;
  /** When it asks its parent for frames again; undefined: it always listens. */
  nextPoll(now: number): number | undefined;
  /** Takes one away from its account of frames to lose. */
  misses(): boolean;
  /** False: it has heard this frame counter of its neighbour, or a later one. */
  accepts(frameCounter: number): boolean;
  /** What the sender is answered instead of the truth, if anything. */
  confirmFault(): ConfirmFaults | undefined;
  hear(frame: Aps): void;
  /** Its coordinator has gone to another channel without it. */
  lost(): void;
  /** Is sent away, or goes. */
  leave(isRejoin: boolean): void;
}

/** How a frame reached the coordinator. */
export interface LastHop {
  nwk: number;
  lqi: number;
  hops: number;
}

export interface Station {
  /** Another one after each reset: what waited in its memory is gone. */
  epoch(): object;
  network(): Network | undefined;
  hear(frame: Aps, hop: LastHop): void;
  nextFrameCounter(): number;
  /** Takes this node for its child. */
  hasChild(ieee: string): boolean;
}

export interface AirOptions {
  airMs: number;
  lossRate: number;
  seed: number;
  /** The LQI of a frame is so much better or worse than that of its link. */
  lqiSpread: number;
  /** By channel: how busy it is, 0 to 255. */
  energies?: Readonly<Record<number, number>> | undefined;
}

export interface Air {
  /** `confirm` receives a status of test/simulators/zigbee/mt/status.ts, once. */
  unicast(frame: Aps, isAcknowledged: boolean, confirm: (status: number) => void): void;
  broadcast(frame: Aps): void;
  /** From a node to the coordinator. False: no one can hear it. */
  up(node: Node, frame: Aps): boolean;
  nodes(): Node[];
  byIeee(ieee: string): Node | undefined;
  reaches(node: Node): boolean;
  change(options: Partial<AirOptions>): void;
  options(): AirOptions;
  fail(fault: ConfirmFaults | null): void;
  counters: AirCounters;
}

export interface AirCounters {
  down: number;
  up: number;
  lost: number;
  expired: number;
}

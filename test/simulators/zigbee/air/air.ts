/**
 * The radio between a coordinator and its nodes: who hears whom, when, and what the sender is told about it. Frames are
 * those of the APS layer, so nothing of the radio's own encryption; who has another network key hears nothing.
 */
import { openRandom } from '../../bus/random.ts';
import { CONFIRM_FAULTS, STATUS } from '../mt/status.ts';
import type { ConfirmFaults } from '../plan.ts';
import type { Network } from '../stick/nib.ts';
import type { Time } from '../time.ts';

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
  /** What the sender is told instead of the truth, if anything. */
  confirmFault(): ConfirmFaults | undefined;
  hear(frame: Aps): void;
}

export interface Station {
  /** Another one after each reset: what waited in its memory is gone. */
  epoch(): object;
  network(): Network | undefined;
  hear(frame: Aps, lqi: number): void;
}

export interface AirOptions {
  airMs: number;
  lossRate: number;
  seed: number;
}

export interface Air {
  /** `confirm` is told a status of mt/status.ts, once. */
  unicast(frame: Aps, isAcknowledged: boolean, confirm: (status: number) => void): void;
  broadcast(frame: Aps): void;
  /** From a node to the coordinator. False: nobody can hear it. */
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

/** A radio of 250 kbit/s has no two frames at once. Where its time counts for nothing, each has a turn of its own. */
const UP_GAP_MS = 1;
/** nwkcTransactionPersistenceTime of Z-Stack: so long a parent keeps a frame for a child that sleeps. */
const INDIRECT_MS = 7_000;
/** apscAckWaitDuration times its retries. */
const APS_ACK_MS = 4_800;
/** A route that nobody answers for is given up after so long. */
const NO_ROUTE_MS = 60;

export function openAir(time: Time, nodes: Map<string, Node>, station: Station, initial: AirOptions): Air {
  const losses = openLosses(initial, () => {
    counters.lost += 1;
  });
  const climb = openClimb(time);
  const counters: AirCounters = { down: 0, up: 0, lost: 0, expired: 0 };
  const byIeee = (ieee: string) => nodes.get(ieee);
  const soon = (milliseconds: number, action: () => void) => soonAfter(time, milliseconds, action);
  const reaches = (node: Node): boolean => {
    const parent = node.parent === undefined ? undefined : byIeee(node.parent);
    if (node.parent !== undefined && !(parent && reaches(parent))) return false;
    return node.isOnline && isSame(station.network(), node.network);
  };

  /** Keeps a frame until the node polls, as its parent does. */
  function hold(node: Node, due: number, settled: (isTaken: boolean) => void): void {
    const epoch = station.epoch();
    const wait = Math.min(due - time.now(), INDIRECT_MS);
    time.after(Math.max(0, wait), () => {
      const isKept = node.parent !== undefined || epoch === station.epoch();
      const isTaken = isKept && wait < INDIRECT_MS && reaches(node);
      if (!isTaken) counters.expired += 1;
      settled(isTaken);
    });
  }
  return {
    unicast(frame, isAcknowledged, told) {
      counters.down += 1;
      const node = nodes.values().find(({ nwk, network }) => network && nwk === frame.destination);
      const fault = losses.fault(node);
      if (fault && !(node && fault.delivered))
        return soon(losses.options().airMs, () => told(CONFIRM_FAULTS[fault.status]));
      const confirm = fault ? () => told(CONFIRM_FAULTS[fault.status]) : told;
      if (!node) return soon(Math.max(losses.options().airMs, NO_ROUTE_MS), () => confirm(STATUS.nwkNoRoute));
      /** The first hop is all that the MAC can vouch for. */
      const isDirect = node.parent === undefined;
      const settled = (isHeard: boolean, failure: number) => {
        if (isHeard) return confirm(STATUS.success);
        if (isAcknowledged) return void time.after(APS_ACK_MS, () => confirm(STATUS.apsNoAck));
        confirm(isDirect ? failure : STATUS.success);
      };
      const due = node.nextPoll(time.now());
      if (due !== undefined) {
        if (!isDirect && !isAcknowledged) soon(losses.options().airMs, () => confirm(STATUS.success));
        hold(node, due, (isTaken) => {
          const isHeard = isTaken && deliver(node, frame);
          if (isDirect || isAcknowledged)
            settled(isAcknowledged ? isHeard : isTaken, STATUS.macTransactionExpired);
        });
        return;
      }
      soon(losses.options().airMs, () => {
        if (!reaches(node) || losses.isLost()) return settled(false, STATUS.macNoAck);
        const isHeard = deliver(node, frame);
        settled(isHeard || !isAcknowledged, STATUS.macNoAck);
      });
    },
    broadcast(frame) {
      counters.down += 1;
      soon(losses.options().airMs, () => {
        for (const node of nodes.values()) {
          if (!reaches(node) || losses.isLost()) continue;
          const due = node.nextPoll(time.now());
          if (due === undefined) deliver(node, frame);
          // 0xFFFD is for those who always listen (Zigbee specification, 3.6.5).
          else if (frame.destination === 0xffff)
            hold(node, due, (isTaken) => isTaken && deliver(node, frame));
        }
      });
    },
    up(node, frame) {
      if (!reaches(node)) return false;
      if (losses.isLost()) return true;
      const arrive = () => {
        counters.up += 1;
        const relay = node.parent === undefined ? node : (byIeee(node.parent) ?? node);
        if (station.network()) station.hear(frame, relay.lqi);
      };
      climb(losses.options().airMs, arrive);
      return true;
    },
    nodes: () => [...nodes.values()],
    byIeee,
    reaches,
    change: losses.change,
    options: losses.options,
    fail: losses.fail,
    counters,
  };
}

function isSame(ours: Network | undefined, theirs: Network | undefined): boolean {
  return (
    ours !== undefined &&
    theirs !== undefined &&
    ours.panId === theirs.panId &&
    ours.channel === theirs.channel &&
    ours.key.equals(theirs.key) &&
    ours.extendedPanId.equals(theirs.extendedPanId)
  );
}

/** What is lost by chance, and what fails because it was told to. */
function openLosses(initial: AirOptions, lost: () => void) {
  let options = initial;
  let random = openRandom(options.seed);
  let failing: ConfirmFaults | null = null;
  return {
    isLost(): boolean {
      if (options.lossRate === 0 || random() >= options.lossRate) return false;
      lost();
      return true;
    },
    /** What the confirm of a frame is to say. */
    fault(node: Node | undefined): ConfirmFaults | undefined {
      const own = node?.confirmFault();
      if (own || !failing) return own;
      const fault = failing;
      failing = fault.frames > 1 ? { ...fault, frames: fault.frames - 1 } : null;
      return fault;
    },
    change(changes: Partial<AirOptions>): void {
      options = { ...options, ...changes };
      if (changes.seed !== undefined || changes.lossRate !== undefined) random = openRandom(options.seed);
    },
    options: () => options,
    fail(fault: ConfirmFaults | null): void {
      failing = fault;
    },
  };
}

function deliver(node: Node, frame: Aps): boolean {
  if (node.misses()) return false;
  node.hear(frame);
  return true;
}

/** The way up, which frames share: each in its time, one after the other. */
function openClimb(time: Time): (airMs: number, arrive: () => void) => void {
  let free = 0;
  return (airMs, arrive) => {
    if (airMs === 0) return time.nextTurn(arrive);
    const now = time.now();
    free = Math.max(free + UP_GAP_MS, now + airMs);
    time.after(free - now, arrive);
  };
}

/** At once when there is nothing to wait for: a timer would take a millisecond. */
function soonAfter(time: Time, milliseconds: number, action: () => void): void {
  if (milliseconds > 0) time.after(milliseconds, action);
  else action();
}

/** From the coordinator to its nodes: which way a frame goes, when it is heard, and what the confirm says. */
import { CONFIRM_FAULTS, STATUS } from '../mt/status.ts';
import type { Time } from '../time.ts';
import type { Air, AirCounters, Aps, Node, Station } from './frames.ts';
import type { Losses } from './losses.ts';

/** nwkcTransactionPersistenceTime of Z-Stack: so long a parent keeps a frame for a child that sleeps. */
const INDIRECT_MS = 7_000;
/** apscAckWaitDuration times its retries. */
const APS_ACK_MS = 4_800;
/** A route that no one answers for is given up after so long. */
const NO_ROUTE_MS = 60;

interface Parts {
  time: Time;
  nodes: ReadonlyMap<string, Node>;
  station: Station;
  losses: Losses;
  counters: AirCounters;
  reaches(node: Node): boolean;
}

type Confirm = (status: number) => void;

export function openDownlink(parts: Parts): Pick<Air, 'unicast' | 'broadcast'> {
  const { time, nodes, station, losses, counters, reaches } = parts;
  const { deliver, hold } = openDelivery(parts);
  const soon = (milliseconds: number, action: () => void) => soonAfter(time, milliseconds, action);

  function toNode(node: Node, frame: Aps, isAcknowledged: boolean, confirm: Confirm): void {
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
  }
  /** The coordinator keeps the frame for a child that has another parent by now (AssocList.c ages no child). */
  function toStaleChild(node: Node, confirm: Confirm): void {
    if (node.nextPoll(time.now()) === undefined) {
      soon(losses.options().airMs, () => confirm(STATUS.macNoAck));
      return;
    }
    time.after(INDIRECT_MS, () => {
      counters.expired += 1;
      confirm(STATUS.macTransactionExpired);
    });
  }
  return {
    unicast(frame, isAcknowledged, settled) {
      counters.down += 1;
      const node = nodes.values().find(({ nwk, network }) => network && nwk === frame.destination);
      const { airMs } = losses.options();
      const fault = losses.fault(node);
      if (fault && !(node && fault.delivered))
        return soon(airMs, () => settled(CONFIRM_FAULTS[fault.status]));
      const confirm = fault ? () => settled(CONFIRM_FAULTS[fault.status]) : settled;
      const isChild = node !== undefined && station.hasChild(node.ieee);
      const hasRoute = node && (isChild || node.isRouter || node.parent !== undefined);
      if (!hasRoute) return soon(Math.max(airMs, NO_ROUTE_MS), () => confirm(STATUS.nwkNoRoute));
      if (isChild && node.parent !== undefined) return toStaleChild(node, confirm);
      // Frames go to network addresses: all that have this one, at the same parent, hear it.
      for (const other of nodes.values()) {
        const isTwin = other !== node && other.network && other.nwk === frame.destination;
        if (isTwin && other.parent === node.parent) toNode(other, frame, false, () => undefined);
      }
      toNode(node, frame, isAcknowledged, confirm);
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
  };
}

function openDelivery({ time, nodes, station, counters, reaches }: Parts) {
  /** What each node is to be given at its next polls, the oldest first. */
  const held = new Map<Node, ((isPolled: boolean) => void)[]>();
  return {
    /** Frames are secured hop by hop: the neighbour of the coordinator is the one that checks its counter. */
    deliver(node: Node, frame: Aps): boolean {
      const neighbour = node.parent === undefined ? node : nodes.get(node.parent);
      if (!neighbour?.accepts(station.nextFrameCounter()) || node.misses()) return false;
      node.hear(frame);
      return true;
    },
    /** Keeps a frame until the node polls, as its parent does, which gives it the frames in the order they came. */
    hold(node: Node, due: number, settled: (isTaken: boolean) => void): void {
      const epoch = station.epoch();
      const { parent } = node;
      const holdMs = (parent === undefined ? undefined : nodes.get(parent)?.holdMs) ?? INDIRECT_MS;
      const wait = Math.min(due - time.now(), holdMs);
      const isExpired = wait >= holdMs;
      const frame = (isPolled: boolean) => {
        // What another parent has is not fetched any more; the coordinator forgets what it has when it starts again.
        const isKept = node.parent === parent && (parent !== undefined || epoch === station.epoch());
        const isTaken = isKept && isPolled && reaches(node);
        if (!isTaken) counters.expired += 1;
        settled(isTaken);
      };
      const waiting = held.get(node) ?? [];
      held.set(node, waiting);
      waiting.push(frame);
      time.after(Math.max(0, wait), () => {
        const index = waiting.indexOf(frame);
        if (isExpired && index >= 0) waiting.splice(index, 1)[0]?.(false);
        // It polls earlier than it did when the frames before this one came: it has spoken since.
        else for (const one of waiting.splice(0, index + 1)) one(true);
      });
    },
  };
}

/** At once when there is nothing to wait for: a timer would take a millisecond. */
function soonAfter(time: Time, milliseconds: number, action: () => void): void {
  if (milliseconds > 0) time.after(milliseconds, action);
  else action();
}

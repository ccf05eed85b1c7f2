/**
 * The radio between a coordinator and its nodes: which node hears which, when, and what the sender learns of it. Frames are
 * those of the APS layer, so nothing of the radio's own encryption; who has another network key hears nothing.
 */
import type { Network } from '../stick/nib.ts';
import type { Time } from '../time.ts';
import { openDownlink } from './downlink.ts';
import type { Air, AirCounters, AirOptions, Node, Station } from './frames.ts';
import { openLosses } from './losses.ts';

/** A radio of 250 kbit/s has no two frames at once. Where its time counts for nothing, each has a turn of its own. */
const UP_GAP_MS = 1;
export function openAir(time: Time, nodes: Map<string, Node>, station: Station, initial: AirOptions): Air {
  const losses = openLosses(initial, () => {
    counters.lost += 1;
  });
  const climb = openClimb(time);
  const counters: AirCounters = { down: 0, up: 0, lost: 0, expired: 0 };
  const byIeee = (ieee: string) => nodes.get(ieee);
  const reaches = (node: Node): boolean => {
    const parent = node.parent === undefined ? undefined : byIeee(node.parent);
    if (node.parent !== undefined && !(parent && reaches(parent))) return false;
    return node.isOnline && isSame(station.network(), node.network);
  };

  return {
    ...openDownlink({ time, nodes, station, losses, counters, reaches }),
    up(node, frame) {
      if (!reaches(node)) return false;
      if (losses.isLost()) return true;
      const arrive = () => {
        counters.up += 1;
        const relay = node.parent === undefined ? node : (byIeee(node.parent) ?? node);
        const hops = node.parent === undefined ? 1 : 2;
        if (station.network()) station.hear(frame, { nwk: relay.nwk, lqi: losses.heardLqi(relay.lqi), hops });
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

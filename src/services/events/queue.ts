/**
 * The order in which the events of one connection leave. Without a backlog they leave as they were recorded. With one, an
 * encoder that has a live event overtakes it: all that waits of this encoder goes next, in its order, and the live event
 * behind it. Such encoders take turns, one event each, and the backlog of the others waits for them:
 *
 *   live event of desk-2 ─► lane desk-2 ─┐
 *   live event of desk-7 ─► lane desk-7 ─┼─► window        lanes first, in turn; the backlog when they are empty
 *   backlog, in order of recording ──────┘
 *
 * So everything before an event of the backlog that is sent was sent before it, on a lane or as backlog.
 */
import type { LinkState } from './sink.ts';
import type { SinkTable } from './sink-table.ts';
import type { EventRow } from './table.ts';

/** Rows of the backlog read at a time: bounds memory, and how long one read holds the event loop. */
const PAGE_ROWS = 64;
/** Rows of a lane read at a time. */
const LANE_ROWS = 64;

export interface Next {
  row: EventRow;
  /** On a lane, before the backlog that was recorded earlier. */
  isAhead: boolean;
}

export interface Queue {
  /** Looks for live events, which overtake the backlog. */
  look(): void;
  /** What leaves next; undefined when nothing waits. Reading it takes it out of the reach of the bounds. */
  next(): Next | undefined;
  /** Takes what next() returned. */
  take(): void;
  /** Everything up to here was taken. */
  position(): number;
}

interface Lane {
  encoderId: string;
  page: EventRow[];
}

export function openQueue(
  table: Pick<SinkTable, 'page' | 'pageOf' | 'newcomers' | 'newest'>,
  link: LinkState,
  after: number,
): Queue {
  let page: EventRow[] = [];
  let readThrough = after;
  let position = after;
  let isBehind = false;
  /** Live events up to here have their lanes. */
  let lookedThrough = 0;
  const lanes: Lane[] = [];
  /** How far the lanes of this connection have read, by encoder. */
  const reached = new Map<string, number>();

  function read(): void {
    page = table.page(readThrough, PAGE_ROWS);
    readThrough = page.at(-1)?.seq ?? readThrough;
    link.heldThrough = readThrough;
    const isFull = page.length === PAGE_ROWS;
    if (isFull && !isBehind) lookedThrough = table.newest();
    isBehind = isFull;
  }

  function pass(): void {
    position = page.shift()?.seq ?? position;
  }

  function ofBacklog(): EventRow | undefined {
    for (;;) {
      if (page.length === 0) read();
      const row = page[0];
      if (!row || !link.ahead.has(row.seq)) return row;
      pass();
      link.sentThrough = Math.max(link.sentThrough, position);
    }
  }

  function ofLanes(): EventRow | undefined {
    for (let lane = lanes[0]; lane; lane = lanes[0]) {
      if (lane.page.length === 0) readLane(lane);
      if (lane.page[0]) return lane.page[0];
      lanes.shift();
    }
    return undefined;
  }

  function readLane(lane: Lane): void {
    const { encoderId } = lane;
    const from = Math.max(position, reached.get(encoderId) ?? 0);
    lane.page = table.pageOf(encoderId, from, LANE_ROWS);
    reached.set(encoderId, lane.page.at(-1)?.seq ?? from);
    for (const { seq } of lane.page) link.ahead.add(seq);
  }

  return {
    look() {
      if (!isBehind) return;
      for (const { seq, encoderId } of table.newcomers(lookedThrough, PAGE_ROWS)) {
        lookedThrough = seq;
        if (!lanes.some((lane) => lane.encoderId === encoderId)) lanes.push({ encoderId, page: [] });
      }
    },
    next() {
      const live = ofLanes();
      const row = live ?? ofBacklog();
      return row && { row, isAhead: live !== undefined };
    },
    take() {
      const lane = lanes.shift();
      if (!lane) return pass();
      lane.page.shift();
      lanes.push(lane);
    },
    position: () => position,
  };
}

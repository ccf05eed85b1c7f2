/** The events that are kept, the newest first: what a person looks for who was not there when it happened. */
import type { z } from 'zod';
import type { Database } from '../../platform/database/database.ts';
import type { Principal } from '../../platform/principal.ts';
import { type LiveFilter, passes } from './live-filter.ts';
import type { liveEvent } from './live-types.ts';
import { mayRead } from './readers.ts';
import type { EventTable, LiveRow } from './table.ts';

/** As it was stored, with the place in the log. */
interface KeptEvent {
  seq: number;
  event: z.infer<typeof liveEvent>;
}

/** Events looked at in one turn of the event loop: about 2 ms. */
const SCAN_BATCH = 500;
/** Looked at for one page: a filter that matches little must not occupy the gateway. */
const SCAN_MAX = 20_000;

export interface KeptQuery extends LiveFilter {
  /** Only what stands before this place. */
  cursor?: number | undefined;
  limit: number;
  /** Epoch milliseconds: at this time or later. */
  from?: number | undefined;
  /** Before this time. */
  to?: number | undefined;
}

export interface KeptEvents {
  kept(query: KeptQuery, principal: Principal): Promise<{ items: KeptEvent['event'][]; next: string | null }>;
}

export function openKeptEvents(table: EventTable, database: Pick<Database, 'legible'>): KeptEvents {
  return {
    async kept({ cursor, limit, from, to, ...filter }, principal) {
      const isWithin = (time: string) =>
        (from === undefined || Date.parse(time) >= from) && (to === undefined || Date.parse(time) < to);
      /** Damaged ones are left out. */
      const read = (row: LiveRow) =>
        mayRead(principal, row.type)
          ? database.legible(`event/${row.seq}`, () => {
              const event: KeptEvent['event'] = JSON.parse(row.body);
              return passes(row, filter) && isWithin(event.time) ? { seq: row.seq, event } : undefined;
            })
          : [];
      const begin = Math.min(cursor ?? Number.MAX_SAFE_INTEGER, table.newestLive() + 1);
      const found: KeptEvent[] = [];
      let before = begin;
      while (before - 1 > table.liveFrom() && begin - before < SCAN_MAX) {
        const after = Math.max(table.liveFrom(), before - 1 - SCAN_BATCH);
        const rows = table.livePage(after, SCAN_BATCH).filter(({ seq }) => seq < before);
        found.push(...rows.toReversed().flatMap((row) => read(row).flatMap((one) => one ?? [])));
        before = after + 1;
        if (found.length >= limit) break;
        await new Promise((resolve) => setImmediate(resolve));
      }
      const items = found.slice(0, limit);
      const last = found.length > limit ? items.at(-1)?.seq : undefined;
      const next = last ?? (before - 1 > table.liveFrom() ? before : undefined);
      return { items: items.map(({ event }) => event), next: next === undefined ? null : String(next) };
    },
  };
}

/** The log as live readers see it: places in it, and pages that readers at the same place share. */
import type { Database } from '../../platform/database/database.ts';
import type { EventTable, LiveRow } from './table.ts';

/** Events of one chunk: below 100 KB. */
const PAGE_EVENTS = 64;

/** `<databaseId>-<seq>`: a restored or another database shows in the first part. */
export const EVENT_ID = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-(\d{1,15})$/;

export type ResetReason =
  /** The id is of another database, or of this one before it was restored. */
  | 'UNKNOWN_ID'
  /** Events after the id are no longer kept. */
  | 'NOT_KEPT';

export interface FeedEvent extends LiveRow {
  /** As text/event-stream has it; null: the row is damaged. */
  text: string | null;
}

export interface LiveFeed {
  idOf(seq: number): string;
  newest(): number;
  /** Everything after it is kept. */
  keptAfter(): number;
  /** The ids of the oldest and the newest place to begin at. */
  range(): { lo: string; hi: string };
  /** The seq to go on from; `lost` when there is no way to go on from `after`. Without it, from now on. */
  begin(after: string | undefined): { seq: number; lost?: ResetReason };
  /** What follows `seq`, in order; read once for all who ask until forget(). */
  after(seq: number): FeedEvent[];
  /** There is more in the log. */
  forget(): void;
}

export function openLiveFeed(table: EventTable, database: Pick<Database, 'legible'>): LiveFeed {
  const databaseId = table.databaseId();
  const idOf = (seq: number) => `${databaseId}-${seq}`;
  let page: { after: number; events: FeedEvent[] } | undefined;
  return {
    idOf,
    newest: table.newestLive,
    keptAfter: table.liveFrom,
    range: () => ({ lo: idOf(table.liveFrom()), hi: idOf(table.newestLive()) }),
    begin(after) {
      const newest = table.newestLive();
      if (after === undefined) return { seq: newest };
      const [, id, digits] = EVENT_ID.exec(after) ?? [];
      const seq = Number(digits);
      if (id !== databaseId || seq > newest) return { seq: newest, lost: 'UNKNOWN_ID' };
      return seq < table.liveFrom() ? { seq: newest, lost: 'NOT_KEPT' } : { seq };
    },
    after(seq) {
      if (page?.after !== seq) {
        const textOf = ({ seq, body }: LiveRow) => {
          JSON.parse(body);
          return `id: ${idOf(seq)}\ndata: ${body}\n\n`;
        };
        const events = table.livePage(seq, PAGE_EVENTS).map((row) => {
          const [text = null] = database.legible(`event/${row.seq}`, () => textOf(row));
          return { ...row, text };
        });
        page = { after: seq, events };
      }
      return page.events;
    },
    forget() {
      page = undefined;
    },
  };
}

/** Tokens of programs that end soon: for status and metrics, and announced by an event at each of WARNED_DAYS. */
import type { KnownTime } from '../../platform/known-time.ts';
import type { LiveEvent } from '../events/cloud-event.ts';
import type { LiveEvents } from '../events/events.ts';
import type { TokenRow, TokenTable } from './table.ts';
import type { Collect } from './upkeep.ts';

const DAY_MS = 86_400_000;
/** Days before the end; the first is when status and metrics begin to show it. */
const WARNED_DAYS = [14, 7, 3, 1, 0] as const;
/** Shown so long after its end, so that anyone who looks for the reason finds it. */
const SHOWN_AFTER_MS = 7 * DAY_MS;

export interface EndingToken {
  id: string;
  label: string;
  /** ISO 8601. */
  expiresAt: string;
  /** Whole ones; negative after the end. */
  daysLeft: number;
}

export interface Endings {
  /** Those that end within two weeks, or ended within one; the earliest first. */
  list(): EndingToken[];
  collect: Collect;
}

export function openEndings({
  table,
  time,
  events,
}: {
  table: Pick<TokenTable, 'endingBetween' | 'warned'>;
  time: Pick<KnownTime, 'now'>;
  events: LiveEvents;
}): Endings {
  const daysLeft = ({ expires_at }: TokenRow) => Math.floor((expires_at - time.now()) / DAY_MS);
  const ending = () => {
    const now = time.now();
    return table.endingBetween(now - SHOWN_AFTER_MS, now + WARNED_DAYS[0] * DAY_MS);
  };
  const toWarn = () =>
    ending().flatMap((row) => {
      const days = WARNED_DAYS.findLast((each) => row.expires_at - time.now() <= each * DAY_MS);
      const isDue = days !== undefined && (row.warned_days === null || row.warned_days > days);
      return isDue ? [{ row, days }] : [];
    });
  return {
    list: () =>
      ending().map((row) => ({
        id: row.id,
        label: row.label,
        expiresAt: new Date(row.expires_at).toISOString(),
        daysLeft: daysLeft(row),
      })),
    collect() {
      if (toWarn().length === 0) return undefined;
      return {
        write() {
          for (const { row, days } of toWarn()) {
            events.publish(tokenEnds(row, daysLeft(row)));
            table.warned(row.id, days);
          }
        },
        written: events.wake,
      };
    },
  };
}

/** `daysLeft`: whole ones; negative after its end. */
export function tokenEnds(
  { id, label, expires_at }: Pick<TokenRow, 'id' | 'label' | 'expires_at'>,
  daysLeft: number,
): LiveEvent {
  return {
    type: 'gatehouse.token.expiry.v1',
    source: `tokens/${id}`,
    subject: id,
    data: { tokenId: id, label, expiresAt: new Date(expires_at).toISOString(), daysLeft },
  };
}

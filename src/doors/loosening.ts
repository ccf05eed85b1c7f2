/**
 * A wish that loosens a door, such as stand-open, is for now: if the door has not acknowledged it in time it is
 * withdrawn, so that no door is left open by somebody who has long gone home.
 */
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { LiveEvents } from '../events/events.ts';
import { SYSTEM_PRINCIPAL } from '../principal.ts';
import type { Deliveries } from './deliveries.ts';
import { storeWanted, wantedOf } from './edit.ts';
import { configurationEnded } from './live-events.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** Long enough for a sleeping lock that checks in every few minutes, short enough for whoever asked to be there. */
const LOOSENING_LASTS_MS = 15 * 60_000;
const CHECK_MS = 1_000;

/** In the column `withdrawn`. */
export interface Withdrawn {
  configVersion: number;
  wantedBy: string;
  /** Epoch milliseconds, as is the next. */
  wantedAt: number;
  withdrawnAt: number;
}

export interface LooseningOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  clockSynchronised(): boolean;
  deliveries: Deliveries;
  /** There is something to send. */
  wake(doorId: string): void;
}

export interface Loosening {
  /** After each commit that may have changed what is wanted of a door. */
  noted(doorId: string): void;
  /** Milliseconds until the door's wish is withdrawn, 0 when that is due; undefined: its configuration loosens nothing. */
  leftMs(row: Pick<DoorRow, 'id' | 'loosened_at'>): number | undefined;
  /** Withdraws what was not acknowledged in time; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openLoosening(options: LooseningOptions): Loosening {
  const { database, table, clock } = options;
  /** The wall clock may jump: within one run only the monotonic one counts. */
  const wishes = new Map<string, { loosenedAt: number; deadline: number }>();

  for (const { id, loosened_at } of table.loosened.all()) {
    const passed = clock.now() - loosened_at;
    // Nobody can say how long the gateway was off when either clock is not to be believed.
    const isKnown = options.clockSynchronised() && passed >= 0;
    const left = isKnown ? Math.max(0, LOOSENING_LASTS_MS - passed) : 0;
    wishes.set(id, { loosenedAt: loosened_at, deadline: clock.monotonic() + left });
  }

  function leftMs({ id, loosened_at }: Pick<DoorRow, 'id' | 'loosened_at'>): number | undefined {
    if (loosened_at === null) return undefined;
    const wish = wishes.get(id);
    // Wanted anew, and not noted yet.
    if (wish && wish.loosenedAt !== loosened_at) return LOOSENING_LASTS_MS;
    return Math.max(0, (wish?.deadline ?? Number.NEGATIVE_INFINITY) - clock.monotonic());
  }

  function noted(doorId: string): void {
    const loosenedAt = table.door.get(doorId)?.loosened_at ?? null;
    if (loosenedAt === null) wishes.delete(doorId);
    else if (wishes.get(doorId)?.loosenedAt !== loosenedAt)
      wishes.set(doorId, { loosenedAt, deadline: clock.monotonic() + LOOSENING_LASTS_MS });
  }

  async function withdraw(doorId: string): Promise<void> {
    const isWithdrawn = await database.commit(() => withdrawn(doorId, options, leftMs));
    noted(doorId);
    if (!isWithdrawn) return;
    options.events.wake();
    options.wake(doorId);
  }

  return {
    noted,
    leftMs,
    async run(signal) {
      for (;;) {
        const due = [...wishes].filter(([, { deadline }]) => deadline <= clock.monotonic());
        await Promise.all(due.map(([id]) => withdraw(id)));
        await clock.sleep(CHECK_MS, signal);
      }
    },
  };
}

/** Inside a commit job: false when there was nothing to withdraw any more. */
function withdrawn(
  doorId: string,
  { table, audit, events, clock, deliveries }: LooseningOptions,
  leftMs: Loosening['leftMs'],
): boolean {
  const row = table.door.get(doorId);
  if (!row || row.loosened_at === null || leftMs(row) !== 0) return false;
  const { loosened_at: wantedAt, config_version, config_correlation_id: correlationId } = row;
  const now = clock.now();
  const wish = table.deliveries.all(doorId).find(({ wanted_at }) => wanted_at === wantedAt);
  const wantedBy = wish?.wanted_by ?? row.config_by;
  storeWanted(table, doorId, { ...wantedOf(row), standOpenEnabled: false }, ['standOpenEnabled']);
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId };
  deliveries.changed(doorId, { fields: ['standOpenEnabled'], now, caller, replaced: 'expired' });
  const told: Withdrawn = { configVersion: config_version, wantedBy, wantedAt, withdrawnAt: now };
  table.setWithdrawn.run(JSON.stringify(told), doorId);
  audit.record({
    ...caller,
    action: 'door.configure',
    object: `door/${doorId}`,
    outcome: 'expired',
    detail: { configVersion: config_version, withdrawn: 'standOpenEnabled' },
  });
  events.publish(configurationEnded(row, 'expired'));
  return true;
}

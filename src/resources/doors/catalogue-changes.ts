/**
 * The doors that refer to what has changed in the catalogue are reconfigured: each gets another configuration version. The
 * commit of the catalogue stores one row for all of them, and the doors follow a few in each commit, because encoders and
 * requests wait for each. The row says how far they have come, so that a restart goes on from there.
 *
 * A door that comes to refer to the changed entry meanwhile gets another version by its own change.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Change } from '../../platform/import-plan.ts';
import type { Caller } from '../../platform/principal.ts';
import { openTimeSlice, workAndRest } from '../../platform/time-slice.ts';
import { openWaking } from '../../platform/waking.ts';
import type { DoorContext } from './context.ts';
import type { Deliveries } from './deliveries.ts';
import type { Directory } from './directory.ts';
import type { CatalogueReferences } from './table.ts';

/** Doors in one commit at most; time ends it sooner (src/platform/time-slice.ts). */
const DOORS_PER_COMMIT = 100;
/** Nothing is stored without a wake: a look costs a query, and forgives a wake forgotten. */
const RECHECK_MS = 900_000;

export interface CatalogueChanges {
  /** Inside the commit job that stores the changes in the catalogue. */
  store(changes: readonly Change[], { principal, correlationId }: Caller): void;
  /** Resolves when every door has followed, by the clock of the caller. What ends it before leaves the rest to `run`. */
  follow(clock: Clock, signal: AbortSignal): Promise<void>;
  users(kind: 'group' | 'schedule' | 'template', id: string): string[];
  /** Has `run` see to what was stored. */
  wake(): void;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openCatalogueChanges(
  context: DoorContext,
  deliveries: Deliveries,
  directory: Directory,
  wake: (doorId: string) => void,
): CatalogueChanges {
  const { database, table, audit } = context;
  const waking = openWaking(context.clock);

  /** Inside the commit job: the next doors. */
  function next(clock: Pick<Clock, 'monotonic'>): string[] {
    const change = table.firstCatalogueChange.get();
    if (!change) return [];
    const { seq, changed_by, correlation_id } = change;
    const { all_doors, schedules, templates, done_to } = change;
    const doors = table.referringAfter.all(done_to, all_doors, schedules, templates, DOORS_PER_COMMIT);
    const caller = { principal: { id: changed_by }, correlationId: correlation_id };
    const now = context.clock.now();
    const isOver = openTimeSlice(clock);
    const done: string[] = [];
    for (const { id } of doors) {
      deliveries.changed(id, { fields: ['catalogue'], now, caller });
      done.push(id);
      if (isOver()) break;
    }
    const last = done.at(-1);
    const isMore = done.length < doors.length || doors.length === DOORS_PER_COMMIT;
    if (last !== undefined && isMore) table.setCatalogueChangeDone.run(last, seq);
    else table.deleteCatalogueChange.run(seq);
    return done;
  }

  async function followAll(clock: Clock, signal: AbortSignal): Promise<void> {
    while (table.firstCatalogueChange.get()) {
      signal.throwIfAborted();
      await workAndRest(clock, signal, async () => {
        for (const id of await database.commit(() => next(clock))) wake(id);
        directory.refresh();
      });
    }
  }

  /** Inside a commit job: `3 doors (101, 102, 103)`; [] when none has it. */
  function users(kind: 'group' | 'schedule' | 'template', id: string): string[] {
    const some = table.having[kind].all(id);
    const count = some[0]?.count ?? 0;
    if (count === 0) return [];
    const names = some.map(({ name }) => name).join(', ');
    return [`${count} ${count === 1 ? 'door' : 'doors'} (${names}${count > some.length ? ', …' : ''})`];
  }

  return {
    store(changes, { principal, correlationId }) {
      const references = referencesTo(changes);
      const count = table.countReferring.get(...references)?.count ?? 0;
      if (count === 0) return;
      table.insertCatalogueChange.run(...references, principal.id, correlationId);
      const detail = { doors: count, reason: 'the catalogue changed' };
      const caller = { principal, correlationId };
      audit.record({ ...caller, action: 'door.reconfigure', object: 'door', outcome: 'done', detail });
    },
    async follow(clock, signal) {
      try {
        await followAll(clock, signal);
      } catch (error) {
        waking.wake();
        throw error;
      }
    },
    users,
    wake: waking.wake,
    run: (signal) =>
      waking.run(signal, async () => {
        await followAll(context.clock, signal);
        return RECHECK_MS;
      }),
  };
}

/** What doors refer to, of what differs. */
function referencesTo(changes: readonly Change[]): CatalogueReferences {
  const differing = changes.filter(({ fields }) => fields.length > 0);
  const idsOf = (wanted: string) =>
    JSON.stringify(differing.filter(({ resource }) => resource === wanted).map(({ id }) => id));
  const isSystem = differing.some(({ resource }) => resource === 'system configuration');
  return [Number(isSystem), idsOf('schedule'), idsOf('template')];
}

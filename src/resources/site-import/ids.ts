/**
 * Ids of entries that are new and have none. They follow from what the entry is found by, so that a dry run shows the
 * ids that the import then stores, however often it is asked.
 */
import type { ImportPlan } from '../../platform/import-plan.ts';
import { uuidV5 } from '../../platform/uuid.ts';
import type { DoorEntry } from '../doors/site-entry.ts';
import type { Rs485Entry } from '../rs485/site-entry.ts';

/** `plan` is that of the same entries, without the ids; no id of `taken` is drawn, and those that are drawn are added. */
export function identifiedDoors(
  entries: readonly DoorEntry[],
  plan: ImportPlan,
  systemId: string,
  taken = idsOf(plan),
): DoorEntry[] {
  const draw = drawer(taken, systemId);
  return entries.map((entry, index) =>
    entry.id === undefined && isNew(plan, index)
      ? { ...entry, id: draw('door', String(entry.accessPointId)) }
      : entry,
  );
}

/** As for doors. */
export function identifiedDevices(
  entries: readonly Rs485Entry[],
  plan: ImportPlan,
  systemId: string,
): Rs485Entry[] {
  const draw = drawer(idsOf(plan), systemId);
  return entries.map((entry, index) =>
    entry.deviceId === undefined && isNew(plan, index)
      ? { ...entry, deviceId: draw('rs485 device', entry.bus, entry.hwId) }
      : entry,
  );
}

function idsOf({ changes }: ImportPlan): Set<string> {
  return new Set(changes.map(({ id }) => id));
}

function isNew({ changes }: ImportPlan, index: number): boolean {
  return changes[index]?.change === 'added';
}

/** A device keeps its id when it moves, and its place may be taken by another: hence a number besides. */
function drawer(taken: Set<string>, systemId: string): (...name: string[]) => string {
  return (...name) => {
    let number = 0;
    let id: string;
    do {
      id = uuidV5(systemId, JSON.stringify([...name, number]));
      number += 1;
    } while (taken.has(id));
    taken.add(id);
    return id;
  };
}

/**
 * Ids of entries that are new and have none. They follow from what the entry is found by, so that a dry run shows the
 * ids that the import then stores, however often it is asked.
 */
import type { ImportPlan } from '../import-plan.ts';
import type { DoorEntry, Rs485Entry } from '../site-document.ts';
import { uuidV5 } from '../uuid.ts';

/** `plan` is that of the same entries, without the ids. */
export function identifiedDoors(
  entries: readonly DoorEntry[],
  plan: ImportPlan,
  systemId: string,
): DoorEntry[] {
  const draw = drawer(plan, systemId);
  return entries.map((entry, index) =>
    entry.id === undefined && isNew(plan, index)
      ? { ...entry, id: draw('door', String(entry.accessPointId)) }
      : entry,
  );
}

export function identifiedDevices(
  entries: readonly Rs485Entry[],
  plan: ImportPlan,
  systemId: string,
): Rs485Entry[] {
  const draw = drawer(plan, systemId);
  return entries.map((entry, index) =>
    entry.deviceId === undefined && isNew(plan, index)
      ? { ...entry, deviceId: draw('rs485 device', entry.bus, entry.hwId) }
      : entry,
  );
}

function isNew({ changes }: ImportPlan, index: number): boolean {
  return changes[index]?.change === 'added';
}

/** A device keeps its id when it moves, and its place may be taken by another: hence a number besides. */
function drawer({ changes }: ImportPlan, systemId: string): (...name: string[]) => string {
  const taken = new Set(changes.map(({ id }) => id));
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

/** The RS-485 device resource: reads and edits (4.5). */
import type { Database } from '../../platform/database/database.ts';
import { assertIfMatch, assertSameId } from '../../platform/http/editing.ts';
import type { Editor } from '../../platform/principal.ts';
import { rs485Entries } from './import.ts';
import type { LetGo } from './let-go.ts';
import type { Edit, ListQuery, Rs485Device } from './schema.ts';
import { deviceFrom, type ShownOptions } from './shown.ts';
import type { Rs485Entry } from './site-entry.ts';
import { refuseUnsupported } from './supported.ts';
import { existing, type Rs485Row, type Rs485Table } from './table.ts';
import { changedFields, edited, isTravelling, refuseTakenDoor, wantedOf, writeWanted } from './wanted.ts';

export interface DevicesOptions extends ShownOptions {
  letGo: LetGo;
}

export interface Devices {
  get(deviceId: string): { device: Rs485Device; revision: number };
  list(query: ListQuery): { items: Rs485Device[]; next: string | null };
  entries(): Rs485Entry[];
  countInGroup(groupId: string): number;
  update(
    deviceId: string,
    edit: Edit & { deviceId?: string | undefined },
    caller: Editor,
  ): Promise<{ device: Rs485Device; revision: number }>;
}

export function openDevices(options: DevicesOptions): Devices {
  const { database, table, audit, clock, settings } = options;
  const { reconciler } = settings;
  const toDevice = deviceFrom(options);

  function get(deviceId: string): { device: Rs485Device; revision: number } {
    const row = existing(table, deviceId);
    return { device: toDevice(row), revision: row.revision };
  }

  return {
    get,
    list: (query) => page(database, (after, limit) => rows(table, query, after, limit), toDevice, query),
    entries: () => rs485Entries(table),
    countInGroup: (groupId) => table.countInGroup.get(groupId)?.count ?? 0,

    async update(deviceId, edit, { principal, correlationId, ifMatch }) {
      assertSameId('deviceId', edit.deviceId, deviceId);
      const { doors, letGo } = await database.commit(() => {
        const row = existing(table, deviceId);
        assertIfMatch(ifMatch, row.revision);
        const before = wantedOf(row);
        const after = edited(before, edit);
        const changed = changedFields(before, after);
        const doors = new Set([before.doorId, after.doorId]);
        const isElsewhere = changed.includes('relayIndex') || changed.includes('doorId');
        const letGo = isElsewhere ? options.letGo(row) : undefined;
        if (changed.length === 0) return { doors, letGo };
        refuseTakenDoor(table, after.doorId, new Set([deviceId]));
        refuseUnsupported(before, after, settings.reported.get(deviceId)?.state?.carries);
        const write = { bumpSettings: isTravelling(changed), now: clock.now(), principalId: principal.id };
        writeWanted(table, deviceId, after, write);
        const object = `rs485/${deviceId}`;
        const detail = { fields: changed };
        audit.record({ principal, action: 'rs485.update', object, outcome: 'done', detail, correlationId });
        return { doors, letGo };
      });
      reconciler.wake(deviceId);
      // The former door too: what stands open there ends.
      for (const doorId of doors) if (doorId !== null) options.relayChanged(doorId);
      await letGo?.();
      return get(deviceId);
    },
  };
}

function rows(
  table: Rs485Table,
  { bus, groupId, doorId, name }: ListQuery,
  after: string,
  limit: number,
): Rs485Row[] {
  return table.page.all(after, bus ?? null, groupId ?? null, doorId ?? null, name ?? '', limit);
}

/** Presence lives in memory, so the filter reads on, page by page, until enough devices match. */
function page(
  database: Pick<Database, 'legible'>,
  read: (after: string, limit: number) => Rs485Row[],
  toDevice: (row: Rs485Row) => Rs485Device,
  { cursor = '', limit, connected }: ListQuery,
): { items: Rs485Device[]; next: string | null } {
  const items: Rs485Device[] = [];
  for (let after = cursor; ; ) {
    const found = read(after, limit + 1);
    for (const row of found) {
      const [device] = database.legible(`rs485/${row.device_id}`, () => toDevice(row));
      if (!device) continue;
      if (connected !== undefined && String(device.connectionState.connected) !== connected) continue;
      if (items.length === limit) return { items, next: items.at(-1)?.deviceId ?? null };
      items.push(device);
    }
    if (found.length <= limit) return { items, next: null };
    after = found.at(-1)?.device_id ?? '';
  }
}

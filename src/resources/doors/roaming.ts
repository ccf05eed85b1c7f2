/** A lock that is heard through another gateway than its door names is there now: the door follows the traffic. */
import { randomUUID } from 'node:crypto';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LiveEvents } from '../../services/events/events.ts';
import { type DuplicateLocks, duplicateMessage } from './duplicate-locks.ts';
import { lockChanged } from './live-events.ts';
import type { Locks } from './locks.ts';
import type { DoorTable } from './table.ts';

export interface RoamingOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
  log: Log;
  locks: Pick<Locks, 'connection' | 'report'>;
  duplicates: Pick<DuplicateLocks, 'judge'>;
  gatewayOfLink(linkId: string): string | undefined;
  networkOf(gatewayId: string): string | null;
  /** After the commit. */
  bound(doorId: string): void;
}

/** After each report of a link. */
export type FollowLock = (linkId: string, subject: string) => void;

type Place = NonNullable<ReturnType<DoorTable['placeOfLock']['get']>>;

export function openRoaming(options: RoamingOptions): FollowLock {
  const { database, table, locks, log } = options;
  const moving = new Set<string>();

  /** What a former gateway still says of a lock is older than what the present one hears. */
  function isHere(place: Place, mac: string, gatewayId: string): boolean {
    if (locks.connection({ mac, gateway_id: gatewayId })?.status !== 'connected') return false;
    const { heardAt } = locks.report({ mac, gateway_id: gatewayId }) ?? {};
    if (heardAt === undefined) return false;
    // A lock that has left counts as connected only when it was heard since (locks.ts).
    if (place.gateway_id === gatewayId) return place.lock_left_at !== null;
    const there = locks.report({ mac, gateway_id: place.gateway_id });
    return heardAt > (there?.heardAt ?? Number.NEGATIVE_INFINITY);
  }

  async function move(place: Place, mac: string, gatewayId: string): Promise<void> {
    await database.commit(() => {
      const row = table.byMac.get(mac);
      if (row?.id !== place.id) return;
      table.setPlace.run(gatewayId, options.networkOf(gatewayId), row.id);
      if (row.gateway_id === gatewayId) return;
      options.audit.record({
        principal: SYSTEM_PRINCIPAL,
        action: 'door.lock-moved',
        object: `door/${row.id}`,
        outcome: 'done',
        detail: { mac, from: row.gateway_id, to: gatewayId },
        correlationId: randomUUID(),
      });
      options.events.publish(lockChanged(row.id, 'moved', { mac, gatewayId }));
    }, 'telemetry');
    options.bound(place.id);
    options.events.wake();
  }

  async function sayDoubled({ id, gateway_id: stays }: Place, mac: string, other: string): Promise<void> {
    log.warn({ door: id, lock: mac }, duplicateMessage(mac, stays ?? '', other));
    await database.commit(() =>
      options.audit.record({
        principal: SYSTEM_PRINCIPAL,
        action: 'door.lock-doubled',
        object: `door/${id}`,
        outcome: 'found',
        detail: { mac, stays, other },
        correlationId: randomUUID(),
      }),
    );
  }

  return (linkId, subject) => {
    const gatewayId = options.gatewayOfLink(linkId);
    if (gatewayId === undefined || !subject.startsWith('device:')) return;
    const mac = subject.slice('device:'.length);
    const place = table.placeOfLock.get(mac);
    if (!place || moving.has(mac) || !isHere(place, mac, gatewayId)) return;
    const isElsewhere = place.gateway_id !== gatewayId;
    const verdict = isElsewhere ? options.duplicates.judge({ ...place, mac }, gatewayId) : 'move';
    if (verdict === 'stay') return;
    moving.add(mac);
    const done = verdict === 'move' ? move(place, mac, gatewayId) : sayDoubled(place, mac, gatewayId);
    done
      // It will be heard of again.
      .catch((error) => log.warn({ lock: mac, err: error }, 'where a lock is now was not stored'))
      .finally(() => moving.delete(mac));
  };
}

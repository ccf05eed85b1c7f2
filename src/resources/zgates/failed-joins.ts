/** Locks that somebody wanted to join, or that wanted to themselves, and did not: for the person who stands before them. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { DriverEvent } from '../../../drivers/contract/driver.ts';
import { type JoinFailure, joinFailed, joinFailure, lockJoined } from '../../../drivers/contract/zgate.ts';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { ShownFailedJoin } from './action-schema.ts';
import type { ZgateContext } from './context.ts';
import { joinHasFailed } from './live-events.ts';
import type { ZgateRow } from './table.ts';

/** Of one gateway, the newest: more than a technician has in a box. */
const KEPT_MAX = 32;
/** What no one has looked into by then is of the past. */
const KEPT_MS = 7 * 86_400_000;
/** The same of the same device is recorded again after this, however often it asks. */
const AGAIN_MS = 600_000;

const kept = z.array(z.object({ mac: z.string(), reason: joinFailure, at: z.number() }));
type FailedJoin = z.infer<typeof kept>[number];

const MESSAGES: Record<JoinFailure, string> = {
  notAllowed:
    'It asked to join while the window was open for others: if it is yours, open the window again with its mac in `allowed`, or without a list.',
  installCode:
    'It did not join with the install code that was entered for it, which the coordinator has forgotten: compare mac and code with what is printed on the lock, open the window again with both, and have the lock ask to join.',
  silent:
    'It joined, and did not say what it is: reset it, bring it nearer to the gateway, and have it join again.',
  noLock:
    'It joined, and is no lock, so it became no door: if it should be one, reset it and have it join again.',
};

export interface FailedJoins {
  /** Resolves when it is durable: true, or false when others have to hear of it as well. */
  event(linkId: string, { kind, data }: DriverEvent): Promise<boolean>;
  /** The newest first. */
  shown(row: ZgateRow): ShownFailedJoin[];
}

export function openFailedJoins(options: ZgateContext): FailedJoins {
  const { database, table, audit, events, clock, log } = options;
  const since = (row: ZgateRow, oldest: number) =>
    storedJson(`zgate/${row.device_id}`, kept, row.failed_joins).filter(({ at }) => at > oldest);
  const keep = (row: ZgateRow, list: FailedJoin[]) =>
    table.setFailedJoins.run(JSON.stringify(list.slice(-KEPT_MAX)), row.device_id);

  /** Inside a commit job. */
  function take(deviceId: string, mac: string, reason: JoinFailure): void {
    const row = table.zgate.get(deviceId);
    if (!row) return;
    const at = clock.now();
    // By number and not by date: a clock that is wrong for a while removes nothing.
    const before = since(row, Number.NEGATIVE_INFINITY);
    const isOld = before.some(
      (one) => one.mac === mac && one.reason === reason && Math.abs(at - one.at) < AGAIN_MS,
    );
    keep(row, [...before.filter((one) => one.mac !== mac), { mac, reason, at }]);
    if (isOld) return;
    const message = MESSAGES[reason];
    audit.record({
      principal: SYSTEM_PRINCIPAL,
      correlationId: randomUUID(),
      action: 'zgate.permit-join',
      object: `zgate/${deviceId}`,
      outcome: 'not-joined',
      detail: { mac, reason, message },
    });
    events.publish(joinHasFailed(deviceId, { mac, reason, message, at: iso(at) }));
  }

  /** Inside a commit job. Wherever it was tried. */
  function forget(mac: string): void {
    for (const row of table.all.all()) {
      const before = since(row, Number.NEGATIVE_INFINITY);
      const after = before.filter((one) => one.mac !== mac);
      if (after.length < before.length) keep(row, after);
    }
  }

  return {
    async event(linkId, { kind, data }) {
      const deviceId = options.gatewayOfLink.get(linkId);
      if (deviceId === undefined) return false;
      if (kind === 'lockJoined') {
        const mac = lockJoined.safeParse(data).data?.hwId;
        if (mac !== undefined) await database.commit(() => forget(mac));
        return false;
      }
      if (kind !== 'joinFailed') return false;
      const { data: failed } = joinFailed.safeParse(data);
      if (!failed)
        log.warn({ link: linkId }, 'a gateway sent a failed join of an unknown form; it was dropped');
      else await database.commit(() => take(deviceId, failed.hwId, failed.reason));
      events.wake();
      return true;
    },
    shown: (row) =>
      since(row, clock.now() - KEPT_MS)
        .map(({ mac, reason, at }) => ({ mac, at: iso(at), reason, message: MESSAGES[reason] }))
        .toReversed(),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/** How a door stands open, who locks it again, and how it was unlocked and locked last, as …/state shows it. */
import type { UserLimits } from '../../../drivers/contract/settings.ts';
import { whenUnreadable } from '../../platform/database/last-read.ts';
import type { LastActuation } from '../../services/actuations/actuations.ts';
import type { Closings } from './closing.ts';
import type { PendingClosing } from './closing-orders.ts';
import type { DoorContext } from './context.ts';
import type { Locks } from './locks.ts';
import type { StandingOpenState } from './openings-schema.ts';
import type { RfPins } from './rf-pin.ts';
import {
  type DoorState,
  type LastLock,
  type LastUnlock,
  lastLockDetail,
  lastUnlockDetail,
} from './schema.ts';
import type { StandOpen } from './stand-open.ts';
import { isGivenUp } from './stand-open-order.ts';
import type { DoorRow } from './table.ts';

export interface OpeningsShown extends DoorContext {
  locks: Pick<Locks, 'report'>;
  standOpen: Pick<StandOpen, 'of' | 'isOn' | 'count'>;
  closings: Pick<Closings, 'pendingOf' | 'alarms'>;
  rfPins: Pick<RfPins, 'has'>;
}

export function openingsOf(
  row: DoorRow,
  options: OpeningsShown,
): Pick<DoorState, 'standingOpen' | 'relock' | 'lockFamily' | 'rfPin' | 'users'> {
  const report = options.locks.report(row);
  const pending = options.closings.pendingOf(row.id);
  return {
    standingOpen: standingOpenOf(row, options),
    relock:
      row.mac === null && pending.length === 0
        ? null
        : {
            by: report?.relock?.by ?? null,
            seconds: report?.relock?.seconds ?? null,
            pending: pending.map(({ since, failure, ...rest }) => ({
              ...rest,
              since: iso(since),
              failure: failure && { ...failure, at: iso(failure.at) },
            })),
          },
    lockFamily: report?.family ?? null,
    users: limitsOf(report?.users),
    rfPin: { required: report?.requiresPin ?? null, isStored: options.rfPins.has(row.mac) },
  };
}

/** Named in the status; of more the list of doors has the rest. */
const NAMED_MAX = 10;

export interface NotLocked {
  notLocked: number;
  notSeenLocked: { doorId: string; name: string | null; accessPointId: number; message: string }[];
}

export function notLockedOf({ closings, lastRead }: Pick<OpeningsShown, 'closings' | 'lastRead'>): NotLocked {
  const alarms = closings.alarms();
  const notSeenLocked = alarms.slice(0, NAMED_MAX).flatMap(({ doorId, reason, since, failure }) => {
    const door = whenUnreadable(
      () => lastRead.door(doorId),
      () => undefined,
    );
    if (!door) return [];
    const why = failure ? `: ${failure.message}` : '';
    const message = `has to be locked since ${iso(since)} (${reason}), and was not seen locked${why}. Lock it, or go and look.`;
    return [{ doorId, name: door.name, accessPointId: door.access_point_id, message }];
  });
  return { notLocked: alarms.length, notSeenLocked };
}

export function standingOpenOf(
  row: Pick<DoorRow, 'id' | 'mac'>,
  { clock, standOpen, closings }: Pick<OpeningsShown, 'clock' | 'standOpen' | 'closings'>,
): StandingOpenState {
  const standing = standOpen.of(row.id);
  if (!standing) {
    const closing = closings
      .pendingOf(row.id)
      .find(({ mac, purpose }) => mac === row.mac && purpose === 'standOpen');
    return closing ? endingOf(closing) : null;
  }
  const { phase, device_id, actor_id, requested_at, since } = standing.row;
  const { failure, endsAt, giveUpAt } = standing;
  const ahead = (at: number) => iso(Math.round(clock.now() + at - clock.monotonic()));
  return {
    state: phase,
    on: standOpen.isOn(row.id),
    via: device_id === null ? 'zigbee' : 'rs485',
    by: actor_id,
    requestedAt: iso(requested_at),
    since: since === null ? null : iso(since),
    until: ahead(endsAt),
    expiresAt: isGivenUp(standing.row) ? ahead(Math.min(endsAt, giveUpAt)) : null,
    failure: failure && { ...failure, at: iso(failure.at) },
  };
}

function endingOf({ failure }: PendingClosing): StandingOpenState {
  return {
    state: 'ending',
    on: false,
    via: 'zigbee',
    by: null,
    requestedAt: null,
    since: null,
    until: null,
    expiresAt: null,
    failure: failure && { code: 'NOT_SEEN_LOCKED', message: failure.message, at: iso(failure.at) },
  };
}

export function lastUnlockOf(last: LastActuation | undefined): LastUnlock | null {
  if (!last) return null;
  const { lateOutcome, ...detail } = lastUnlockDetail.parse(last.detail);
  return { ...lastOf(last, detail), lateOutcome: lateOutcome && { ...lateOutcome, at: iso(lateOutcome.at) } };
}

export function lastLockOf(last: LastActuation | undefined): LastLock | null {
  return last ? lastOf(last, lastLockDetail.parse(last.detail)) : null;
}

function lastOf<Outcome>(
  { at, principalId, outcome: audited }: LastActuation,
  { via, reason, outcome }: { via: LastLock['via']; reason: string | null; outcome?: Outcome | undefined },
) {
  return {
    at: iso(at),
    by: principalId,
    via,
    reason,
    outcome: audited === null ? null : (outcome ?? ('failed' as const)),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

function limitsOf(limits: UserLimits | undefined): DoorState['users'] {
  if (!limits) return null;
  return {
    pins: limits.pins ?? null,
    cards: limits.cards ?? null,
    pinMin: limits.pinMin ?? null,
    pinMax: limits.pinMax ?? null,
    cardMin: limits.cardMin ?? null,
    cardMax: limits.cardMax ?? null,
    weekDays: limits.weekDays ?? null,
    yearDays: limits.yearDays ?? null,
    holidays: limits.holidays ?? null,
  };
}

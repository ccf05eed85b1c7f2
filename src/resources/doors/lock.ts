/** Locks a door now: its lock is sent one command, or what stands open is ended. Never refused because something else is under way. */
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Intent } from '../../services/actuations/actuations.ts';
import { addressOf, answerInTime, deadlineOf } from './lock-links.ts';
import type { LockResult } from './lock-schema.ts';
import type { OpeningContext } from './opening-context.ts';
import { type Attempted, AUDITED, endOf, INTERNAL, noOpener, offline } from './outcome.ts';
import { assertPin } from './rf-pin.ts';
import type { StandOpen } from './stand-open.ts';
import { type DoorRow, existing } from './table.ts';

/** As in the audit. */
export const LOCK = 'door.lock';
const LETS_GO: Attempted = {
  outcome: 'accepted',
  reason: 'the gateway does not renew the relay pulse any more, and the relay opens within 20 s',
};
const GOES_ON: Attempted = {
  outcome: 'unknown',
  reason:
    'the lock command was sent, and the lock has not shown yet that it is locked: a sleeping lock takes up to a minute; …/state shows the outcome',
};
const MOVES: Attempted = {
  outcome: 'waiting',
  reason:
    'nothing was sent yet: the network moves to another channel, and the lock command is sent when it is there; …/state shows the outcome',
};
const CLOSED: Attempted = { outcome: 'confirmed', reason: null };
const NEVER_BEGAN: Attempted = {
  outcome: 'confirmed',
  reason: 'the door did not stand open yet: the waiting request was withdrawn',
};
const NOTHING_OPEN: Attempted = {
  outcome: 'confirmed',
  reason: 'the door did not stand open: there was nothing to end',
};

export interface LockDoor {
  /** Throws NO_LOCK, PIN_REQUIRED, DEVICE_OFFLINE, or STORAGE_UNAVAILABLE when it was sent and is not stored. */
  lock(doorId: string, caller: Caller): Promise<LockResult>;
  /** Resolves with what closes the door; rejects with the same when it is not stored. */
  endStandOpen(doorId: string, caller: Caller): Promise<Attempted>;
}

export function openLockDoor(
  context: OpeningContext,
  standOpen: Pick<StandOpen, 'of' | 'end' | 'isBeginning' | 'isLettingGo'>,
): LockDoor {
  const { clock, lastRead, lockLinks, rfPins, closings, deferredWrites } = context;
  const doors = { door: { get: lastRead.door } };

  /** What is answered before the outcome is known; to be asked for when the request came. */
  function meanwhile({ mac, gateway_id }: DoorRow): () => Attempted {
    const wasMoving = gateway_id !== null && context.zgates.moving(gateway_id) !== undefined;
    return () => (wasMoving && mac !== null && lockLinks.isHeld(mac) ? MOVES : GOES_ON);
  }

  /** Ends what stands open, and has its lock locked. */
  async function endStandOpen(doorId: string, reason: string, caller: Caller): Promise<Attempted> {
    const row = existing(doors, doorId);
    const goesOn = meanwhile(row);
    const asked = standOpen.isBeginning(doorId) ? 'waiting' : undefined;
    const before = standOpen.of(doorId)?.row.phase ?? asked;
    await standOpen.end(doorId, reason, caller);
    if (standOpen.isLettingGo(doorId)) return LETS_GO;
    const closing = row.mac === null ? undefined : closings.attempt(row.mac);
    const closed = closing && (await answerInTime(closing, clock, goesOn));
    if (closed) return closed;
    if (before === undefined) return NOTHING_OPEN;
    return before === 'waiting' ? NEVER_BEGAN : CLOSED;
  }

  async function lockLock(row: DoorRow, mac: string): Promise<Attempted> {
    // What the gateway has to lock anyway is locked now, and tried on.
    const closed = await closings.attempt(mac);
    if (closed) return closed;
    const lock = addressOf(row);
    const data = { hwId: mac, pin: rfPins.pinOf(mac), eventConfirms: true };
    const sending = lockLinks.actuate(lock, { kind: 'lock', data }, deadlineOf('lock'));
    const end = await endOf(sending, row, context.log);
    if ('refusal' in end) throw end.refusal;
    return end.result;
  }

  /** Resolves with what closes the door; rejects with the same when it is not stored. */
  function assertStored<R extends Attempted>(doorId: string, result: R): R {
    const refusal = deferredWrites.refusalOf(doorId);
    if (refusal) throw closedUnstored(result, refusal);
    return result;
  }

  return {
    async endStandOpen(doorId, caller) {
      return assertStored(doorId, await endStandOpen(doorId, 'ended by request', caller));
    },
    async lock(doorId, caller) {
      const row = existing(doors, doorId);
      const goesOn = meanwhile(row);
      const device = lastRead.relay(doorId);
      const standing = standOpen.of(doorId);
      const mac = device ? null : row.mac;
      if (mac === null && !standing && !standOpen.isBeginning(doorId))
        throw nothingToLock(device !== undefined, standOpen.isLettingGo(doorId));
      // Nothing was sent of what waits: it does not change what can be done now.
      if (mac !== null && (!standing || standing.row.phase === 'waiting')) {
        assertPin(mac, context.locks.report(row), rfPins);
        const reason = lockLinks.unreachable(addressOf(row));
        if (reason !== undefined) throw offline(row, reason);
      }
      const via = device ? 'rs485' : 'zigbee';
      const { principal, correlationId, arrivedAt = clock.monotonic() } = caller;
      const object = `door/${doorId}`;
      const intent = { principal, action: LOCK, object, correlationId, way: via, arrivedAt } as const;
      const audit = await auditFor(context, intent, doorId, { via, mac });
      const locked = async (): Promise<LockResult> => {
        try {
          if (await caller.isGone?.())
            throw offline(row, 'the client disconnected before the command was sent');
          const reason = 'the door was locked';
          if (mac !== null) await standOpen.end(doorId, reason, caller);
          const result = mac === null ? await endStandOpen(doorId, reason, caller) : await lockLock(row, mac);
          await audit.end(AUDITED[result.outcome], { via, ...result });
          return { doorId, via, ...result };
        } catch (error) {
          const { code, message } = error instanceof GatehouseError ? error : INTERNAL;
          await audit.end('failed', { via, error: code, reason: message });
          throw error;
        }
      };
      const result = await answerInTime<LockResult>(locked(), clock, () => ({ doorId, via, ...goesOn() }));
      if (audit.refusal) throw closedUnstored(result, audit.refusal);
      return assertStored(doorId, result);
    },
  };
}

/** Locking a door waits for no disk: the audit follows when the intent cannot be stored. */
async function auditFor(
  { actuations, deferredWrites }: OpeningContext,
  intent: Intent,
  doorId: string,
  detail: object,
) {
  const refusal = await actuations.begin(intent, detail).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof GatehouseError && error.code === 'STORAGE_UNAVAILABLE') return error;
      throw error;
    },
  );
  return {
    refusal,
    async end(outcome: string, more: object): Promise<void> {
      if (!refusal) return void (await actuations.end(intent, outcome, more));
      const store = async () => {
        await actuations.begin(intent, detail);
        await actuations.end(intent, outcome, more);
      };
      deferredWrites.add(doorId, 'audit', refusal, { store });
    },
  };
}

function nothingToLock(hasRelay: boolean, isLettingGo: boolean): GatehouseError {
  if (!hasRelay) return noOpener();
  const message = isLettingGo
    ? 'The stand-open of the door has ended, and its relay lets go by itself within 20 s: wait so long, then look at the levels of its device. There is no lock to lock.'
    : 'The door is opened by a relay, which lets go by itself: there is no lock to lock. Wait for the end of its pulse.';
  return new GatehouseError('NO_LOCK', message);
}

/** The answer to a command that closed a door and could not be stored. */
function closedUnstored(
  { outcome, reason }: Attempted,
  { retryAfterSeconds, cause }: GatehouseError,
): GatehouseError {
  const words = reason === null ? outcome : `${outcome}: ${reason}`;
  const sent =
    outcome === 'waiting'
      ? 'The lock command could not be sent yet and is tried again'
      : 'The lock command was sent, or the relay pulse is not renewed any more';
  const message = `${sent} (${words}), and this could not be stored. It is stored when the disk is well: check the disk (gatehouse doctor), and look at the door.`;
  return new GatehouseError('STORAGE_UNAVAILABLE', message, {
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    cause,
  });
}

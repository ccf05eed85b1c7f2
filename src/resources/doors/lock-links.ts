/**
 * How doors reach their locks: over the link of the gateway that each is joined to, how long each command has, and which commands an
 * event of a lock may come of.
 */
import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import { mayOweEvent, type OwedEvents, openOwedEvents } from '../../../drivers/contract/owed-events.ts';
import { type LockApplied, type LockApply, lockApplied } from '../../../drivers/contract/settings.ts';
import { settles } from '../../../drivers/contract/waiting.ts';
import {
  type BoltRead,
  boltRead,
  HELD_FRAME_MS,
  type LockEvent,
  type LockNow,
  type StandingEnded,
  standingEnded,
  type Unlock,
  type Unlocked,
  unlocked,
} from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Field } from '../../platform/field/field.ts';
import type { LinkCommand } from '../../platform/link-command.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { Zgates } from '../zgates/zgates.ts';

/**
 * Of an unlock, from the request to the lock: the time for which a parent may hold the frame of a sleeping lock, and two
 * seconds for the disk and the way to the radio. Later the person who asked may have left the door.
 */
export const DEADLINE_MS = HELD_FRAME_MS + 2_000;

/**
 * An unlock that was released to the lock that the door had before leaves within this time after its request, or never: who gives the
 * door another lock is answered when it has.
 */
export async function formerLeft(
  doorId: string,
  { actuations, clock }: { actuations: Pick<Actuations, 'over'>; clock: Clock },
): Promise<void> {
  await settles(actuations.over(`door/${doorId}`), DEADLINE_MS - HELD_FRAME_MS, clock);
}

/** Locking late does no harm: the frame and, when no report came, a question for the bolt; a parent may hold both. */
const LOCK_DEADLINE_MS = 2 * HELD_FRAME_MS + 4_000;

/**
 * To begin or end standing open takes up to five frames, one after the other, and a parent may hold each. What begins late
 * ends at its time all the same.
 */
const CHANGE_DEADLINE_MS = 60_000;

/** The caller is answered after so long, and the command goes on: many clients give up after 10 s. */
const ANSWER_MS = 9_000;

type LockCommandKind = 'lock' | 'standOpen' | 'endStandOpen';

/** Where a lock is found, as far as is known. */
export interface LockAddress {
  doorId: string;
  gatewayId: string | null;
  networkId: string | null;
}

/** Of a door, or of what is kept for one. */
type Placed = { gateway_id: string | null; network_id: string | null } & (
  | { id: string }
  | { door_id: string }
);

export function addressOf(row: Placed): LockAddress {
  const doorId = 'id' in row ? row.id : row.door_id;
  return { doorId, gatewayId: row.gateway_id, networkId: row.network_id };
}

/** What is sent rejects with a DriverError. */
export interface LockLinks {
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
  /** Why no lock of this gateway can be reached now; undefined when nothing speaks against it. */
  unreachable(lock: LockAddress): string | undefined;
  /** Has the gateway of a lock execute a command. */
  command(lock: LockAddress, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
  /** Has the lock put the configuration in force within `timeoutMs`. */
  applyConfiguration(
    lock: LockAddress,
    apply: LockApply,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<LockApplied>;
  /** Has the lock unlock within `timeoutMs`. Nothing reaches it before `released` resolves; when that rejects, nothing ever does. */
  unlock(lock: LockAddress, unlock: Unlock, timeoutMs: number, released: Promise<void>): Promise<Unlocked>;
  /** Where the bolt is, as the lock answers now; undefined: it does not. */
  readBolt(lock: LockAddress, mac: string): Promise<BoltRead['lockState'] | undefined>;
  /** Has the lock do it within `timeoutMs`. What closes it is sent after the move of its network that is under way, and has that time then. */
  actuate(
    lock: LockAddress,
    command: { kind: LockCommandKind; data: LockNow },
    timeoutMs: number,
  ): Promise<StandingEnded>;
  /** What closes it waits for the end of a move. */
  isHeld(mac: string): boolean;
}

export function openLockLinks(
  zgates: Pick<Zgates, 'linkOf' | 'moving'>,
  field: Pick<Field, 'execute'>,
): LockLinks {
  // Asked for each of a thousand doors: the state of the field would take long to put together.
  const linksUp = new Set<string>();
  const linkOfLock = (gatewayId: string | null) =>
    gatewayId === null ? undefined : zgates.linkOf(gatewayId);
  const command: LockLinks['command'] = ({ gatewayId }, wanted, signal) =>
    field.execute(linkOfLock(gatewayId) ?? '', wanted, signal);
  const held = new Set<{ mac: string }>();

  /** Resolves when its network moves no more. */
  async function moved({ gatewayId }: LockAddress, mac: string): Promise<void> {
    const one = { mac };
    held.add(one);
    for (let move = zgates.moving(gatewayId ?? ''); move; move = zgates.moving(gatewayId ?? ''))
      await move.over;
    held.delete(one);
  }
  return {
    command,
    unreachable({ gatewayId }) {
      const link = linkOfLock(gatewayId);
      if (link === undefined) return `no link reaches the lock (gateway ${gatewayId ?? 'unknown'})`;
      return linksUp.has(link) ? undefined : `link ${link} is down`;
    },
    async applyConfiguration(lock, data, timeoutMs, signal) {
      const wanted: LinkCommand = {
        kind: 'applyConfiguration',
        data: data as Plain,
        timeoutMs,
        movesNothing: true,
      };
      const answer = lockApplied.safeParse(await command(lock, wanted, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the lock did not say what it has in force');
    },
    async unlock(lock, data, timeoutMs, released) {
      // The caller may have gone; what is on its way goes on, and its outcome is wanted.
      const { signal } = new AbortController();
      const wanted: LinkCommand = { kind: 'unlock', data, timeoutMs, released };
      const answer = unlocked.safeParse(await command(lock, wanted, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the gateway did not report the outcome');
    },
    async readBolt(lock, hwId) {
      const wanted: LinkCommand = { kind: 'readBolt', data: { hwId }, timeoutMs: HELD_FRAME_MS };
      const answer = await command(lock, wanted, new AbortController().signal).catch(() => undefined);
      return boltRead.safeParse(answer).data?.lockState;
    },
    async actuate(lock, { kind, data }, timeoutMs) {
      // Locking late does no harm. What opens is refused by the gateway meanwhile.
      if (kind !== 'standOpen') await moved(lock, data.hwId);
      const { signal } = new AbortController();
      const wanted: LinkCommand = { kind, data: data as Plain, timeoutMs };
      // A lock command and the begin of standing open have the same outcomes.
      const answer = standingEnded.safeParse(await command(lock, wanted, signal));
      if (answer.data) return answer.data;
      throw new DriverError('BAD_REPLY', 'the gateway did not report the outcome');
    },
    isHeld: (mac) => held.values().some((one) => one.mac === mac),
    link(linkId, up) {
      if (up) linksUp.add(linkId);
      else linksUp.delete(linkId);
    },
  };
}

export interface OpeningCommand {
  kind: 'unlock' | 'standOpen';
  /** Undefined: it was sent before this start. */
  doorId: string | undefined;
}

/**
 * The same links, with the commands for which the event of a lock may still come (drivers/contract/owed-events.ts): by lock and not by
 * door, since a lock may be at another door when its event comes.
 */
export interface LockCommands extends LockLinks {
  /** When the earliest command was begun that opens the lock and may still arrive or owe its event, monotonic milliseconds; null: none. */
  firstOpenedAt(mac: string): number | null;
  /** The only command that opens of which an event that was heard then may come. */
  onlyOpening(mac: string, heardAt: number): OpeningCommand | undefined;
  openingHeard(mac: string, command: OpeningCommand): void;
  /** The event of the latest one was heard, and can be of no other. */
  isOpeningReported(mac: string): boolean;
  /** An event that says that a lock was locked by radio confirms a command only where it can be of no other. */
  lockingHeard(event: LockEvent): void;
}

/** As in the audit. */
const OPENING = ['door.unlock', 'door.stand-open'];

export function openLockCommands(
  links: LockLinks,
  clock: Clock,
  actuations: Pick<Actuations, 'locksMoved'>,
): LockCommands {
  const opening = openOwedEvents<OpeningCommand>();
  const locking = openOwedEvents<object>();
  const latest = new Map<string, { command: OpeningCommand; isReported: boolean }>();
  // At which moment the earlier run sent them is not known.
  const startedAt = clock.monotonic();
  for (const mac of actuations.locksMoved(OPENING))
    opening.begun(mac, { kind: 'unlock', doorId: undefined }, startedAt);
  // What opens a lock has the gateway lock it later.
  for (const mac of actuations.locksMoved([...OPENING, 'door.lock'])) locking.begun(mac, {}, startedAt);

  async function owing<Command, End>(
    owed: OwedEvents<Command>,
    mac: string,
    command: Command,
    send: () => Promise<End>,
  ): Promise<End> {
    owed.begun(mac, command, clock.monotonic());
    try {
      return await send();
    } catch (error) {
      if (!mayOweEvent(error)) owed.withdrawn(mac, command);
      throw error;
    }
  }
  function owingOpening<End>(mac: string, command: OpeningCommand, send: () => Promise<End>): Promise<End> {
    latest.set(mac, { command, isReported: false });
    return owing(opening, mac, command, send);
  }

  const firstOpenedAt = (mac: string) => opening.firstBegunAt(mac, clock.monotonic());
  return {
    ...links,
    link(linkId, up) {
      links.link(linkId, up);
      // Its next host does not know which frames were heard already.
      if (!up) for (const owed of [opening, locking]) owed.forgotten();
    },
    unlock(lock, data, timeoutMs, released) {
      const command = { kind: 'unlock', doorId: lock.doorId } as const;
      released.catch(() => opening.withdrawn(data.hwId, command));
      return owingOpening(data.hwId, command, () => links.unlock(lock, data, timeoutMs, released));
    },
    actuate(lock, { kind, data }, timeoutMs) {
      const { hwId } = data;
      if (kind === 'standOpen') {
        const known = { ...data, earlierAt: firstOpenedAt(hwId) };
        const command = { kind, doorId: lock.doorId };
        return owingOpening(hwId, command, () => links.actuate(lock, { kind, data: known }, timeoutMs));
      }
      const { eventConfirms, ...rest } = data;
      const sent = eventConfirms && !locking.isOwed(hwId, clock.monotonic()) ? data : rest;
      return owing(locking, hwId, {}, () => links.actuate(lock, { kind, data: sent }, timeoutMs));
    },
    firstOpenedAt,
    onlyOpening: opening.only,
    openingHeard(mac, command) {
      opening.heard(mac, command);
      const one = latest.get(mac);
      if (one?.command === command) one.isReported = true;
    },
    isOpeningReported: (mac) => latest.get(mac)?.isReported ?? false,
    lockingHeard({ kind, what, source, heardAt, hwId }) {
      const isByRadio = kind === 'operation' && what === 'locked' && source === 'rf';
      if (isByRadio && heardAt !== null) locking.take(hwId, heardAt);
    },
  };
}

/** `leftMs`: so long standing open may still begin. */
export function deadlineOf(kind: LockCommandKind, leftMs = CHANGE_DEADLINE_MS): number {
  if (kind === 'lock') return LOCK_DEADLINE_MS;
  return Math.max(DEADLINE_MS, Math.min(CHANGE_DEADLINE_MS, Math.floor(leftMs)));
}

/** The outcome, or `meanwhile` when it is not known within ANSWER_MS. The work goes on. */
export async function answerInTime<T>(work: Promise<T>, clock: Clock, meanwhile: () => T): Promise<T> {
  return (await settles(work, ANSWER_MS, clock)) ? work : meanwhile();
}

/** The locks of the network: what each has reported, and whether it is connected. */
import { type Clock, type DriverContext, DriverError, type Plain } from '../contract/driver.ts';
import { type OwedEvents, openOwedEvents } from '../contract/owed-events.ts';
import type { LockReport } from '../contract/settings.ts';
import type { JoinFailure, LockEvent } from '../contract/zgate.ts';
import { openBoltEvents } from './bolt-events.ts';
import type { Configurer } from './configure.ts';
import { openIntroductions } from './introductions.ts';
import {
  type Earlier,
  type LockRecord,
  lockReportOf,
  recordOf,
  takeEarlier,
  takeHeard,
  takeResumed,
  takeSeen,
} from './lock-record.ts';
import type { Facts } from './messages.ts';
import type { Outbox } from './outbox.ts';
import type { Radio, RadioEvent } from './radio.ts';
import { openRepeated, openReportOrder } from './repeated.ts';
import { integer, isIeee, UINT32_LAST } from './values.ts';

/**
 * Of what a lock says of itself, and of its bolt and its events while it is being unlocked: somebody waits for the answer
 * to that, and would wait for the daemon to take in and store the rest first.
 */
const HELD_MS = 20;

export type Lock = Pick<LockRecord, 'ieee' | 'endpoint' | 'hasOwnCluster' | 'family'>;

/** Throws REFUSED: a lock of this family takes no commands. */
export function commanded(lock: Lock): Lock {
  const reason = lock.family?.takesNoCommands;
  if (reason !== undefined) throw new DriverError('REFUSED', `not sent: ${reason}`);
  return lock;
}

export interface LocksOptions {
  /** The present one: it is another after a channel move. */
  radio(): Radio;
  configurer: Configurer;
  context: Pick<DriverContext, 'clock' | 'log' | 'report'>;
  outbox: Outbox;
  usesOwnCluster: boolean;
  /** Before this start. */
  earlier: Earlier;
  /** An event of the lock says that the bolt moved, and no report followed; or a report of it came late. */
  unreported(ieee: string): void;
  /** A device joined, and no door comes of it. */
  joinFailed(ieee: string, reason: JoinFailure): void;
  /** A lock came or went: what is kept of the network is to be archived. */
  changed(): void;
}

export interface Locks {
  /** Call it after each start of the radio: reports every lock. */
  begin(): void;
  take(event: RadioEvent): void;
  /** Throws INVALID_COMMAND. */
  find(ieee: string): Lock;
  all(): Lock[];
  /** Those to which an exchange or a move of the network got lost, and of which nothing was heard since. */
  missed(): Lock[];
  count(): number;
  /** What the next start of this link is to know of them. */
  known(): Earlier;
  /** Of commands that open a lock: their events are taken in here. */
  readonly owed: OwedEvents<object>;
  /** When the lock last reported that it was unlocked by radio, monotonic milliseconds. */
  operatedAt(ieee: string): number | undefined;
  /** What the lock says from now on; gives back how to stop. */
  listen(ieee: string, hear: (facts: Facts) => void): () => void;
  /**
   * A two-way exchange with the lock begins. Call the returned function with whether it was answered; undefined: its answer was
   * waited for no longer.
   */
  exchange(ieee: string): (answered: boolean | undefined) => void;
  note(ieee: string, values: Partial<LockReport>): void;
  /** Now and then: who has not been heard of is not there. */
  review(): void;
}

export function openLocks(options: LocksOptions): Locks {
  const { clock } = options.context;
  const locks = new Map<string, LockRecord>();
  const reporter = openReporter(options, locks);
  const { report, reportSoon } = reporter;

  const owed = openOwedEvents<object>();
  const comings = openComings(options, locks, reporter, owed);

  return {
    ...comings,
    owed,
    find: (ieee) => known(locks, ieee),
    all: () => [...locks.values()],
    missed: () => [...locks.values()].filter(({ isMissed }) => isMissed),
    count: () => locks.size,
    known: () => knownOf(locks, options.earlier),
    operatedAt: (ieee) => locks.get(ieee)?.operatedAt,
    listen(ieee, hear) {
      const { listeners } = known(locks, ieee);
      listeners.add(hear);
      return () => {
        listeners.delete(hear);
        reporter.release(ieee);
      };
    },
    exchange(ieee) {
      const before = locks.get(ieee)?.frames;
      return (answered) => {
        const lock = locks.get(ieee);
        if (!lock) return;
        // A lock that spoke meanwhile is there, whatever became of the answer. An answer is noticed by its frame
        // (takeSeen): one of before a channel move proves nothing of the channel that the network is on now.
        const hasSpoken = lock.frames !== before;
        lock.isMissed ||= answered === false && !hasSpoken;
        if (answered ?? hasSpoken) lock.report.lastContact = clock.now();
        reportSoon(lock);
      };
    },
    note(ieee, values) {
      const lock = locks.get(ieee);
      if (!lock) return;
      Object.assign(lock.report, values);
      report(lock);
    },
    review() {
      comings.review();
      for (const lock of locks.values()) report(lock);
    },
  };
}

/** After a restore, too: each has been heard of since, or is missed. */
function knownOf(locks: ReadonlyMap<string, LockRecord>, earlier: Earlier): Earlier {
  const missed = earlier.missed.filter((ieee) => !locks.has(ieee));
  const known = {
    lastSeen: { ...earlier.lastSeen },
    heardOn: { ...earlier.heardOn },
    missed,
    restore: false,
  };
  for (const { ieee, report, isMissed } of locks.values()) {
    if (report.lastSeen !== undefined) known.lastSeen[ieee] = report.lastSeen;
    if (report.heardOn !== undefined) known.heardOn[ieee] = report.heardOn;
    if (isMissed) missed.push(ieee);
  }
  return known;
}

interface Reporter {
  /** Never throws. */
  report(lock: LockRecord): void;
  /** In a moment, once: a lock that is unlocked says three things in a row. */
  reportSoon(lock: LockRecord): void;
  /**
   * The next `reportSoon` is at once: a bolt or a door that moved must not be lost with this process. Of a lock that is
   * under a command it is with `release`, or in a moment.
   */
  hurry(lock: LockRecord): void;
  /** A command to the lock is over, and its answer is on its way. */
  release(ieee: string): void;
}

function openReporter({ context, radio }: LocksOptions, locks: ReadonlyMap<string, LockRecord>): Reporter {
  const { clock, log } = context;
  const held = new Set<string>();
  const hurried = new Set<string>();
  let isDue = false;

  function report(lock: LockRecord): void {
    held.delete(lock.ieee);
    hurried.delete(lock.ieee);
    try {
      // Plain, but for optional keys in its type.
      const state = lockReportOf(lock, radio(), clock) as Plain;
      context.report({ subject: `device:${lock.ieee}`, state });
    } catch (error) {
      // While the radio is opened again, as by a channel move, it knows no lock, or not all of it: `begin` reports then.
      log.debug({ lock: lock.ieee, err: error }, 'a lock cannot be reported now');
    }
  }
  function reportHeld(): void {
    isDue = false;
    for (const lock of [...held].flatMap((ieee) => locks.get(ieee) ?? [])) report(lock);
    held.clear();
  }
  function reportHurried(ieee: string): void {
    const lock = locks.get(ieee);
    if (lock && hurried.has(ieee)) report(lock);
  }
  return {
    report,
    hurry: ({ ieee }) => void hurried.add(ieee),
    reportSoon(lock) {
      const { ieee, listeners } = lock;
      if (hurried.has(ieee) && listeners.size === 0) return report(lock);
      held.add(ieee);
      if (isDue) return;
      isDue = true;
      void clock.sleep(HELD_MS).then(reportHeld);
    },
    release(ieee) {
      // After the answer, whose commit it would hold up (src/platform/database/commit.ts).
      if (hurried.has(ieee)) void clock.sleep(0).then(() => reportHurried(ieee));
    },
  };
}

/** Who comes, speaks and goes. */
function openComings(
  options: LocksOptions,
  locks: Map<string, LockRecord>,
  { report, reportSoon, hurry }: Reporter,
  owed: OwedEvents<object>,
): Pick<Locks, 'begin' | 'take' | 'review'> {
  const { context, outbox, radio, usesOwnCluster, earlier, configurer, changed, joinFailed } = options;
  const { clock, log } = context;
  const introductions = openIntroductions({
    radio,
    context,
    outbox,
    configurer,
    changed: report,
    came: changed,
    isPresent: (lock) => locks.get(lock.ieee) === lock,
  });

  function admit(ieee: string): LockRecord | undefined {
    const lock = recordOf(radio().device(ieee), usesOwnCluster, locks.get(ieee));
    if (!lock) return undefined;
    takeEarlier(lock, earlier, clock.now());
    locks.set(ieee, lock);
    if (lock.hasOwnCluster) radio().addCluster(ieee);
    return lock;
  }

  /** A lock that is on the network when the radio begins. */
  function resume(ieee: string): void {
    const isFirst = !locks.has(ieee);
    const lock = admit(ieee);
    if (!lock) return;
    takeResumed(lock, isFirst ? earlier : undefined, radio().channel);
    report(lock);
    introductions.known(lock);
  }

  function interviewed(ieee: string, successful: boolean): void {
    const lock = successful ? admit(ieee) : undefined;
    if (lock) {
      report(lock);
      introductions.heardOf(lock, true);
      return;
    }
    const why = successful ? 'it is no lock' : 'it did not say what it is: let it join again';
    log.info({ device: ieee }, `a device has joined that is no door: ${why}`);
    // A repeater is no lock, and wanted.
    if (radio().device(ieee)?.kind !== 'router') joinFailed(ieee, successful ? 'noLock' : 'silent');
  }

  const emitEvent = (event: LockEvent) => outbox.emit('lockEvent', event);
  const bolts = openBoltEvents(clock, emitEvent, options.unreported);
  const repeated = openRepeated(clock);
  const order = openReportOrder(clock, options.unreported);
  const emitInOrder = openHolding(clock, emitEvent);

  function heard(lock: LockRecord, event: Extract<RadioEvent, { kind: 'heard' }>): void {
    const when = { at: clock.now(), heardAt: clock.monotonic() };
    const { ieee, listeners } = lock;
    if (repeated.isRepeated(event) || order.isBehind(event)) return;
    const { events, facts } = takeFrame(lock, event, { clock, owed }, radio());
    bolts.take(ieee, facts);
    if (facts.lockState !== undefined || facts.doorState !== undefined) hurry(lock);
    for (const one of events) emitInOrder({ hwId: ieee, ...one, ...when }, listeners.size > 0);
    const passed = event.type === 'readResponse' ? unasked(facts) : facts;
    for (const hear of listeners) hear(passed);
  }

  function seen(lock: LockRecord, event: Extract<RadioEvent, { kind: 'seen' }>): void {
    takeSeen(lock, event, radio(), clock);
    reportSoon(lock);
    introductions.heardOf(lock, false);
  }

  function left(ieee: string): void {
    if (!locks.delete(ieee)) return;
    for (const part of [bolts, repeated, order]) part.forget(ieee);
    log.info({ lock: ieee }, 'a lock has left the network');
    outbox.emit('lockLeft', { hwId: ieee });
    changed();
  }

  return {
    review: () => introductions.review(locks.values()),
    begin() {
      for (const { ieee } of radio().devices()) resume(ieee);
    },
    take(event) {
      if (event.kind === 'disconnected') return;
      const lock = locks.get(event.ieee);
      if (event.kind === 'left') left(event.ieee);
      if (event.kind === 'interviewed') interviewed(event.ieee, event.successful);
      if (event.kind === 'joinedAgain' && lock) introductions.joinedAgain(lock);
      // The radio reports each frame twice: its content, then that it came.
      if (event.kind === 'heard' && lock) heard(lock, event);
      if (event.kind === 'seen' && lock) seen(lock, event);
    },
  };
}

/** An operation that the lock reports again after a start of this process is not new either. */
function takeFrame(
  lock: LockRecord,
  event: Extract<RadioEvent, { kind: 'heard' }>,
  { clock, owed }: { clock: Clock; owed: OwedEvents<object> },
  radio: Pick<Radio, 'meta' | 'remember'>,
): ReturnType<typeof takeHeard> {
  lock.lastOperation ??= integer(radio.meta(lock.ieee).lastOperation, 0, UINT32_LAST);
  const { lastOperation: before } = lock;
  const taken = takeHeard(lock, event, clock);
  if (taken.facts.unlockedByRadio) owed.take(lock.ieee, clock.monotonic());
  if (lock.lastOperation !== before) radio.remember(lock.ieee, { lastOperation: lock.lastOperation });
  return taken;
}

/** Emits events in the order in which they came, each at once or, as `isHeld` says, in a moment. */
function openHolding(clock: Clock, emit: (event: LockEvent) => void) {
  const held = new Map<string, LockEvent[]>();
  return (event: LockEvent, isHeld: boolean): void => {
    const before = held.get(event.hwId);
    if (before || !isHeld) {
      if (before) before.push(event);
      else emit(event);
      return;
    }
    const events = [event];
    held.set(event.hwId, events);
    void clock.sleep(HELD_MS).then(() => {
      held.delete(event.hwId);
      for (const one of events) emit(one);
    });
  };
}

function known(locks: ReadonlyMap<string, LockRecord>, ieee: string): LockRecord {
  const lock = locks.get(ieee);
  if (lock) return lock;
  if (!isIeee(ieee)) throw new DriverError('INVALID_COMMAND', `${ieee} is no address of a lock`);
  throw new DriverError('DEVICE_OFFLINE', `lock ${ieee} has left this network, or has not joined it yet`);
}

/**
 * What shows the outcome of a command under way: an answer to a question of somebody else may show the bolt as it was before
 * the command, such as one that is still unlocked from an earlier unlock.
 */
function unasked({ lockState: _, ...facts }: Facts): Facts {
  return facts;
}

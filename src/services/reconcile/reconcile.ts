/**
 * Wanted → applied, once for all who need it: what a client has asked for (a row and its version) is sent to the device
 * until the device reports it in force. Those who need it (door configuration, users and settings of locks, RS-485 settings,
 * Zigbee channels) differ in what they send and in what "reported" means; waiting, retrying, superseding and reporting are
 * the same.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { openDeadline } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { isReported, waitBefore } from '../../platform/supervise.ts';
import { letOthersWork, openTimeSlice } from '../../platform/time-slice.ts';
import { openWaking } from '../../platform/waking.ts';

/** Failures that are logged in one window; each is in …/state anyway. */
const LINES_MAX = 20;
const LINES_WINDOW_MS = 60_000;

/** One thing that is not yet as it is wanted. */
export interface Due {
  id: string;
  /** Of what is wanted; a later version supersedes an earlier one, also while that is on its way. */
  version: number;
}

/** Why the last attempt failed, for …/state. `permanent`: the device refused it, and only a new version is tried. */
export interface ApplyFailure {
  version: number;
  /** DriverErrorCode of drivers/contract/driver.ts; INTERNAL when the gateway itself failed. */
  code: string;
  message: string;
  /** Epoch milliseconds. */
  at: number;
  permanent: boolean;
}

/** What is wanted, and how it is sent. */
export interface Work {
  /**
   * From the table: everything whose wanted version is not the applied one, read at start; or that of one id alone, if
   * so it is, read after its wake: where a thousand wait for a gateway, a change of one must not cost a thousand.
   */
  due(id?: string): Due[];
  /**
   * Sends one version to its device and stores, in a commit of its own, that it is applied. Rejects with a DriverError:
   * REFUSED and INVALID_COMMAND are permanent for that version, everything else is tried again with back-off.
   */
  apply(due: Due, signal: AbortSignal): Promise<void>;
  /**
   * Why nothing can reach the device now; undefined when it may be tried. Asked before each attempt, and cheap: a thousand
   * doors whose gateway is away fail without a thousand attempts.
   */
  unreachable?(id: string): string | undefined;
}

export interface ReconcilerOptions extends Work {
  /** For the log, such as "rs485 settings". */
  name: string;
  clock: Clock;
  log: Log;
  /** From 0 up to 1; Math.random when absent. */
  random?: () => number;
}

/** How many are not as they are wanted, for the status and the metrics. */
export interface ApplySummary {
  /** To be sent, or sent and not in force yet. */
  waiting: number;
  /** The device said no: they wait for another version. */
  refused: number;
}

export interface Reconciler {
  /** Something is wanted, or a device is back: look again at once, forgetting its back-off. */
  wake(id: string): void;
  /** The device was away and is back: as wake; and what it lost meanwhile is no failure of the attempt before. */
  returned(id: string): void;
  /** What is wanted, and is being applied, has this version from now on: what went before counts for it. */
  renumber(id: string, version: number): void;
  /** The last failure of the version wanted now; undefined when there is none. */
  failure(id: string): ApplyFailure | undefined;
  /** Epoch milliseconds of the next attempt; undefined when none is planned. */
  nextAttempt(id: string): number | undefined;
  summary(): ApplySummary;
  /** Works until the signal fires; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}

/** A device that is away is asked seldom; its return wakes it, so that the long wait delays nothing. */
const BACKOFF = { firstMs: 1_000, longestMs: 300_000 };
/** Attempts at once: far below the commands one host takes, so that settings never crowd out an unlock. */
const ATTEMPTS_AT_ONCE = 16;
/** An attempt that has not settled by then is asked to stop: longer than the commands that carry settings take. */
const ATTEMPT_DEADLINE_MS = 120_000;
const late = () => new DriverError('OUTCOME_UNKNOWN', `not settled in ${ATTEMPT_DEADLINE_MS} ms`);
/** All is read again after this, also without a wake: it costs a query, and forgives a wake forgotten. */
const RECHECK_MS = 900_000;
/** What falls due within this of the next falls due with it: a thousand back-offs must not be a thousand looks. */
const TOGETHER_MS = 200;
/** What a device has kept for this long it has taken; what it loses sooner counts as a failure of the attempt. */
const LASTING_MS = 60_000;
/** REFUSED: the device said no · INVALID_COMMAND: no device will ever understand this version. */
const PERMANENT: ReadonlySet<string> = new Set(['REFUSED', 'INVALID_COMMAND']);

/** The device or what it depends on is not there yet, which passes by itself after a start or an edit. */
const AWAY: ReadonlySet<string> = new Set(['DEVICE_OFFLINE', 'NO_REPLY', 'LINK_LOST', 'BUSY']);
/** By then its waits came to a minute or so: longer than devices need after a start. */
const FAILURES_TO_WARN = 8;

/** The reason of an attempt's signal when its end is no failure of the device. */
class Ended extends DriverError {}

interface Attempt {
  of: Wanted;
  stop: AbortController;
  ended: Promise<void>;
}

export function openReconciler(options: ReconcilerOptions): Reconciler {
  const { name, clock, log } = options;
  const list = openWantedList(options);
  const attempts = new Map<string, Attempt>();
  /** Woken, or sent: to be read again. */
  const unread = new Set<string>();
  let readAllAt = Number.NEGATIVE_INFINITY;
  const waking = openWaking(clock);

  async function attempt(one: Wanted, stop: AbortController): Promise<void> {
    const { id } = one;
    try {
      using deadline = openDeadline(ATTEMPT_DEADLINE_MS, clock, late);
      await options.apply({ id, version: one.version }, AbortSignal.any([stop.signal, deadline.signal]));
      one.sentAt = clock.monotonic();
      unread.add(id);
      if (one.failures > 0) log.info({ id, version: one.version }, `${name} of ${id} are applied`);
    } catch (error) {
      if (!(stop.signal.reason instanceof Ended)) list.failed(one, faultOf(error));
    } finally {
      attempts.delete(id);
      waking.wake();
    }
  }

  /**
   * Reads what is wanted when asked to, ends what is superseded, and starts what may start. True when some must wait for another
   * turn: of a thousand wakes or a thousand that are ready, as a gateway with its doors brings them, a slice is looked at. A query for all
   * would take longer at ten thousand doors, whatever has woken.
   */
  function look(): boolean {
    if (clock.monotonic() >= readAllAt + RECHECK_MS) {
      list.read();
      readAllAt = clock.monotonic();
      unread.clear();
    }
    const isOver = openTimeSlice(clock);
    for (const id of unread) {
      unread.delete(id);
      list.read(id);
      if (isOver()) break;
    }
    for (const { of, stop } of attempts.values()) {
      if (list.supersedes(of)) stop.abort(new Ended('OUTCOME_UNKNOWN', 'a newer version is wanted'));
    }
    const ready = list.ready();
    for (const [index, one] of ready.entries()) {
      if (attempts.size >= ATTEMPTS_AT_ONCE || (index > 0 && isOver())) return true;
      if (attempts.has(one.id)) continue;
      const reason = options.unreachable?.(one.id);
      if (reason !== undefined) {
        list.failed(one, { code: 'LINK_LOST', message: reason, isQuiet: true });
        continue;
      }
      const stop = new AbortController();
      attempts.set(one.id, { of: one, stop, ended: attempt(one, stop) });
    }
    return unread.size > 0;
  }

  /** Until a wake, the end of an attempt, or the end of somebody's back-off. */
  const restMs = () =>
    attempts.size >= ATTEMPTS_AT_ONCE ? RECHECK_MS : list.restMs((id) => attempts.has(id));

  function wake(id: string): void {
    unread.add(id);
    list.forgetBackoff(id);
    waking.wake();
  }

  return {
    wake,
    returned(id) {
      list.forgetSent(id);
      wake(id);
    },
    renumber: list.renumber,
    failure: (id) => list.get(id)?.failure,
    nextAttempt(id) {
      const notBefore = attempts.has(id) ? undefined : list.get(id)?.notBefore;
      if (notBefore === undefined || notBefore === Number.POSITIVE_INFINITY) return undefined;
      return Math.round(clock.now() + Math.max(0, notBefore - clock.monotonic()));
    },
    summary: list.summary,
    async run(signal) {
      readAllAt = Number.NEGATIVE_INFINITY;
      let wasFull = false;
      try {
        return await waking.run(signal, async () => {
          // A thousand attempts that fail at once, as while a link is down, would else keep all others waiting.
          if (wasFull) await letOthersWork();
          wasFull = look();
          return unread.size > 0 ? 0 : restMs();
        });
      } finally {
        for (const { stop } of attempts.values())
          stop.abort(new Ended('OUTCOME_UNKNOWN', 'the gateway stops'));
        await Promise.all([...attempts.values()].map(({ ended }) => ended));
      }
    },
  };
}

/** A version that is wanted and not applied. Another version of the same id is another object. */
interface Wanted extends Due {
  failures: number;
  /** Monotonic milliseconds; Infinity: this version is not tried again. */
  notBefore: number;
  failure: ApplyFailure | undefined;
  /** When `apply` resolved, monotonic milliseconds: the table should not list it any more. */
  sentAt: number | undefined;
}

/** Why an attempt failed. That a device does not answer needs no stack; a fault of ours, `err`, does. */
interface Fault {
  code: string;
  message: string;
  err?: unknown;
  /** Of a link that is down, which the log has said once, and not of each device behind it. */
  isQuiet?: boolean;
}

function faultOf(err: unknown): Fault {
  if (err instanceof DriverError) return { code: err.code, message: err.message };
  return { code: 'INTERNAL', message: 'the gateway itself failed; its log says why', err };
}

/** What a thousand devices refuse is said in a few lines. `take` returns how many were left unsaid before. */
function openLines(clock: Pick<Clock, 'monotonic'>) {
  let since = Number.NEGATIVE_INFINITY;
  let said = 0;
  let unsaid = 0;
  return {
    /** Undefined when the line is not to be written. */
    take(): number | undefined {
      if (clock.monotonic() - since >= LINES_WINDOW_MS) {
        since = clock.monotonic();
        said = 0;
      }
      said += 1;
      if (said > LINES_MAX) {
        unsaid += 1;
        return undefined;
      }
      const before = unsaid;
      unsaid = 0;
      return before;
    },
  };
}

/** What is wanted, as last read, and how it went with each version so far. */
function openWantedList({ name, due, clock, log, random = Math.random }: ReconcilerOptions) {
  const lines = openLines(clock);
  const list = new Map<string, Wanted>();

  function failed(one: Wanted, { code, message, err, isQuiet = false }: Fault): void {
    if (list.get(one.id) !== one) return;
    const { id, version } = one;
    const permanent = PERMANENT.has(code);
    one.failures += 1;
    one.failure = { version, code, message, at: clock.now(), permanent };
    const waitMs = permanent ? Number.POSITIVE_INFINITY : waitBefore(one.failures, BACKOFF, random());
    one.notBefore = clock.monotonic() + waitMs;
    if (isQuiet || (!permanent && !isReported(one.failures))) return;
    const unsaid = lines.take();
    if (unsaid === undefined) return;
    const reason = err === undefined ? { code } : { err };
    const isShort = AWAY.has(code) && one.failures < FAILURES_TO_WARN;
    log[isShort ? 'info' : 'warn'](
      { id, version, ...reason, failures: one.failures, permanent, unsaid },
      `${name} of ${id}: ${message}`,
    );
  }

  /** In force. Remembered for a while, so that a device that forgets at once is not sent its settings again and again. */
  function settle(one: Wanted): void {
    if (one.sentAt === undefined) list.delete(one.id);
    one.failure = undefined;
    one.notBefore = Number.POSITIVE_INFINITY;
  }

  return {
    get: (id: string) => list.get(id),
    failed,
    /** Takes over what the table says of all, or of one id. */
    read(id?: string): void {
      const now = new Map(due(id).map(({ id, version }) => [id, version]));
      const known = id === undefined ? list.values() : [list.get(id)];
      for (const one of known) {
        if (!one) continue;
        if (one.sentAt !== undefined && clock.monotonic() - one.sentAt >= LASTING_MS) list.delete(one.id);
        else if (!now.has(one.id)) settle(one);
      }
      for (const [id, version] of now) {
        const one = list.get(id);
        if (one?.version !== version) {
          const notBefore = clock.monotonic();
          list.set(id, { id, version, failures: 0, notBefore, failure: undefined, sentAt: undefined });
        } else if (one.sentAt !== undefined) {
          one.sentAt = undefined;
          failed(one, { code: 'BAD_REPLY', message: 'it was sent, but the device has it not in force' });
        }
      }
    },
    summary(): ApplySummary {
      // What was sent stays listed for a while to see whether it lasts: it waits for nothing.
      const due = [...list.values()].filter(({ sentAt }) => sentAt === undefined);
      const refused = due.filter(({ failure }) => failure?.permanent).length;
      return { waiting: due.length - refused, refused };
    },
    supersedes({ id, version }: Wanted): boolean {
      const one = list.get(id);
      return one !== undefined && one.version !== version;
    },
    /** Those whose time has come; who waits longest comes first, so that no one is passed over for ever. */
    ready(): Wanted[] {
      const now = clock.monotonic();
      const those: Wanted[] = [];
      // Each wake asks, of thousands of which few are ready: a loop takes a third of a filtered copy.
      for (const one of list.values()) if (one.notBefore <= now) those.push(one);
      return those.sort((a, b) => a.notBefore - b.notBefore);
    },
    /** Milliseconds until the next one's time comes, of those who are not being attempted. */
    restMs(isAttempted: (id: string) => boolean): number {
      let earliest = Number.POSITIVE_INFINITY;
      for (const { id, notBefore } of list.values()) {
        // The look-up by an id takes longer than all the rest.
        if (notBefore < earliest && !isAttempted(id)) earliest = notBefore;
      }
      const waitMs = earliest - clock.monotonic();
      return waitMs <= 0 ? 0 : Math.min(RECHECK_MS, Math.max(TOGETHER_MS, waitMs));
    },
    renumber(id: string, version: number): void {
      const one = list.get(id);
      if (one) one.version = version;
    },
    forgetSent(id: string): void {
      if (list.get(id)?.sentAt !== undefined) list.delete(id);
    },
    forgetBackoff(id: string): void {
      const one = list.get(id);
      if (!one || one.failure?.permanent || one.sentAt !== undefined) return;
      one.failures = 0;
      one.notBefore = Math.min(one.notBefore, clock.monotonic());
    },
  };
}

/**
 * The join window of a gateway: opened for a time by somebody the audit names, and closed at its end. The gateway closes
 * it by itself, also when it starts anew; one that is open without a window of ours is told to close it.
 */
import { randomUUID } from 'node:crypto';
import { DriverError } from '../../drivers/driver.ts';
import type { PermitJoin } from '../../drivers/zgate.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../principal.ts';
import type { PermitJoinBody, ShownJoinWindow } from './action-schema.ts';
import { assertReachable, isUnknown, offline, type ReachOptions } from './reach.ts';
import { existing, type ZgateRow, type ZgateTable } from './table.ts';

/** A broadcast that every router hears, and the coordinator's answer. */
const COMMAND_TIMEOUT_MS = 10_000;
const CHECK_MS = 1_000;
/** A gateway reports its own end of the window a moment later; one that has not by then is told. */
const LATE_MS = 3_000;
/** Before it is told again. */
const AGAIN_MS = 10_000;

/** In the column `join_window`. */
export interface JoinWindow {
  /** Epoch milliseconds, as is the next. */
  openedAt: number;
  until: number;
  openedBy: string;
  /** None: whoever asks. */
  allowed: string[];
}

export interface JoiningOptions extends ReachOptions {
  database: Database;
  table: ZgateTable;
  audit: Audit;
  clock: Clock;
  log: Log;
  /** The gateway is there and says that its window is open. */
  isOpen(deviceId: string): boolean;
}

export type Joining = Awaited<ReturnType<typeof openJoining>>;

export async function openJoining(options: JoiningOptions) {
  const { database, table, clock, log } = options;
  const ends = openEnds(options);
  const stray = openStray(options);
  const note = noteIn(options);
  const close = closeIn(options, ends);

  // A gateway closes its window when it starts, as its host did with the daemon.
  for (const { device_id, join_window } of table.all.all())
    if (join_window !== null) await close(device_id, join_window, 'the gateway was started anew');

  async function tell(row: ZgateRow, { seconds, allowed = [], installCodes }: PermitJoinBody): Promise<void> {
    const codes = installCodes.map(({ mac: hwId, code }) => ({ hwId, code }));
    const data: PermitJoin = { seconds, allowed, installCodes: codes };
    const command = { kind: 'permitJoin', data, timeoutMs: COMMAND_TIMEOUT_MS };
    await options.execute(row.link, command, new AbortController().signal);
  }

  async function permit(deviceId: string, body: PermitJoinBody, caller: Caller): Promise<void> {
    const { seconds, allowed = [], installCodes } = body;
    const row = existing(table, deviceId);
    assertReachable(row, options);
    const withInstallCode = installCodes.map(({ mac }) => mac);
    const detail = { seconds, allowed, withInstallCode };
    const before = ends.get(deviceId);
    // What closes waits for no disk. A window that was closed and is stored as open is seen to be closed.
    const closing = seconds === 0 ? tell(row, body) : undefined;
    closing?.catch(() => undefined);
    await database.commit(() => {
      const now = clock.now();
      const window: JoinWindow = {
        openedAt: now,
        until: now + 1_000 * seconds,
        openedBy: caller.principal.id,
        allowed: [...new Set([...allowed, ...withInstallCode])],
      };
      if (seconds > 0) table.setJoinWindow.run(JSON.stringify(window), deviceId);
      note(deviceId, caller, 'accepted', detail);
    });
    const own = seconds > 0 ? ends.after(seconds, 'its time is over') : ends.get(deviceId);
    if (seconds > 0) ends.set(deviceId, own);
    try {
      await (closing ?? tell(row, body));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const isRefused = error instanceof DriverError && error.code === 'INVALID_COMMAND';
      // A window that was open before such a wish still is. After another failure one that is open nevertheless is
      // closed within seconds, for there is no window any more. One that was opened since is another's.
      const isLatest = ends.get(deviceId) === own;
      if (isLatest) ends.set(deviceId, isRefused ? before : ends.after(0, 'it could not be opened'));
      await database.commit(() => {
        if (isRefused && isLatest) table.setJoinWindow.run(before ? row.join_window : null, deviceId);
        note(deviceId, caller, isUnknown(error) ? 'unknown' : 'failed', { reason: message });
      });
      throw isRefused ? notPossible(message) : offline(row, message);
    }
    await database.commit(() => {
      if (seconds === 0) table.setJoinWindow.run(null, deviceId);
      note(deviceId, caller, 'done', detail);
    });
    if (seconds === 0) ends.set(deviceId, undefined);
  }

  return {
    permit,
    shown(row: ZgateRow): ShownJoinWindow | null {
      if (row.join_window === null) return null;
      const { openedAt, until, openedBy, allowed } = JSON.parse(row.join_window) as JoinWindow;
      return { openedAt: iso(openedAt), until: iso(until), openedBy, allowed };
    },
    /** Its host is gone, and the window with it. */
    linkLost(deviceId: string): void {
      if (ends.get(deviceId)) ends.set(deviceId, ends.after(0, 'its link was lost'));
    },
    /** Closes what has come to its end; for supervise. */
    async run(signal: AbortSignal): Promise<never> {
      for (;;) {
        await clock.sleep(CHECK_MS, signal);
        const due = ends.due().map((one) => ({ ...one, row: table.zgate.get(one.deviceId) }));
        for (const { deviceId, row, reason } of due) await close(deviceId, row?.join_window ?? null, reason);
        for (const row of table.all.all()) {
          if (!stray.isDue(row.device_id, ends.get(row.device_id) !== undefined)) continue;
          log.warn(
            { gateway: row.device_id },
            'a gateway lets locks join that nobody asked for: it is told not to',
          );
          await tell(row, { seconds: 0, installCodes: [] }).catch((error) =>
            log.warn({ gateway: row.device_id, err: error }, 'a gateway did not close its join window'),
          );
        }
      }
    },
  };
}

/** Closes the window as it was stored then: one that was opened since stays open. */
function closeIn(options: JoiningOptions, ends: ReturnType<typeof openEnds>) {
  const { database, table } = options;
  const note = noteIn(options);
  return async (deviceId: string, window: string | null, reason: string): Promise<void> => {
    const isClosed = await database.commit(() => {
      if (table.zgate.get(deviceId)?.join_window !== window) return false;
      if (window === null) return true;
      table.setJoinWindow.run(null, deviceId);
      note(deviceId, bySystem(), 'closed', { reason });
      return true;
    });
    if (isClosed) ends.set(deviceId, undefined);
  };
}

interface End {
  /** Monotonic milliseconds. */
  at: number;
  reason: string;
}

/** When windows end, and why. */
function openEnds({ isOpen, clock }: JoiningOptions) {
  const ends = new Map<string, End>();
  /** Windows that their gateways have said to be open. */
  const opened = new Set<string>();

  function reasonOf(deviceId: string, { at, reason }: End): string | undefined {
    if (at <= clock.monotonic()) return reason;
    if (isOpen(deviceId)) opened.add(deviceId);
    // Its network moved to another channel, for one.
    else if (opened.has(deviceId)) return 'the gateway has closed it';
    return undefined;
  }

  return {
    after: (seconds: number, reason: string): End => ({ at: clock.monotonic() + 1_000 * seconds, reason }),
    get: (deviceId: string) => ends.get(deviceId),
    /** undefined: there is no window any more. */
    set(deviceId: string, end: End | undefined): void {
      if (end) ends.set(deviceId, end);
      else {
        ends.delete(deviceId);
        opened.delete(deviceId);
      }
    },
    due: () =>
      [...ends].flatMap(([deviceId, end]) => {
        const reason = reasonOf(deviceId, end);
        return reason === undefined ? [] : [{ deviceId, reason }];
      }),
  };
}

/** Gateways that are open without a window. */
function openStray({ isOpen, clock }: JoiningOptions) {
  /** When each is to be told, monotonic milliseconds. */
  const due = new Map<string, number>();
  return {
    isDue(deviceId: string, hasWindow: boolean): boolean {
      if (hasWindow || !isOpen(deviceId)) {
        due.delete(deviceId);
        return false;
      }
      const at = due.get(deviceId) ?? clock.monotonic() + LATE_MS;
      const isNow = at <= clock.monotonic();
      due.set(deviceId, isNow ? clock.monotonic() + AGAIN_MS : at);
      return isNow;
    },
  };
}

function noteIn({ audit }: JoiningOptions) {
  return (deviceId: string, caller: Caller, outcome: string, detail: Record<string, unknown>): void => {
    const { principal, correlationId } = caller;
    const entry = { action: 'zgate.permit-join', object: `zgate/${deviceId}`, outcome, detail };
    audit.record({ ...entry, principal, correlationId });
  };
}

/** What the gateway itself takes for wrong is an install code. */
function notPossible(message: string): GatehouseError {
  return new GatehouseError('VALIDATION_FAILED', `Not valid: /installCodes: ${message}.`, {
    details: [{ path: '/installCodes', code: 'NOT_POSSIBLE', message }],
  });
}

function bySystem(): Caller {
  return { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

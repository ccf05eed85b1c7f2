/**
 * The join window of a gateway: opened for a time by somebody the audit names, and closed at its end. The gateway closes
 * it by itself, also when it starts again; one that is open without a window of ours is sent the order to close it.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { PermitJoin } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { isUnreadable, whenUnreadable } from '../../platform/database/last-read.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { PermitJoinBody, ShownJoinWindow } from './action-schema.ts';
import type { ZgateContext } from './context.ts';
import { assertReachable, isUnknown, offline } from './reach.ts';
import { existing, type ZgateRow } from './table.ts';

/** A broadcast that every router hears, and the coordinator's answer. */
const COMMAND_TIMEOUT_MS = 10_000;
const CHECK_MS = 1_000;
/** A gateway reports its own end of the window a moment later; one that has not by then is ordered to. */
const LATE_MS = 3_000;
/** Before the command is sent again, or tried to be stored again. */
const AGAIN_MS = 10_000;

/** In the column `join_window`. */
const joinWindow = z.object({
  /** Epoch milliseconds, as is the next. */
  openedAt: z.number(),
  until: z.number(),
  openedBy: z.string(),
  /** None: anyone who asks. */
  allowed: z.array(z.string()),
});
export type JoinWindow = z.infer<typeof joinWindow>;

export interface Joining {
  permit(deviceId: string, body: PermitJoinBody, caller: Caller): Promise<void>;
  shown(row: ZgateRow): ShownJoinWindow | null;
  /** Its host is gone, and the window with it. */
  linkLost(deviceId: string): void;
  /** Closes what has come to its end; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}

/** `isOpen`: the gateway is there and says that its window is open. */
export async function openJoining(
  context: ZgateContext,
  isOpen: (deviceId: string) => boolean,
): Promise<Joining> {
  const { database, table, clock } = context;
  const ends = openEnds(clock, isOpen);
  const note = noteIn(context);
  const send = senderOf(context);
  const close = closeIn(context, ends);
  const closeStray = closeUnexpectedlyOpen(context, isOpen, ends);
  const storeEnded = storeEndedIn(context, ends, close);

  // A gateway closes its window when it starts, as its host did with the daemon.
  for (const { device_id, join_window } of table.all.all())
    if (join_window !== null) await close(device_id, join_window, 'the gateway was started again');

  async function permit(deviceId: string, body: PermitJoinBody, caller: Caller): Promise<void> {
    const { seconds, allowed = [], installCodes } = body;
    const place = seconds === 0 ? placeOf(deviceId, context) : existing(table, deviceId);
    const { join_window: windowBefore } = { join_window: null, ...place };
    assertReachable(place, context);
    const withInstallCode = installCodes.map(({ mac }) => mac);
    const detail = { seconds, allowed, withInstallCode };
    const before = ends.get(deviceId);
    // What closes waits for no disk. A window that was closed and is stored as open is seen to be closed.
    const closing = seconds === 0 ? send(place, body) : undefined;
    closing?.catch(() => undefined);
    const stored = database.commit(() => {
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
    await stored.catch(async (error: unknown) => {
      const isClosed = await closing?.then(
        () => true,
        () => false,
      );
      throw isClosed ? closedUnstored(error) : error;
    });
    const own = seconds > 0 ? ends.after(seconds, 'its time is over') : ends.get(deviceId);
    if (seconds > 0) ends.set(deviceId, own);
    try {
      await (closing ?? send(place, body));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const isRefused = error instanceof DriverError && error.code === 'INVALID_COMMAND';
      // A window that was open before such a wish still is. After another failure one that is open nevertheless is
      // closed within seconds, for there is no window any more. One that was opened since is another's.
      const isLatest = ends.get(deviceId) === own;
      if (isLatest) ends.set(deviceId, isRefused ? before : ends.after(0, 'it could not be opened'));
      await database.commit(() => {
        const isReplaced = seconds > 0 && isRefused && isLatest;
        if (isReplaced) table.setJoinWindow.run(before ? windowBefore : null, deviceId);
        note(deviceId, caller, isUnknown(error) ? 'unknown' : 'failed', { reason: message });
      });
      throw isRefused ? notPossible(message) : offline(place, message);
    }
    await database.commit(() => {
      if (seconds === 0) table.setJoinWindow.run(null, deviceId);
      note(deviceId, caller, 'done', detail);
    });
    if (seconds === 0) ends.set(deviceId, undefined);
  }

  return {
    permit,
    shown(row) {
      if (row.join_window === null) return null;
      const { openedAt, until, openedBy, allowed } = storedJson(
        `zgate/${row.device_id}`,
        joinWindow,
        row.join_window,
      );
      return { openedAt: iso(openedAt), until: iso(until), openedBy, allowed };
    },
    linkLost(deviceId) {
      if (ends.get(deviceId)) ends.set(deviceId, ends.after(0, 'its link was lost'));
    },
    async run(signal) {
      for (;;) {
        await clock.sleep(CHECK_MS, signal);
        // First what needs no disk.
        await closeStray();
        await storeEnded();
      }
    },
  };
}

type GatewayRow = Pick<ZgateRow, 'device_id' | 'link'>;

/** Of a window to be closed, also while nothing can be read: the configuration says where the gateway is. */
function placeOf(deviceId: string, { table, gatewayOfLink }: ZgateContext): GatewayRow | ZgateRow {
  return whenUnreadable<GatewayRow | ZgateRow>(
    () => existing(table, deviceId),
    () => {
      const [link] = gatewayOfLink.entries().find(([, gateway]) => gateway === deviceId) ?? [];
      return link === undefined ? existing(table, deviceId) : { device_id: deviceId, link };
    },
  );
}

function senderOf({ field }: ZgateContext) {
  return async ({ link }: Pick<GatewayRow, 'link'>, body: PermitJoinBody): Promise<void> => {
    const { seconds, allowed = [], installCodes } = body;
    const codes = installCodes.map(({ mac: hwId, code }) => ({ hwId, code }));
    const data: PermitJoin = { seconds, allowed, installCodes: codes };
    const command = { kind: 'permitJoin', data, timeoutMs: COMMAND_TIMEOUT_MS };
    await field.execute(link, command, new AbortController().signal);
  };
}

/** Sends the close command to gateways that are open without a window, or after the end of theirs. */
function closeUnexpectedlyOpen(context: ZgateContext, isOpen: (deviceId: string) => boolean, ends: Ends) {
  const { gatewayOfLink, log, clock } = context;
  const unexpectedlyOpen = openUnexpectedlyOpen(clock, isOpen);
  const send = senderOf(context);
  return async (): Promise<void> => {
    for (const [link, gateway] of gatewayOfLink) {
      if (!unexpectedlyOpen.isDue(gateway, ends.lasts(gateway))) continue;
      log.warn({ gateway }, 'a gateway lets locks join that no one asked for: it is closed');
      await send({ link }, { seconds: 0, installCodes: [] }).catch((error) =>
        log.warn({ gateway, err: error }, 'a gateway did not close its join window'),
      );
    }
  };
}

/** Stores which windows have come to their end. */
function storeEndedIn(
  { table, clock }: ZgateContext,
  ends: Ends,
  close: (deviceId: string, window: string | null, reason: string) => Promise<void>,
) {
  let againAt = Number.NEGATIVE_INFINITY;
  return async (): Promise<void> => {
    if (clock.monotonic() < againAt) return;
    try {
      const due = ends.due().map((one) => ({ ...one, row: table.zgate.get(one.deviceId) }));
      for (const { deviceId, row, reason } of due) await close(deviceId, row?.join_window ?? null, reason);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      againAt = clock.monotonic() + AGAIN_MS;
    }
  };
}

/** Closes the window as it was stored then: one that was opened since stays open. */
function closeIn(context: ZgateContext, ends: Ends) {
  const { database, table } = context;
  const note = noteIn(context);
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

interface Ends {
  after(seconds: number, reason: string): End;
  get(deviceId: string): End | undefined;
  /** A window has not come to its end, whether that is stored or not. */
  lasts(deviceId: string): boolean;
  /** undefined: there is no window any more. */
  set(deviceId: string, end: End | undefined): void;
  due(): { deviceId: string; reason: string }[];
}

/** When windows end, and why. */
function openEnds(clock: Clock, isOpen: (deviceId: string) => boolean): Ends {
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
    after: (seconds, reason) => ({ at: clock.monotonic() + 1_000 * seconds, reason }),
    get: (deviceId) => ends.get(deviceId),
    lasts: (deviceId) => (ends.get(deviceId)?.at ?? Number.NEGATIVE_INFINITY) > clock.monotonic(),
    set(deviceId, end) {
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
function openUnexpectedlyOpen(clock: Clock, isOpen: (deviceId: string) => boolean) {
  /** When the command to each is due, monotonic milliseconds. */
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

function noteIn({ audit }: ZgateContext) {
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

function closedUnstored(error: unknown): unknown {
  if (!isUnreadable(error)) return error;
  const message = 'The gateway has closed its join window, and that could not be stored: see to the disk.';
  return new GatehouseError('STORAGE_UNAVAILABLE', message, { cause: error });
}

function bySystem(): Caller {
  return { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
